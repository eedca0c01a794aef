"""How far another host's clock is from ours, from echoes over a connection. None is set here.

An echo is asked for at ``sent``, arrives at ``received``, is answered at ``answered`` and is back at ``back``; the
first and last are the asker's clock, the other two the answerer's. How the time on the way is shared between both
directions is unknown, so the middle of what is possible is taken, and half of that time is the bound (RFC 5905,
section 8).
"""

import math
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_STAMP_MAX = 2**62  # nanoseconds: more than a century


@dataclass(frozen=True)
class Echo:
    """One question and its answer by one clock; times in nanoseconds."""

    sent: int
    received: int
    answered: int
    back: int

    @classmethod
    def of(
        cls, sent: Sequence[int], received: Sequence[int], answered: Sequence[int], back: Sequence[int]
    ) -> "dict[str, Echo]":
        """An echo by CLOCK_MONOTONIC and by CLOCK_REALTIME, each moment being told by both.

        The time on the way is always by CLOCK_MONOTONIC, which nobody sets meanwhile. Raises ``ValueError`` where
        another machine's times are none.
        """
        if [len(received), len(answered)] != [2, 2]:
            raise ValueError("an echo does not have two times by two clocks")
        if not all(0 <= stamp <= _STAMP_MAX for stamp in (*received, *answered)):
            raise ValueError("an echo has an impossible time")
        echo = cls(sent[0], received[0], answered[0], back[0])
        # Each end's difference of both clocks, read twice.
        here = (sent[1] - sent[0] + back[1] - back[0]) // 2
        there = (received[1] - received[0] + answered[1] - answered[0]) // 2
        real = cls(echo.sent + here, echo.received + there, echo.answered + there, echo.back + here)
        return {"monotonic": echo, "realtime": real}

    @property
    def on_the_way(self) -> int:
        """Nanoseconds on the way, both directions together: rates of clocks apart, the same for both ends."""
        return (self.back - self.sent) - (self.answered - self.received)

    @property
    def doubled_offset(self) -> int:
        """Twice the middle of the offsets that are possible, there less here."""
        return (self.received - self.sent) + (self.answered - self.back)


@dataclass(frozen=True)
class Offset:
    """A clock there less a clock here, in nanoseconds; the true offset is within ``bound_ns`` of it."""

    offset_ns: int
    bound_ns: float
    round_trip_ns_min: int
    round_trip_ns_median: float
    echoes: int


def offset_of(echoes: Sequence[Echo]) -> Offset:
    """Return the offset at the least round trip of all, with half of that as its bound.

    Raises ``ValueError`` where no echo arrived, or one came back before it was sent.
    """
    if not echoes:
        raise ValueError("no echo arrived")
    least = min(echoes, key=lambda echo: echo.on_the_way)
    if least.on_the_way < 0:
        raise ValueError("an echo came back before it was sent: a clock was set meanwhile")
    trips = [echo.on_the_way for echo in echoes]
    median = statistics.median(trips)
    # Whole numbers: of hosts that have been up for months, the difference has more digits than a float.
    return Offset(least.doubled_offset // 2, math.ceil(least.on_the_way / 2), least.on_the_way, median, len(echoes))


def offsets_of(echoes: Sequence[Mapping[str, Echo]]) -> dict[str, Offset]:
    """The offset of each clock, by its name. Raises ``ValueError`` as ``offset_of``."""
    return {clock: offset_of([echo[clock] for echo in echoes]) for clock in ("monotonic", "realtime")}


def offset_between(first: Offset, second: Offset) -> Offset:
    """One host's clock less another's, by what both are beside ours; what is not known of either adds up."""
    return Offset(
        first.offset_ns - second.offset_ns,
        first.bound_ns + second.bound_ns,
        max(first.round_trip_ns_min, second.round_trip_ns_min),
        first.round_trip_ns_median + second.round_trip_ns_median,
        min(first.echoes, second.echoes),
    )


def now() -> tuple[int, int]:
    """The time by CLOCK_MONOTONIC and by CLOCK_REALTIME, in nanoseconds."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC), time.clock_gettime_ns(time.CLOCK_REALTIME)
