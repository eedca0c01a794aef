"""What this machine and the agent on a host exchange: one definition, which both ends read.

A frame is 16 bytes (the number of its question, the lengths of what follows), a JSON object, and bytes, which are never
looked into. A host may be another's, broken, or lie. So an answer counts only to a question that is open, neither part
of it may be longer than that question allows, and each field has the type that is declared here. Text comes out of here
fit to be shown, with nothing in it that a terminal obeys. Nothing is ever unpickled.
"""

import json
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from dbdyno.errors import HostError
from dbdyno.host.read import UNKNOWN
from dbdyno.hosts.contract import LieError
from dbdyno.hosts.host_side import CHUNK_BYTES
from dbdyno.model.printable import printable_document, short
from dbdyno.store.documents import json_object, value_of

T = TypeVar("T")
HEAD = struct.Struct(">QII")  # number of the question, bytes of the object, bytes behind it
# Bytes that an answer may have.
OBJECT_BYTES_MAX = 256 * 1024
BODY_BYTES_MAX = {
    "content": CHUNK_BYTES,
    "piece": CHUNK_BYTES,
    "read": 2 * CHUNK_BYTES,
    "entries": 64 * 1024**2,
    "pieces": 64 * 1024**2,
    "call": 64 * 1024**2,
}
_ROW_BYTES_MAX = 8192
_ROWS_MAX, _ROW_VALUES_MAX = 2_000_000, 7  # pieces of a folder, and fields of an entry: see ``host_side``
_ENTRIES_MAX = 1000  # of a list or an object
_TEXT_MAX = 1000  # characters of one text
_SILENT = "it reported an error without a reason"
_SHOWN_MAX = 50  # sentences of a host on what it has undone
KERNEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+~-]{0,63}")  # a version of one, as a study may name it
_BOOT = re.compile(r"[0-9a-f-]{1,40}")
_ADDRESS = re.compile(r"([A-Za-z0-9][A-Za-z0-9.:%-]{0,252})?")


@dataclass(frozen=True)
class Frame:
    """One, as it came."""

    number: int
    content: bytes  # the object
    body: bytes


def pack_frame(number: int, content: Mapping[str, object], body: bytes = b"") -> bytes:
    """Return the bytes of a frame."""
    text = json.dumps(content).encode()
    return HEAD.pack(number, len(text), len(body)) + text + body


class Arriving:
    """Frames that come in pieces. ``bounds`` gives the most that an answer to a question may have, in its two parts."""

    def __init__(self, bounds: Callable[[int], tuple[int, int]]) -> None:
        self._bounds, self._rest = bounds, bytearray()

    def take(self, part: bytes) -> Iterator[Frame]:
        """Each frame that is whole by now. Raises ``LieError`` for one that can't be, before it has arrived."""
        self._rest += part
        while len(self._rest) >= HEAD.size:
            number, text, body = HEAD.unpack_from(self._rest)
            text_max, body_max = self._bounds(number)
            if text > text_max or body > body_max:
                raise LieError(f"its answer has {text + body} bytes, more than its limit")
            at, end = HEAD.size + text, HEAD.size + text + body
            if len(self._rest) < end:
                return
            frame = Frame(number, bytes(self._rest[HEAD.size : at]), bytes(self._rest[at:end]))
            del self._rest[:end]
            yield frame


# What ``HostSide`` is asked, and answers: at most one argument is bytes, or a list of rows; these are the frame's body.

Row = tuple[Any, ...]


def pack_rows(rows: Sequence[Row]) -> bytes:
    """A line of JSON for each row."""
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def parse_rows(body: bytes) -> list[Row]:
    """Those rows. Raises ``ValueError`` for what is none."""
    if body.count(b"\n") > _ROWS_MAX:
        raise ValueError(f"it has more than {_ROWS_MAX} rows")
    *lines, rest = body.split(b"\n")
    if rest:
        raise ValueError("its last row is cut off")
    rows = []
    for line in lines:
        row = json.loads(line) if len(line) <= _ROW_BYTES_MAX else None
        if (
            not isinstance(row, list)
            or len(row) > _ROW_VALUES_MAX
            or any(isinstance(value, list | dict) for value in row)
        ):
            raise ValueError("it is not a list of rows")
        rows.append(tuple(row))
    return rows


