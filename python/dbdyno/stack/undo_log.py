"""How the host is put back: what undoes a change is on disk before the change is made.

An undo log is a file of JSON lines, one file per process. ``{"owner": ...}`` opens it, ``{"undo": id, ...}`` announces
a change, ``{"done": id}`` says it has been undone; ``open`` lists what is to be undone after that line. Its owner holds
a lock on it for as long as it lives. Lowering a stack and ``dbdyno restore`` run the same undo code.
"""

import json
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dbdyno.errors import HostError
from dbdyno.stack.undo.actions import EndProcesses, marked
from dbdyno.stack.undo.kind import Undo, boot_id
from dbdyno.store.parts import append_line, sync
from dbdyno.system import locks
from dbdyno.system.files import SEAL, is_full
from dbdyno.system.files import sealed as with_seal
from dbdyno.system.interrupt import shielded
from dbdyno.system.state import make_state_folder, new_token

# The lines of an undo log: JSON objects, each with a checksum of its own.
#
# A line also names the undos that are open after it, so that a damaged line before it leaves no doubt about what has
# been undone. Logs of earlier versions have neither; they are read as they are.


Fields = dict[str, Any]

_STARTS = (b'{"owner"', b'{"undo"', b'{"done"')
_START = re.compile(rb'\{"(?:owner|undo|done)"')


@dataclass(frozen=True)
class LogLines:
    """What could be read of an undo log."""

    entries: list[Fields]  # in the order of the file
    damaged: list[int]  # numbers of the lines that are not as they were written, from 1
    sealed: bool  # whether its lines have checksums


def line_of(fields: Fields, *, sealed: bool = True) -> bytes:
    """One line, with its line end."""
    return with_seal(fields) if sealed else json.dumps(fields).encode() + b"\n"


def lines_of(content: bytes) -> LogLines:
    """Read an undo log: every entry that is whole, also where damage has joined or split lines.

    A last line without its end was cut off by a kill: its change had not been made, so it is no damage.
    """
    *lines, rest = content.split(b"\n")
    sealed = any(_sealed_in(line) for line in (*lines, rest))
    read = _sealed_in if sealed else _plain_in
    entries, damaged = [], []
    for number, line in enumerate((*lines, rest), 1):
        line_entries = list(read(line))
        entries += [fields for fields, _ in line_entries]
        whole = len(line_entries) == 1 and line_entries[0][1] == line
        torn = number > len(lines) and any(line.startswith(start) or start.startswith(line) for start in _STARTS)
        if not whole and not (torn and not line_entries):
            damaged.append(number)
    return LogLines(entries, damaged, sealed)


def _sealed_in(line: bytes) -> list[tuple[Fields, bytes]]:
    """Every entry in a line that its checksum proves whole, with its bytes."""
    entries = []
    for end in SEAL.finditer(line):
        for start in _START.finditer(line, 0, end.start()):
            if zlib.crc32(line[start.start() : end.start()]) == int(end[1], 16):
                written = line[start.start() : end.end()]
                fields = json.loads(written)
                del fields["sum"]
                entries.append((fields, written))
                break
    return entries


def _plain_in(line: bytes) -> Iterator[tuple[Fields, bytes]]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return
    if isinstance(fields, dict) and (
        {"done"} == fields.keys() or "owner" in fields or {"undo", "kind"} <= fields.keys()
    ):
        yield fields, line


# Bytes of an undo log, and who holds the lock on each: the process that made it, the one that it was handed over to,
# and whoever undoes what it says.
OWNED, INHERITED, PUT_BACK = 0, 1, 2


