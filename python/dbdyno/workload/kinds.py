"""Which workload a treatment is offered: ``replay-log`` is the class ``ReplayLog`` in the file ``replay_log.py``."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

from dbdyno.study.schema import TrialSpec
from dbdyno.study.workloads import KINDS
from dbdyno.workload.generator import Generated
from dbdyno.workload.simulated import Simulated
from dbdyno.workload.workload import Workload

WORKLOADS: dict[str, Callable[[Any, str], Workload]] = {
    kind: getattr(import_module(f"dbdyno.workload.{kind.replace('-', '_')}"), kind.title().replace("-", ""))
    for kind, section in KINDS.items()
    if section.ON_HOST
}


def workload_of(spec: TrialSpec) -> Workload:
    """The workload of a treatment, by its kind; on a simulated stack that of the simulator."""
    if spec.stack.is_simulated:
        return Simulated(spec)
    made = WORKLOADS[spec.workload.kind](spec.workload, spec.stack.engine)
    return replace(made, external_schema=spec.stack.external_database) if isinstance(made, Generated) else made
