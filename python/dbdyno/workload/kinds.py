"""Which workload a treatment is offered."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dbdyno.study.schema import TrialSpec
from dbdyno.workload.bonnie import Bonnie
from dbdyno.workload.bulk import Bulk
from dbdyno.workload.command import Command
from dbdyno.workload.fio import Fio
from dbdyno.workload.generator import Generated
from dbdyno.workload.ingest import Ingest
from dbdyno.workload.mysqlslap import Mysqlslap
from dbdyno.workload.oltp import Oltp
from dbdyno.workload.script import Script
from dbdyno.workload.slap import Slap
from dbdyno.workload.smack import Smack
from dbdyno.workload.sysbench import Sysbench
from dbdyno.workload.workload import Workload

WORKLOADS: dict[str, Callable[[Any, str], Workload]] = {
    "slap": Slap,
    "smack": Smack,
    "oltp": Oltp,
    "ingest": Ingest,
    "bulk": Bulk,
    "script": Script,
    "fio": Fio,
    "bonnie": Bonnie,
    "sysbench": Sysbench,
    "mysqlslap": Mysqlslap,
    "command": Command,
}


def workload_of(spec: TrialSpec) -> Workload:
    """The workload of a treatment, by its kind."""
    made = WORKLOADS[spec.workload.kind](spec.workload, spec.stack.engine)
    return replace(made, external_schema=spec.stack.external_database) if isinstance(made, Generated) else made
