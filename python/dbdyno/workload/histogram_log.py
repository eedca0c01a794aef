"""The histograms of events in a log of HdrHistogram: how often each latency was met.

The format is HdrHistogram's own: a line for each interval, those without a tag being of events, whose last field is a
compressed histogram of version 2: base64 of zlib of a header and the counts of all buckets as ZigZag LEB128.
"""

import binascii
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from dbdyno.store.hdr_histogram import BUCKETS_MAX, buckets, upper_ends


def events_of(log: Path) -> tuple[list[float], list[float]]:
    """Latencies of events in nanoseconds, ascending, each the upper end of its bucket; and how often each was met.

    Empty of a log without lines of events, as an older dbdyno wrote. Raises ``OSError``, and ``ValueError`` for what is
    no such log.
    """
    return counted((f"{log}: line {number}", payload) for number, payload in _lines_of_events(log))


def counted(payloads: Iterable[tuple[str, bytes]]) -> tuple[list[float], list[float]]:
    """The same of histograms that are had already, each with where it is from. Raises ``ValueError`` that says so."""
    import numpy as np

    counts = np.zeros(BUCKETS_MAX)
    for where, payload in payloads:
        try:
            places, times = buckets(payload)
        except (binascii.Error, zlib.error, struct.error, ValueError) as error:
            raise ValueError(f"{where} holds no histogram: {error}") from None
        counts[places] += times
    met = np.flatnonzero(counts)
    return upper_ends(met).astype(float).tolist(), counts[met].tolist()


def _lines_of_events(log: Path) -> Iterator[tuple[int, bytes]]:
    with log.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.startswith((b"#", b'"', b"Tag=")) and line.strip():
                yield number, line.strip().rpartition(b",")[2]