def side_question(what: str, arguments: Sequence[Any]) -> tuple[dict[str, object], bytes]:
    """The object and the body by which a method of ``HostSide`` is called."""
    for place, argument in enumerate(arguments):
        if isinstance(argument, bytes) or (what == "begin_folder" and isinstance(argument, list)):
            others = [*arguments[:place], *arguments[place + 1 :]]
            is_rows = isinstance(argument, list)
            body = pack_rows(argument) if isinstance(argument, list) else argument
            return {"do": what, "given": others, "body_at": place, "rows": is_rows}, body
    return {"do": what, "given": list(arguments)}, b""


def parse_arguments(question: Mapping[str, Any], body: bytes) -> list[Any]:
    """The arguments again."""
    arguments = list(question["given"])
    if "body_at" in question:
        arguments.insert(question["body_at"], parse_rows(body) if question["rows"] else body)
    return arguments


def side_answer(what: str, value: Any) -> tuple[dict[str, object], bytes]:  # noqa: ANN401  (what that method returns)
    """The object and the body of what such a method returned."""
    match what:
        case "content" | "piece":
            return {}, value
        case "entries" | "pieces":
            return {}, pack_rows(value)
        case "read":
            news, code = value
            output, errors = dict(news).get(False, b""), dict(news).get(True, b"")
            return {"output": len(output), "code": code}, output + errors
    return {"value": value}, b""


def side_value(host: str, what: str, frame: Frame) -> Any:  # noqa: ANN401  (who asked knows, and looks at it)
    """What such a method returned, or raise what it raised. Raises ``LieError`` where it is neither."""
    try:
        document = json_object(frame.content)
        if "failed" in document:
            raise _failure(host, value_of(_Failed, {"failed": document["failed"]}).failed)
        match what:
            case "content" | "piece":
                return frame.body
            case "entries" | "pieces":
                return parse_rows(frame.body)
            case "read":
                news = value_of(_News, document)
                if not 0 <= news.output <= len(frame.body):
                    raise ValueError("it can't be the output of a program")  # noqa: TRY301  (said below)
                parts = [(False, frame.body[: news.output]), (True, frame.body[news.output :])]
                return [part for part in parts if part[1]], news.code
        return value_of(_Value, document).value
    except (ValueError, TypeError, RecursionError) as error:
        raise LieError(f"{host}: its answer can't be read: {short(str(error))}") from None


@dataclass(frozen=True)
class _News:
    output: int  # bytes of the body that are standard output; the others are standard error
    code: int | None


@dataclass(frozen=True)
class _Value:
    value: str | bool | None


@dataclass(frozen=True)
class Failure:
    """Why a question had no answer."""

    kind: str
    text: str
    number: int = 0  # of the system's error
    file: str = ""


@dataclass(frozen=True)
class _Failed:
    failed: Failure


def failure_answer(error: Exception) -> dict[str, object]:
    """The object of an answer that is an error."""
    if isinstance(error, OSError):
        name = error.filename
        file = name.decode(errors="replace") if isinstance(name, bytes) else "" if name is None else str(name)
        text = error.strerror or str(error)
        return {"failed": {"kind": "os", "text": text, "number": error.errno or 0, "file": file}}
    if isinstance(error, KeyError):
        return {"failed": {"kind": "key", "text": str(error.args[0])}}
    return {"failed": {"kind": "host" if isinstance(error, HostError) else type(error).__name__, "text": str(error)}}


def _failure(host: str, failure: Failure) -> Exception:
    text = short(failure.text) or _SILENT
    if failure.kind == "os":
        return OSError(failure.number, text, short(failure.file) or None)
    return KeyError(text) if failure.kind == "key" else HostError(f"{host}: {text}")


# What the agent, and the installer before it, answer to questions of their own.


@dataclass(frozen=True)
class Nothing:
    """To what has no answer."""


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
    """The agent has begun."""

    agent: int


