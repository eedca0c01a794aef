"""The ssh connections that are kept while a study runs over hosts: by them a lost host is noticed, without Ray.

A beat is an empty line, which the agent answers. A host is lost once its connection ends, or it answers no beat for
``LOST_SECONDS`` during which this process itself was awake: one that was stopped takes nobody for lost.
"""

import threading
import time
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from dbdyno.errors import HostError
from dbdyno.hosts.answers import Beaten, PutBack
from dbdyno.hosts.channel import ANSWER_SECONDS, Channel
from dbdyno.hosts.clock import Offset
from dbdyno.hosts.reach import offsets

T = TypeVar("T")
HERE = "this machine"  # where Ray's head is; no host has such a name
LOST_SECONDS = 4.0
_LOOK_SECONDS = 0.25
_BEAT_SECONDS = 1.0


class _Line:
    """One host's connection: beats and questions by turns."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.turn = threading.Lock()
        self.why = ""  # it is lost; empty while it is not
        self._asked = False  # a beat, that is still to be answered
        self._next_beat = 0.0
        self._silent_seconds = 0.0

    def beat(self, passed_seconds: float) -> None:
        """Send a beat where it is time for one; take the answer where it has come."""
        now = time.monotonic()
        try:
            if self.channel.has_more():
                self.channel.answer(Beaten, _BEAT_SECONDS)  # where nothing was asked, it is its last word: an error
                if not self._asked:
                    raise HostError(f"{self.channel.name}: has answered what was not asked")  # noqa: TRY301  (as above)
                self._asked = False
            if not self._asked and now >= self._next_beat:
                self.channel.send(b"\n", _BEAT_SECONDS)
                self._asked, self._next_beat, self._silent_seconds = True, now + _BEAT_SECONDS, 0.0
            elif self._asked:
                self._silent_seconds += passed_seconds
        except HostError as error:
            self.why = str(error)
        if self._silent_seconds > LOST_SECONDS:
            self.why = f"{self.channel.name}: has not answered for {self._silent_seconds:.0f} s"

    def answered(self) -> None:
        """Take the answer to a beat that was asked for, so that the next one is to a question. Raises ``HostError``."""
        if self._asked:
            self.channel.answer(Beaten, LOST_SECONDS)
            self._asked = False


class Kept:
    """Connections to agents, watched by a thread; leaving the context ends both."""

    def __init__(self, channels: Mapping[str, Channel]) -> None:
        self._lines = {name: _Line(channel) for name, channel in channels.items()}
        self._ending, self._closing = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="hosts", daemon=True)
        self._thread.start()

    def lost(self) -> dict[str, str]:
        """The hosts that are lost, and why each is; one stays so until it is reached ``again``."""
        return {name: line.why for name, line in self._lines.items() if line.why}

    def let_go(self, host: str) -> None:
        """End the connection to a host that is lost, as far as it still stands."""
        self._lines[host].channel.close()

    def again(self, host: str, channel: Channel) -> None:
        """Have a host that was lost watched by another connection. Raises ``HostError`` once all of them are closed."""
        with self._closing:
            if self._ending.is_set():
                raise HostError(f"{host}: it was back only when all had ended")
            self._lines[host] = _Line(channel)

    def ask(self, host: str, question: Mapping[str, Any], kind: type[T], seconds: float = ANSWER_SECONDS) -> T:
        """Ask an agent. Raises ``HostError`` where the host is lost, or what it answers is an error."""
        line = self._lines[host]
        with line.turn:
            self._refuse_lost(line)
            line.answered()
            return line.channel.ask(question, kind, seconds)

    def offsets(self, hosts: Collection[str] | None = None) -> dict[str, dict[str, Offset]]:
        """Host -> clock -> how far it is from ours, of all (or of these) that are not lost, one after the other."""
        found = {}
        for name, line in self._lines.items():
            if hosts is not None and name not in hosts:
                continue
            with line.turn:
                if not line.why:
                    line.answered()
                    found[name] = offsets(line.channel)
        return found

    def release(self) -> None:
        """Have each host that is not lost put back, and wait for it. Raises ``HostError`` with what could not be."""

        def do(host: str) -> str:
            try:
                said = self.ask(host, {"do": "release"}, PutBack)
            except HostError as error:
                return str(error)
            return "" if said.whole else f"{host}: {'; '.join(said.sentences())}"

        with ThreadPoolExecutor(len(self._lines) or 1) as pool:
            problems = [one for one in pool.map(do, self._lines.keys() - self.lost().keys()) if one]
        if problems:
            raise HostError("\n".join([*problems, "dbdyno restore --hosts puts back what is left"]))

    def close(self) -> None:
        """End the watch and the connections, upon which hosts put themselves back."""
        with self._closing:
            self._ending.set()
        self._thread.join()
        for line in self._lines.values():
            line.channel.close()

    def _refuse_lost(self, line: _Line) -> None:
        if line.why:
            raise HostError(line.why)

    def _watch(self) -> None:
        before = time.monotonic()
        while not self._ending.wait(_LOOK_SECONDS):
            now = time.monotonic()
            passed, before = min(now - before, 2 * _LOOK_SECONDS), now
            for line in list(self._lines.values()):
                if not line.why and line.turn.acquire(blocking=False):  # else it is being asked something
                    try:
                        line.beat(passed)
                    finally:
                        line.turn.release()
