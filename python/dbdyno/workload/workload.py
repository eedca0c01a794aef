"""The contract of a workload, and of what its load came to."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from dbdyno.stack.layer import StackContext
from dbdyno.store.records import TrialLoad
from dbdyno.workload.load import Columns
from dbdyno.workload.tool_load import Program


class LoadOutcome(Protocol):
    """What a load came to."""

    @property
    def result(self) -> TrialLoad:
        """All that is stored of it with the trial."""

    @property
    def window_ns(self) -> tuple[int, int]:
        """Start and end of measuring on the monotonic clock."""

    @property
    def seconds_before(self) -> dict[str, float]:
        """What the load took before measuring began, by what it was spent on."""

    @property
    def queries(self) -> float | None:
        """Queries done while it was measured; ``None`` where there are none, or they were not counted."""

    def second_half_ratio(self) -> float | None:
        """The rate of the second half of the run over that of the first, where it is known."""

    def metrics(self) -> dict[str, float]:
        """The scalars of ``model.metrics.METRICS`` that the client measures. Raises ``TrialError``."""

    def columns(self) -> Columns:
        """The series on the trial's clock: ``t_s`` is the end of each interval, 0 where measuring starts."""

    def beside(self) -> Mapping[str, Columns]:
        """Series that no probe has taken: what the load itself knows of the device; by their names, on that clock."""

    def latencies(self) -> Columns:
        """How often each latency of an event was met: ``latency_ns``, ascending, and ``count``; empty if unknown."""


class Workload(Protocol):
    """What load a treatment is offered.

    ``prepare`` runs once for each image; in every trial ``run`` on the prepared data, between two calls of ``check``. A
    workload keeps no state: the same section, seed and context are offered the same load.
    """

    @property
    def tool(self) -> Program | None:
        """The program of others that offers the load; ``None`` where ``dbdyno-load`` does."""

    def program(self) -> Path:
        """The program that prepares the data. Raises ``HostError`` where it is not there."""

    def refused(self) -> str:
        """What can be said against this load without a stack, such as a mistake in a script; empty if nothing."""

    def prepare(self, context: StackContext) -> None:
        """Make the data that every trial starts from, and see that it is what was asked. Raises ``TrialError``."""

    def check(self, context: StackContext) -> dict[str, Any]:
        """What the tables are, read back; nothing where there is none yet, or no server.

        Raises ``TrialError`` on a silent substitution.
        """

    def run(self, context: StackContext, seed: int, folder: Path) -> LoadOutcome:
        """Offer the load; raw files go to ``folder``. Raises ``TrialError`` with the cause of anything that ended it.

        Ends in bounded time, whatever server and program do.
        """
