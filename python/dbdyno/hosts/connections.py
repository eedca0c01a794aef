"""The connections that are kept while a study runs over hosts: all work goes by them, and by them a loss is noticed.

One thread takes in what comes from all hosts, and sends beats, which agents answer. A host is lost once its connection
ends, it lies, or nothing moves on its connection for ``LOST_SECONDS`` with a beat unanswered, during which this process
itself was awake: one that was stopped takes nobody for lost. Lost hosts are tried again, each by a thread of its own.
"""

import platform
import select
import sys
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os import EFD_NONBLOCK, close, eventfd, eventfd_read, eventfd_write
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from dbdyno.errors import DbdynoError, HostError
from dbdyno.hosts import installer
from dbdyno.hosts.bundle import Bundle, our_digest
from dbdyno.hosts.contract import GuardedWork, NotInstalledError, all_of, is_anything_measured, on_each
from dbdyno.hosts.frames import Facts, Guarding, Installed, Lacking, PutBack, for_people
from dbdyno.hosts.inventory import Inventory, InventoryHost
from dbdyno.hosts.ssh import ANSWER_SECONDS, Answer, Channel, EndedError, login_command, offsets, ssh_command
from dbdyno.system.clock import Offset

if TYPE_CHECKING:
    from concurrent.futures import Future


# How the agent of a host is reached: ssh starts Python there, which takes in what it lacks and becomes the agent.


_INSTALL_SECONDS = 600.0
_BOOT = "import sys; exec(sys.stdin.buffer.read(int(sys.argv[1])))"


def reach(inventory: Inventory, name: str, host: InventoryHost, wheels: Bundle | None) -> Channel:
    """The agent of a host, after these packages were put there; without any, as it is there.

    Raises ``HostError``, or ``NotInstalledError``.
    """
    source = Path(installer.__file__).read_bytes()
    command = ssh_command(host.ssh, inventory.ssh_config, [host.python, "-c", _BOOT, str(len(source))])
    channel = Channel(name, command, login=login_command(host.ssh, inventory.ssh_config))
    try:
        channel.send(source)
        _install(channel, inventory.label(name), host, wheels)
        return channel.begin_frames()
    except EndedError as error:
        channel.close()
        wanted = "{}.{}".format(*sys.version_info[:2])
        why = f"; is {host.python} (python in the hosts file) a Python {wanted}?" if not error.is_explained else ""
        raise HostError(f"{error}{why}") from None
    except BaseException:
        channel.close()
        raise


def _install(channel: Channel, label: str, host: InventoryHost, wheels: Bundle | None) -> None:
    """Have the packages taken in, and the agent begun."""
    question = {
        "name": label,
        "folder": host.folder,
        "packages": [package.description for package in wheels.packages] if wheels else None,
        "environment": wheels.environment if wheels else "",
        "python": list(sys.version_info[:2]),
        "machine": platform.machine(),
    }
    if wheels:
        wanted = set(channel.ask_in_lines(question, Lacking, _INSTALL_SECONDS).lacking)
        for package in wheels.packages:
            if package.sha256 in wanted:
                channel.send_file(package.path, _INSTALL_SECONDS)
        installation = channel.answer_in_lines(Installed, _INSTALL_SECONDS)
    else:
        installation = channel.ask_in_lines(question, Installed)
    if not installation.installed:
        raise NotInstalledError(f"{channel.name}: dbdyno is not installed there; run dbdyno hosts up")


@dataclass(frozen=True)
class ReadyHost:
    """A host with this very dbdyno on it."""

    channel: Channel
    address: str  # at which ssh arrives there
    origin: str  # from which it came
    machine: str  # see ``facts``


def reach_ready(inventory: Inventory, name: str, host: InventoryHost) -> ReadyHost:
    """The agent of a host. Raises ``HostError``, also where the dbdyno there is not this one."""
    channel = reach(inventory, name, host, None)
    try:
        facts = channel.ask({"do": "facts"}, Facts)
        if facts.digest != our_digest():
            up = f"dbdyno hosts up {inventory.path}"
            raise HostError(f"{name}: another dbdyno is there; run {up}")  # noqa: TRY301  (closed below)
    except BaseException:
        channel.close()
        raise
    return ReadyHost(channel, facts.ssh_to, facts.ssh_from, facts.machine)


T = TypeVar("T")
LOST_SECONDS = 3.25  # after a beat: so a loss is known within 5 s
_BEAT_SECONDS_MAX = 60.0  # for the answer to a beat, though bytes keep dripping
_LOOK_SECONDS = 0.25
_BEAT_SECONDS = 1.2  # each costs a measured host some .4 ms of a processor, sshd and its agent together


