"""``Hosts`` in terms of one question to a ``HostSide``: what carries it is all that an implementation adds."""

import hashlib
import secrets
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.errors import HostError, UserError
from dbdyno.hosts.contract import Ended, Hosts, Said
from dbdyno.hosts.host_side import CHUNK_BYTES
from dbdyno.hosts.quiet import check_not_measured
from dbdyno.stack.undo.undos import TOKEN_VARIABLE

_WAIT_SECONDS = 0.5  # for a program to write something, before it is asked again
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
        self._names, self._work = tuple(names), work or {}

    @property
    def names(self) -> tuple[str, ...]:
        """The hosts, in order."""
        return self._names

    @abstractmethod
    def _ask(self, host: str, what: str, *given: object) -> Any:  # noqa: ANN401  (what the method of that name returns)
        """Call a method of a host's ``HostSide``. Raises ``HostError`` where the host is lost, else what it raises."""

    def _done(self, host: str, what: str, *given: object, before_window: bool = False) -> Any:  # noqa: ANN401  (as above)
        if host not in self._names:
            raise UserError(f"{host!r} is no host; there are {', '.join(self._names)}")
        if not before_window:
            check_not_measured(what, host)
        try:
            return self._ask(host, what, *given)
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

    def stream(self, host: str, process: str, *, patient: bool = False) -> Iterator[Said | Ended]:
        """As the contract says."""
        code = None
        wait_seconds = PATIENT_SECONDS if patient else _WAIT_SECONDS
        while code is None:
            news, code = self._done(host, "read", process, wait_seconds, before_window=patient)
            for to_error, content in news:
                yield Said(content, to_error)
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
