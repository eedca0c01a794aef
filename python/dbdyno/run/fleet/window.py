"""The time in which a host measures, as its part of the run says: nothing is asked of it meanwhile."""

from contextlib import ExitStack
from threading import Lock

from dbdyno.hosts.quiet import quiet


class Window:
    """Open or not; both may be said any number of times, by any thread."""

    def __init__(self, host: str) -> None:
        self._host, self._lock, self._held = host, Lock(), ExitStack()
        self._is_open = False

    def open(self) -> None:
        """The host begins a trial."""
        with self._lock:
            if not self._is_open:
                self._held.enter_context(quiet(self._host))
                self._is_open = True

    def close(self) -> None:
        """It has ended, or is to be thrown away."""
        with self._lock:
            self._held.close()
            self._is_open = False
