"""What is done on other hosts, whatever carries it: Ray, or nothing where the hosts are one."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

from dbdyno.errors import HostError
from dbdyno.hosts.workers import Work, Workers


class LieError(HostError):
    """A host says what no program of ours says there, or hands over what it can't have."""


@dataclass(frozen=True)
class Output:
    """Bytes that a program wrote."""

    content: bytes
    to_error: bool  # to standard error rather than standard output


@dataclass(frozen=True)
class Ended:
    """How a program ended: its exit code, or the number of the signal that ended it, below 0."""

    code: int


class Hosts(ABC):
    """Hosts by name. Every call raises ``HostError`` where the host is lost, ``UserError`` for a name that is none.

    A host may lie. So whatever comes from one is held to its type and its bounds here, for all who ask: each call
    raises ``LieError`` where it is more than was asked for, or something else.

    A program that was started ends with the process that started it, however that ends, and with the host's connection.
    """

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The hosts, in the order of their inventory."""

    @abstractmethod
    def put(self, host: str, content: Path, path: str) -> str:
        """Copy a file of ours to a path there, whole or not at all. Returns the SHA-256 of what lies there, in hex."""

    @abstractmethod
    def start(
        self, host: str, argv: Sequence[str], *, stdin: bytes = b"", environment: Mapping[str, str] | None = None
    ) -> str:
        """Start a program there; returns what it is called in the calls below.

        ``stdin`` is all that it can read: secrets belong there, never into ``argv``. ``environment`` is added to what
        the host has.
        """

    @abstractmethod
    def stream(
        self, host: str, process: str, *, patient: bool = False, silent_seconds: float = inf
    ) -> Iterator[Output | Ended]:
        """What a program writes, from its beginning and as it comes; last how it ended.

        Usually the host is asked again and again. ``patient`` asks once for each piece of news, however long that
        takes: asked before a measured window and answered after it, so that nothing is carried inside. A program that
        writes nothing for ``silent_seconds`` is given up: ``LieError``.
        """

    @abstractmethod
    def signal(self, host: str, process: str, number: int) -> bool:
        """Send a signal to a program and what it has started; whether it was still there."""

    @abstractmethod
    def fetch(
        self, host: str, path: str, into: Path, bytes_max: int, reached: Callable[[], None] = lambda: None
    ) -> str:
        """Copy a file from there to a path of ours, whole or not at all. Returns its SHA-256, in hex.

        It has ``bytes_max`` at most, else ``LieError``; room is left on our disk, else ``HostError``. ``reached`` is
        called as each part arrives.
        """

    @abstractmethod
    def copy(  # noqa: PLR0913, PLR0917  (from where to where, and how much)
        self, source: str, path: str, target: str, into: str, bytes_max: int, reached: Callable[[int, int], None]
    ) -> None:
        """Copy a folder from a host into one that is there on another, not by way of here; whole or not at all.

        Holes stay holes; modes are kept, and owners where the user there is root. It has ``bytes_max`` at most, holes
        left out, and names and links that stay inside it; else ``LieError``. ``reached`` takes the bytes that have
        arrived, and of how many; what it raises ends the copying. Whether the bytes are right, which the network sees
        to, is for those to prove who know a sum of them.
        """

    @abstractmethod
    def alive(self) -> frozenset[str]:
        """The hosts that are there, as far as is known by now."""

    @abstractmethod
    def workers(self, work: Work, lost: Callable[[], Mapping[str, str]]) -> Workers:
        """Workers on all of them that call ``work``; ``lost`` says which hosts are known otherwise to be gone, and why.

        Raises ``HostError`` where a host has another dbdyno than this one. Hosts that are not there are lost.
        """
