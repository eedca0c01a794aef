"""The contract of a probe, and the thread that samples them, at 10 Hz as a rule, and measures what each costs."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from dbdyno.stack.layer import StackContext
from dbdyno.system.interrupt import now_ns

INTERVAL_NS = 100_000_000
SHORTEST_NS = 30_000_000  # what is left at the end is an interval of its own, unless its rates would be noise
TOGETHER = 50  # readings that are made sense of in one go: their code and data are in the CPU's caches then


@dataclass
class Series:
    """A probe's samples: ``t_ns`` is the end of each interval on the monotonic clock."""

    t_ns: list[int] = field(default_factory=list)
    columns: dict[str, list[float]] = field(default_factory=dict)
    cpu_seconds: float = 0.0  # what the probe itself burned in this process, with its part of the thread's waking up
    outside_seconds: float = 0.0  # what answering it cost others
    missed: int = 0  # samples that could not be taken
    began: tuple[int, dict[str, float]] | None = None  # where the first interval began; its rates mean nothing

    def add(self, t_ns: int, values: dict[str, float]) -> None:
        """One more sample; every sample has the same columns."""
        self.t_ns.append(t_ns)
        for name, value in values.items():
            self.columns.setdefault(name, []).append(value)

    def at(self, column: str, t_ns: float) -> float:
        """A cumulative column at a moment, by straight line between samples."""
        times, values = self.t_ns, self.columns[column]
        if self.began:
            times, values = [self.began[0], *times], [self.began[1][column], *values]
        after = next((index for index, t in enumerate(times) if t >= t_ns), len(times) - 1)
        before = max(0, after - 1)
        span = times[after] - times[before]
        share = min(1.0, max(0.0, (t_ns - times[before]) / span)) if span else 0.0
        return values[before] + share * (values[after] - values[before])


class ProbeSource(ABC):
    """What a probe watches: one file per source in this folder."""

    name: str
    of_host: ClassVar[bool] = False  # made of a context alone, and watched in every trial: ``catalogue`` finds it

    @abstractmethod
    def read(self) -> Any:  # noqa: ANN401  (the source's own, as the kernel or the server gave it)
        """What there is to be read now, no more. Raises ``OSError`` where it can't be had."""

    def counters(self, raw: Any) -> dict[str, float]:  # noqa: ANN401
        """Cumulative counters or gauges from what was read. Raises ``OSError`` where it does not hold them."""
        columns: dict[str, float] = raw
        return columns

    @classmethod
    def from_context(cls, context: StackContext) -> Self:
        """One that watches the host, as this stack stands on it. Raises ``OSError``."""
        del context
        return cls()

    def sample(self) -> dict[str, float]:
        """Cumulative counters or gauges now. Raises ``OSError`` where they can't be had."""
        return self.counters(self.read())

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """The columns of the series from two samples ``seconds`` apart; gauges as they stand at its end."""
        del before, seconds
        return after

    def outside_seconds(self) -> float:
        """CPU that its samples have cost others so far: the server for its answers, a tool that was run."""
        return 0.0

    def close(self) -> None:  # noqa: B027  (most hold nothing)
        """Let go of what the source holds."""


class Probe:
    """A source and its series."""

    def __init__(self, source: ProbeSource) -> None:
        self.source, self.series = source, Series()
        self.own_seconds = 0.0
        self._readings: list[tuple[int, Any]] = []
        self._before: dict[str, float] | None = None
        self._before_ns = 0

    def take(self) -> None:
        """Read; now and then, make sense of what was read since."""
        began = time.thread_time()
        try:
            raw = self.source.read()
        except OSError:
            raw = None
        self._readings.append((now_ns(), raw))
        if len(self._readings) >= TOGETHER:
            self.settle()
        self.own_seconds += time.thread_time() - began

    def settle(self) -> None:
        """Make each interval between two readings that were both had part of the series."""
        for after_ns, raw in self._readings:
            try:
                after = None if raw is None else self.source.counters(raw)
            except OSError:
                after = None
            before, before_ns = self._before, self._before_ns
            self.series.missed += after is None
            if before is not None and after is not None:
                if self.series.began is None:
                    self.series.began = (before_ns, self.source.interval(before, before, 1.0))
                self.series.add(after_ns, self.source.interval(before, after, (after_ns - before_ns) / 1e9))
            self._before, self._before_ns = after, after_ns
        self._readings.clear()


class Sampler:
    """Sources watched by one thread from ``start`` to ``stop``: one waking up for all of them costs least."""

    def __init__(self, sources: Sequence[ProbeSource], interval_ns: int = INTERVAL_NS) -> None:
        self._probes = [Probe(source) for source in sources]
        self._interval_ns = interval_ns
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="sampler", daemon=True)

    @property
    def series(self) -> dict[str, Series]:
        """What was sampled, by the source's name."""
        return {probe.source.name: probe.series for probe in self._probes}

    def start(self) -> None:
        """Begin sampling."""
        self._thread.start()

    def stop(self) -> dict[str, Series]:
        """End sampling; returns the whole series."""
        self._end.set()
        self._thread.join(10)
        for probe in self._probes:
            probe.series.outside_seconds = probe.source.outside_seconds()
            probe.source.close()
        return self.series

    def _watch(self) -> None:
        began = time.thread_time()
        taken_ns = self._take()
        due_ns = taken_ns + self._interval_ns
        ending = False
        while not ending:
            ending = self._end.wait(max(0, due_ns - now_ns()) / 1e9)
            if ending and now_ns() - taken_ns < SHORTEST_NS:
                break
            taken_ns = self._take()
            late_ns = taken_ns + SHORTEST_NS - due_ns
            due_ns += self._interval_ns * max(1, 1 + late_ns // self._interval_ns)
        for probe in self._probes:
            spent = time.thread_time()
            probe.settle()
            probe.own_seconds += time.thread_time() - spent
        waking = (time.thread_time() - began - sum(probe.own_seconds for probe in self._probes)) / len(self._probes)
        for probe in self._probes:
            probe.series.cpu_seconds = probe.own_seconds + waking

    def _take(self) -> int:
        for probe in self._probes:
            probe.take()
        return now_ns()
