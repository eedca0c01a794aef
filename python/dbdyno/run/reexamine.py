"""``python -m dbdyno.run.reexamine``: a host's part in examining kept states again, on all of its processors.

What there is to know of the run comes on standard input; states and what is to be done with them, as files in a
folder that it names. It says lines of JSON. It ends with what started it, the host put back first.
"""

import json
import multiprocessing
import os
import shutil
import signal
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path

import psutil

from dbdyno.crash.examine import examine_kept
from dbdyno.crash.trial_cuts import read_kept
from dbdyno.errors import DbdynoError, HostError
from dbdyno.plan.plan import Plan
from dbdyno.run import sparse_tar
from dbdyno.run.host_program import Send, as_of_host, end_with_starter, exclusive_host, request_and_send
from dbdyno.run.kept_states import missing_capabilities, plan_of, spec_in
from dbdyno.run.preflight import unmet_needs, versions
from dbdyno.stack.restore import put_back
from dbdyno.stack.undo.actions import RemoveTree
from dbdyno.stack.undo_log import journalled
from dbdyno.store.cuts import verify_sums
from dbdyno.store.header import RUN
from dbdyno.store.run_folder import STUDY
from dbdyno.system.files import why_not_written
from dbdyno.system.interrupt import Interrupted, interruptible
from dbdyno.system.state import make_state_folder, new_token

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


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        sys.stderr.close()