@dataclass(frozen=True)
class Facts:
    """To ``facts``: those of ``look.facts``, and what the agent adds."""

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
    root: bool
    clock_source: str
    ntp: dict[str, str] | str
    environment: str
    ssh_from: str
    ssh_to: str

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for what no host is."""
        for name in ("cores", "memory_bytes", "memory_free_bytes", "disk_free_bytes"):
            value = getattr(self, name)
            if value != UNKNOWN if isinstance(value, str) else value < 0:
                raise ValueError(f"{name} is {value!r}")
        for name in ("ssh_from", "ssh_to"):
            if not _ADDRESS.fullmatch(getattr(self, name)):
                raise ValueError(f"{name} is not an address")


@dataclass(frozen=True)
class Echoed:
    """To ``echo``: when it was received and answered, by CLOCK_MONOTONIC and by CLOCK_REALTIME."""

    received: list[int]
    answered: list[int]


@dataclass(frozen=True)
class Guarding:
    """To ``guard``: by what work on the host is known."""

    token: str
    folder: str


@dataclass(frozen=True)
class PutBack:
    """To ``release``, ``stop`` and ``restore``: what was undone, and whether all was.

    Also what was left alone as its process lives, and whether the work that was asked about is over.
    """

    undone: list[str]
    whole: bool
    left_alone: list[str]
    over: bool


@dataclass(frozen=True)
class Running:
    """To ``running``: the kernel that runs there, and which start of the host it is."""

    kernel: str
    boot: str

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for what is no kernel: it goes on to a program of the user's, as a word."""
        if not KERNEL.fullmatch(self.kernel) or not _BOOT.fullmatch(self.boot):
            raise ValueError(f"kernel is {self.kernel[:80]!r}, boot {self.boot[:80]!r}")


@dataclass(frozen=True)
class Bootable:
    """To ``bootable``: why the host can't be restarted with one of the kernels asked for."""

    lacking: list[str]


@dataclass(frozen=True)
class Inputs:
    """To ``lacking``: the folder of what was sent for calls, and which files are not in it."""

    folder: str
    lacking: list[str]


@dataclass(frozen=True)
class Cores:
    """To ``cores``: how many processors may be used."""

    cores: int

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for what no host has."""
        if not 1 <= self.cores <= 2**14:
            raise ValueError(f"cores is {self.cores}")


@dataclass(frozen=True)
class HowFar:
    """To ``reached``: how far calls are, by their tickets."""

    reached: dict[str, float]


@dataclass(frozen=True)
class Called:
    """To ``call``: what it took, and of which kind the error is that it ended by; the text is the body."""

    cpu_s: float
    error: str


def read_answer(host: str, content: bytes, kind: type[T]) -> T:
    """Return the answer of this kind that a host gave. Raises ``HostError`` where it is an error, or none of the kind.

    Unknown fields are ignored, as a host may run another dbdyno.
    """
    try:
        document = json_object(content)
        if "failed" in document:
            raise HostError(f"{host}: {_failure_text(value_of(_Failed, {'failed': document['failed']}).failed)}")
        return _of_kind(kind, document)
    except ValueError as error:
        raise LieError(
            f"{host}: its answer can't be read: {short(str(error))}; dbdyno hosts up installs this dbdyno there"
        ) from None


def _failure_text(failure: Failure) -> str:
    """What went wrong there, in a line."""
    return (f"{short(failure.file)}: " if failure.file else "") + (short(failure.text) or _SILENT)


def _of_kind(kind: type[T], document: dict[str, object]) -> T:
    """The answer of a kind that an object holds. Raises ``ValueError``."""
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    values = {name: value for name, value in document.items() if name in known}
    _check_list_lengths(values)
    return value_of(kind, printable_document(values, _TEXT_MAX))


def _check_list_lengths(value: object) -> None:
    """Raise ``ValueError`` for lists and objects without measure."""
    if isinstance(value, dict | list):
        if len(value) > _ENTRIES_MAX:
            raise ValueError(f"it has a list of {len(value)} entries; at most {_ENTRIES_MAX} are read")
        for item in value.values() if isinstance(value, dict) else value:
            _check_list_lengths(item)


def for_people(sentences: Sequence[str]) -> tuple[str, ...]:
    """As many sentences as a person reads, and how many there are beyond."""
    more = len(sentences) - _SHOWN_MAX
    return (*sentences[:_SHOWN_MAX], f"and {more} more") if more > 0 else tuple(sentences)
