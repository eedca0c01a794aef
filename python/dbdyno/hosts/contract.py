"""What is done on other hosts: files, folders and programs, in terms of one question to the ``HostSide`` of each.

What carries the questions is all that an implementation adds: ssh, or nothing where the hosts are this machine.
"""

import hashlib
import secrets
import shutil
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from dbdyno.compute.workers import Work, Workers
from dbdyno.errors import DbdynoError, HostError, UserError
from dbdyno.hosts.host_side import CHUNK_BYTES, Entry, Piece, why_not_copied
from dbdyno.model.printable import short
from dbdyno.model.similar import did_you_mean
from dbdyno.stack.undo.actions import TOKEN_VARIABLE
from dbdyno.study.units import format_bytes
from dbdyno.system.child import exit_words

T = TypeVar("T")
_AT_ONCE = 16  # hosts


class LieError(HostError):
    """A host says what no program of ours says there, or hands over what it can't have."""


class NotInstalledError(HostError):
    """A host is reached, and nothing of dbdyno's is there."""


# Many hosts at once.


def on_each(names: Iterable[str], do: Callable[[str], T]) -> dict[str, T | DbdynoError]:
    """Do something for each host, many at once; what came of it, or why nothing did."""

    def attempt(name: str) -> T | DbdynoError:
        try:
            return do(name)
        except DbdynoError as error:
            return error

    hosts = list(names)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(hosts, pool.map(attempt, hosts), strict=True))


def all_of(outcomes: Mapping[str, T | DbdynoError]) -> dict[str, T]:
    """What came of ``on_each``. Raises ``HostError`` with all reasons where nothing came of one."""
    if errors := [str(outcome) for outcome in outcomes.values() if isinstance(outcome, DbdynoError)]:
        raise HostError("\n".join(errors))
    return {name: outcome for name, outcome in outcomes.items() if not isinstance(outcome, DbdynoError)}


# Measured windows: nothing is asked of a host through ``Hosts`` meanwhile, as answering would cost the host time.

_EVERY = ""  # stands for all hosts
_lock = threading.Lock()
_measured: Counter[str] = Counter()


class NotQuietError(AssertionError):
    """A fault of dbdyno's own: something was asked of a host while it was measured."""


@contextmanager
def quiet(*hosts: str) -> Iterator[None]:
    """Hold off every question to these hosts, or, where none is named, to all; one that is asked is a fault.

    Threads have it in common, and windows may overlap.
    """
    names = hosts or (_EVERY,)
    with _lock:
        _measured.update(names)
    try:
        yield
    finally:
        with _lock:
            _measured.subtract(names)


def is_anything_measured() -> bool:
    """Whether any window is open."""
    with _lock:
        return any(windows > 0 for windows in _measured.values())


def check_not_measured(what: str, host: str | None = None) -> None:
    """Raise ``NotQuietError`` inside a window of this host, or, of what concerns no single one, inside any."""
    with _lock:
        measured = {name for name, windows in _measured.items() if windows > 0}
    if measured if host is None else measured & {_EVERY, host}:
        raise NotQuietError(f"{what} was asked of {host or 'the cluster'} inside a measured window")


_PIECES_AT_ONCE = 4  # of a folder, so that neither host waits for the other; what lies in memory for them is bounded
_WAIT_SECONDS = 3600.0  # for a program to write something, before it is asked again: it may be measuring
LEFT_BYTES = 256 * 1024**2  # room that is left on our disk by what a host hands over
_BEFORE_SLOW_SECONDS = 120.0  # that may pass before a host hands over a file too slowly
_SLOWEST_BYTES_PER_SECOND = 100_000
_NAME_MAX = 100  # characters of what a started program or a begun file is called
_CODE_MIN, _CODE_MAX = -64, 255  # an exit code; below 0 the number of a signal


@dataclass(frozen=True)
class GuardedWork:
    """By what a host's guard knows the programs that are started there, and ends them."""

    token: str = ""
    folder: str = ""  # which is there for as long as programs may be started

    @property
    def environment(self) -> dict[str, str]:
        """What is added to that of each program."""
        return {TOKEN_VARIABLE: self.token} if self.token else {}


