"""What hosts may answer to each question: a host may be another's, broken, or lie, and its answers are held to these.

An answer is a JSON object of bounded size. Each of its fields has the type that is declared here, or the answer is
refused whole; text comes out of here fit to be shown, with nothing in it that a terminal obeys.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

from dbdyno.errors import HostError
from dbdyno.host.read import UNKNOWN
from dbdyno.hosts.node import Running
from dbdyno.model.printable import printable_document, short
from dbdyno.store.documents import json_object, value_of

T = TypeVar("T")
_ENTRIES_MAX = 1000  # of a list or an object
_TEXT_MAX = 1000  # characters of one text
_SHOWN_MAX = 50  # sentences of a host on what it has undone
_ADDRESS = re.compile(r"([A-Za-z0-9][A-Za-z0-9.:%-]{0,252})?")


@dataclass(frozen=True)
class Beaten:
    """To a beat."""


@dataclass(frozen=True)
class Refused:
    """To anything: why it can't be done."""

    error: str


@dataclass(frozen=True)
class Lacking:
    """To a list of packages: the SHA-256 of those that are not there."""

    lacking: list[str]


@dataclass(frozen=True)
class Installed:
    """To what the installer is asked."""

    installed: bool


@dataclass(frozen=True)
class Begun:
    """Of an agent that has begun."""

    agent: int


@dataclass(frozen=True)
class TlsFacts:
    """What ``tls.Tls`` says of a host."""

    on: bool
    wrong: list[str]
    authorities: list[str]


@dataclass(frozen=True)
class Facts:
    """To ``facts``: those of ``facts.facts``, and what the agent adds."""

    version: str
    digest: str
    python: str
    machine_name: str
    machine: str
    kernel: str
    cores: int | str
    memory_bytes: int
    memory_free_bytes: int
    disk_free_bytes: int
    ray_disk_free_bytes: int | str
    root: bool
    clock_source: str
    ntp: dict[str, str] | str
    environment: str
    ssh_from: str
    ssh_to: str
    ray: Running | None
    lacking: list[str]
    tls: TlsFacts | None = None

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for what no host is."""
        for name in ("cores", "memory_bytes", "memory_free_bytes", "disk_free_bytes", "ray_disk_free_bytes"):
            value = getattr(self, name)
            if value != UNKNOWN if isinstance(value, str) else value < 0:
                raise ValueError(f"{name} is {value!r}")
        for name in ("ssh_from", "ssh_to"):
            if not _ADDRESS.fullmatch(getattr(self, name)):
                raise ValueError(f"{name} is no address")


@dataclass(frozen=True)
class Echoed:
    """To ``echoes``: of each, sent, received, answered and back, by CLOCK_MONOTONIC and by CLOCK_REALTIME."""

    echoes: list[list[list[int]]]


@dataclass(frozen=True)
class Watched:
    """To ``watch``."""

    watched: list[str]
    ray: Running


@dataclass(frozen=True)
class Guarding:
    """To ``guard``: by what work on the host is known."""

    token: str
    folder: str


@dataclass(frozen=True)
class PutBack:
    """To ``release`` and ``stop``: what was undone, and whether all was."""

    undone: list[str]
    whole: bool

    def sentences(self) -> tuple[str, ...]:
        """What was undone, for a person."""
        return _first_of(self.undone)


@dataclass(frozen=True)
class LeftBehind:
    """To ``restore``: what was undone, what is left alone as its process lives, and whether a guard is at it still."""

    undone: list[str]
    left_alone: list[str]
    whole: bool
    over: bool

    def sentences(self) -> tuple[str, ...]:
        """What was undone, for a person."""
        return _first_of(self.undone)

    def sentences_left_alone(self) -> tuple[str, ...]:
        """What is left alone, for a person."""
        return _first_of(self.left_alone)


@dataclass(frozen=True)
class RayStarted:
    """To ``start``: whether it was started now, and what runs."""

    started: bool
    ray: Running


def read_answer(host: str, content: bytes, kind: type[T]) -> T:
    """Return the answer of this kind that a host gave. Raises ``HostError`` where it is an error, or none of the kind.

    Fields that are not known are passed over: the dbdyno on a host may be another one than this.
    """
    try:
        found = json_object(content)
        said = value_of(Refused, {"error": found["error"]}) if "error" in found else _of_kind(kind, found)
    except ValueError as error:
        raise HostError(
            f"{host}: its answer is not understood: {short(str(error))}; dbdyno hosts up puts this very dbdyno there"
        ) from None
    if isinstance(said, Refused):
        raise HostError(f"{host}: {short(said.error) or 'it says that something went wrong, and not what'}")
    return said


def _of_kind(kind: type[T], found: dict[str, object]) -> T:
    """The answer of a kind that an object holds. Raises ``ValueError``."""
    known = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    told = {name: value for name, value in found.items() if name in known}
    _see_that_lists_are_short(told)
    return value_of(kind, printable_document(told, _TEXT_MAX))


def _see_that_lists_are_short(value: object) -> None:
    """Raise ``ValueError`` for lists and objects without measure."""
    if isinstance(value, dict | list):
        if len(value) > _ENTRIES_MAX:
            raise ValueError(f"it has a list of {len(value)} entries; at most {_ENTRIES_MAX} are read")
        for item in value.values() if isinstance(value, dict) else value:
            _see_that_lists_are_short(item)


def _first_of(sentences: Sequence[str]) -> tuple[str, ...]:
    """As many sentences as a person reads, and how many there are beyond."""
    more = len(sentences) - _SHOWN_MAX
    return (*sentences[:_SHOWN_MAX], f"and {more} more") if more > 0 else tuple(sentences)
