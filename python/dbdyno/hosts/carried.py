"""``Hosts`` in terms of one question to a ``HostSide``: what carries it is all that an implementation adds."""

import hashlib
import secrets
import shutil
import threading
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

from dbdyno.errors import DbdynoError, HostError, UserError
from dbdyno.hosts.contract import Ended, Hosts, LieError, Output
from dbdyno.hosts.folder_side import Entry, Piece, why_not_carried
from dbdyno.hosts.host_side import CHUNK_BYTES
from dbdyno.model.printable import short
from dbdyno.stack.undo.undos import TOKEN_VARIABLE
from dbdyno.study.units import format_bytes

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


_WAIT_SECONDS = 0.5  # for a program to write something, before it is asked again
_PIECES_AT_ONCE = 4  # of a folder, so that neither host waits for the other; what lies in memory for them is bounded
PATIENT_SECONDS = 3600.0  # for the same, of a program that is silent while it measures
LEFT_BYTES = 256 * 1024**2  # room that is left on our disk by what a host hands over
_BEFORE_SLOW_SECONDS = 120.0  # that may pass before a host hands over a file too slowly
_SLOWEST_BYTES_PER_SECOND = 100_000
_NAME_MAX = 100  # characters of what a started program or a begun file is called
_CODE_MIN, _CODE_MAX = -64, 255  # an exit code; below 0 the number of a signal


@dataclass(frozen=True)
class Guarded:
    """By what a host's guard knows the programs that are started there, and ends them."""

    token: str = ""
    folder: str = ""  # which is there for as long as programs may be started

    @property
    def environment(self) -> dict[str, str]:
        """What is added to that of each program."""
        return {TOKEN_VARIABLE: self.token} if self.token else {}


