"""The contract of a workload."""

from pathlib import Path
from typing import Any, Protocol

from dbdyno.stack.layer import Endpoint
from dbdyno.workload.load import Load


class Workload(Protocol):
    """What load a treatment is offered.

    ``prepare`` runs once for each image; in every trial ``run`` on the prepared data, between two calls of ``check``. A
    workload keeps no state: the same section, seed and server are offered the same load.
    """

    def refused(self) -> str:
        """What can be said against this load without a server, such as a mistake in a script; empty if nothing."""

    def prepare(self, endpoint: Endpoint) -> None:
        """Make the data that every trial starts from, and see that it is what was asked. Raises ``TrialError``."""

    def check(self, endpoint: Endpoint) -> dict[str, Any]:
        """What the tables are, read back; nothing where there is none yet.

        Raises ``TrialError`` on a silent substitution.
        """

    def run(self, endpoint: Endpoint, seed: int, folder: Path) -> Load:
        """Offer the load; raw files go to ``folder``. Raises ``TrialError`` with the cause of anything that ended it.

        Ends in bounded time, whatever the server does.
        """
