"""CPU, memory and I/O of the server's process."""

from dbdyno.probe.process_files import ProcessFiles, as_columns, counters_of
from dbdyno.probe.sampler import Source


class ServerProcessSource(Source):
    """One process, all its threads."""

    name = "server_process"

    def __init__(self, pid: int) -> None:
        self._files = ProcessFiles(pid)

    def read(self) -> tuple[bytes, bytes]:
        """The text of its files. Raises ``OSError`` once it has ended."""
        return self._files.read()

    def counters(self, raw: tuple[bytes, bytes]) -> dict[str, float]:
        """CPU seconds, resident bytes, and device bytes since its start. Raises ``OSError`` once it has ended."""
        return counters_of(raw)

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """CPU seconds since its start, percent of one core, resident MB, and MB/s."""
        return as_columns(before, after, seconds)

    def close(self) -> None:
        """Close its files."""
        self._files.close()