class _Pulse:
    """One host's beats."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.why = ""  # it is lost; empty while it is not
        self._beat: Future[Answer] | None = None
        self._next_beat = 0.0
        self._silent_seconds = self._waited_seconds = 0.0
        self._moved = 0

    def look(self, passed_seconds: float) -> None:
        """Send a beat where it is time for one; count how long nothing came. Raises ``HostError`` once it is lost."""
        if self._beat is None or self._beat.done():
            if self._beat is not None:
                self._beat.result()
                self._beat = None
            if time.monotonic() >= self._next_beat:
                self._beat = self.channel.try_submit({"do": "beat"})
                self._next_beat = time.monotonic() + _BEAT_SECONDS
            self._silent_seconds = self._waited_seconds = 0.0
            self._moved = self.channel.bytes_moved
            return
        moved, self._moved = self._moved, self.channel.bytes_moved
        self._waited_seconds += passed_seconds
        self._silent_seconds = self._silent_seconds + passed_seconds if moved == self._moved else 0.0
        if self._silent_seconds > LOST_SECONDS or self._waited_seconds > _BEAT_SECONDS_MAX:
            raise HostError(f"{self.channel.name}: has not answered for {self._waited_seconds:.0f} s")


class Connections:
    """Connections to agents, watched by a thread; leaving the context ends both."""

    def __init__(self, channels: Mapping[str, Channel]) -> None:
        self._wake = eventfd(0, EFD_NONBLOCK)
        self._pulses = {name: _Pulse(channel) for name, channel in channels.items()}
        self.expected = set[str]()  # hosts that are restarted
        for channel in channels.values():
            channel.is_watched = True
        self._ending, self._closing = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="hosts", daemon=True)
        self._thread.start()

    def channel(self, host: str) -> Channel:
        """The connection to a host, by which it is asked; where it is lost, every question raises why."""
        return self._pulses[host].channel

    def lost(self) -> dict[str, str]:
        """The hosts that are lost, and why each is; one stays so until it is reached ``again``."""
        return {name: pulse.why for name, pulse in self._pulses.items() if pulse.why}

    def let_go(self, host: str) -> None:
        """End the connection to a host that is lost, as far as it still stands."""
        self._pulses[host].channel.close()

    def again(self, host: str, channel: Channel) -> None:
        """Have a host that was lost watched by another connection. Raises ``HostError`` once all of them are closed."""
        with self._closing:
            if self._ending.is_set():
                raise HostError(f"{host}: it came back after the work had ended")
            channel.is_watched = True
            self._pulses[host] = _Pulse(channel)
            eventfd_write(self._wake, 1)

    @contextmanager
    def soon_back(self, host: str) -> Iterator[None]:
        """A host is restarted meanwhile: once it is lost it is tried again at short intervals."""
        self.expected.add(host)
        try:
            yield
        finally:
            self.expected.discard(host)

    def ask(self, host: str, question: Mapping[str, Any], kind: type[T], seconds: float = ANSWER_SECONDS) -> T:
        """Ask an agent. Raises ``HostError`` where the host is lost, or what it answers is an error."""
        return self.channel(host).ask(question, kind, seconds)

    def offsets(self, hosts: Collection[str] | None = None) -> dict[str, dict[str, Offset]]:
        """Host -> clock -> how far it is from ours, of all (or of these) that are not lost, one after the other."""
        names = [name for name in self._pulses if (hosts is None or name in hosts) and name not in self.lost()]
        return {name: offsets(self.channel(name)) for name in names}

    def hold(self, hosts: Collection[str]) -> dict[str, GuardedWork]:
        """Have hosts be put back once their connections end; by what their work is known. Raises ``HostError``."""
        return all_of(on_each(hosts, lambda name: guard_host(self.channel(name))))

    def release(self) -> None:
        """Have each host that is not lost put back, and wait for it. Raises ``HostError`` with what could not be."""

        def release(host: str) -> None:
            answer = self.ask(host, {"do": "release"}, PutBack)
            if not answer.whole:
                raise HostError(f"{host}: {'; '.join(for_people(answer.undone))}")

        try:
            all_of(on_each(self._pulses.keys() - self.lost().keys(), release))
        except HostError as error:
            raise HostError(f"{error}\ndbdyno restore --hosts puts back what is left") from None

    def close(self) -> None:
        """End the watch and the connections, upon which hosts put themselves back."""
        with self._closing:
            if self._ending.is_set():
                return
            self._ending.set()
            eventfd_write(self._wake, 1)
        self._thread.join()
        close(self._wake)
        for pulse in self._pulses.values():
            pulse.channel.close()

    def _watch(self) -> None:
        before = next_look = time.monotonic()
        while not self._ending.is_set():
            there = [pulse for pulse in list(self._pulses.values()) if not pulse.why]
            ready = self._ready(there, next_look - time.monotonic())
            now = time.monotonic()
            is_due = now >= next_look
            if is_due:
                passed, before, next_look = min(now - before, 2 * _LOOK_SECONDS), now, now + _LOOK_SECONDS
            for pulse in there:
                try:
                    if ready & set(pulse.channel.files()):
                        pulse.channel.listen(0)
                    if is_due:
                        pulse.look(passed)
                except (HostError, OSError, ValueError) as error:  # of a file that was closed meanwhile
                    pulse.why = str(error)
                    pulse.channel.fail(error if isinstance(error, HostError) else HostError(pulse.why))

    def _ready(self, there: Collection[_Pulse], seconds: float) -> set[int]:
        """The files from which something can be read, waited for."""
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        for pulse in there:
            for file in pulse.channel.files():
                poll.register(file, select.POLLIN)
        ready_files = {file for file, _ in poll.poll(max(0.0, seconds) * 1000)}
        if self._wake in ready_files:
            with suppress(BlockingIOError):
                eventfd_read(self._wake)
        return ready_files


def guard_host(channel: Channel) -> GuardedWork:
    """Have a host be put back once its connection ends; by what its work is known. Raises ``HostError``."""
    guard = channel.ask({"do": "guard"}, Guarding)
    return GuardedWork(guard.token, guard.folder)


# Lost hosts are tried again for as long as a study or a sweep goes on over the others, each by a thread of its own.
#
# A host is worked on again once ssh reaches it, the same dbdyno is there, and what it was at has been put back. Nothing
# is asked of any other host for it. If this machine is one of the hosts, no attempt begins while anything is
# measured.


PAUSE_SECONDS, PAUSE_MAX_SECONDS = 5.0, 60.0  # before the first attempt, and at most; each is twice the one before
_BOOT_PAUSE_SECONDS = 2.0  # between two attempts while a host is restarted
_TRY_SECONDS = 0.25
_END_SECONDS = 2.0  # an attempt that takes longer to end is left to itself: it changes nothing any more


class Rejoining:
    """Tries again what is lost, from entering to leaving."""

    def __init__(
        self, inventory: Inventory, connections: Connections, work: dict[str, GuardedWork], *, measured_here: bool
    ) -> None:
        """``work`` is by what the work of each host is known; that of a host that is back is put into it."""
        self._inventory, self._connections, self._work = inventory, connections, work
        self._measured_here = measured_here
        self._why: dict[str, str] = {}  # it is not back yet, by the last attempt
        self._pauses: dict[str, float] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._ending = threading.Event()

    def __enter__(self) -> Self:
        self._watcher = threading.Thread(target=self._watch, name="hosts again", daemon=True)
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        until = time.monotonic() + _END_SECONDS
        for thread in (self._watcher, *self._threads.values()):
            thread.join(max(0.0, until - time.monotonic()))

    def why_not(self) -> Mapping[str, str]:
        """Why hosts that are lost are not back yet, of those that were tried."""
        return dict(self._why)

    def _watch(self) -> None:
        """Have each host that is lost tried."""
        while not self._ending.wait(_TRY_SECONDS):
            for name in self._connections.lost():
                if name not in self._threads or not self._threads[name].is_alive():
                    thread = threading.Thread(target=self._until_back, args=(name,), name=f"{name} again", daemon=True)
                    self._threads[name] = thread
                    thread.start()

    def _until_back(self, name: str) -> None:
        """Try at growing intervals, also from one loss of the host to the next."""
        while name in self._connections.lost():
            is_expected = name in self._connections.expected
            pause = _BOOT_PAUSE_SECONDS if is_expected else self._pauses.get(name, PAUSE_SECONDS)
            if self._ending.wait(pause):
                return
            if not is_expected:
                self._pauses[name] = min(2 * pause, PAUSE_MAX_SECONDS)
            while self._measured_here and is_anything_measured():
                if self._ending.wait(_TRY_SECONDS):
                    return
            try:
                self._try(name)
            except DbdynoError as error:
                self._why[name] = str(error)
            else:
                self._why.pop(name, None)

    def _try(self, name: str) -> None:
        """Have a host worked on again. Raises ``DbdynoError`` where that can't be yet, nothing being changed here."""
        self._connections.let_go(name)  # where the old connection still stands, the host begins to put itself back
        channel = reach_ready(self._inventory, name, self._inventory.hosts[name]).channel
        try:
            question = {"do": "restore", "token": self._work.get(name, GuardedWork()).token}
            restoration = channel.ask(question, PutBack, 2 * ANSWER_SECONDS)
            if not restoration.over:
                raise HostError(f"{name}: is being restored")  # noqa: TRY301  (closed below)
            if not restoration.whole:
                how = f"dbdyno restore --hosts {self._inventory.path}"
                raise HostError(f"{name}: {'; '.join(for_people(restoration.undone))}; {how}")  # noqa: TRY301  (closed below)
            self._work[name] = guard_host(channel)
            self._connections.again(name, channel)
        except BaseException:
            channel.close()
            raise
