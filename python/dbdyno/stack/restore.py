"""Undo logs as found on disk: whose owner lives, and undoing what a dead one left.

``undo_log`` writes them before anything is changed; what each undo does is in ``undo.actions``.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbdyno.errors import HostError
from dbdyno.stack.undo.actions import UNDOS
from dbdyno.stack.undo.kind import Undo
from dbdyno.stack.undo_log import INHERITED, OWNED, PUT_BACK, ProcessIdentity, line_of, lines_of
from dbdyno.system import locks
from dbdyno.system.state import check_state_folder, journal_folder

_FIRST = b'{"owner"'  # how every log begins
DAMAGED = ".damaged"  # ends the name of a log that was kept for a person to look at


@dataclass(frozen=True)
class Leftover:
    """An undo log as found on disk."""

    path: Path
    what: str
    owner: ProcessIdentity | None  # as it said itself, in its own PID namespace
    undos: list[tuple[int, Undo]]  # still to be undone, oldest first
    damage: list[str] = field(default_factory=list)  # what can't be read of it, each with its line
    sealed: bool = True  # whether its lines have checksums
    lock: int = OWNED  # the byte that its owner holds the lock on

    @property
    def by(self) -> str:
        """Its owner in words."""
        return f"pid {self.owner.pid}" if self.owner else "process unknown"

    def orphaned(self) -> bool:
        """Whether the process that should have undone them is gone."""
        try:
            handle = _open_log(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return False  # it was closed this moment
        try:
            return not self.alive(handle)
        finally:
            os.close(handle)

    def alive(self, handle: int) -> bool:
        """Whether its owner lives, in whatever PID namespace: it holds the lock.

        Earlier versions took none: their process is looked up. Damage may hide to whom a log was handed over.
        """
        bytes_ = {OWNED, INHERITED} if self.damage else {self.lock}
        return any(locks.is_taken(handle, byte) for byte in bytes_) or bool(self.owner and self.owner.alive())


def leftovers() -> list[Leftover]:
    """Every undo log of this user on this host, oldest first; ``unreadable`` has the others."""
    return [leftover for leftover in _look() if isinstance(leftover, Leftover)]


def unreadable() -> list[str]:
    """Why each log is left alone that is not to be trusted."""
    return [reason for reason in _look() if isinstance(reason, str)]


def kept_aside() -> list[Path]:
    """Damaged logs of which all was undone that could be read."""
    return sorted(journal_folder().glob(f"*{DAMAGED}"))


def _look() -> Iterator[Leftover | str]:
    folder = journal_folder()
    if not os.path.lexists(folder):
        return
    check_state_folder(folder.parent)
    if problem := _not_ours(folder.lstat(), stat.S_ISDIR, "folder"):
        yield f"{folder} {problem}; it is left alone"
        return
    for path in sorted(folder.glob("*.jsonl"), key=_changed_at):
        try:
            handle = _open_log(path, os.O_RDWR)
        except FileNotFoundError:
            continue
        except HostError as error:
            yield str(error)
            continue
        try:
            leftover = _read(path, handle)
            if leftover is None:
                _remove_unbegun(path, handle)
        finally:
            os.close(handle)
        if leftover is not None:
            yield leftover


def _changed_at(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except FileNotFoundError:  # its owner has closed it this moment
        return 0.0


def _open_log(path: Path, flags: int) -> int:
    """Open an undo log. Undoing is done with our rights, so only what we wrote ourselves is read; no link is followed.

    Raises:
        HostError: It is no file of this user's.
        FileNotFoundError: It is gone.

    """
    try:
        handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        access_problem = "is a link" if path.is_symlink() else f"can't be opened ({error.strerror})"
        raise HostError(f"{path} {access_problem}; it is left alone") from None
    if problem := _not_ours(os.fstat(handle), stat.S_ISREG, "file"):
        os.close(handle)
        raise HostError(f"{path} {problem}; it is left alone")
    return handle


def _not_ours(status: os.stat_result, is_kind: Callable[[int], bool], kind: str) -> str:
    """Why a file or folder can't be taken for one that this user's dbdyno made; empty where it can."""
    if not is_kind(status.st_mode):
        return f"is not a {kind}"
    if status.st_uid != os.geteuid():
        return "is another user's"
    return "can be written by others" if status.st_mode & 0o022 and kind == "file" else ""


def _read(path: Path, handle: int) -> Leftover | None:
    """What a log says; ``None`` where its first line is still to come."""
    content = _content(handle)
    lines = lines_of(content)
    if not lines.entries and (_FIRST.startswith(content) or (content.startswith(_FIRST) and b"\n" not in content)):
        return None
    what, owner, lock, undos = "", None, OWNED, dict[int, Undo]()
    damage = [f"{path}:{number}: this line is damaged" for number in lines.damaged]
    for fields in lines.entries:
        open_now = fields.pop("open", None)
        try:
            if "owner" in fields:
                owner, lock = ProcessIdentity(**fields["owner"]), fields.get("lock", OWNED)
                what = str(fields.get("what", what))
            elif "undo" in fields:
                undos[fields["undo"]] = _undo(fields)
            else:
                undos.pop(fields["done"], None)
        except (KeyError, TypeError) as error:
            damage.append(f"{path}: {fields} is not an entry that this dbdyno knows ({error!r})")
        if open_now is not None:
            undos = {number: undo for number, undo in undos.items() if number in open_now}
    title = what or "a run that its undo log no longer names"
    return Leftover(path, title, owner, list(undos.items()), damage, lines.sealed, lock)


def _undo(fields: dict[str, Any]) -> Undo:
    values = {name: value for name, value in fields.items() if name not in {"undo", "kind"}}
    return UNDOS[fields["kind"]](**values)


def _content(handle: int) -> bytes:
    with os.fdopen(os.dup(handle), "rb") as file:
        file.seek(0)
        return file.read()


@contextmanager
def taken(path: Path, say: Callable[[str], None], *, though_alive: bool = False) -> Iterator[Leftover | None]:
    """Hold a log, so that no other dbdyno undoes it meanwhile; waits for one that does.

    Yields ``None`` where there is nothing left to undo, or its owner lives and that was not to be overruled.
    """
    try:
        handle = _open_log(path, os.O_RDWR | os.O_APPEND)
    except FileNotFoundError:
        yield None
        return
    try:
        if not locks.take(handle, PUT_BACK):
            say(f"waiting: another dbdyno is undoing what {path} says")
            locks.take(handle, PUT_BACK, wait=True)
        if not os.path.lexists(path):  # undone by the one that was waited for
            yield None
            return
        leftover = _read(path, handle)
        if leftover is None:
            _remove_unbegun(path, handle)
        elif leftover.alive(handle) and not though_alive:
            leftover = None
        else:
            _end_its_last_line(handle)
        yield leftover
    finally:
        os.close(handle)


def _remove_unbegun(path: Path, handle: int) -> None:
    """Remove a log whose owner was killed before its first line: nothing had been changed."""
    begun_by = path.name.partition("-")[0]
    unlocked_owner = (
        ProcessIdentity.of(int(begun_by)) if begun_by.isdecimal() else None
    )  # an earlier version's, about to write
    if unlocked_owner is None and locks.take(handle, OWNED):
        path.unlink(missing_ok=True)


def _end_its_last_line(handle: int) -> None:
    """Cut off what a kill left of a last line, so that lines can be added."""
    content = _content(handle)
    whole, rest = content[: content.rfind(b"\n") + 1], content[content.rfind(b"\n") + 1 :]
    if rest and lines_of(content).entries[len(lines_of(whole).entries) :]:
        os.write(handle, b"\n")
    elif rest:
        os.ftruncate(handle, len(whole))


def replay(leftover: Leftover, say: Callable[[str], None]) -> bool:
    """Undo what a log says, newest first; it must be ``taken``.

    Returns whether all of it worked; then the log is gone. One with damage is kept under another name.
    """
    failed = False
    still = [number for number, _ in leftover.undos]
    for number, undo in reversed(leftover.undos):
        try:
            if undo.apply():
                say(undo.describe())
        except (HostError, OSError) as error:
            failed = True
            say(f"could not {undo.describe()}: {error}")
        else:
            still.remove(number)
            _cross_out(leftover, number, still)
    for line in leftover.damage:
        say(line)
    if failed:
        return False
    if not leftover.damage:
        leftover.path.unlink(missing_ok=True)
        return True
    copy = leftover.path.with_name(leftover.path.name + DAMAGED)
    leftover.path.rename(copy)
    say(f"what could be read is undone; the log is kept as {copy}: check there what else may be left, then remove it")
    return False


def put_back(say: Callable[[str], None], leave: Callable[[str], None]) -> bool:
    """Do what the undo logs of processes that are gone say; whether all was done.

    ``leave`` takes what is left alone, as its process lives.
    """
    whole = True
    for leftover in leftovers():
        with taken(leftover.path, say) as undo_log:
            if undo_log is not None:
                whole = replay(undo_log, say) and whole
            elif leftover.path.exists():
                leave(f"left alone: {leftover.what} ({leftover.by} is running)")
    return whole


def _cross_out(leftover: Leftover, number: int, still: list[int]) -> None:
    """Say in the log that an undo is done, so that a second try does not find a setting that has been changed since."""
    fields = {"done": number, **({"open": still} if leftover.sealed else {})}
    with suppress(OSError), leftover.path.open("ab") as file:
        file.write(line_of(fields, sealed=leftover.sealed))
