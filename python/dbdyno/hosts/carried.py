"""``Hosts`` in terms of one question to a ``HostSide``: what carries it is all that an implementation adds."""

import hashlib
import secrets
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.errors import DbdynoError, HostError, UserError
from dbdyno.hosts.contract import Ended, Hosts, Output
from dbdyno.hosts.folder_side import Piece
from dbdyno.hosts.host_side import CHUNK_BYTES
from dbdyno.hosts.quiet import check_not_measured
from dbdyno.stack.undo.undos import TOKEN_VARIABLE

_WAIT_SECONDS = 0.5  # for a program to write something, before it is asked again
_PIECES_AT_ONCE = 4  # of a folder, so that neither host waits for the other; what lies in memory for them is bounded
PATIENT_SECONDS = 3600.0  # for the same, of a program that is silent while it measures


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
        name = self._done(host, "begin", path)
        with content.open("rb") as file:
            while part := file.read(CHUNK_BYTES):
                self._done(host, "append", name, part)
        return str(self._done(host, "finish", name, path))

    def start(
        self, host: str, argv: Sequence[str], *, stdin: bytes = b"", environment: Mapping[str, str] | None = None
    ) -> str:
        """As the contract says."""
        work = self._work.get(host, Guarded())
        marked = {**(environment or {}), **work.environment}
        return str(self._done(host, "start", list(argv), stdin, marked, work.folder))

    def stream(self, host: str, process: str, *, patient: bool = False) -> Iterator[Output | Ended]:
        """As the contract says."""
        code = None
        wait_seconds = PATIENT_SECONDS if patient else _WAIT_SECONDS
        while code is None:
            news, code = self._done(host, "read", process, wait_seconds, before_window=patient)
            for to_error, content in news:
                yield Output(content, to_error)
        yield Ended(code)

    def signal(self, host: str, process: str, number: int) -> bool:
        """As the contract says."""
        return bool(self._done(host, "signal", process, number))

    def fetch(self, host: str, path: str, into: Path) -> str:
        """As the contract says."""
        digest, offset = hashlib.sha256(), 0
        arriving = into.with_name(f".{into.name}.{secrets.token_hex(6)}")
        try:
            with arriving.open("xb") as file:
                while part := self._done(host, "content", path, offset):
                    file.write(part)
                    digest.update(part)
                    offset += len(part)
            arriving.replace(into)
        finally:
            with suppress(FileNotFoundError):
                arriving.unlink()
        return digest.hexdigest()

    def copy(self, source: str, path: str, target: str, into: str, reached: Callable[[int, int], None]) -> None:
        """As the contract says."""
        entries = self._done(source, "entries", path)
        pieces: list[Piece] = self._done(source, "pieces", path)
        total = sum(length for _, _, length in pieces)
        token = str(self._done(target, "begin_folder", into, entries, total))
        try:
            self._copy_pieces(source, path, target, token, pieces, lambda done: reached(done, total))
            self._done(target, "finish_folder", token, into, entries)
        except BaseException:
            with suppress(DbdynoError):
                self._done(target, "abandon_folder", token)
            raise

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
