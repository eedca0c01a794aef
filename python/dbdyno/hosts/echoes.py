"""Echoes over a connection: the questions and answers that ``clock`` makes an offset of. Both ends run this."""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from dbdyno.hosts.clock import Echo

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
