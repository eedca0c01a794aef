"""What can't be combined in ``[workload]``."""

import os
from collections.abc import Iterator
from pathlib import Path

from dbdyno.study.mistakes import Mistake, shown
from dbdyno.study.workload_section import WorkloadSection
from dbdyno.study.workloads import (
    BulkSection,
    GeneratedSection,
    IngestSection,
    LoopSection,
    ReplayLogSection,
    ScriptSection,
    SlapSection,
    TpccSection,
)
from dbdyno.system.regular_file import SCRIPT_LIMIT_BYTES, open_regular, read_text


def broken_workload_rules(load: WorkloadSection, folder: Path) -> Iterator[Mistake]:
    """Every rule that a load breaks; ``folder`` is where a relative script is looked for."""
    if isinstance(load, GeneratedSection) and load.io_threads > load.connections:
        text = f"is {load.io_threads}, more than there are clients ({load.connections})"
        yield Mistake(("workload", "io_threads"), text)
    if isinstance(load, LoopSection):
        yield from _amount(load)
        yield from _loop(load)
    match load:
        case SlapSection():
            yield from _slap(load)
        case TpccSection():
            yield from _tpcc(load)
        case IngestSection():
            yield from _ingest(load)
        case BulkSection():
            yield from _bulk(load)
        case ScriptSection():
            yield from _script(load, folder)
        case ReplayLogSection():
            yield from _replay_log(load, folder)


def _amount(load: LoopSection) -> Iterator[Mistake]:
    name = load.AMOUNT
    amount: int | None = getattr(load, name)
    if amount is None and load.duration is None:
        yield Mistake(("workload",), f"has neither {name} nor duration; give one of them")
    if amount is not None and load.duration is not None:
        yield Mistake(("workload", name), "and duration are both given; give one of them")
    if amount is not None and amount < load.clients:
        text = f"is {amount}, fewer than one for each of {load.clients} clients"
        yield Mistake(("workload", name), text)


def _loop(load: LoopSection) -> Iterator[Mistake]:
    if load.rate and load.think_time:
        text = "can't be set with a rate: in an open loop an event starts when it is due, and no client thinks"
        yield Mistake(("workload", "think_time"), text)
    # A field that is given, be it 0, may be a factor's level: then its companion is for the other levels.
    for name, of in (("arrivals", "rate"), ("think_distribution", "think_time"), ("warmup_max", "warmup")):
        if name in load.model_fields_set and of not in load.model_fields_set:
            yield Mistake(("workload", name), f"has no effect without workload.{of}; give it too")


def _slap(load: SlapSection) -> Iterator[Mistake]:
    if load.autoincrement and load.guid_primary:
        yield Mistake(("workload", "guid_primary"), "and autoincrement are two keys for the same table; give one")
    if load.load == "key" and not (load.autoincrement or load.guid_primary):
        text = 'is "key", which reads by primary key: set workload.autoincrement or guid_primary to true'
        yield Mistake(("workload", "load"), text)
    if load.int_cols + load.char_cols == 0:
        yield Mistake(("workload", "int_cols"), "and char_cols are both 0; a table needs a column")


def _tpcc(load: TpccSection) -> Iterator[Mistake]:
    if not load.keying:
        return
    if "clients" in load.model_fields_set:
        text = f"is {load.clients}; with keying there are {load.connections}, 10 for each warehouse: leave it out"
        yield Mistake(("workload", "clients"), text)
    for name in ("rate", "think_time"):
        if getattr(load, name):
            yield Mistake(("workload", name), "can't be set with keying: terminals have times of their own")


def _ingest(load: IngestSection) -> Iterator[Mistake]:
    if load.mode == "procedure" and load.rows_per_commit > load.rows_per_call:
        text = f"is {load.rows_per_commit}, more than rows_per_call ({load.rows_per_call}): a CALL commits at its end"
        yield Mistake(("workload", "rows_per_commit"), text)
    in_transactions = load.mode == "statement" and load.rows_per_commit > load.rows_per_insert
    if in_transactions and load.rows_per_commit % load.rows_per_insert:
        text = f"is {load.rows_per_commit}; give a multiple of rows_per_insert ({load.rows_per_insert})"
        yield Mistake(("workload", "rows_per_commit"), text)


def _bulk(load: BulkSection) -> Iterator[Mistake]:
    if load.clients > load.tables:
        text = f"is {load.clients}, more than there are tables ({load.tables}): each table is filled by one client"
        yield Mistake(("workload", "clients"), text)


def _script(load: ScriptSection, folder: Path) -> Iterator[Mistake]:
    try:
        read_text(folder / load.file, SCRIPT_LIMIT_BYTES)
    except OSError as error:
        text = f"is {shown(load.file)}: {folder / load.file} can't be read: {error.strerror}"
        yield Mistake(("workload", "file"), text)
    except UnicodeDecodeError:
        yield Mistake(("workload", "file"), f"is {shown(load.file)}, which is not UTF-8 text")


def _replay_log(load: ReplayLogSection, folder: Path) -> Iterator[Mistake]:
    """What is in them only the load generator reads: they may be long."""
    for name, path in load.secret_files().items():
        try:
            os.close(open_regular(folder / path, os.O_RDONLY, follow=True))
        except OSError as error:
            yield Mistake(("workload", name), f"is {shown(path)}: {folder / path} can't be read: {error.strerror}")