@dataclass(frozen=True)
class ProcessIdentity:
    """A process that can't be taken for a later one with the same number."""

    pid: int
    started: str  # which boot, and the start time in clock ticks since then (field 22 of /proc/PID/stat)

    @classmethod
    def of(cls, pid: int) -> "ProcessIdentity | None":
        """The process with this number, or ``None`` where there is none (a zombie counts as none)."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in "ZX" else cls(pid, f"{boot_id()}:{fields[19]}")

    def alive(self) -> bool:
        """Whether this very process still runs."""
        return ProcessIdentity.of(self.pid) == self


class Journal:
    """The undo journal of one process. Closing it removes the file if nothing is left to undo."""

    def __init__(self, what: str, owner: ProcessIdentity | None = None, folder: Path | None = None) -> None:
        folder = folder or make_state_folder() / "journals"
        owner = owner or ProcessIdentity.of(os.getpid())
        assert owner is not None  # noqa: S101  (this process runs)
        self._open: dict[int, Undo] = {}
        self._stuck: set[int] = set()  # tried in vain; they stay, for ``dbdyno restore``
        self._next = 1
        self._heirs: int | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.path, self._file = _new_file(folder, owner)
        except OSError as error:
            raise HostError(_cannot(f"{error.filename or folder}", error)) from None
        try:
            self._append({"owner": asdict(owner), "what": what})
        except HostError:
            self.path.unlink(missing_ok=True)  # it says nothing of anything
            self._let_go()
            raise
        sync(folder)

    def _append(self, fields: dict[str, Any]) -> None:
        """Write a line whole and have it on the disk, or leave the log as it was. Raises ``HostError``."""
        try:
            append_line(self._file, line_of({**fields, "open": sorted(self._open)}))
        except OSError as error:
            raise HostError(_cannot(str(self.path), error)) from None

    @property
    def descriptor(self) -> int:
        """The open log, on which its owner holds the lock."""
        return self._file

    def for_heir(self) -> int:
        """A descriptor for the process that this log will be handed over to: it must inherit it, and keep it open.

        Nothing is that process's until ``hand_over``: if this process is killed before, all is to be undone.
        """
        self._heirs = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        locks.take(self._heirs, INHERITED)
        return self._heirs

    def announce(self, undo: Undo) -> int:
        """Write down what undoes a change that is about to be made; returns its number for ``settle``."""
        number, self._next = self._next, self._next + 1
        self._open[number] = undo
        try:
            self._append({"undo": number, "kind": type(undo).__name__, **asdict(undo)})
        except HostError:
            del self._open[number]
            raise
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
                del self._open[later]
                with suppress(HostError):  # a full disk: it is undone, and undoing it once more does no harm
                    self._append({"done": later})
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

    def hand_over(self, owner: ProcessIdentity) -> None:
        """What is still open belongs from now on to the process that has inherited ``for_heir``."""
        self._append({"owner": asdict(owner), "lock": INHERITED})
        self._let_go()

    def _let_go(self) -> None:
        for handle in (self._file, self._heirs):
            if handle is not None:
                os.close(handle)

    def close(self) -> None:
        """Undo what a signal may have left open, and remove the journal if that leaves nothing."""
        with shielded():
            for number in sorted(self._open, reverse=True):
                with suppress(HostError):  # it stays in the journal, for ``dbdyno restore``
                    self.settle(number)
        if not self._open:
            self.path.unlink()
        self._let_go()


@contextmanager
def journalled(what: str) -> Iterator[Journal]:
    """A log for as long as the context lasts; a signal that comes while it is made or closed leaves no empty one."""
    journal = None
    try:
        with shielded():
            journal = Journal(what)
        yield journal
    finally:
        with shielded():
            if journal is not None:
                journal.close()


def _new_file(folder: Path, owner: ProcessIdentity) -> tuple[Path, int]:
    """A new undo log and its descriptor, which no program that is started inherits, with the owner's lock on it."""
    while True:
        path = folder / f"{owner.pid}-{new_token()}.jsonl"
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            locks.take(file, OWNED, wait=True)
        except OSError as error:
            os.close(file)
            path.unlink()
            raise OSError(error.errno, f"locking: {error.strerror}", str(path)) from None
        if os.fstat(file).st_nlink:
            return path, file
        os.close(file)  # a restore has found it before it was locked, and removed it


def _cannot(path: str, error: OSError) -> str:
    """What to do where an undo log can't be written: no change may be made without it."""
    remedy = "free some room on its filesystem" if is_full(error) else "fix that"
    return f"{path}: {error.strerror}; {remedy}, or set DBDYNO_STATE_DIR to a folder on another one"
