"""What can't be combined in ``[workload]`` of another program, or around it."""

from collections.abc import Iterator
from pathlib import Path

from dbdyno.study.fio_job import job_mistakes
from dbdyno.study.mistakes import Mistake, shown
from dbdyno.study.products import NO_SERVER
from dbdyno.study.schema import TrialSpec
from dbdyno.study.tools import BonnieSection, CommandSection, FioSection, MysqlslapSection, SysbenchSection
from dbdyno.study.units import format_bytes
from dbdyno.system.regular_file import read_text


def broken_tool_rules(spec: TrialSpec, folder: Path) -> Iterator[Mistake]:
    """Every rule that this treatment breaks; ``folder`` is where a relative job file is looked for."""
    match spec.workload:
        case FioSection():
            yield from _fio(spec.workload, folder)
        case BonnieSection():
            yield from _bonnie(spec.workload, spec.stack.memory)
        case SysbenchSection():
            yield from _sysbench(spec.workload)
        case MysqlslapSection():
            yield from _mysqlslap(spec.workload)
        case CommandSection():
            yield from _command(spec.workload)


def broken_server_rules(spec: TrialSpec) -> Iterator[Mistake]:
    """A server where none can be, and none where one is needed."""
    kind, needs = spec.workload.kind, spec.workload.SERVER
    if needs == "needed" and spec.stack.server == NO_SERVER:
        yield Mistake(("stack", "server"), f'is "{NO_SERVER}", but a {kind} load needs one; leave it out for MariaDB')
    if spec.has_server:
        return
    why = f"{kind}, which works on the filesystem" if needs == "none" else f'server = "{NO_SERVER}"'
    for name in ("server", "engine", "server_cpus"):
        if name in spec.stack.model_fields_set and not (name == "server" and spec.stack.server == NO_SERVER):
            yield Mistake(("stack", name), f"has no effect with {why}; leave it out")
    for name in sorted(spec.server.model_fields_set):
        yield Mistake(("server", name), f"has no effect with {why}; leave it out")


def _fio(load: FioSection, folder: Path) -> Iterator[Mistake]:
    if load.job is None and load.profile is None:
        yield Mistake(("workload",), 'has neither profile nor job; give one, such as profile = "SEQ1M Q8T1"')
    if load.profile is not None and load.load is None and load.job is None:
        yield Mistake(("workload", "load"), "is missing; a profile needs one: read, write, mix")
    if load.job is None:
        return
    for name in ("profile", "load", "size", "duration", "warmup", "direct"):
        if name in load.model_fields_set:
            yield Mistake(("workload", name), "is for a profile; a job file has its own")
    path = folder / load.job
    try:
        text = read_text(path)
    except OSError as error:
        yield Mistake(("workload", "job"), f"is {shown(load.job)}: {path} can't be read: {error.strerror}")
    except UnicodeDecodeError:
        yield Mistake(("workload", "job"), f"is {shown(load.job)}, which is not UTF-8 text")
    else:
        for why in job_mistakes(text, path.parent):
            yield Mistake(("workload", "job"), f"is {shown(load.job)}: {why}")


def _bonnie(load: BonnieSection, memory: int | None) -> Iterator[Mistake]:
    if load.size % 1024**2:
        yield Mistake(("workload", "size"), "must be whole MiB")
    if memory is not None and load.size <= memory:
        text = f"is {format_bytes(load.size)}, not more than stack.memory ({format_bytes(memory)}): "
        yield Mistake(("workload", "size"), text + "the page cache would answer for the disk")


def _sysbench(load: SysbenchSection) -> Iterator[Mistake]:
    if (load.events is None) == (load.duration is None):
        given = "has neither events nor duration" if load.events is None else "gives both events and duration"
        yield Mistake(("workload",), f"{given}; give one of them")


def _mysqlslap(load: MysqlslapSection) -> Iterator[Mistake]:
    if load.queries < load.clients:
        yield Mistake(("workload", "queries"), f"is {load.queries}, fewer than one for each of {load.clients} clients")
    if load.autoincrement and load.guid_primary:
        yield Mistake(("workload", "guid_primary"), "and autoincrement are two keys for the same table; give one")
    if load.int_cols + load.char_cols == 0:
        yield Mistake(("workload", "int_cols"), "and char_cols are both 0; a table needs a column")


def _command(load: CommandSection) -> Iterator[Mistake]:
    for name in ("unit", "better"):
        if name in load.model_fields_set and load.figure is None:
            yield Mistake(("workload", name), "has no effect without workload.figure; give it too")