class Carried(Hosts):
    """Hosts of which each has a ``HostSide``."""

    def __init__(self, names: Sequence[str], work: Mapping[str, Guarded] | None = None) -> None:
        self._names, self._work = tuple(names), dict(work or {})

    @property
    def names(self) -> tuple[str, ...]:
        """The hosts, in order."""
        return self._names

    @abstractmethod
    def _ask(self, host: str, what: str, *given: object) -> Any:  # noqa: ANN401  (what the method of that name returns)
        """Call a method of a host's ``HostSide``. Raises ``HostError`` where the host is lost, else what it raises."""

    @abstractmethod
    def _hand_on(self, source: str, asked: tuple[object, ...], target: str, given: tuple[object, ...]) -> None:
        """Call a method of ``source``, and one of ``target`` with what that returns as the last argument.

        Both are tuples of a method's name and its arguments. Raises as ``_ask``.
        """

    def _done(self, host: str, what: str, *given: object, before_window: bool = False) -> Any:  # noqa: ANN401  (as above)
        self._check(host, what, before_window=before_window)
        return self._named(host, what, lambda: self._ask(host, what, *given))

    def _check(self, host: str, what: str, *, before_window: bool = False) -> None:
        if host not in self._names:
            raise UserError(f"{host!r} is no host; there are {', '.join(self._names)}")
        if not before_window:
            check_not_measured(what, host)

    @staticmethod
    def _named(host: str, what: str, call: Callable[[], Any]) -> Any:  # noqa: ANN401  (what the call returns)
        """Do a call; errors of the host's own then say the host."""
        try:
            return call()
        except OSError as error:
            raise HostError(f"{host}: {error.filename or what}: {error.strerror}") from None
        except KeyError as error:
            raise HostError(f"{host}: {error} is nothing that was started there") from None

    def put(self, host: str, content: Path, path: str) -> str:
        """As the contract says."""
        name = self._name_of(host, self._done(host, "begin", path))
        with content.open("rb") as file:
            while part := file.read(CHUNK_BYTES):
                self._done(host, "append", name, part)
        return self._name_of(host, self._done(host, "finish", name, path))

    def start(
        self, host: str, argv: Sequence[str], *, stdin: bytes = b"", environment: Mapping[str, str] | None = None
    ) -> str:
        """As the contract says."""
        work = self._work.get(host, Guarded())
        marked = {**(environment or {}), **work.environment}
        return self._name_of(host, self._done(host, "start", list(argv), stdin, marked, work.folder))

    def stream(
        self, host: str, process: str, *, patient: bool = False, silent_seconds: float = inf
    ) -> Iterator[Output | Ended]:
        """As the contract says."""
        code = None
        wait_seconds, heard_at = min(PATIENT_SECONDS if patient else _WAIT_SECONDS, silent_seconds), monotonic()
        while code is None:
            news, code = self._news_of(host, self._done(host, "read", process, wait_seconds, before_window=patient))
            if not news and code is None and monotonic() - heard_at > silent_seconds:
                raise LieError(f"{host}: it has said nothing for {silent_seconds:.0f} s")
            yield from news
            heard_at = monotonic() if news else heard_at
        yield Ended(code)

    def signal(self, host: str, process: str, number: int) -> bool:
        """As the contract says."""
        return bool(self._done(host, "signal", process, number))

    def fetch(
        self, host: str, path: str, into: Path, bytes_max: int, reached: Callable[[], None] = lambda: None
    ) -> str:
        """As the contract says."""
        digest, size, began = hashlib.sha256(), 0, monotonic()
        arriving = into.with_name(f".{into.name}.{secrets.token_hex(6)}")
        try:
            with arriving.open("xb") as file:
                is_over = False
                while not is_over:
                    part = self._part_of(host, self._done(host, "content", path, size))
                    size += len(part)
                    self._check_arriving(host, path, size, bytes_max, monotonic() - began)
                    if shutil.disk_usage(into.parent).free < len(part) + LEFT_BYTES:
                        raise HostError(f"{into.parent}: there is no room for {short(path)} of {host}")
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
            raise LieError(f"{host}: {short(path)} is larger than the {format_bytes(bytes_max)} that it can have")
        if seconds > _BEFORE_SLOW_SECONDS + size / _SLOWEST_BYTES_PER_SECOND:
            raise HostError(f"{host}: {short(path)} arrives too slowly: {format_bytes(size)} in {seconds:.0f} s")

    def copy(  # noqa: PLR0913, PLR0917  (as the contract says)
        self, source: str, path: str, target: str, into: str, bytes_max: int, reached: Callable[[int, int], None]
    ) -> None:
        """As the contract says."""
        entries: list[Entry] = self._done(source, "entries", path)
        pieces: list[Piece] = self._done(source, "pieces", path)
        if why := why_not_carried(entries, pieces):
            raise LieError(f"{source}: {short(path)} is no folder that can be copied: {short(why)}")
        total = sum(length for _, _, length in pieces)
        if total > bytes_max:
            larger = f"holds {format_bytes(total)}, more than the {format_bytes(bytes_max)} that it can have"
            raise LieError(f"{source}: {short(path)} {larger}")
        token = self._name_of(target, self._done(target, "begin_folder", into, entries, total))
        try:
            self._copy_pieces(source, path, target, token, pieces, lambda done: reached(done, total))
            self._done(target, "finish_folder", token, into)
        except BaseException:
            with suppress(DbdynoError):
                self._done(target, "abandon_folder", token)
            raise

    @staticmethod
    def _part_of(host: str, answer: object) -> bytes:
        """A part of a file, or of what a program wrote. Raises ``LieError`` where an answer is none."""
        if not isinstance(answer, bytes) or len(answer) > CHUNK_BYTES:
            raise LieError(f"{host}: its answer is no part of {CHUNK_BYTES} bytes at most")
        return answer

    @staticmethod
    def _name_of(host: str, answer: object) -> str:
        """What something is called there. Raises ``LieError`` where an answer is no name."""
        if not isinstance(answer, str) or not 0 < len(answer) <= _NAME_MAX:
            raise LieError(f"{host}: its answer is no name of what was begun there")
        return answer

    def _news_of(self, host: str, answer: object) -> tuple[list[Output], int | None]:
        """What a program wrote, and how it ended. Raises ``LieError`` where an answer is neither."""
        match answer:
            case (list(news), None | int() as code) if len(news) <= len(("output", "error")):
                if all(isinstance(one, tuple) and len(one) == len(("to_error", "content")) for one in news) and (
                    code is None or _CODE_MIN <= code <= _CODE_MAX
                ):
                    return [Output(self._part_of(host, content), bool(to_error)) for to_error, content in news], code
        raise LieError(f"{host}: its answer is nothing that a program can have written")

    def _copy_pieces(  # noqa: PLR0913, PLR0917  (from where to where)
        self, source: str, path: str, target: str, token: str, pieces: Sequence[Piece], reached: Callable[[int], None]
    ) -> None:
        def hand_on(piece: Piece) -> int:
            name, offset, length = piece
            self._check(source, "piece")
            self._check(target, "write_piece")
            asked, given = ("piece", path, name, offset, length), ("write_piece", token, name, offset)
            self._named(f"{source} to {target}", path, lambda: self._hand_on(source, asked, target, given))
            return length

        done = 0
        pool = ThreadPoolExecutor(_PIECES_AT_ONCE)
        try:
            for length in as_completed([pool.submit(hand_on, piece) for piece in pieces]):
                done += length.result()
                reached(done)
        finally:
            pool.shutdown(cancel_futures=True)
