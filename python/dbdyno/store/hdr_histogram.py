"""An HdrHistogram as text: base64 of zlib of a header and the counts of all buckets as ZigZag LEB128 (version 2)."""

import base64
import struct
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

COMPRESSED, PLAIN = 0x1C849314, 0x1C849313  # how each begins
HEADER = struct.Struct(">iiiiqqd")  # begins so, bytes of counts, offset, digits, least, most, ratio of values
BYTES_MAX = 1 << 20  # of the counts of one interval: of ten times the buckets there can be
BUCKETS_MAX = 1 << 16
DIGITS = 3  # the log's resolution: of a value within 0.1 %
HALF = 1024  # buckets of an octave: half of the least power of two from 2 * 10^digits on


def buckets(payload: bytes | str) -> tuple["Integers", "Integers"]:
    """Return the buckets in which anything was counted, by their number, and how much was.

    Raises ``ValueError``, ``struct.error`` or ``zlib.error`` for what is no such histogram.
    """
    import numpy as np

    packed = base64.b64decode(payload, validate=True)
    begins, size = struct.unpack_from(">ii", packed)
    plain = zlib.decompressobj().decompress(packed[8 : 8 + size], BYTES_MAX)
    head, length, offset, digits, least, _, _ = HEADER.unpack_from(plain)
    if (begins, head, offset, digits, least) != (COMPRESSED, PLAIN, 0, DIGITS, 1):
        raise ValueError("it is of another kind than dbdyno writes")
    numbers = np.frombuffer(plain, np.uint8, length, HEADER.size)
    values = _zigzag(_leb128(numbers))
    lengths = np.where(values < 0, -values, 1)  # a negative number stands for so many empty buckets
    places = np.cumsum(lengths) - lengths
    met = values > 0
    if np.any(lengths > BUCKETS_MAX) or np.any(places[met] >= BUCKETS_MAX):
        raise ValueError("it has more buckets than there are")
    return places[met], values[met]


def _leb128(numbers: "NDArray[np.uint8]") -> "Integers":
    """Return numbers that have seven bits in each byte, the least first, and go on while the eighth bit is set."""
    import numpy as np

    ends = np.flatnonzero(numbers < 0x80)  # noqa: PLR2004
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts + 1
    if not len(ends) or ends[-1] != len(numbers) - 1 or lengths.max() > 8:  # noqa: PLR2004 - more than 56 bits
        raise ValueError("its counts are cut off")
    places = np.arange(len(numbers)) - np.repeat(starts, lengths)
    found: Integers = np.add.reduceat((numbers & 0x7F).astype(np.int64) << (7 * places), starts)
    return found


def _zigzag(numbers: "Integers") -> "Integers":
    return (numbers >> 1) ^ -(numbers & 1)


def upper_ends(places: "Integers") -> "Integers":
    """Return the largest value of each bucket: of the first two octaves each value has its own, then every 2^n."""
    import numpy as np

    octave = np.maximum(places // HALF - 1, 0)
    within = places - HALF * octave
    found: Integers = ((within + 1) << octave) - 1
    return found
