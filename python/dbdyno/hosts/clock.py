"""How far another host's clock is from ours, from echoes over a connection. Pure: no clock is read here, none set.

An echo is asked for at ``sent``, arrives at ``received``, is answered at ``answered`` and is back at ``back``; the
first and last are the asker's clock, the other two the answerer's. How the time on the way is shared between both
directions is unknown, so the middle of what is possible is taken, and half of that time is the bound (RFC 5905,
section 8).
"""

import math
import re
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

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


# Echoes over a connection: the questions and answers that ``clock`` makes an offset of. Both ends run this.


Write = Callable[[bytes], None]
ReadLine = Callable[[], bytes]
CLOCKS = ("monotonic", "realtime")
_ECHO = re.compile(rb"\d{1,19}( \d{1,19}){3}\s*")  # as ``answered`` writes one
_STAMPS = 4  # of one clock
_STAMP_MAX = 2**62  # nanoseconds: more than a century


@dataclass(frozen=True)
class Stamps:
    """One echo by both clocks; four times each, in nanoseconds."""

    monotonic: tuple[int, int, int, int]
    realtime: tuple[int, int, int, int]

    @classmethod
    def of(cls, clocks: Sequence[Sequence[int]]) -> Self:
        """One echo as another machine says it. Raises ``ValueError`` where it is none."""
        if [len(clock) for clock in clocks] != [_STAMPS] * len(CLOCKS):
            raise ValueError("an echo is not of four times by two clocks")
        if not all(0 <= stamp <= _STAMP_MAX for clock in clocks for stamp in clock):
            raise ValueError("an echo has a time that no clock says")
        monotonic, realtime = ((one[0], one[1], one[2], one[3]) for one in clocks)
        return cls(monotonic, realtime)

    def echo(self, clock: str, *, asked_here: bool) -> Echo:
        """The echo by one clock, its time on the way always by CLOCK_MONOTONIC, which nobody sets meanwhile."""
        sent, received, answered, back = self.monotonic
        if clock == "monotonic":
            return Echo(sent, received, answered, back, asked_here)
        # Each end's difference of both clocks, read twice.
        here = (self.realtime[0] - sent + self.realtime[3] - back) // 2
        there = (self.realtime[1] - received + self.realtime[2] - answered) // 2
        return Echo(sent + here, received + there, answered + there, back + here, asked_here)


def _now() -> tuple[int, int]:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC), time.clock_gettime_ns(time.CLOCK_REALTIME)


def asked(read: ReadLine, write: Write, count: int) -> list[Stamps]:
    """Ask for so many echoes, one after the other. Raises ``ValueError`` where an answer is none."""
    found = []
    for _ in range(count):
        sent = _now()
        write(b"?\n")
        line = read()
        back = _now()
        if not _ECHO.fullmatch(line):
            raise ValueError("an echo is not answered by four times")
        answer = [int(word) for word in line.split()]
        found.append(Stamps.of(list(zip(sent, answer[:2], answer[2:], back, strict=True))))  # a tuple for each clock
    return found


def answered(read: ReadLine, write: Write, count: int) -> None:
    """Answer so many."""
    for _ in range(count):
        read()
        received = _now()
        answered_at = _now()
        write(b"%d %d %d %d\n" % (*received, *answered_at))
