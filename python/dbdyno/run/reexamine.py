"""Kept states examined again on hosts: each is sent its part of them, and examines on all of its processors.

``python -m dbdyno.run.reexamine`` is the program on a host. What there is to know of the run comes on its standard
input; states and what is to be done with them, as files in a folder that it names. It says lines of JSON. It ends with
what started it, the host put back first.
"""

import json
import multiprocessing
import os
import queue
import shutil
import signal
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from dbdyno.compute.spread import Spread
from dbdyno.compute.workers import Returned, Workers, take_arrived
from dbdyno.crash.examine import examine_kept
from dbdyno.crash.trial_cuts import read_kept
from dbdyno.errors import DbdynoError, HostError, TrialError, UserError
from dbdyno.hosts.contract import Hosts, LieError
from dbdyno.model.cut import Cut
from dbdyno.plan.plan import Plan
from dbdyno.run import sparse_tar
from dbdyno.run.fleet.asking import messages
from dbdyno.run.fleet.message import ALWAYS, Failed, Gone, Message, Say
from dbdyno.run.host_program import Send, as_of_host, end_with_starter, exclusive_host, request_and_send
from dbdyno.run.kept_states import Examined, Examining, State, missing_capabilities, plan_of, spec_in, tried
from dbdyno.run.preflight import unmet_needs, versions
from dbdyno.stack.restore import put_back
from dbdyno.stack.space import bytes_on_disk
from dbdyno.stack.undo.actions import RemoveTree
from dbdyno.stack.undo_log import journalled
from dbdyno.store.cuts import verify_sums
from dbdyno.store.header import RUN
from dbdyno.store.run_folder import STUDY, read_header
from dbdyno.system.files import file_sha256, why_not_written
from dbdyno.system.interrupt import Interrupted, interruptible
from dbdyno.system.state import make_state_folder, new_token

if TYPE_CHECKING:
    from dbdyno.compute.spread import Done

# There: the program of a host.


STATE = "state"  # the folder in the file


def pack(state: Path, into: Path) -> None:
    """Make the file of a kept state: the same content gives the same bytes.

    Raises ``OSError``, or ``UserError`` where the state is not as it was kept.
    """
    verify_sums(state)
    with tarfile.open(into, "w") as packed:
        sparse_tar.add(packed, state, STATE, plain=True)


def examined(folder: str, name: str) -> str:
    """Unpack the file ``name`` of a folder that holds the run's header and study, and examine the state in it.

    Returns JSON: ``cut``, and the CPU seconds of this process. The file is removed, and all that was made of it. Raises
    ``UserError``, ``TrialError`` or ``HostError``.
    """
    began, packed = time.process_time(), Path(folder) / name
    place = packed.with_suffix("")
    try:
        place.mkdir()
        sparse_tar.extract(packed, place)
        packed.unlink()
        state = place / STATE
        verify_sums(state)
        spec = spec_in(_plan(folder), read_kept(state).treatment, state)
        with journalled(f"kept state {name}") as journal:
            cut = examine_kept(state, spec, journal)
    except (OSError, tarfile.TarError) as error:
        why = why_not_written(error, place) if isinstance(error, OSError) else f"{place}: {error}"
        raise HostError(why) from None
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return json.dumps({"cut": asdict(cut), "cpu_s": time.process_time() - began})


@cache
def _plan(folder: str) -> Plan:
    return plan_of(Path(folder))


TASKS = "tasks"
_LOOK_AGAIN_SECONDS = 0.02
_EXAMINING_BYTES = 1024**3  # of memory that a server, a verifier and their Python take beside the state


@dataclass(frozen=True)
class ExaminationRequest:
    """What a host is asked to examine: the run's header and study as they lie in the run folder."""

    host: str
    header: str
    study: str
    state_bytes: int  # of the largest state


def lacking_here(plan: Plan) -> list[str]:
    """What this host lacks for states of a run to be raised."""
    needs = [*missing_capabilities(examining=True), *unmet_needs(plan)]
    return [as_of_host(text) for text in dict.fromkeys(need.said for need in needs)]


@dataclass(frozen=True)
class ExaminerHost:
    """The host: given as an argument, so that a test can play it. ``examine`` is called in processes of its own."""

    examine: Callable[[str, str], str] = examined
    lacking: Callable[[Plan], list[str]] = lacking_here
    versions: Callable[[Plan], dict[str, str]] = versions
    memory_bytes: Callable[[], int] = lambda: int(psutil.virtual_memory().available)