@dataclass(frozen=True)
class Output:
    """Bytes that a program wrote."""

    content: bytes
    to_error: bool  # to standard error rather than standard output


@dataclass(frozen=True)
class ProgramEnd:
    """How a program ended: its exit code, or the number of the signal that ended it, below 0."""

    code: int


class Hosts(ABC):
    """Hosts by name. Every call raises ``HostError`` where the host is lost, ``UserError`` for a name that is none.

    A host may lie. So whatever comes from one is held to its type and its bounds here, for all callers: each call
    raises ``LieError`` where it is more than was asked for, or something else.

    A program that was started ends with the process that started it, however that ends, and with the host's connection.
    """

    def __init__(self, names: Sequence[str], work: Mapping[str, GuardedWork] | None = None) -> None:
        self._names, self._work = tuple(names), {} if work is None else work

    @property
    def names(self) -> tuple[str, ...]:
        """The hosts, in the order of their inventory."""
        return self._names

    @abstractmethod
    def alive(self) -> frozenset[str]:
        """The hosts that are there, as far as is known by now."""

    @abstractmethod
    def workers(self, work: Work, lost: Callable[[], Mapping[str, str]]) -> Workers:
        """Workers on all of them that call ``work``; ``lost`` says which hosts are known otherwise to be gone, and why.

        Raises ``HostError`` where a host has another dbdyno than this one. Hosts that are not there are lost.
        """

    @abstractmethod
    def _ask(self, host: str, what: str, *arguments: object) -> Any:  # noqa: ANN401  (what the method of that name returns)
        """Call a method of a host's ``HostSide``. Raises ``HostError`` where the host is lost, else what it raises."""

    def _call(self, host: str, what: str, *arguments: object) -> Any:  # noqa: ANN401  (as above)
        self._check(host, what)
        return self._name_errors(host, what, lambda: self._ask(host, what, *arguments))

    def _check(self, host: str, what: str) -> None:
        if host not in self._names:
            known = f"there are {', '.join(self._names)}{did_you_mean(host, self._names)}"
            raise UserError(f"{host!r} is not a host; {known}")
        if what != "read":  # of a stream that was begun before a window: its answers come after it
            check_not_measured(what, host)

    @staticmethod
    def _name_errors(host: str, what: str, call: Callable[[], Any]) -> Any:  # noqa: ANN401  (what the call returns)
        """Do a call; errors of the host's own then say the host."""
        try:
            return call()
        except OSError as error:
            raise HostError(f"{host}: {error.filename or what}: {error.strerror}") from None
        except KeyError as error:
            raise HostError(f"{host}: {error} was not started there") from None

    def put(self, host: str, content: Path, path: str) -> str:
        """Copy a file of ours into a folder there, whole or not at all. Returns the SHA-256 of it there, in hex."""
        name = self._name_of(host, self._call(host, "begin", path))
        with content.open("rb") as file:
            while part := file.read(CHUNK_BYTES):
                self._call(host, "append", name, part)
        return self._name_of(host, self._call(host, "finish", name, path))

    def start(
        self, host: str, argv: Sequence[str], *, stdin: bytes = b"", environment: Mapping[str, str] | None = None
    ) -> str:
        """Start a program there; returns what it is called in the calls below.

        ``stdin`` is all that it can read: secrets belong there, never into ``argv``. ``environment`` is added to what
        the host has.
        """
        work = self._work.get(host, GuardedWork())
        marked = {**(environment or {}), **work.environment}
        return self._name_of(host, self._call(host, "start", list(argv), stdin, marked, work.folder))

    def stream(self, host: str, process: str, *, silent_seconds: float = inf) -> Iterator[Output | ProgramEnd]:
        """What a program writes, from its beginning and as it comes; last how it ended.

        The host is asked once for each piece of news, however long that takes: before a measured window, and answered
        after it, so that nothing is carried inside. A program that writes nothing for ``silent_seconds`` is given up:
        ``LieError``.
        """
        self._check(host, "stream")
        code = None
        wait_seconds, heard_at = min(_WAIT_SECONDS, silent_seconds), monotonic()
        while code is None:
            news, code = self._news_of(host, self._call(host, "read", process, wait_seconds))
            if not news and code is None and monotonic() - heard_at > silent_seconds:
                raise LieError(f"{host}: it has sent nothing for {silent_seconds:.0f} s")
            yield from news
            heard_at = monotonic() if news else heard_at
        yield ProgramEnd(code)

    def signal(self, host: str, process: str, number: int) -> bool:
        """Send a signal to a program and what it has started; whether it was still there."""
        return bool(self._call(host, "signal", process, number))

    def fetch(
        self, host: str, path: str, into: Path, bytes_max: int, reached: Callable[[], None] = lambda: None
    ) -> str:
        """Copy a file from there to a path of ours, whole or not at all. Returns its SHA-256, in hex.

        It has ``bytes_max`` at most, else ``LieError``; room is left on our disk, else ``HostError``. ``reached`` is
        called as each part arrives.
        """
        digest, size, began = hashlib.sha256(), 0, monotonic()
        arriving = into.with_name(f".{into.name}.{secrets.token_hex(6)}")
        try:
            with arriving.open("xb") as file:
                is_over = False
                while not is_over:
                    part = self._part_of(host, self._call(host, "content", path, size))
                    size += len(part)
                    self._check_arriving(host, path, size, bytes_max, monotonic() - began)
                    if shutil.disk_usage(into.parent).free < len(part) + LEFT_BYTES:
                        raise HostError(f"{into.parent}: there is no room for {short(path)} from {host}")
                    file.write(part)
                    digest.update(part)
                    is_over = len(part) < CHUNK_BYTES  # only the last is shorter: a host that drips is done, too
                    reached()
            arriving.replace(into)
        finally:
            with suppress(FileNotFoundError):
                arriving.unlink()
        return digest.hexdigest()

    @staticmethod
    def _check_arriving(host: str, path: str, size: int, bytes_max: int, seconds: float) -> None:
        """Raise ``LieError`` where a file is larger than it can be, ``HostError`` where it arrives too slowly."""
        if size > bytes_max:
            raise LieError(f"{host}: {short(path)} is larger than its limit of {format_bytes(bytes_max)}")
        if seconds > _BEFORE_SLOW_SECONDS + size / _SLOWEST_BYTES_PER_SECOND:
            raise HostError(f"{host}: {short(path)} arrives too slowly: {format_bytes(size)} in {seconds:.0f} s")

    def copy(  # noqa: PLR0913, PLR0917  (from where to where, and how much)
        self, source: str, path: str, target: str, into: str, bytes_max: int, reached: Callable[[int, int], None]
    ) -> None:
        """Copy a folder from a host into one that is there on another, by way of here; whole or not at all.

        Holes stay holes; modes are kept, and owners where the user there is root. It has ``bytes_max`` at most, holes
        left out, and names and links that stay inside it; else ``LieError``. ``reached`` takes the bytes that have
        arrived, and of how many; what it raises ends the copying. Whether the bytes are right, which the network sees
        to, is for those to prove who know a sum of them.
        """
        entries: list[Entry] = self._call(source, "entries", path)
        pieces: list[Piece] = self._call(source, "pieces", path)
        if why := why_not_copied(entries, pieces):
            raise LieError(f"{source}: {short(path)} can't be copied: {short(why)}")
        total = sum(length for _, _, length in pieces)
        if total > bytes_max:
            larger = f"holds {format_bytes(total)}, more than its limit of {format_bytes(bytes_max)}"
            raise LieError(f"{source}: {short(path)} {larger}")
        token = self._name_of(target, self._call(target, "begin_folder", into, entries, total))
        try:
            self._copy_pieces(source, path, target, token, pieces, lambda done: reached(done, total))
            self._call(target, "finish_folder", token, into)
        except BaseException:
            with suppress(DbdynoError):
                self._call(target, "abandon_folder", token)
            raise

    @staticmethod
    def _part_of(host: str, answer: object) -> bytes:
        """A part of a file, or of what a program wrote. Raises ``LieError`` where an answer is none."""
        if not isinstance(answer, bytes) or len(answer) > CHUNK_BYTES:
            raise LieError(f"{host}: its answer is not a part of at most {CHUNK_BYTES} bytes")
        return answer

    @staticmethod
    def _name_of(host: str, answer: object) -> str:
        """What something is called there. Raises ``LieError`` where an answer is no name."""
        if not isinstance(answer, str) or not 0 < len(answer) <= _NAME_MAX:
            raise LieError(f"{host}: its answer is not a name")
        return answer

    def _news_of(self, host: str, answer: object) -> tuple[list[Output], int | None]:
        """What a program wrote, and how it ended. Raises ``LieError`` where an answer is neither."""
        match answer:
            case (list(news), None | int() as code) if len(news) <= len(("output", "error")):
                if all(isinstance(item, tuple) and len(item) == len(("to_error", "content")) for item in news) and (
                    code is None or _CODE_MIN <= code <= _CODE_MAX
                ):
                    return [Output(self._part_of(host, content), bool(to_error)) for to_error, content in news], code
        raise LieError(f"{host}: its answer can't be the output of a program")

    def _copy_pieces(  # noqa: PLR0913, PLR0917  (from where to where)
        self, source: str, path: str, target: str, token: str, pieces: Sequence[Piece], reached: Callable[[int], None]
    ) -> None:
        def hand_on(piece: Piece) -> int:
            name, offset, length = piece
            self._check(source, "piece")
            self._check(target, "write_piece")

            def do() -> None:
                content = self._ask(source, "piece", path, name, offset, length)
                self._ask(target, "write_piece", token, name, offset, content)

            self._name_errors(f"{source} to {target}", path, do)
            return length

        done = 0
        pool = ThreadPoolExecutor(_PIECES_AT_ONCE)
        try:
            for length in as_completed([pool.submit(hand_on, piece) for piece in pieces]):
                done += length.result()
                reached(done)
        finally:
            pool.shutdown(cancel_futures=True)


