"""The server's own counters, over a connection of the probe's own: one question a sample."""

import contextlib
import os

from dbdyno.probe.sampler import Source
from dbdyno.servers.contract import Server, ServerError, Status


class ServerStatusSource(Source):
    """Status of one server. A counter that this server lacks is left out.

    With the server's ``pid`` it also measures what its queries cost the server.
    """

    name = "server_status"

    def __init__(self, server: Server, pid: int | None = None) -> None:
        try:
            self._status = server.status()
            self._thread = _thread_file(self._status, pid) if pid else None
        except ServerError as error:
            raise ConnectionError(str(error)) from error
        self._thread_seconds_before = self._thread_seconds()

    def read(self) -> str:
        """The counters and gauges as they stand, as the server sends them."""
        try:
            return self._status.text()
        except ServerError as error:
            raise ConnectionError(str(error)) from error

    def counters(self, raw: str) -> dict[str, float]:
        """The same by name."""
        try:
            return self._status.numbers(raw)
        except ServerError as error:
            raise ConnectionError(str(error)) from error

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """Counters per second, gauges as they stand."""
        rates = {
            f"{name}/s": (after[name] - before[name]) / seconds
            for name in self._status.counters
            if name in after and name in before
        }
        return rates | {name: after[name] for name in self._status.gauges if name in after}

    def outside_seconds(self) -> float:
        """CPU of the server's thread that answers; 0 where that can't be read."""
        return max(0.0, self._thread_seconds() - self._thread_seconds_before)

    def close(self) -> None:
        """End the connection."""
        self._status.close()
        if self._thread is not None:
            os.close(self._thread)

    def _thread_seconds(self) -> float:
        """Seconds that the thread has run (Documentation/scheduler/sched-stats.rst)."""
        if self._thread is None:
            return 0.0
        with contextlib.suppress(OSError, ValueError, IndexError):
            return int(os.pread(self._thread, 128, 0).split()[0]) / 1e9
        return 0.0


def _thread_file(status: Status, pid: int) -> int | None:
    thread = status.thread()
    with contextlib.suppress(OSError):
        return os.open(f"/proc/{pid}/task/{thread}/schedstat", os.O_RDONLY) if thread is not None else None
    return None
