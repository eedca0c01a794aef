"""One host's part in a study on several, as it is seen from here: started, listened to, let begin a block, ended."""

import json
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import Queue
from threading import Lock, Thread
from time import monotonic
from typing import Any

from dbdyno.errors import DbdynoError, HostError, TrialError
from dbdyno.hosts.connect import Connected
from dbdyno.hosts.contract import Hosts, LieError, quiet
from dbdyno.model.printable import short
from dbdyno.run.fleet.asking import MEMBER, messages
from dbdyno.run.fleet.fold import arrival_path
from dbdyno.run.fleet.message import (
    NO_MORE,
    OF_BLOCKS,
    Asks,
    AsksForLoad,
    BlockOver,
    EndsWell,
    Failed,
    Gone,
    HostsLoad,
    Message,
    NeedsKernel,
    PackedBlock,
    Say,
    TrialBegins,
    TrialOver,
)
from dbdyno.run.fleet.request import Request
from dbdyno.study.units import format_bytes
from dbdyno.workload.together import JointLoad, JointLoadRequest, Together

# A load that client hosts offer to a server on a host under test: asked for there, offered from here.
#
# The host under test says what each client is to do, the password of this trial's account among it, on the standard
# output that it has to us alone, which lies in memory there. What came of it is put there as a file.


_LOOK_AGAIN_SECONDS = 0.1  # costs the measured host some 20 us a time
_ANSWER = "offered.json"


class ClientsLostError(HostError):
    """A host that the load comes from is lost."""


@dataclass(frozen=True)
class ClientsOffer:
    """The load as a host under test has it: ``send`` sends a message to who began the run."""

    folder: Path  # for what came of it
    send: Callable[[dict[str, Any]], None]

    def offer(self, request: JointLoadRequest) -> JointLoad:
        """As ``Together.offer``; whose host is lost is no matter of this host, which is then ended from there."""
        answer = self.folder / _ANSWER
        answer.unlink(missing_ok=True)
        self.send({"load": asdict(request), "answer": str(answer)})
        while not answer.exists():  # it comes whole or not at all
            time.sleep(_LOOK_AGAIN_SECONDS)
        document = json.loads(answer.read_text(encoding="utf-8"))
        answer.unlink()
        if "failed" in document:
            raise TrialError(document["failed"])
        return JointLoad.from_dict(document)


def offer_load(clients: Together, load: HostsLoad, patience_seconds: float) -> dict[str, Any]:
    """Have client hosts offer the load that a host under test asks for; what it is sent then.

    ``patience_seconds`` are waited to learn who is lost.

    Raises:
        ClientsLostError: A client host is.
        HostError: The host under test is, or the load was to end before its time.

    """
    request, connected = (
        JointLoadRequest({name: asdict(part) for name, part in load.each.items()}, load.limit_seconds),
        clients.connected,
    )
    try:
        return clients.offer(request).to_dict()
    except (TrialError, HostError) as error:
        known = {clients.server, *request.each}
        until = time.monotonic() + (patience_seconds if isinstance(error, HostError) else 0.0)
        while not known & connected.lost() and not clients.ended() and time.monotonic() < until:
            time.sleep(_LOOK_AGAIN_SECONDS)
        lost = connected.why_lost()
        if clients.ended() or clients.server in lost:
            raise HostError(str(error)) from None
        if gone := [f"client host {name} is lost: {lost[name]}" for name in request.each if name in lost]:
            raise ClientsLostError("; ".join(gone)) from None
        return {"failed": str(error)}


# The time in which a host measures, as its part of the run says: nothing is asked of it meanwhile.


class Window:
    """Open or not; both may be said any number of times, by any thread."""

    def __init__(self, host: str) -> None:
        self._host, self._lock, self._silence = host, Lock(), ExitStack()
        self._is_open = self.is_shut = False

    def open(self) -> None:
        """The host begins a trial."""
        with self._lock:
            if not self._is_open and not self.is_shut:
                self._silence.enter_context(quiet(self._host))
                self._is_open = True

    def close(self) -> None:
        """It has ended, or is to be thrown away."""
        with self._lock:
            self._silence.close()
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


