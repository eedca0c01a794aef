"""How far another host's clock is from ours, from echoes over a connection. Pure: no clock is read here, none set.

An echo is asked for at ``sent``, arrives at ``received``, is answered at ``answered`` and is back at ``back``; the
first and last are the asker's clock, the other two the answerer's. How the time on the way is shared between both
directions is unknown, so the middle of what is possible is taken, and half of that time is the bound (RFC 5905,
section 8).
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

ECHOES_MIN = 64  # each way


@dataclass(frozen=True)
class Echo:
    """One question and its answer; times in nanoseconds."""

    sent: int
    received: int
    answered: int
    back: int
    asked_here: bool

    @property
    def on_the_way(self) -> int:
        """Nanoseconds on the way, both directions together: rates of clocks apart, the same whoever asked."""
        return (self.back - self.sent) - (self.answered - self.received)

    @property
    def doubled_offset(self) -> int:
        """Twice the middle of the offsets that are possible, there less here."""
        doubled = (self.received - self.sent) + (self.answered - self.back)
        return doubled if self.asked_here else -doubled


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

    Raises ``ValueError`` where there is no echo, or one came back before it was sent.
    """
    if not echoes:
        raise ValueError("there is no echo")
    least = min(echoes, key=lambda echo: echo.on_the_way)
    if least.on_the_way < 0:
        raise ValueError("an echo came back before it was sent: a clock was set meanwhile")
    trips = [echo.on_the_way for echo in echoes]
    median = statistics.median(trips)
    # Whole numbers: of hosts that have been up for months, the difference has more digits than a float.
    return Offset(least.doubled_offset // 2, math.ceil(least.on_the_way / 2), least.on_the_way, median, len(echoes))


def apart(one: Offset, other: Offset) -> Offset:
    """One host's clock less another's, by what both are beside ours; what is not known of either adds up."""
    return Offset(
        one.offset_ns - other.offset_ns,
        one.bound_ns + other.bound_ns,
        max(one.round_trip_ns_min, other.round_trip_ns_min),
        one.round_trip_ns_median + other.round_trip_ns_median,
        min(one.echoes, other.echoes),
    )
