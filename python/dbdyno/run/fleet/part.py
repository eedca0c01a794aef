"""One host's part in a study on several, as it is seen from here: started, listened to, let begin a block, ended."""

import json
import shutil
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from dbdyno.errors import DbdynoError, HostError
from dbdyno.hosts.connect import Connected
from dbdyno.hosts.contract import Hosts
from dbdyno.run.fleet.asking import MEMBER, messages
from dbdyno.run.fleet.client_load import ClientsLostError, offered
from dbdyno.run.fleet.fold import arriving
from dbdyno.run.fleet.gate import NO_MORE
from dbdyno.run.fleet.packed import Packed
from dbdyno.run.fleet.request import Request
from dbdyno.run.fleet.window import Window
from dbdyno.study.units import format_bytes
from dbdyno.workload.together import Together

if TYPE_CHECKING:
    from queue import Queue

# What is said outside a trial only; when a load is asked for, its window is still to come.
_OVER = {"trial_done", "asks", "block", "ended", "error", "gone", "load"}
STARTS = 3  # in succession without a block; then a host takes no more part


@dataclass(frozen=True)
class HostAccess:
    """How hosts are reached; given as an argument, so that a test can play them."""

    hosts: Hosts
    lost: Callable[[], Mapping[str, str]]  # host -> why, of those that are lost
    argv: Sequence[str] = MEMBER
    environment_of: Callable[[str], Mapping[str, str]] = lambda _: {}
    why_not_back: Callable[[], Mapping[str, str]] = dict  # of those that are lost and were tried again
    clients: Connected | None = None  # by which hosts that the load comes from are reached
    pause_seconds: float = 6.0  # before a program that has ended is started again: by then a lost host is known as one


@dataclass
class Part:
    """One host. Its messages come into ``inbox`` as (host, number of its start, message)."""

    name: str
    run: Path
    access: HostAccess
    inbox: "Queue[tuple[str, int, dict[str, Any]]]"
    starts: int = 0  # of its program, and so which of them a message is from
    fruitless: int = 0  # starts in succession that no block has come from
    is_running: bool = False
    out: str = ""  # why it takes no more part
    is_lost: bool = False  # that being why
    not_back: str = ""  # why it was not to be had when it was last tried again
    asks: int = 0  # for this block, by its own count, and has not been answered; 0 while it does not ask
    has_open_block: bool = False
    again_at: float | None = None  # when it is to be started again, by ``time.monotonic``
    _go: str = ""
    _process: str = ""
    _window: Window = field(init=False)

    def __post_init__(self) -> None:
        self._window = Window(self.name)

    def start(self, request: Request) -> None:
        """Start its program, as far as that can be; nothing is waited for."""
        self.starts, self.fruitless, self.again_at = self.starts + 1, self.fruitless + 1, None
        self.asks, self.has_open_block, self.out, self.is_lost, self.not_back = 0, False, "", False, ""
        self.is_running, self._process, self._window = True, "", Window(self.name)
        Thread(target=self._listen, args=(self.starts, request.to_json()), name=self.name, daemon=True).start()

    def _listen(self, start: int, stdin: bytes) -> None:
        """Take its messages for as long as it runs. A block that is over is fetched here: the host waits meanwhile."""
        access = self.access
        try:
            environment = access.environment_of(self.name)
            process = access.hosts.start(self.name, access.argv, stdin=stdin, environment=environment)
            if start == self.starts:
                self._process = process
            for message in messages(self.access.hosts, self.name, process):
                if start != self.starts:
                    return
                if _OVER & message.keys():
                    self._window.close()
                if "load" in message:
                    message = self._offer(message)  # noqa: PLW2901  (what became of it)
                if "block" in message:
                    self._fetch(message)
                self.inbox.put((self.name, start, message))
                if "trial" in message:
                    self._window.open()
        except (DbdynoError, OSError, ValueError) as error:
            self._window.close()
            self.inbox.put((self.name, start, {"gone": str(error)}))

    def _offer(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Have the client hosts offer the load that it asks for, while it sends nothing; what is to be known."""
        access, window = self.access, self._window
        assert access.clients is not None  # noqa: S101  (who runs a study with client hosts gives them)
        clients = Together(access.clients, self.name, lambda: window.is_shut, window.opened)
        try:
            said = offered(clients, message["load"], access.pause_seconds)
        except ClientsLostError as error:
            return {"clients_lost": str(error)}
        except HostError:
            if window.is_shut:
                return {}  # it ends, and says so itself
            raise
        self._put(json.dumps(said), message["answer"])
        return {}

    def _fetch(self, message: Mapping[str, Any]) -> None:
        part, packed = arriving(self.run, self.name, self.starts), Packed(**message["packed"])
        path, there = packed.file(shutil.disk_usage(self.run).free)
        if packed.states_bytes and path == packed.path:
            where = "here" if packed.states else "there"
            text = f"no room {where} for {format_bytes(packed.states_bytes)} of states of its cuts: they are not kept"
            self.inbox.put((self.name, self.starts, {"say": text}))
        if self.access.hosts.fetch(self.name, path, part) != there:
            raise HostError(f"{self.name}: {path} did not arrive as it was there")

    def joined(self, go: str) -> None:
        """It is ready, and looks at this file."""
        self._go = go

    def go(self) -> None:
        """Let it begin the block that it asks for. Raises ``HostError``."""
        self._say(self.asks)
        self.asks, self.has_open_block = 0, True

    def end(self) -> None:
        """Have it end, the stack lowered. Raises ``HostError``."""
        if self.asks:
            self._say(NO_MORE)
            self.asks = 0
        elif self._process:
            self._window.shut()  # what it measures is thrown away
            self.access.hosts.signal(self.name, self._process, signal.SIGTERM)

    def has_ended(self) -> None:
        """Its program is gone."""
        self._window.close()
        self.is_running, self.has_open_block, self.asks = False, False, 0

    def _say(self, block: int) -> None:
        self._put(f"{block}\n", self._go)

    def _put(self, content: str, path: str) -> None:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            self.access.hosts.put(self.name, Path(file.name), path)
