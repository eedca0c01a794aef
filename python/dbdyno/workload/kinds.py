"""Which workload a treatment is offered, by the name of its kind in a study."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dbdyno.study.schema import TrialSpec
from dbdyno.workload.beside import LoadsBeside, beside_load
from dbdyno.workload.bonnie import Bonnie
from dbdyno.workload.command import Command
from dbdyno.workload.dump import Dump
from dbdyno.workload.fio import Fio
from dbdyno.workload.generator import Bulk, Generated, Ingest, Oltp, ReplayLog, Script, Smack, Tpcc
from dbdyno.workload.ledger import Ledger
from dbdyno.workload.mysqlslap import Mysqlslap, Slap
from dbdyno.workload.simulated import Simulated
from dbdyno.workload.sysbench import Sysbench
from dbdyno.workload.workload import Workload

WORKLOADS: dict[str, Callable[[Any, str], Workload]] = {
    "slap": Slap,
    "smack": Smack,
    "oltp": Oltp,
    "tpcc": Tpcc,
    "ledger": Ledger,
    "ingest": Ingest,
    "bulk": Bulk,
    "script": Script,
    "replay-log": ReplayLog,
    "fio": Fio,
    "bonnie": Bonnie,
    "sysbench": Sysbench,
    "mysqlslap": Mysqlslap,
    "dump": Dump,
    "command": Command,
}


def workload_of(spec: TrialSpec) -> Workload:
    """The workload of a treatment, by its kind; on a simulated stack that of the simulator."""
    if spec.stack.is_simulated:
        return Simulated(spec)
    made = WORKLOADS[spec.workload.kind](spec.workload, spec.stack.engine)
    if not isinstance(made, Generated):
        return made
    load = replace(made, external_schema=spec.stack.external_database)
    return _with_loads_beside(load, spec) if spec.beside else load


def _with_loads_beside(load: Generated[Any], spec: TrialSpec) -> LoadsBeside:
    """The load of a treatment in a study of what runs beside it; in each of them it begins at a moment named before."""
    ours = {name: section for name, section in spec.loads_beside.items() if section.has_data}
    own, engine = spec.with_own_tables, spec.stack.engine
    generated = {
        name: beside_load(section, engine, WORKLOADS[section.kind], "" if name in own else load.schema)
        for name, section in ours.items()
    }
    return LoadsBeside(load, spec.loads_beside, generated, frozenset(own))
