"""One run at a time: two on one host would measure each other."""

import errno
import fcntl
import json
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dbdyno.errors import HostError, UserError
from dbdyno.model.printable import one_line
from dbdyno.system.files import why_not_written
from dbdyno.system.state import make_state_folder, make_traversable, state_folder, state_folder_is_given

# Locks on single bytes of an open file, held by the open file description (fcntl_locking(2)).
#
# The kernel ends such a lock when the last descriptor of that description is closed, however its process ends; a
# process that inherits the descriptor holds it too. It is seen in every PID namespace, and asking about it takes
# nothing.


_FLOCK = "hhqqi4x"  # struct flock: type, whence, start, length, pid


def _lock(kind: int, byte: int) -> bytes:
    return struct.pack(_FLOCK, kind, 0, byte, 1, 0)


def take(handle: int, byte: int, *, wait: bool = False) -> bool:
    """Take the lock on a byte of a file that is open for writing; whether it was had. Raises ``OSError``."""
    try:
        fcntl.fcntl(handle, fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK, _lock(fcntl.F_WRLCK, byte))
    except OSError as error:
        if error.errno in {errno.EAGAIN, errno.EACCES}:
            return False
        raise
    return True


def is_taken(handle: int, byte: int) -> bool:
    """Whether another open file description holds the lock on a byte. Raises ``OSError``."""
    answer = fcntl.fcntl(handle, fcntl.F_OFD_GETLK, _lock(fcntl.F_WRLCK, byte))
    return bool(struct.unpack(_FLOCK, answer)[0] != fcntl.F_UNLCK)


# Which process listens on a Unix socket, by the kernel's word.


_CREDENTIALS = struct.Struct("3i")  # struct ucred of unix(7): pid, uid, gid
_PATIENCE_SECONDS = 5.0


def listener_pid(address: str) -> int:
    """The process that called listen(2), which may be a proxy; an abstract ``address`` begins with NUL.

    Raises ``OSError`` where no process listens.
    """
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(_PATIENCE_SECONDS)
        client.connect(address)
        reported = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid: int = _CREDENTIALS.unpack(reported)[0]
    return pid


HOST_NAME = (
    "\0dbdyno-run"  # in the abstract namespace of unix(7): no file, so all users share it, and it ends with its process
)
_ASK_AGAIN_SECONDS = 0.5


@contextmanager
def only_one(what: str, *, wait: bool, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of this state folder; ``what`` says who holds it.

    The kernel holds it for the open file, so it ends with the process, however that ends: a stale one can't be. Raises
    ``UserError`` where another run holds it, unless asked to wait.
    """
    path = make_state_folder() / "run.lock"
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if not _try_lock(handle):
            run = _holder(path)
            _refuse_or_say(run, wait=wait, say=say)
            fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps({"pid": os.getpid(), "what": what}).encode(), 0)
        except OSError as error:
            then = ", or set DBDYNO_STATE_DIR to a folder on another one"
            raise HostError(why_not_written(error, path, then)) from None
        yield
    finally:
        os.close(handle)


@contextmanager
def alone_on_host(*, wait: bool, say: Callable[[str], None]) -> Iterator[None]:
    """Be the one run of this host, whichever user started it.

    Who gave a state folder of its own (``DBDYNO_STATE_DIR``) keeps its runs apart by itself. Raises ``UserError`` where
    another run holds the host, unless asked to wait.
    """
    if state_folder_is_given():
        yield
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as name:
        reported = False
        while not _bound(name):
            if not reported:
                _refuse_or_say(_listener(), wait=wait, say=say)
                reported = True
            time.sleep(_ASK_AGAIN_SECONDS)
        name.listen()  # so that others can ask who it is
        yield


def another_run() -> str:
    """Who measures here at this moment, as far as this user may know; empty where nobody does, or this process.

    It is only looked at: who took the lock for an instant to try it would refuse a run that begins in that instant.
    """
    path = state_folder() / "run.lock"
    holder = _holder(path) if is_flocked(path) else ""
    if not holder and not state_folder_is_given():
        with suppress(OSError):
            listener_pid(HOST_NAME)
            holder = _listener()
    return "" if holder.endswith(f"(pid {os.getpid()})") else holder


def is_flocked(path: Path) -> bool:
    """Whether a process has a lock on a file (proc_locks(5)); by the inode, as devices differ on some filesystems."""
    try:
        inode, locks = path.stat().st_ino, Path("/proc/locks").read_text(encoding="ascii")
    except OSError:
        return False
    flocks = (line.split() for line in locks.splitlines() if " FLOCK " in line and " -> " not in line)
    return any(words[-3].rpartition(":")[2] == str(inode) for words in flocks)


def _refuse_or_say(run: str, *, wait: bool, say: Callable[[str], None]) -> None:
    if not wait:
        raise UserError(
            f"another run is going on here: {run}. Two at once would measure each other; "
            "wait for it with --wait, or end it"
        )
    say(f"waiting for another run to end: {run}")


def _bound(name: socket.socket) -> bool:
    try:
        name.bind(HOST_NAME)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return False
        raise
    return True


def _listener() -> str:
    """The process that holds the host, and its command line."""
    try:
        pid = listener_pid(HOST_NAME)
        words = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
    except OSError:
        return "it has only just begun, or ended"
    return f"{one_line(' '.join(words).strip())} (pid {pid})"


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(path: Path) -> str:
    """Who holds the lock, as far as it has said so yet."""
    try:
        lock = json.loads(path.read_text(encoding="utf-8"))
        return f"{lock['what']} (pid {lock['pid']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "it has only just begun"


@contextmanager
def alone_at(folder: Path, name: str) -> Iterator[None]:
    """One process at a time changes what ``name`` stands for in a folder below the state folder, which servers pass.

    Raises ``HostError`` as ``alone_with``.
    """
    make_traversable(folder)
    with alone_with(folder / f"{name}.lock", f"adding or removing {name}"):
        yield


@contextmanager
def alone_with(path: Path, what: str) -> Iterator[None]:
    """Hold the lock of a file; it ends with its holder, however that ends. Raises ``HostError`` where another has it.

    ``what`` says what the holder is doing.
    """
    with path.open("w", encoding="ascii") as lock:
        if not _try_lock(lock.fileno()):
            raise HostError(f"another dbdyno is {what}; wait for it")
        yield
