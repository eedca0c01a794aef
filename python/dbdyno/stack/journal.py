"""How the host is put back: what undoes a change is on disk before the change is made.

A journal is a file of JSON lines, one file per process. ``{"owner": ...}`` opens it, ``{"undo": id, ...}`` announces a
change, ``{"done": id}`` says it has been undone. Lowering a stack and ``dbdyno restore`` run the same undo code.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dbdyno.errors import HostError
from dbdyno.interrupt import shielded
from dbdyno.stack.undo import UNDOS, EndProcesses, boot_id, marked
from dbdyno.stack.undo_kind import Undo
from dbdyno.state import journal_folder, make_state_folder, new_token


@dataclass(frozen=True)
class Process:
    """A process that can't be taken for a later one with the same number."""

    pid: int
    started: str  # which boot, and the start time in clock ticks since then (field 22 of /proc/PID/stat)

    @classmethod
    def of(cls, pid: int) -> "Process | None":
        """The process with this number, or ``None`` where there is none (a zombie counts as none)."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in "ZX" else cls(pid, f"{boot_id()}:{fields[19]}")

    def alive(self) -> bool:
        """Whether this very process still runs."""
        return Process.of(self.pid) == self


class Journal:
    """The undo journal of one process. Closing it removes the file if nothing is left to undo."""

    def __init__(self, what: str, owner: Process | None = None, folder: Path | None = None) -> None:
        folder = folder or make_state_folder() / "journals"
        folder.mkdir(parents=True, exist_ok=True)
        owner = owner or Process.of(os.getpid())
        assert owner is not None  # noqa: S101  (this process runs)
        self.path = folder / f"{owner.pid}-{new_token()}.jsonl"
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        self._open: dict[int, Undo] = {}
        self._stuck: set[int] = set()  # tried in vain; they stay, for ``dbdyno restore``
        self._next = 1
        self._append({"owner": asdict(owner), "what": what})
        _sync_folder(folder)

    def _append(self, line: dict[str, Any]) -> None:
        os.write(self._file, json.dumps(line).encode() + b"\n")
        os.fsync(self._file)

    def announce(self, undo: Undo) -> int:
        """Write down what undoes a change that is about to be made; returns its number for ``settle``."""
        number, self._next = self._next, self._next + 1
        self._append({"undo": number, "kind": type(undo).__name__, **asdict(undo)})
        self._open[number] = undo
        return number

    def settle(self, number: int) -> None:
        """Undo an announced change now. Raises ``HostError`` where that fails; the entry then stays.

        What was announced later stands on it, so it goes first, should a signal have kept it from its own undoing.
        """
        failures = []
        with shielded():
            standing = number in self._open  # else it went with what was below it
            above = [n for n in self._open if standing and (n == number or (n > number and n not in self._stuck))]
            for later in sorted(above, reverse=True):
                try:
                    self._open[later].apply()
                except HostError as error:
                    self._stuck.add(later)
                    failures.append(error)
                    continue
                self._append({"done": later})
                del self._open[later]
        if failures:
            raise failures[0]

    @contextmanager
    def undoing(self, undo: Undo) -> Iterator[None]:
        """Announce on enter, undo on exit, whatever happened between."""
        number = self.announce(undo)
        try:
            yield
        finally:
            self.settle(number)

    def processes(self) -> set[int]:
        """The processes that are to be ended: what this journal's owner has started, whoever is their parent."""
        return marked({undo.token for undo in self._open.values() if isinstance(undo, EndProcesses)})

    def hand_over(self, owner: Process) -> None:
        """What is still open from now on belongs to another process: it is left alone while that one lives."""
        self._append({"owner": asdict(owner)})
        os.close(self._file)

    def close(self) -> None:
        """Undo what a signal may have left open, and remove the journal if that leaves nothing."""
        with shielded():
            for number in sorted(self._open, reverse=True):
                with suppress(HostError):  # it stays in the journal, for ``dbdyno restore``
                    self.settle(number)
        os.close(self._file)
        if not self._open:
            self.path.unlink()


@dataclass(frozen=True)
class Leftover:
    """A journal as found on disk."""

    path: Path
    what: str
    owner: Process
    undos: list[tuple[int, Undo]]  # still to be undone, oldest first

    def orphaned(self) -> bool:
        """Whether the process that should have undone them is gone."""
        return not self.owner.alive()


def leftovers(folder: Path | None = None) -> list[Leftover]:
    """Every journal of this user on this host, oldest first; ``unreadable`` tells of the others."""
    return [found for found in _look(folder) if isinstance(found, Leftover)]


def unreadable(folder: Path | None = None) -> list[str]:
    """What is wrong with each journal that can't be read."""
    return [found for found in _look(folder) if isinstance(found, str)]


def _look(folder: Path | None) -> Iterator["Leftover | str | None"]:
    folder = folder or journal_folder()
    for path in sorted(folder.glob("*.jsonl"), key=_changed_at) if folder.is_dir() else []:
        try:
            # Undoing is done with our rights, so only what we wrote ourselves is undone.
            yield _read(path) if path.lstat().st_uid == os.geteuid() else f"{path} is another user's; it is left alone"
        except FileNotFoundError:
            continue
        except HostError as error:
            yield str(error)


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # its owner has closed it this moment
        return 0.0


def _read(path: Path) -> Leftover | None:
    what, owner, undos = "", None, {}
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if not line.endswith("\n"):
            break  # torn by a kill: its change had not been made
        try:
            entry = json.loads(line)
            if "owner" in entry:
                owner, what = Process(**entry["owner"]), entry.get("what", what)
            elif "undo" in entry:
                undo_id, kind = entry.pop("undo"), entry.pop("kind")
                undos[undo_id] = UNDOS[kind](**entry)
            else:
                undos.pop(entry["done"], None)
        except (ValueError, KeyError, TypeError) as error:
            raise HostError(
                f"{path}:{number}: not an undo journal of this dbdyno ({error}); remove it by hand"
            ) from None
    if owner is None:
        if Process.of(int(path.name.partition("-")[0])) is None:  # else it is about to write its first line
            path.unlink(missing_ok=True)  # killed before its first line: nothing was changed
        return None
    return Leftover(path, what, owner, list(undos.items()))


def replay(leftover: Leftover, say: Callable[[str], None]) -> bool:
    """Undo what a dead process left, newest first. Returns whether all of it worked; then the journal is gone."""
    failed = False
    for _, undo in reversed(leftover.undos):
        try:
            if undo.apply():
                say(undo.said())
        except HostError as error:
            failed = True
            say(f"could not {undo.said()}: {error}")
    if not failed:
        leftover.path.unlink(missing_ok=True)
    return not failed


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
