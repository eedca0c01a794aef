"""The time in which a host measures, as its part of the run says: nothing is asked of it meanwhile."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock

from dbdyno.hosts.quiet import quiet


class Window:
    """Open or not; both may be said any number of times, by any thread."""

    def __init__(self, host: str) -> None:
        self._host, self._lock, self._held = host, Lock(), ExitStack()
        self._is_open = self.is_shut = False

    def open(self) -> None:
        """The host begins a trial."""
        with self._lock:
            if not self._is_open and not self.is_shut:
                self._held.enter_context(quiet(self._host))
                self._is_open = True

    def close(self) -> None:
        """It has ended, or is to be thrown away."""
        with self._lock:
            self._held.close()
            self._is_open = False

    def shut(self) -> None:
        """It is to end: from now on it can be asked, whatever it begins."""
        self.is_shut = True
        self.close()

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Open, and closed again."""
        self.open()
        try:
            yield
        finally:
            self.close()