# What is said outside a trial only; when a load is asked for, its window is still to come.
_OVER = (TrialOver, Asks, BlockOver, EndsWell, Failed, Gone, AsksForLoad, NeedsKernel)
STARTS = 3  # in succession without a block; then a host no longer takes part


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


@dataclass(frozen=True)
class ClientsLost(Message):
    """Hosts that the load of this one comes from are lost. No program says it."""

    why: str


@dataclass(frozen=True)
class Booted(Message):
    """It was restarted, and is back; or why it is not. No program says it."""

    why_not: str = ""


@dataclass(frozen=True)
class Lied(Message):
    """What it said is none of the messages there are. No program says it."""

    why: str


Inbox = Queue[tuple[str, int, Message]]  # host, number of its start, message


@dataclass
class Part:
    """One host, whose messages come into ``inbox``."""

    name: str
    run: Path
    access: HostAccess
    inbox: Inbox
    block_bytes_max: int  # that one of its blocks can have, states of cuts left out
    states_bytes_max: int  # that these can have
    starts: int = 0  # of its program, and so which of them a message is from
    fruitless: int = 0  # starts in succession that no block has come from
    is_running: bool = False
    out: str = ""  # why it no longer takes part
    is_lost: bool = False  # that being why
    not_back: str = ""  # why it was not to be had when it was last tried again
    has_joined: bool = False  # since it was started
    asks: int = 0  # for this block, by its own count, and has not been answered; 0 while it does not ask
    has_open_block: bool = False
    open_block: int = 0  # the number of the last that it was let begin, by its own count
    treatment: str = ""  # of the trial that it began last
    heard_at: float = 0.0  # when it was last heard of, by ``time.monotonic``
    moved_at: float = 0.0  # the same, when it said more than that it goes on
    is_offering: bool = False  # others offer its load; it is not listened to meanwhile
    clients_from: frozenset[str] = frozenset()  # hosts that its loads come from
    needs_kernel: str = ""  # that it is to be restarted with, for the next whole plot of the block that it is in
    is_between_plots: bool = False  # it was restarted in the middle of a block, and is to go on with it
    kernels: set[str] = field(default_factory=set)  # that it was restarted with, in this run
    boots: int = 0  # for the block that it is in
    booting: Thread | None = None  # while it is restarted
    block_began: float = 0.0  # by ``time.monotonic``
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
        self.is_running, self.has_joined, self._process, self._window = True, False, "", Window(self.name)
        self.heard_at = self.moved_at = monotonic()
        self.is_offering = False
        Thread(target=self._listen, args=(self.starts, request.to_json()), name=self.name, daemon=True).start()

    def _listen(self, start: int, stdin: bytes) -> None:
        """Take its messages for as long as it runs. A block that is over is fetched here: the host waits meanwhile."""
        access = self.access
        try:
            environment = access.environment_of(self.name)
            process = access.hosts.start(self.name, access.argv, stdin=stdin, environment=environment)
            if start == self.starts:
                self._process = process
            for message in messages(access.hosts, self.name, process, OF_BLOCKS):
                if start != self.starts:
                    return
                self._take(message, start)
        except LieError as error:
            self._window.close()
            self.inbox.put((self.name, start, Lied(str(error).removeprefix(f"{self.name}: "))))
        except Exception as error:  # noqa: BLE001  (whatever it is: nobody listens any more, and the run must know)
            self._window.close()
            why = str(error) if isinstance(error, DbdynoError | OSError | ValueError) else repr(error)
            self.inbox.put((self.name, start, Gone(short(why))))

    def _take(self, message: Message, start: int) -> None:
        """Pass a message on, what it asks for having been fetched or offered. Raises ``HostError``."""
        if isinstance(message, _OVER):
            self._window.close()
        if isinstance(message, AsksForLoad):
            if (lost := self._offer(message)) is not None:
                self.inbox.put((self.name, start, lost))
            return
        if isinstance(message, BlockOver):
            if not self.has_open_block or message.block != self.open_block:
                raise LieError(f"it delivered block {message.block}, which it was not allowed to run")
            self._fetch(message.packed, start)
        self.inbox.put((self.name, start, message))
        if isinstance(message, TrialBegins):
            self._window.open()

    def _offer(self, message: AsksForLoad) -> ClientsLost | None:
        """Have the client hosts offer the load that it asks for, while it sends nothing; whether one of them is lost.

        Raises ``LieError`` where the study has others offer its loads, or none.
        """
        access, window = self.access, self._window
        if access.clients is None or not message.load.each.keys() <= self.clients_from or not self.has_open_block:
            raise LieError(f"{self.name}: it asked for a load that is not part of this study")
        clients = Together(access.clients, self.name, lambda: window.is_shut, window.opened)
        self.is_offering = True
        try:
            outcome = offer_load(clients, message.load, access.pause_seconds)
        except ClientsLostError as error:
            return ClientsLost(str(error))
        except HostError:
            if window.is_shut:
                return None  # it ends, and says so itself
            raise
        finally:
            self._hear()
            self.is_offering = False
        self._put(json.dumps(outcome), message.answer)
        return None

    def _fetch(self, packed: PackedBlock, start: int) -> None:
        part = arrival_path(self.run, self.name, start)
        path, there = packed.file(shutil.disk_usage(self.run).free)
        if packed.states_bytes and path == packed.path:
            where = "here" if packed.states else "there"
            size = format_bytes(packed.states_bytes)
            text = f"no room {where} for {size} of states after its power cuts: they are not kept"
            self.inbox.put((self.name, start, Say(text)))
        most = self.block_bytes_max + (0 if path == packed.path else self.states_bytes_max)
        if self.access.hosts.fetch(self.name, path, part, most, self._hear) != there:
            part.unlink()
            raise HostError(f"{self.name}: {short(path)} arrived damaged: its SHA-256 differs")

    def _hear(self) -> None:
        self.heard_at = self.moved_at = monotonic()

    def join(self, go: str) -> None:
        """It is ready, and looks at this file."""
        self._go, self.has_joined = go, True

    def go(self) -> None:
        """Let it begin the block that it asks for. Raises ``HostError``."""
        self.open_block, self.asks, self.has_open_block = self.asks, 0, True
        try:
            self._say(self.open_block)
        except BaseException:
            self.has_open_block = False
            raise

    @property
    def is_in_block(self) -> bool:
        """Whether it has a block that is not over, also while it is restarted in the middle of it."""
        return self.has_open_block or self.is_between_plots or bool(self.needs_kernel)

    def boot(self) -> None:
        """Start the host anew with the kernel that it needs; what came of it is put into the inbox."""
        arguments = (self.starts, self.needs_kernel)
        self.booting = Thread(target=self._boot, args=arguments, name=f"{self.name} boots", daemon=True)
        self.booting.start()

    def _boot(self, start: int, kernel: str) -> None:
        assert self.access.clients is not None  # noqa: S101  (who began the run has seen to it)
        try:
            self.access.clients.reboots.restart(self.name, kernel)
        except Exception as error:  # noqa: BLE001  (whatever it is: the run waits for this thread's word)
            why = str(error) if isinstance(error, DbdynoError | OSError | ValueError) else repr(error)
            self.inbox.put((self.name, start, Booted(short(why.removeprefix(f"{self.name}: ")))))
        else:
            self.inbox.put((self.name, start, Booted()))

    def end(self) -> None:
        """Have it end, the stack lowered. Raises ``HostError``."""
        if self.asks:
            self._say(NO_MORE)
            self.asks = 0
        elif self._process:
            self._window.shut()  # what it measures is thrown away
            self.access.hosts.signal(self.name, self._process, signal.SIGTERM)

    def disown(self) -> None:
        """End its program, and take nothing of what still comes from it for its own."""
        self._window.shut()
        self.starts += 1
        if self._process:
            with suppress(DbdynoError):
                self.access.hosts.signal(self.name, self._process, signal.SIGTERM)
        self.mark_ended()

    def mark_ended(self) -> None:
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
