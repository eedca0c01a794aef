"""``dbdyno simulate --from RUN``: a run's recorded load under all of its treatments."""

from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.cli.formats import Format
from dbdyno.cli.page_file import refuse_to_overwrite, write_page
from dbdyno.cli.printed import print_document, print_json
from dbdyno.cli.simulating import Running, all_simulated
from dbdyno.errors import UserError

if TYPE_CHECKING:
    from dbdyno.simulation.asked import Asked


# What a run answers itself: fields of what is asked, and their options.
OF_THE_RUN = {
    "files": "a file", "device": "--device", "kernel": "--kernel", "scheduler": "--scheduler", "size_bytes": "--size",
    "nr_requests": "--nr-requests", "queue_depth": "--queue-depth", "tunables": "--set", "fio": "a job",
    "cache": "what goes with --direct 0",
    "seconds": "--seconds", "warm_up": "--warmup", "repeat": "--repeat", "format": "--format", "speed": "--speed",
    "trace_device": "--trace-device", "time_unit": "--time-unit", "length_unit": "--length-unit", "fold": "--fold",
}  # fmt: skip
DEVICE, KERNEL = "hdd-7200", "6.x"  # unless given


def simulate_from(
    folder: Path | None,
    asked: "Asked",
    treatment: str,
    *,
    into: Path | None,
    html: Path | None,
    hosts: Path | None,
    details: bool,
    json_: bool,
) -> None:
    """Predict and print."""
    from dbdyno.report.prediction import document, values
    from dbdyno.simulation.asked import Asked
    from dbdyno.simulation.from_run import planned
    from dbdyno.store.others import last_resort

    if folder is None:
        raise UserError("--treatment is for --from RUN, whose treatments it names")
    if named := [option for name, option in OF_THE_RUN.items()
                 if (getattr(asked, name) or None) != (getattr(Asked((), DEVICE, KERNEL), name) or None)]:  # fmt: skip
        raise UserError(f"--from takes load, devices and queues from the run; leave out {' and '.join(named)}")
    if html is not None:
        refuse_to_overwrite(html)
    with last_resort(folder):
        plan = planned(folder, treatment, asked.replay, asked.seed)
    with Running(on_hosts=hosts is not None) as running:
        each = all_simulated(list(plan.points.values()), into, running, hosts)
    with last_resort(folder):
        prediction = plan.prediction([one.outcome for one in each])
        report = document(prediction, plan.run.title)
    if json_:
        outcomes = [{"point": one.point.point, "outcome": one.outcome} for one in each]
        print_json({**values(prediction), "points": outcomes})
    else:
        print_document(report, Format.TEXT, brief=not details)
    if html is not None:
        write_page(html, report, aside=json_)
