"""Measured windows: nothing is asked of a host through ``Hosts`` meanwhile, as answering would cost the host time."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

_EVERY = ""  # stands for all hosts
_lock = threading.Lock()
_measured: Counter[str] = Counter()


class NotQuietError(AssertionError):
    """A fault of dbdyno's own: something was asked of a host while it was measured."""


@contextmanager
def quiet(*hosts: str) -> Iterator[None]:
    """Hold off every question to these hosts, or, where none is named, to all; one that is asked is a fault.

    Threads have it in common, and windows may overlap.
    """
    names = hosts or (_EVERY,)
    with _lock:
        _measured.update(names)
    try:
        yield
    finally:
        with _lock:
            _measured.subtract(names)


def is_anything_measured() -> bool:
    """Whether any window is open."""
    with _lock:
        return any(windows > 0 for windows in _measured.values())


def check_not_measured(what: str, host: str | None = None) -> None:
    """Raise ``NotQuietError`` inside a window of this host, or, of what concerns no single one, inside any."""
    with _lock:
        measured = {name for name, windows in _measured.items() if windows > 0}
    if measured if host is None else measured & {_EVERY, host}:
        raise NotQuietError(f"{what} was asked of {host or 'the cluster'} inside a measured window")