def main(this_host: ExaminerHost = ExaminerHost()) -> None:
    """Do what standard input asks for."""
    content, send = request_and_send()
    try:
        with interruptible(lambda text: send({"say": text})):
            take_part(ExaminationRequest(**json.loads(content)), send, this_host)
    except Interrupted:
        send({"ended": True})
    except (DbdynoError, OSError) as error:
        send({"error": str(error)})


def take_part(request: ExaminationRequest, send: Send, this_host: ExaminerHost) -> None:
    """Examine what comes until it is interrupted. Raises ``UserError`` or ``HostError`` where this host can't."""

    def say(text: str) -> None:
        send({"say": text})

    with exclusive_host(f"crash examine of another machine, as {request.host}", say):
        try:
            with folder_for("kept states that are examined again") as folder:
                (folder / TASKS).mkdir()
                (folder / RUN).write_text(request.header, encoding="utf-8")
                (folder / STUDY).write_text(request.study, encoding="utf-8")
                plan = plan_of(folder)
                if missing := this_host.lacking(plan):
                    raise HostError("\n".join(missing))
                count = workers_for(request.state_bytes, this_host.memory_bytes())
                with _processes(count) as pool:
                    send({"ready": str(folder), "cores": count, "versions": this_host.versions(plan)})
                    _serve(pool, folder, send, this_host.examine)
        finally:
            put_back(say, lambda _: None)  # what a process of ours left that was killed


def workers_for(state_bytes: int, memory_bytes: int) -> int:
    """How many states are examined at once here: a disk has its content in memory, and a server as much again."""
    cores = len(os.sched_getaffinity(0))
    return max(1, min(cores, memory_bytes // (2 * state_bytes + _EXAMINING_BYTES)))


@contextmanager
def folder_for(what: str) -> Iterator[Path]:
    """A folder that is gone afterwards, for what comes or goes."""
    folder = make_state_folder() / "scratch" / new_token()
    with journalled(what) as journal, journal.undoing(RemoveTree(str(folder))):
        folder.parent.mkdir(exist_ok=True)
        folder.mkdir(mode=0o700)
        yield folder


def _begin(starter: int) -> None:
    """In a process of the pool: it ends with the one that started it."""
    end_with_starter()
    if os.getppid() != starter:  # which had ended before
        _end()


def _end() -> None:
    """End this process of the pool at once."""
    os.kill(os.getpid(), signal.SIGKILL)


def _call(examine: Callable[[str, str], str], folder: str, name: str) -> str:
    """In a process of the pool: asked to end, it lowers its stack, whatever else comes, and ends."""
    try:
        with interruptible(lambda _: None):
            return examine(folder, name)
    except Interrupted:
        _end()  # who started it is at its end as well, or was killed; it would wait for more for ever
        raise


@contextmanager
def _processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that examine; when this is left each has ended, its stack lowered."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=_begin, initargs=(os.getpid(),))
    try:
        yield pool
    finally:
        for child in multiprocessing.active_children():
            os.kill(child.pid or 0, signal.SIGTERM)
        pool.shutdown(wait=True, cancel_futures=True)


def _serve(pool: ProcessPoolExecutor, folder: Path, send: Send, examine: Callable[[str, str], str]) -> None:
    """Have each task that comes done, and say what it came to. Raises ``HostError`` where a process was killed."""
    broken: list[BrokenProcessPool] = []

    def done(ticket: int, future: "Future[str]") -> None:
        if future.cancelled():
            return
        error = future.exception()
        if error is None:
            send({"done": ticket, **json.loads(future.result())})
        elif isinstance(error, BrokenProcessPool):
            broken.append(error)
        else:
            send({"failed": ticket, "kind": type(error).__name__, "why": str(error)})

    while not broken:
        for path in sorted((folder / TASKS).glob("[0-9]*.json")):  # each comes whole, under this name
            task = json.loads(path.read_text(encoding="utf-8"))
            path.unlink()
            try:
                future = pool.submit(_call, examine, str(folder), task["state"])
            except BrokenProcessPool as error:
                broken.append(error)
                break
            future.add_done_callback(partial(done, task["ticket"]))
        time.sleep(_LOOK_AGAIN_SECONDS)
    raise HostError("a process that examined a kept state was killed; was there too little memory?")


# Here: hosts examine states, a program on each, which is sent its part of them.


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
        deadline = time.monotonic() + _BEGIN_SECONDS
        for name, there in self._hosts.items():
            while not there.known.wait(_LOST_LOOK_SECONDS) and name not in self.lost():
                if time.monotonic() > deadline:
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
        deadline = time.monotonic() + _END_SECONDS
        for name, there in self._hosts.items():
            while there.process and not there.ended.wait(_LOST_LOOK_SECONDS) and name not in self._access.lost():
                if time.monotonic() > deadline:
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


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        sys.stderr.close()
