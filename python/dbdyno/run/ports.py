"""All through which a run reaches the host: given as an argument, so that a test can script it."""

import json
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dbdyno.crash.faults import crashing
from dbdyno.crash.trial_cuts import AboutTrial, Crashing
from dbdyno.host.storage import smart_of
from dbdyno.probe.block_trace import NoTrace, Trace, tracing
from dbdyno.probe.catalogue import watching
from dbdyno.probe.host import host_speed
from dbdyno.probe.interference import disks_below, watching_background
from dbdyno.probe.sampler import Series
from dbdyno.stack.kinds.catalogue import KINDS, Kinds
from dbdyno.stack.layer import StackContext
from dbdyno.stack.layers.placement import pinned
from dbdyno.stack.layers.scratch import scratch
from dbdyno.stack.undo_log import Journal
from dbdyno.store.records import Disturbance
from dbdyno.study.schema import TrialSpec
from dbdyno.study.workloads import GeneratedSection
from dbdyno.workload.kinds import workload_of
from dbdyno.workload.simulated import Simulated
from dbdyno.workload.workload import Workload

if TYPE_CHECKING:
    from concurrent.futures import Future

    from dbdyno.compute.spread import Done
    from dbdyno.hosts.connect import Connected
    from dbdyno.simulation.sweep import Simulators


# Simulated trials: as many are simulated at a time as there are processors, here or on other hosts.


class Simulations:
    """Simulations that may be begun before their trial is due. What a point comes to depends on nothing but itself."""

    def __init__(self, by: "Simulators | None" = None) -> None:
        self._simulators = by
        self._begun: dict[str, Future[Done]] = {}

    @cached_property
    def _by(self) -> "Simulators":
        """Those given, else the processors of this host: a run that simulates nothing does not load what does."""
        from dbdyno.simulation.sweep import Simulators

        return self._simulators or Simulators()

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

    def within(self, _: tuple[int, int]) -> Disturbance:
        """No interference."""
        return {}


@contextmanager
def no_scratch(journal: Journal) -> Iterator[StackContext]:
    """A context without a folder."""
    yield StackContext(journal, Path())


class Background(Protocol):
    """What others did beside the load: known once they are no longer watched."""

    def known(self) -> Mapping[str, Series]:
        """The series by its name; nothing where it was not watched."""

    def within(self, window_ns: tuple[int, int], /) -> Disturbance:
        """How much that disturbed the measured window."""


@dataclass(frozen=True)
class Ports:
    """What a run uses; by default the host's own."""

    kinds: Kinds = field(default_factory=lambda: KINDS)
    workload_of: Callable[[TrialSpec], Workload] = workload_of
    monotonic: Callable[[], float] = time.monotonic  # seconds
    kernel: Callable[[], str] = platform.release  # that runs on the host, read anew each time
    now: Callable[[], datetime] = lambda: datetime.now(UTC)  # noqa: TID251  (a date for people)
    sleep: Callable[[float], None] = time.sleep
    scratch: Callable[[Journal], AbstractContextManager[StackContext]] = scratch
    disks_below: Callable[[StackContext], list[str]] = disks_below
    smart_of: Callable[[str], dict[str, Any] | str] = smart_of
    tracing: Callable[..., AbstractContextManager[Trace]] = tracing
    watching: Callable[[StackContext, Sequence[str]], AbstractContextManager[Mapping[str, Series]]] = watching
    background: Callable[[StackContext, list[str]], AbstractContextManager[Background]] = watching_background
    host_speed: Callable[[StackContext], dict[str, float]] = host_speed
    pinned: Callable[[str | None], AbstractContextManager[Mapping[str, str]]] = pinned
    crashing: Callable[[AboutTrial], AbstractContextManager[Crashing]] = crashing
    simulations: Simulations = field(default_factory=Simulations)  # of stacks that are simulated
    connected: "Connected | None" = None  # the hosts of ``--hosts``
    address: str = ""  # of this machine, as those hosts reach it

    def listen(self, spec: TrialSpec) -> str:
        """Where a server of dbdyno's own is to listen for other hosts; empty where its load comes from here."""
        load = spec.workload
        return self.address if isinstance(load, GeneratedSection) and load.clients_from else ""

    def without_host(self) -> "Ports":
        """The ports of a simulated trial, none of which reaches the host."""
        return replace(
            self,
            workload_of=lambda spec: Simulated(spec, self.simulations.outcome),
            scratch=no_scratch,
            disks_below=lambda _: [],
            tracing=lambda *_, **__: nullcontext(NoTrace()),
            watching=lambda *_: nullcontext({}),
            background=lambda *_: nullcontext(NoBackground()),
            host_speed=lambda _: {},
            pinned=lambda _: nullcontext({}),
        )


HOST = Ports()
