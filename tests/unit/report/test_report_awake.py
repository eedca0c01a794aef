"""What is said of processors that were kept awake."""

from dataclasses import replace

from dbdyno.report.notes import awake_lines
from tests.unit.report.conftest import build


def kept(given):
    """A run whose treatments' trials hold this of what kept processors awake."""
    run = build(blocks=2, void_block=0, rates=dict.fromkeys(given, 400.0), pairs=[])
    return replace(run, trials=[replace(trial, awake=given[trial.treatment]) for trial in run.trials])


def test_nothing_is_said_where_they_halt_as_usual():
    assert awake_lines(kept({"t1": {}, "t2": {}})) == []


def test_what_pollers_used_is_said_as_otherwise_idle_time():
    by = {"by": "by pollers", "cpus": "0-1"}
    (line,) = awake_lines(kept({"t1": by | {"cpu_seconds": 10.0}, "t2": by | {"cpu_seconds": 15.0}}))
    assert line.startswith("Processors were kept awake by pollers, which used 12.50 s of otherwise idle time a trial")


def test_the_kernel_takes_no_time_and_one_treatment_of_two_is_named():
    (line,) = awake_lines(kept({"t1": {"by": "by the kernel", "cpus": "0-1", "cpu_seconds": 0.0}, "t2": {}}))
    assert line == "Processors were kept awake by the kernel for hdd-7200 / mq-deadline."
