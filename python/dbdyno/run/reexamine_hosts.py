"""Kept states examined again on hosts: a program on each (``run.reexamine``) is sent its part of them."""

import json
import queue
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from dbdyno.compute.spread import Spread
from dbdyno.compute.workers import Returned, Workers, take_arrived
from dbdyno.errors import DbdynoError, HostError, TrialError, UserError
from dbdyno.hosts.contract import Hosts, LieError
from dbdyno.model.cut import Cut
from dbdyno.run.fleet.asking import messages
from dbdyno.run.fleet.message import ALWAYS, Failed, Gone, Message, Say
from dbdyno.run.kept_states import Examined, Examining, State, plan_of, tried
from dbdyno.run.reexamine import TASKS, ExaminationRequest, folder_for, pack
from dbdyno.stack.space import bytes_on_disk
from dbdyno.store.header import RUN
from dbdyno.store.run_folder import STUDY, read_header
from dbdyno.system.files import file_sha256
from dbdyno.system.interrupt import interruptible

if TYPE_CHECKING:
    from concurrent.futures import Future

    from dbdyno.compute.spread import Done


MEMBER = ("python", "-m", "dbdyno.run.reexamine")
_BEGIN_SECONDS = 120.0  # for a host to start Python, to look at itself, and to put back what was left on it
_END_SECONDS = 120.0  # for a host to lower what it examines
_CORES_MAX = 65_536
_KINDS_OF_ERROR: Mapping[str, type[Exception]] = {kind.__name__: kind for kind in (TrialError, UserError)}
_LOST_LOOK_SECONDS = 0.2  # between two looks at which hosts are lost


@dataclass(frozen=True)
class EndsAsTold(Message):
    """It was told to end, and has."""

    ended: bool


@dataclass(frozen=True)
class Ready(Message):
    """It is ready to be sent states, in this folder there."""

    shown = frozenset({"versions"})
    ready: str
    cores: int
    versions: dict[str, str]

    def __post_init__(self) -> None:
        """Raise ``ValueError`` where that can't be."""
        if not self.ready or not 0 < self.cores <= _CORES_MAX:
            raise ValueError("ready is not a folder, or cores is not a number of processors")


@dataclass(frozen=True)
class StateExamined(Message):
    """What was found on a state."""

    brings = True
    shown = frozenset({"cut"})
    done: int
    cut: Cut
    cpu_s: float


@dataclass(frozen=True)
class NotExamined(Message):
    """A state could not be examined."""

    brings = True
    shown = frozenset({"why"})
    failed: int
    kind: str
    why: str


KINDS = {**ALWAYS, "ready": Ready, "done": StateExamined, "failed": NotExamined, "ended": EndsAsTold}


@dataclass(frozen=True)
class ExaminerAccess:
    """How hosts are reached; given as an argument, so that a test can play them."""

    hosts: Hosts
    lost: Callable[[], Mapping[str, str]]  # host -> why, of those that are lost
    say: Callable[[str], None]
    argv: Sequence[str] = MEMBER
    environment_of: Callable[[str], Mapping[str, str]] = lambda _: {}


@dataclass
class _There:
    """The program on a host."""

    process: str = ""
    folder: str = ""
    cores: int = 0
    open: set[int] = field(default_factory=set)  # tickets of the states that it was sent and has said nothing of
    tasks: "queue.SimpleQueue[tuple[int, str] | None]" = field(default_factory=queue.SimpleQueue)
    known: threading.Event = field(default_factory=threading.Event)  # whether it takes part
    ended: threading.Event = field(default_factory=threading.Event)


