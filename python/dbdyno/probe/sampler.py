"""The contract of a probe, and the thread that drives it, at 10 Hz as a rule, and measures what it costs."""

import threading
import time
from dataclasses import dataclass, field
from typing import Protocol

from dbdyno.clock import now_ns

INTERVAL_NS = 100_000_000
SHORTEST_NS = 30_000_000  # what is left at the end is an interval of its own, unless its rates would be noise


@dataclass
class Series:
    """A probe's samples: ``t_ns`` is the end of each interval on the monotonic clock."""

    t_ns: list[int] = field(default_factory=list)
    columns: dict[str, list[float]] = field(default_factory=dict)
    cpu_seconds: float = 0.0  # what the probe itself burned in this process
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


class Source(Protocol):
    """What a probe watches: one file per source in this folder."""

    name: str

    def sample(self) -> dict[str, float]:
        """Cumulative counters or gauges now. Raises ``OSError`` where they can't be had."""

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """The columns of the series from two samples ``seconds`` apart."""

    def close(self) -> None:
        """Let go of what the source holds."""


class Probe:
    """A source, watched by a thread of its own from ``start`` to ``stop``."""

    def __init__(self, source: Source, interval_ns: int = INTERVAL_NS) -> None:
        self.source = source
        self._interval_ns = interval_ns
        self.series = Series()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"probe-{source.name}", daemon=True)

    def start(self) -> None:
        """Begin sampling."""
        self._thread.start()

    def stop(self) -> Series:
        """End sampling; returns the whole series."""
        self._end.set()
        self._thread.join(10)
        self.source.close()
        return self.series

    def _watch(self) -> None:
        began = time.thread_time()
        before, before_ns = self._sample(), now_ns()
        due_ns = before_ns + self._interval_ns
        ending = False
        while not ending:
            ending = self._end.wait(max(0, due_ns - now_ns()) / 1e9)
            if ending and now_ns() - before_ns < SHORTEST_NS:
                break
            after, after_ns = self._sample(), now_ns()
            if before is not None and after is not None:
                if self.series.began is None:
                    self.series.began = (before_ns, self.source.interval(before, before, 1.0))
                values = self.source.interval(before, after, (after_ns - before_ns) / 1e9)
                self.series.add(after_ns, values)
            before, before_ns = after, after_ns
            due_ns += self._interval_ns * max(1, 1 + (after_ns - due_ns) // self._interval_ns)
            self.series.cpu_seconds = time.thread_time() - began
        self.series.cpu_seconds = time.thread_time() - began

    def _sample(self) -> dict[str, float] | None:
        try:
            return self.source.sample()
        except OSError:
            self.series.missed += 1
            return None
