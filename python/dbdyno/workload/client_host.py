"""One client host of a load: what runs there, from the start of ``client_side`` to what the load came to.

The host may lie. So what it says is bounded, and is one of the two things that ``client_side`` says, or ends the load.
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from signal import SIGKILL
from threading import Event, Thread
from typing import Any

from dbdyno.errors import DbdynoError
from dbdyno.hosts.contract import Hosts, LieError
from dbdyno.hosts.host_side import OUTPUT_BYTES_MAX
from dbdyno.hosts.lines import Lines
from dbdyno.model.printable import short
from dbdyno.store.documents import json_object, value_of
from dbdyno.system.child import exit_words

_ARGV = ("python", "-m", "dbdyno.workload.client_side")
_SAID_MAX = 2000  # characters
_LINES_MAX = 1000  # that it says
# Its last line holds rows and histograms of each tenth of a second.
_BYTES, _BYTES_PER_SECOND, _BYTES_MAX = 64 * 1024**2, 40_000, OUTPUT_BYTES_MAX
_START = re.compile(r"/proc/[0-9]{1,10}/fd/[0-9]{1,10}")


@dataclass(frozen=True)
class _Ready:
    """The load is warm, and waits for the time of its start, which is to be written to ``start``."""

    ready_ns: int
    start: str

    def __post_init__(self) -> None:
        """Raise ``ValueError`` where that is no file of a process."""
        if not _START.fullmatch(self.start):
            raise ValueError("start is no file of a process")


@dataclass(frozen=True)
class _Result:
    """What the load came to."""

    code: int
    said: str
    json: str
    series: str
    hlog: str


class ClientHost:
    """A load on one host. ``news`` is set at each step: ready, and done."""

    def __init__(self, hosts: Hosts, name: str, asked: Mapping[str, Any], news: Event, limit_seconds: float) -> None:
        """``limit_seconds`` is what the load may take at most."""
        self.name = name
        self._bytes_max = min(_BYTES_MAX, _BYTES + round(_BYTES_PER_SECOND * limit_seconds))
        self.start_path = ""  # where the time of the start belongs, once the load is ready
        self.result: dict[str, Any] | None = None  # what it came to
        self.trouble = ""  # why it has ended otherwise
        self._hosts, self._news, self._ended = hosts, news, False
        self._process = hosts.start(name, _ARGV, stdin=json.dumps(asked).encode())
        # Its question is asked long before the measured window and answered after it.
        Thread(target=self._listen, name=f"load of {name}", daemon=True).start()

    @property
    def is_ready(self) -> bool:
        """Whether it waits for the start."""
        return bool(self.start_path)

    @property
    def is_done(self) -> bool:
        """Whether it has ended, one way or the other."""
        return self.result is not None or bool(self.trouble)

    def start_at(self, time_ns: int) -> None:
        """Name the start on that host's CLOCK_MONOTONIC. Raises ``HostError``."""
        self._hosts.start(self.name, ("tee", self.start_path), stdin=f"{time_ns}\n".encode())

    def wait(self, seconds: float) -> None:
        """Wait for news of any client of the same load, at most so long."""
        self._news.wait(seconds)
        self._news.clear()

    def end(self) -> None:
        """End it, if it still runs and can be reached."""
        if not self._ended:
            with suppress(DbdynoError):
                self._hosts.signal(self.name, self._process, SIGKILL)

    def _listen(self) -> None:
        """Take in what is said there until the end."""
        said = Lines(self._hosts, self.name, self._process, self._bytes_max, _LINES_MAX, self._bytes_max)
        try:
            for line in said.read():
                self._take(line)
            self._ended = True
            if said.code and not self.is_done:
                self.trouble = f"{self.name}: the load ended before its time: {said.why_ended()}"
        except DbdynoError as error:
            self.trouble = self.trouble or f"{self.name}: {short(str(error).removeprefix(f'{self.name}: '), _SAID_MAX)}"
        finally:
            self.trouble = self.trouble or ("" if self.result else f"{self.name}: sent nothing any more")
            self._news.set()

    def _take(self, line: bytes) -> None:
        """Take in what it says. Raises ``LieError`` where that is nothing that it can say now."""
        try:
            found = json_object(line, escapes_max=self._bytes_max)
            if "start" in found and not self.start_path:
                self.start_path = value_of(_Ready, found).start
                self._news.set()
                return
            result = value_of(_Result, found)
        except ValueError as error:
            raise LieError(f"{self.name}: what it said is nothing of a load ({short(str(error))})") from None
        if self.is_done:
            raise LieError(f"{self.name}: it said twice what its load came to")
        if result.code == 0:
            self.result = asdict(result)
            return
        lines = " / ".join(line.strip() for line in result.said.splitlines() if line.strip())
        why = lines.removeprefix("dbdyno-load: ") or f"dbdyno-load ended ({exit_words(result.code)})"
        self.trouble = f"{self.name}: {short(why, _SAID_MAX)}"
