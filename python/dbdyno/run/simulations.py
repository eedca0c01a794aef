"""Simulated trials: as many are simulated at a time as there are processors, here or on other hosts."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.probe.sampler import Series
from dbdyno.simulation.simulators import Simulators
from dbdyno.stack.layer import StackContext
from dbdyno.stack.undo.log import Journal

if TYPE_CHECKING:
    from concurrent.futures import Future

    from dbdyno.hosts.spread import Done


class Simulations:
    """Simulations that may be begun before their trial is due. What a point comes to depends on nothing but itself."""

    def __init__(self, by: Simulators | None = None) -> None:
        self._by = by or Simulators()
        self._begun: dict[str, Future[Done]] = {}

    def begin(self, point: str) -> None:
        """Simulate a point beside all else; an end of dbdyno does not wait for it."""
        if point not in self._begun:
            self._begun[point] = self._by.begin(json.loads(point))

    def has_room(self) -> bool:
        """Whether processors would idle if no more were begun."""
        return self._by.spread.room() > 0

    def outcome(self, point: str) -> str:
        """What a point came to, waited for if need be.

        Raises ``ValueError`` for one that can't be simulated, ``HostError`` where no host is left.
        """
        self.begin(point)
        return self._by.result(self._begun.pop(point)).text


class NoBackground:
    """Nothing was watched, as nothing could disturb it."""

    def known(self) -> dict[str, Series]:
        """No series."""
        return {}

    def within(self, _: tuple[int, int]) -> dict[str, Any]:
        """No interference."""
        return {}


@contextmanager
def no_scratch(journal: Journal) -> Iterator[StackContext]:
    """A context without a folder."""
    yield StackContext(journal, Path())
