"""Echoes over a connection: the questions and answers that ``clock`` makes an offset of. Both ends run this."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from dbdyno.hosts.clock import Echo

Write = Callable[[bytes], None]
ReadLine = Callable[[], bytes]
CLOCKS = ("monotonic", "realtime")


@dataclass(frozen=True)
class Stamps:
    """One echo by both clocks; four times each, in nanoseconds."""

    monotonic: tuple[int, int, int, int]
    realtime: tuple[int, int, int, int]

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
    """Ask for so many echoes, one after the other."""
    found = []
    for _ in range(count):
        sent = _now()
        write(b"?\n")
        line = read()
        back = _now()
        answer = [int(word) for word in line.split()]
        found.append(Stamps(*zip(sent, answer[:2], answer[2:], back, strict=True)))  # one tuple a clock
    return found


def answered(read: ReadLine, write: Write, count: int) -> None:
    """Answer so many."""
    for _ in range(count):
        read()
        received = _now()
        answered_at = _now()
        write(b"%d %d %d %d\n" % (*received, *answered_at))
