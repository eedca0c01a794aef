"""Ctrl-C, SIGTERM and a closed terminal: ``Interrupted``, but never in the middle of putting the host back."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """dbdyno was asked to end: lower the stack, keep what is finished."""


class _Shield:
    """How deep the main thread is in sections that must not be left half-way, and whether a signal waits."""

    depth = 0
    waiting = False


@contextmanager
def shielded() -> Iterator[None]:
    """A section of the main thread that a signal does not leave half-way; it raises ``Interrupted`` at its end."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    _Shield.depth += 1
    try:
        yield
    finally:
        _Shield.depth -= 1
        if _Shield.waiting and _Shield.depth == 0:
            _Shield.waiting = False
            raise Interrupted


@contextmanager
def interruptible(say: Callable[[str], None]) -> Iterator[None]:
    """Turn the first signal into ``Interrupted``; later ones must not disturb the lowering."""
    stopping = False

    def stop(*_: object) -> None:
        nonlocal stopping
        if stopping:
            say("putting the host back; a moment")
        elif _Shield.depth:
            stopping = _Shield.waiting = True
        else:
            stopping = True
            raise Interrupted

    handlers = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


# One clock for load and probes: CLOCK_MONOTONIC in nanoseconds, which every process on a host shares.


def now_ns() -> int:
    """The clock's time now."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
