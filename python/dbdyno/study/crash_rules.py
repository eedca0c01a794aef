"""What can't be combined with ``[crash]``: rules over one whole treatment, and over ``[design]``."""

from collections.abc import Iterator

from dbdyno.study.crash_section import CrashSection
from dbdyno.study.drives import HERE, MEMORY
from dbdyno.study.mistakes import Mistake, shown
from dbdyno.study.schema import MAX_BLOCKS, DesignSection, TrialSpec
from dbdyno.study.warm_up import STEADY

LOAD = "ledger"
# The engine that writes pages in place while a load goes on (Aria and MyISAM leave it to the page cache, which writes
# them out long after), and filesystems that give a page a new place each time.
PAGE_ENGINE = "innodb"
MOVING_FILESYSTEMS = ("btrfs", "zfs")

_KILL = 'Give mode = "kill", which kills the server alone, or an emulated drive'
# Kind of stack -> why its power can't be cut.
_NO_POWER = {
    HERE: f"the disk of this machine keeps its power while the machine runs. {_KILL}",
    "real": f"dbdyno has no hand on the power of a real disk. {_KILL}",
    "file": f"the disk that holds the file keeps its power while the machine runs. {_KILL}",
    MEMORY: f"of memory a power cut leaves nothing. {_KILL}",
}
_OF_SPEED = "is for studies of speed; crash.cuts decides how many blocks there are. Leave it out"


def broken_crash_rules(spec: TrialSpec) -> Iterator[Mistake]:
    """Every rule that a treatment of a crash study breaks; none where the study is of speed alone."""
    if spec.crash is None:
        return
    if why := _NO_CUTS.get(spec.stack.kind):
        yield Mistake(("crash",), why)
        return
    if spec.workload.kind != LOAD:
        text = f'is {shown(spec.workload.kind)}; only kind = "{LOAD}" knows of each commit whether it was acknowledged'
        yield Mistake(("workload", "kind"), text)
        return
    yield from _window(spec)
    yield from _amounts(spec.crash)
    yield from _killed(spec.crash) if spec.crash.mode == "kill" else _cut(spec, spec.crash)


def _window(spec: TrialSpec) -> Iterator[Mistake]:
    """Cuts are drawn over the measured time, which so must be known beforehand."""
    if spec.workload.seconds_bound is None:
        text = 'is missing; cuts are drawn over the measured time, so give one, such as "3s", and no amount'
        yield Mistake(("workload", "duration"), text)
    if getattr(spec.workload, "warmup", None) == STEADY:
        text = f'is "{STEADY}", which lasts as long as it lasts; cuts need a time, such as "1s"'
        yield Mistake(("workload", "warmup"), text)


_NO_CUTS = {
    "external": "needs a server that dbdyno starts: one that runs elsewhere it can neither kill nor start again. "
    "Leave [crash] out, or let dbdyno start a server of its own",
    "simulated": "needs a real kernel and a real server, and a simulated stack has none. Leave out stack.kernel",
}


def _amounts(crash: CrashSection) -> Iterator[Mistake]:
    if crash.blocks > MAX_BLOCKS:
        text = f"is {crash.cuts}, which takes {crash.blocks} blocks of {crash.cuts_each}; at most {MAX_BLOCKS} are run"
        yield Mistake(("crash", "cuts"), text)
    if crash.cuts < len(crash.strata):
        text = f"is {crash.cuts}, fewer than the {len(crash.strata)} kinds of cut that when and survivors make"
        yield Mistake(("crash", "cuts"), text)


def _killed(crash: CrashSection) -> Iterator[Mistake]:
    """What a killed server has nothing of: the page cache keeps what was written, and nothing is drawn."""
    why = 'has no effect with mode = "kill": what was written survives in the page cache. Leave it out'
    for name in ("survivors", "hold"):
        if name in crash.model_fields_set:
            yield Mistake(("crash", name), why)
    if crash.when != ["uniform"]:
        yield Mistake(("crash", "when"), f'is {shown(crash.when)}; with mode = "kill" it is ["uniform"]')
    if crash.cuts_each != 1:
        text = f'is {crash.cuts_each}; with mode = "kill" it is 1: a killed server ends the load'
        yield Mistake(("crash", "cuts_per_run"), text)


def _cut(spec: TrialSpec, crash: CrashSection) -> Iterator[Mistake]:
    """What cutting the power needs."""
    if why := _NO_POWER.get(spec.stack.kind):
        yield Mistake(("crash", "mode"), f'is "power", but {why}')
    if spec.stack.devices > 1:
        yield Mistake(("stack", "devices"), f"is {spec.stack.devices}; a power cut is of one disk. Leave it out")
    if crash.hold is not None and "lying" not in crash.survivors:
        yield Mistake(("crash", "hold"), 'is for survivors = ["lying"]; add that, or leave hold out')
    if "page-write" in crash.when:
        yield from _page_writes(spec, crash.when.index("page-write"))
    if "ddl" in crash.when and not getattr(spec.workload, "ddl", False):
        text = 'is "ddl", but the load has no DDL statement. Give workload.ddl = true, or leave it out'
        yield Mistake(("crash", "when", crash.when.index("ddl")), text)


def _page_writes(spec: TrialSpec, place: int) -> Iterator[Mistake]:
    path, engine, filesystem = ("crash", "when", place), spec.stack.engine.lower(), spec.stack.filesystem
    if engine != PAGE_ENGINE:
        text = f'is "page-write", but only {PAGE_ENGINE} writes pages in place while a load goes on, not {engine}.'
        yield Mistake(path, f"{text} Leave it out")
    elif filesystem in MOVING_FILESYSTEMS:
        text = f'is "page-write", but {filesystem} writes a page to a new place each time, where it can\'t be foreseen.'
        yield Mistake(path, f"{text} Leave it out")


def broken_crash_design_rules(design: DesignSection) -> Iterator[Mistake]:
    """What ``[design]`` may not say beside ``[crash]``."""
    for name in ("blocks", "until", "max_blocks", "half_width"):
        if name in design.model_fields_set:
            yield Mistake(("design", name), _OF_SPEED)
    if design.settle is not None:
        text = "is for studies of speed; what a cut leaves does not depend on the trial before. Leave it out"
        yield Mistake(("design", "settle"), text)
