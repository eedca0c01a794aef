"""One run at a time: two on one host would measure each other."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dbdyno.errors import UserError
from dbdyno.state import make_state_folder


@contextmanager
def only_one(what: str, *, wait: bool, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of this state folder; ``what`` tells others who holds it.

    The kernel holds it for the open file, so it ends with the process, however that ends: a stale one can't be. Raises
    ``UserError`` where another run holds it, unless told to wait.
    """
    path = make_state_folder() / "run.lock"
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if not _taken(handle):
            other = _holder(path)
            if not wait:
                raise UserError(
                    f"another run is going on here: {other}. Two at once would measure each other; "
                    "wait for it with --wait, or end it"
                )
            say(f"waiting for another run to end: {other}")
            fcntl.flock(handle, fcntl.LOCK_EX)
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps({"pid": os.getpid(), "what": what}).encode(), 0)
        yield
    finally:
        os.close(handle)


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(path: Path) -> str:
    """Who holds the lock, as far as it has said so yet."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        return f"{said['what']} (pid {said['pid']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "it has only just begun"