class ProgramWorkers(Workers):
    """Hosts that examine states; what a call is given is the path of a state here, and it returns the cut as JSON.

    A state goes to the host that is to examine it, packed, by its SHA-256, while others are examined there.
    """

    def __init__(
        self,
        access: ExaminerAccess,
        requests: Callable[[str], ExaminationRequest],
        servers: Mapping[str, str],
        into: Path,
    ) -> None:
        """``servers``: the versions that a host must have; ``into``: a folder here for what is packed."""
        self._access, self._servers, self._into = access, servers, into
        self._lost: dict[str, str] = {}
        self._returned: queue.SimpleQueue[Returned] = queue.SimpleQueue()
        self._hosts = {name: _There() for name in access.hosts.names}
        try:
            for name in self._hosts:
                threading.Thread(target=self._listen, args=(name, requests(name)), name=name, daemon=True).start()
            self._wait_until_all_are_known()
        except BaseException:
            self.close()
            raise

    def _wait_until_all_are_known(self) -> None:
        deadline = monotonic() + _BEGIN_SECONDS
        for name, there in self._hosts.items():
            while not there.known.wait(_LOST_LOOK_SECONDS) and name not in self.lost():
                if monotonic() > deadline:
                    self.leave_out(name, f"{name}: no answer in {_BEGIN_SECONDS:g} s")

    def cores(self) -> Mapping[str, int]:
        """As the contract says."""
        return {name: there.cores for name, there in self._hosts.items() if there.cores and name not in self._lost}

    def begin(self, host: str, ticket: int, argument: str) -> None:
        """As the contract says."""
        self._hosts[host].tasks.put((ticket, argument))

    def returned(self, seconds: float) -> list[Returned]:
        """As the contract says."""
        return [returned for returned in take_arrived(self._returned, seconds) if returned.host not in self._lost]

    def lost(self) -> Mapping[str, str]:
        """As the contract says."""
        for host, why in self._access.lost().items():
            if host in self._hosts:
                self.leave_out(host, why)
        return {name: self._lost[name] for name in self._hosts if name in self._lost}

    def leave_out(self, host: str, why: str) -> None:
        """As the contract says."""
        self._lost.setdefault(host, why)
        self._hosts[host].tasks.put(None)

    def missing_inputs(self, host: str, names: Sequence[str]) -> tuple[str, list[str]]:
        """As the contract says: all of them, as a state is removed there once it is examined."""
        return self._hosts[host].folder, list(names)

    def progress(self) -> Mapping[int, float]:
        """Nothing: a state is examined within seconds."""
        return {}

    def close(self) -> None:
        """As the contract says: each host has put itself back, or is lost."""
        for name, there in self._hosts.items():
            there.tasks.put(None)
            if there.process and not there.ended.is_set():
                with suppress(DbdynoError):
                    self._access.hosts.signal(name, there.process, signal.SIGTERM)
        deadline = monotonic() + _END_SECONDS
        for name, there in self._hosts.items():
            while there.process and not there.ended.wait(_LOST_LOOK_SECONDS) and name not in self._access.lost():
                if monotonic() > deadline:
                    self._access.say(
                        f"{name}: did not confirm that its settings are restored; run dbdyno restore --hosts"
                    )
                    break

    def _listen(self, host: str, request: ExaminationRequest) -> None:
        access, there = self._access, self._hosts[host]
        try:
            there.process = access.hosts.start(
                host, access.argv, stdin=json.dumps(asdict(request)).encode(), environment=access.environment_of(host)
            )
            for message in messages(access.hosts, host, there.process, KINDS):
                self._handle(host, there, message)
        except LieError as error:
            self.leave_out(host, str(error))
            with suppress(DbdynoError):
                access.hosts.signal(host, there.process, signal.SIGTERM)
        except (DbdynoError, OSError, ValueError) as error:
            self.leave_out(host, str(error))
        finally:
            there.ended.set()
            there.known.set()

    def _handle(self, host: str, there: _There, message: Message) -> None:
        match message:
            case Ready():
                self._joined(host, there, message)
            case Say():
                self._access.say(f"{host}: {message.say}")
            case StateExamined():
                self._check_ticket(host, there, message.done)
                self._returned.put(Returned(message.done, host, json.dumps(asdict(message.cut)), message.cpu_s))
            case NotExamined():
                self._check_ticket(host, there, message.failed)
                self._failed(host, message)
            case Failed():
                self.leave_out(host, f"{host}: {message.error}")
            case Gone():
                self.leave_out(host, f"{host}: its dbdyno ended ({message.why})")

    @staticmethod
    def _check_ticket(host: str, there: _There, ticket: int) -> None:
        """Take what was sent to a host off its account. Raises ``LieError`` where it was not."""
        if ticket not in there.open:
            raise LieError(f"{host}: it reports a result for a state that it was not sent")
        there.open.discard(ticket)

    def _joined(self, host: str, there: _There, message: Ready) -> None:
        if there.folder:
            raise LieError(f"{host}: it said twice that it is ready")
        differing = [
            f"{name} there is {message.versions.get(name)}, the run's was {version}"
            for name, version in self._servers.items()
            if message.versions.get(name) != version
        ]
        if differing:
            self.leave_out(host, f"{host}: {'; '.join(differing)}; dbdyno servers add there makes it the same")
            self._access.hosts.signal(host, there.process, signal.SIGTERM)
            return
        there.folder, there.cores = message.ready, message.cores
        threading.Thread(target=self._send_all, args=(host, there), name=f"to {host}", daemon=True).start()
        there.known.set()

    def _failed(self, host: str, message: NotExamined) -> None:
        """A state that can't be examined at all; or a host that can examine none, whose states others have."""
        if message.kind == HostError.__name__:
            self.leave_out(host, f"{host}: {message.why}")
            return
        kind = _KINDS_OF_ERROR.get(message.kind, RuntimeError)
        self._returned.put(Returned(message.failed, host, "", 0.0, kind(message.why)))

    def _send_all(self, host: str, there: _There) -> None:
        while (task := there.tasks.get()) and host not in self._lost:
            ticket, state = task
            try:
                self._send(host, ticket, Path(state))
            except HostError as error:
                self.leave_out(host, str(error))
            except UserError as error:
                self._returned.put(Returned(ticket, host, "", 0.0, error))
            except OSError as error:
                why = f"{error.filename or state}: {error.strerror}"
                self._returned.put(Returned(ticket, host, "", 0.0, UserError(why)))

    def _send(self, host: str, ticket: int, state: Path) -> None:
        """Have a state there, and say that it is to be examined. Raises ``HostError``, ``OSError`` of a file here."""
        hosts, packed = self._access.hosts, self._into / f"{host}.{ticket}.tar"
        try:
            pack(state, packed)
            sha256, folder = file_sha256(packed), self._hosts[host].folder
            name = f"{sha256}.{ticket}.tar"
            if hosts.put(host, packed, f"{folder}/{name}") != sha256:
                raise HostError(f"{host}: the state {state} arrived damaged")
        finally:
            packed.unlink(missing_ok=True)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=self._into) as file:
            self._hosts[host].open.add(ticket)
            file.write(json.dumps({"ticket": ticket, "state": name}))
            file.flush()
            hosts.put(host, Path(file.name), f"{folder}/{TASKS}/{ticket}.json")


@contextmanager
def on_hosts(folder: Path, states: Sequence[State], access: ExaminerAccess) -> Iterator[Examining]:
    """Examine on all processors of hosts; when this is left, each has put itself back, or is lost."""
    plan_of(folder)  # what is wrong with it is said here, not by each host
    largest = max((bytes_on_disk(state.folder) for state in states), default=0)
    header, study = ((folder / name).read_text(encoding="utf-8") for name in (RUN, STUDY))
    servers = {name: it for name, it in read_header(folder).versions.items() if name.startswith("server ")}

    def request(host: str) -> ExaminationRequest:
        return ExaminationRequest(host, header, study, largest)

    with interruptible(access.say), folder_for("kept states on their way to hosts") as into:
        workers = ProgramWorkers(access, request, servers, into)
        with Spread(workers, access.say) as spread:

            def examining(states: Sequence[State]) -> Iterator[Examined]:
                submitted = [(state, spread.submit(str(state.folder))) for state in states]
                return (tried(state, partial(_cut_of, future)) for state, future in submitted)

            yield examining


def _cut_of(future: "Future[Done]") -> Cut:
    return Cut(**json.loads(future.result().text))
