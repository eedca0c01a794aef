"""Simulated trials: no host takes part, and as many are simulated at a time as there are processors."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from threading import Semaphore, Thread
from typing import Any

from dbdyno._native import simulate
from dbdyno.probe.sampler import Series
from dbdyno.stack.layer import StackContext
from dbdyno.stack.undo.log import Journal


class Simulations:
    """Simulations that may be begun before their trial is due. What a point comes to depends on nothing but itself."""

    def __init__(self, simulated: Callable[[str], str] = simulate) -> None:
        self._simulated = simulated
        self._begun: dict[str, Future[str]] = {}
        self._room = Semaphore(len(os.sched_getaffinity(0)))

    def begin(self, point: str) -> None:
        """Simulate a point beside all else; an end of dbdyno does not wait for it."""
        if point not in self._begun:
            self._begun[point] = Future()
            Thread(target=self._work, args=(point, self._begun[point]), daemon=True).start()

    def outcome(self, point: str) -> str:
        """What a point came to, waited for if need be. Raises ``ValueError`` for one that can't be simulated."""
        self.begin(point)
        return self._begun.pop(point).result()

    def _work(self, point: str, future: "Future[str]") -> None:
        with self._room:
            try:
                future.set_result(self._simulated(point))
            except BaseException as error:  # noqa: BLE001  (whoever asks for the outcome is to have it)
                future.set_exception(error)


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
