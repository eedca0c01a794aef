"""All through which a run reaches the host: given as an argument, so that a test can script it."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from dbdyno.crash.crashing import crashing
from dbdyno.crash.trial_cuts import AboutTrial, Crashing
from dbdyno.host.smart import smart_of
from dbdyno.hosts.connect import Connected
from dbdyno.probe.background_load import disks_below, watching_background
from dbdyno.probe.block_trace import NoTrace, Trace, tracing
from dbdyno.probe.catalogue import watching
from dbdyno.probe.host_speed import host_speed
from dbdyno.probe.sampler import Series
from dbdyno.run.simulations import NoBackground, Simulations, no_scratch
from dbdyno.stack.kinds.catalogue import KINDS, Kinds
from dbdyno.stack.layer import StackContext
from dbdyno.stack.layers.placement import pinned
from dbdyno.stack.layers.scratch import scratch
from dbdyno.stack.undo.log import Journal
from dbdyno.study.schema import TrialSpec
from dbdyno.study.workloads import GeneratedSection
from dbdyno.workload.kinds import workload_of
from dbdyno.workload.simulated import Simulated
from dbdyno.workload.workload import Workload


class Background(Protocol):
    """What others did beside the load: known once they are no longer watched."""

    def known(self) -> Mapping[str, Series]:
        """The series by its name; nothing where it was not watched."""

    def within(self, window_ns: tuple[int, int], /) -> dict[str, Any]:
        """How much that disturbed the measured window."""


@dataclass(frozen=True)
class Ports:
    """What a run uses; by default the host's own."""

    kinds: Kinds = field(default_factory=lambda: KINDS)
    workload_of: Callable[[TrialSpec], Workload] = workload_of
    monotonic: Callable[[], float] = time.monotonic  # seconds
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
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
    connected: Connected | None = None  # the hosts of ``--hosts``
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
