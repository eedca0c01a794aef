"""Which workload a treatment is offered, by the name of its kind in a study."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dbdyno.study.schema import TrialSpec
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
    return replace(made, external_schema=spec.stack.external_database) if isinstance(made, Generated) else made