# What a program of ours on a host writes, line by line: bounded, as the host may lie or the program be broken.


_ERRORS_KEPT_BYTES = 4096  # of standard error: its end, which says why the program ended


@dataclass
class Lines:
    """The lines of one program, for as long as it runs; more than its bounds allow is a lie."""

    hosts: Hosts
    host: str
    process: str
    line_bytes_max: int
    lines_max: int  # until ``renew`` is called
    bytes_max: int  # the same, standard error included
    silent_seconds: float = inf  # that it may say nothing
    code: int | None = field(default=None, init=False)  # by which it has ended
    _errors: bytes = field(default=b"", init=False)
    _lines: int = field(default=0, init=False)
    _bytes: int = field(default=0, init=False)

    def read(self) -> Iterator[bytes]:
        """Each whole line; it ends as the program does.

        Raises ``LieError`` where it says too much, else what ``Hosts.stream`` raises.
        """
        rest, rest_bytes = list[bytes](), 0  # the beginning of a line, as it came
        for output in self.hosts.stream(self.host, self.process, silent_seconds=self.silent_seconds):
            if isinstance(output, ProgramEnd):
                self.code = output.code
                return
            self._bytes += len(output.content)
            if output.to_error:
                self._errors = (self._errors + output.content)[-_ERRORS_KEPT_BYTES:]
                self._check(rest_bytes)
                continue
            first, *others = output.content.split(b"\n")
            rest, rest_bytes = [*rest, first], rest_bytes + len(first)
            for other in others:
                self._lines += 1
                self._check(rest_bytes)
                yield b"".join(rest)
                rest, rest_bytes = [other], len(other)
            self._check(rest_bytes)

    def renew(self) -> None:
        """It has brought something that takes work: what it may say begins anew."""
        self._lines = self._bytes = 0

    def why_ended(self) -> str:
        """What it said last on standard error, or by what it has ended."""
        error_text = self._errors.decode(errors="replace").strip()
        return short(error_text[-200:]) or exit_words(self.code or 0)

    def _check(self, line_bytes: int) -> None:
        """Raise ``LieError`` where that is too much."""
        if line_bytes > self.line_bytes_max or self._lines > self.lines_max or self._bytes > self.bytes_max:
            amount = f"{self._lines} lines, {self._bytes} bytes"
            raise LieError(f"{self.host}: says too much: {amount}, and there is no end of it")
