"""Block traces of several devices, interval by interval, for ``dbdyno watch --trace``."""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from dbdyno.errors import HostError
from dbdyno.probe.trace_reader import NoTraceError, TraceReader, reading
from dbdyno.stack.undo.log import Journal
from dbdyno.store.block_trace import FIGURES, figure_at
from dbdyno.system.clock import now_ns

COLUMNS = ("queue_ms_mean", "queue_ms_p99", "device_ms_mean", "device_ms_p99", "seek_bytes_mean",
           "sorted_run_requests_mean")  # fmt: skip
SLICE_NS = 100_000_000  # of the reader's sums: an interval is whole slices, and each counts in one interval


class LiveTraces:
    """Traces that run."""

    def __init__(self, readers: dict[str, TraceReader]) -> None:
        self._readers, self._from_ns = readers, _slice_of(now_ns())

    def interval(self) -> dict[str, dict[str, float]]:
        """Device -> column -> figure since the call before, as far as a tenth of a second is over; NaN of nothing."""
        end_ns = _slice_of(now_ns())
        try:
            answers = {name: one.ask(f"figures {self._from_ns} {end_ns}") for name, one in self._readers.items()}
        except NoTraceError as error:
            raise HostError(f"the block trace has ended: {error}") from None
        self._from_ns = end_ns
        return {name: {column: _figure(trace, column) for column in COLUMNS} for name, trace in answers.items()}


@contextmanager
def live_traces(names: Sequence[str]) -> Iterator[LiveTraces]:
    """Trace devices for as long as the context lasts. Raises ``HostError`` where one can't be traced."""
    with ExitStack() as ending:
        journal = ending.enter_context(closing(Journal(f"watch --trace {' '.join(names)}")))
        readers = {}
        for name in names:
            try:
                readers[name] = ending.enter_context(reading(journal, Path("/dev") / name))
            except (NoTraceError, HostError) as error:
                raise HostError(f"there is no block trace of {name}: {error}; watch it without --trace") from None
        yield LiveTraces(readers)


def _slice_of(at_ns: int) -> int:
    return at_ns // SLICE_NS * SLICE_NS


def _figure(trace: dict[str, object], column: str) -> float:
    found = figure_at(trace, *FIGURES[column])
    return math.nan if found is None else found
