"""All through which a run reaches the host: given as an argument, so that a test can script it."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from dbdyno.host.smart import smart_of
from dbdyno.probe.background_load import BackgroundLoad, disks_below, watching_background
from dbdyno.probe.block_trace import Trace, tracing
from dbdyno.probe.catalogue import watching
from dbdyno.probe.sampler import Series
from dbdyno.stack.kinds.catalogue import KINDS, Kinds
from dbdyno.stack.layer import StackContext
from dbdyno.stack.layers.placement import pinned
from dbdyno.stack.layers.scratch import scratch
from dbdyno.stack.undo.log import Journal
from dbdyno.study.schema import TrialSpec
from dbdyno.workload.kinds import workload_of
from dbdyno.workload.workload import Workload


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
    background: Callable[[StackContext, list[str]], AbstractContextManager[BackgroundLoad]] = watching_background
    pinned: Callable[[str | None], AbstractContextManager[Mapping[str, str]]] = pinned


HOST = Ports()
