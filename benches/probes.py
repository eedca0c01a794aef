"""What the probes cost beside a load, and whether the block device's columns are those of iostat itself.

    .venv/bin/python -m benches.probes [--seconds 60] [--rounds 3] [--only cost,iostat] [--strict] [--json FILE]

Cost: the same load again and again, watched in three ways in turn: by a thread for each probe, by one thread that makes
sense of each reading at once, and as trials are, by one thread that makes sense of many together.

iostat: reads, writes, flushes and discards by fio on an emulated disk; iostat and the probe watch the same seconds.
"""

import argparse
import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benches.figures import at_most, within, write
from benches.iostat import COLUMNS, compared, mixed_load
from dbdyno.filesystems import EXT4
from dbdyno.probe import sampler
from dbdyno.probe.catalogue import sources_of
from dbdyno.probe.interference import BackgroundLoadSource
from dbdyno.probe.sampler import Sampler
from dbdyno.servers.sources.installation import find_server
from dbdyno.stack.layer import raised
from dbdyno.stack.layers.device import Emulated
from dbdyno.stack.layers.emulated_disk import running_disk
from dbdyno.stack.layers.filesystem import Filesystem
from dbdyno.stack.layers.scratch import scratch
from dbdyno.stack.layers.server import ServerLayer
from dbdyno.stack.undo_log import Journal
from dbdyno.study.schema import FilesystemSection, TrialSpec
from dbdyno.workload.kinds import workload_of

BUDGET_PERCENT = 1.0
WAYS = {"a thread each": (False, 1), "one thread, at once": (True, 1), "one thread, together": (True, sampler.TOGETHER)}


def watched(stand, load, way):
    """Probe to its own and its outside share of one core in percent, while the load runs."""
    one_thread, together = WAYS[way]
    sampler.TOGETHER = together
    sources = sources_of(stand)
    samplers = [Sampler(sources)] if one_thread else [Sampler([source]) for source in sources]
    ours = {stand.endpoint.pid, *stand.journal.processes()}
    background = BackgroundLoadSource(ours, [])  # on its own beat, as in trials
    samplers.append(Sampler([background], background.interval_ns))
    with ExitStack() as stopping:
        for each in samplers:
            stopping.callback(each.stop)
            each.start()
        load()
    series = {name: one for each in samplers for name, one in each.series.items()}
    seconds = {name: (one.t_ns[-1] - one.t_ns[0]) / 1e9 for name, one in series.items()}
    return {
        name: (100 * one.cpu_seconds / seconds[name], 100 * one.outside_seconds / seconds[name])
        for name, one in series.items()
    }


def cost(journal, seconds, rounds, folder):
    """Way to the figures of each of its runs, the ways in turn."""
    stack = {"device": "ssd-sata", "size": "4GiB", "filesystem": "ext4"}
    load = {"kind": "slap", "load": "write", "clients": 10, "warmup": "0s", "duration": f"{seconds}s"}
    workload = workload_of(TrialSpec.model_validate({"stack": stack, "workload": load}))
    found = {way: [] for way in WAYS}
    with running_disk(journal, model="ssd-sata", size=4 * 1024**3) as disk, scratch(journal) as ground:
        server = ServerLayer(find_server("mariadb"), {}, "innodb", 10, install=True, log=folder / "server.log")
        device = Emulated(disk, "ssd-sata", rotational=False, seed=1, restore=False)
        filesystem = Filesystem(EXT4, FilesystemSection(), format=True)
        with raised([device, filesystem, server], ground) as stand:
            workload.prepare(stand)
            for _ in range(rounds):
                for way, runs in found.items():
                    runs.append(watched(stand, lambda: workload.run(stand, 1, folder), way))
    return found


def show_cost(found):
    """Print the median of each probe's runs, and return that of all together."""
    probes = list(found["one thread, together"][0])
    print(f"{'percent of one core':24s}" + "".join(f"{way:>22s}" for way in found))
    for probe in probes:
        cells = (statistics.median(run[probe][0] for run in runs) for runs in found.values())
        print(f"{probe:24s}" + "".join(f"{cell:22.3f}" for cell in cells))
    own, outside = (
        {way: statistics.median(sum(one[which] for one in run.values()) for run in runs) for way, runs in found.items()}
        for which in (0, 1)
    )
    print(f"{'all probes':24s}" + "".join(f"{value:22.3f}" for value in own.values()))
    print(f"{'the server, to answer':24s}" + "".join(f"{value:22.3f}" for value in outside.values()))
    return {way: own[way] + outside[way] for way in found}


def iostat(journal, seconds):
    """Column to what iostat and the probe tell of the same seconds."""
    with (
        running_disk(journal, model="ssd-sata", size=512 * 1024**2) as disk,
        scratch(journal) as ground,
        raised([Emulated(disk, "ssd-sata", rotational=False, seed=1, restore=False)], ground) as stand,
    ):
        disk.client.set_mode("model")
        with mixed_load(stand.device.path, seconds + 4):
            return compared(stand.device.name, seconds)


def judged(figures):
    """What both parts measured, beside its limits."""
    cost_percent = figures.get("cost", {}).get("one thread, together")
    compared_columns = figures.get("iostat", {}).items()
    return [
        *([] if cost_percent is None else [at_most("all probes, % of one core", cost_percent, BUDGET_PERCENT)]),
        *(
            within(f"{name}, by iostat {theirs:.5g}", ours, None, None, near)
            for name, (theirs, ours, near) in compared_columns
        ),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60, help="beside iostat; a load of the cost takes a sixth")
    parser.add_argument("--rounds", type=int, default=3, help="loads for each way")
    parser.add_argument("--only", default="cost,iostat", help="which parts")
    parser.add_argument("--strict", action="store_true", help="exit 1 where a budget is not kept")
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    options = parser.parse_args()
    parts, figures, broken = options.only.split(","), {}, []
    journal = Journal("benches/probes.py")
    try:
        with tempfile.TemporaryDirectory(prefix="ddp", dir="/tmp") as folder:
            if "cost" in parts:
                figures["cost"] = show_cost(cost(journal, max(2, options.seconds // 6), options.rounds, Path(folder)))
                whole = figures["cost"]["one thread, together"]
                print(f"{'both, of 1 % allowed':24s}{whole:66.3f}\n")
                broken += ["cost"] if whole >= BUDGET_PERCENT else []
            if "iostat" in parts:
                figures["iostat"] = iostat(journal, options.seconds)
                print(f"{'column':12s}{'iostat':>14s}{'dbdyno':>14s}{'apart':>10s}")
                for name in COLUMNS:
                    theirs, ours, near = figures["iostat"][name]
                    apart = f"{100 * (ours / theirs - 1):+.2f} %" if theirs else "-"
                    print(f"{name:12s}{theirs:14.3f}{ours:14.3f}{apart:>10s}{'' if near else '  BEYOND 1 %'}")
                    broken += [] if near else [name]
    finally:
        journal.close()
    write(options.json, judged(figures), figures)
    if broken and options.strict:
        raise SystemExit(f"not kept: {', '.join(broken)}")


if __name__ == "__main__":
    main()
