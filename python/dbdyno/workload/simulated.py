"""A load on a simulated stack: one point of the simulator, and what it came to."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from dbdyno._native import simulate
from dbdyno.errors import HostError, TrialError
from dbdyno.stack.layer import StackContext
from dbdyno.study.schema import TrialSpec
from dbdyno.study.simulated_loads import LOADS
from dbdyno.workload.simulated_load import SimulatedLoad


@dataclass(frozen=True)
class Simulated:
    """The load of one treatment on a simulated stack; ``simulated`` returns the outcome of a point."""

    spec: TrialSpec
    simulated: Callable[[str], str] = simulate
    tool: ClassVar[None] = None

    def program(self) -> Path:
        """None: nothing is prepared. Raises ``HostError``."""
        raise HostError("a simulated stack has no prepared data")

    def refused(self) -> str:
        """Nothing: what can't be simulated is a rule of the study format."""
        return ""

    def prepare(self, context: StackContext) -> None:
        """Nothing."""

    def check(self, context: StackContext) -> dict[str, Any]:
        """There are no tables."""
        return {}

    def run(self, context: StackContext, seed: int, folder: Path) -> SimulatedLoad:
        """Simulate it. Raises ``TrialError`` in the simulator's words."""
        try:
            outcome = json.loads(self.simulated(point_of(self.spec, seed)))
        except ValueError as error:
            raise TrialError(f"the simulator refused it: {error}") from None
        return SimulatedLoad(self.spec.workload.kind, self.spec.workload.seconds_before, outcome)


def point_of(spec: TrialSpec, seed: int) -> str:
    """The point of the simulator, as JSON, that a trial of this treatment and seed is."""
    stack, queue = spec.stack, spec.queue
    return json.dumps(
        {
            "device": stack.device,
            "size_bytes": stack.size,
            "kernel": stack.kernel,
            "scheduler": stack.scheduler,
            "tunables": queue.iosched,
            "nr_requests": queue.nr_requests,
            "queue_depth": queue.queue_depth,
            "wbt_lat_usec": queue.wbt_lat_usec,
            "seed": seed,
            "sample_most": 0,  # of single commands, which no report shows
            **LOADS[spec.workload.kind](spec),
        }
    )
