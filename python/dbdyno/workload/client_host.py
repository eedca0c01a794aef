"""One client host of a load: what runs there, from the start of ``client_side`` to what the load came to."""

import json
from collections.abc import Mapping
from contextlib import suppress
from signal import SIGKILL
from threading import Event, Thread
from typing import Any

from dbdyno.errors import DbdynoError
from dbdyno.hosts.contract import Ended, Hosts
from dbdyno.model.printable import short
from dbdyno.system.child import exit_words

_ARGV = ("python", "-m", "dbdyno.workload.client_side")
_SAID_MAX = 2000  # characters


class ClientHost:
    """A load on one host. ``news`` is set at each step: ready, and done."""

    def __init__(self, hosts: Hosts, name: str, asked: Mapping[str, Any], news: Event) -> None:
        self.name = name
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
        texts = {False: b"", True: b""}
        try:
            for one in self._hosts.stream(self.name, self._process, patient=True):
                if isinstance(one, Ended):
                    self._ended = True
                    self._judge(one.code, texts[True])
                    continue
                texts[one.to_error] += one.content
                *lines, texts[False] = texts[False].split(b"\n")
                for line in lines:
                    self._take(json.loads(line))
        except (DbdynoError, ValueError, KeyError) as error:
            self.trouble = self.trouble or f"{self.name}: {short(str(error), _SAID_MAX)}"
        finally:
            self.trouble = self.trouble or ("" if self.result else f"{self.name}: sent nothing any more")
            self._news.set()

    def _take(self, reply: Mapping[str, Any]) -> None:
        if "start" in reply:
            self.start_path = str(reply["start"])
            self._news.set()
        elif reply["code"] == 0:
            self.result = dict(reply)
        else:
            said = " / ".join(line.strip() for line in str(reply["said"]).splitlines() if line.strip())
            why = said.removeprefix("dbdyno-load: ") or f"dbdyno-load ended ({exit_words(int(reply['code']))})"
            self.trouble = f"{self.name}: {short(why, _SAID_MAX)}"

    def _judge(self, code: int, errors: bytes) -> None:
        if code and not self.is_done:
            last = errors.decode(errors="replace").strip().rpartition("\n")[2]
            said = short(last, _SAID_MAX) if last else exit_words(code)
            self.trouble = f"{self.name}: the load ended before its time: {said}"
