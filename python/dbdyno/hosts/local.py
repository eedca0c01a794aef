"""``Hosts`` where all of them are this machine."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dbdyno.hosts.carried import Carried, Guarded
from dbdyno.hosts.host_side import HostSide
from dbdyno.hosts.local_workers import LocalWorkers
from dbdyno.hosts.workers import Work, Workers


class LocalHosts(Carried):
    """Names for this machine: nothing is carried anywhere."""

    def __init__(self, names: Sequence[str], work: Mapping[str, Guarded] | None = None) -> None:
        super().__init__(names, work)
        self._sides = {name: HostSide() for name in names}

    def _ask(self, host: str, what: str, *given: object) -> Any:  # noqa: ANN401  (what the method of that name returns)
        return getattr(self._sides[host], what)(*given)

    def _hand_on(self, source: str, asked: tuple[object, ...], target: str, given: tuple[object, ...]) -> None:
        what, *arguments = asked
        self._ask(target, str(given[0]), *given[1:], self._ask(source, str(what), *arguments))

    def alive(self) -> frozenset[str]:
        """All of them."""
        return frozenset(self._sides)

    def workers(self, work: Work, lost: Callable[[], Mapping[str, str]] = dict) -> Workers:
        """As the contract says."""
        return LocalWorkers(work, self.names)

    def close(self) -> None:
        """End what was started."""
        for side in self._sides.values():
            side.close()
