"""The event log: what happened in a run, one sealed JSON object a line. One type a kind, written and read."""

import errno
import json
import os
import re
from collections.abc import Iterator
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from dbdyno.model.design import StopReason, Until
from dbdyno.store.documents import ESCAPES_MAX, VALUES_MAX, see_that_it_is_moderate, value_of, values_most
from dbdyno.store.others import Budget
from dbdyno.store.parts import EVENTS_LIMIT_BYTES, MIB, DamageError, append_line, damaged, read_part
from dbdyno.system.files import is_sealed, open_regular, sealed

EVENTS = "journal.jsonl"
EVENTS_MAX = 50_000  # of a run: those of ``TRIALS_MAX`` trials, begun and ended, and some more
_VALUES_OF_AN_EVENT = 80  # one that a trial has finished holds the sums of its files
_TO_END_WITH = 1000  # events, and as many KiB, that are kept free when no trial may begin any more
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")  # of a trial: its folder's, and no way out of it


@dataclass(frozen=True)
class Event:
    """What every event is."""

    def __post_init__(self) -> None:
        """Raise ``ValueError`` where a number of blocks, a block or an attempt is none."""
        for name in ("blocks", "block", "attempt"):
            if getattr(self, name, 1) < 1:
                raise ValueError(f"{name} is less than 1")


@dataclass(frozen=True)
class TrialEvent(Event):
    """What is said of one trial."""

    trial: str
    block: int
    attempt: int
    treatment: str
    host: str = field(default="", kw_only=True)  # under test, by its name; empty in a study on one host

    def __post_init__(self) -> None:
        """Raise ``ValueError`` where the trial's name is none of a folder."""
        super().__post_init__()
        if not _NAME.fullmatch(self.trial):
            raise ValueError(f"{self.trial!r} is not a trial's name")


@dataclass(frozen=True)
class Started(TrialEvent):
    """It is about to touch the host."""


@dataclass(frozen=True)
class Finished(TrialEvent):
    """All its files are on disk; only now it can count."""

    disturbed: bool = False
    sha256: dict[str, str] = field(default_factory=dict)  # of its files


@dataclass(frozen=True)
class Failed(TrialEvent):
    """It failed."""

    cause: str


@dataclass(frozen=True)
class Lost(TrialEvent):
    """It had finished, but its files can't be read any more."""

    text: str


@dataclass(frozen=True)
class Dropped(Event):
    """A treatment failed again and again and is left out from now on."""

    treatment: str
    text: str


@dataclass(frozen=True)
class Note(Event):
    """Anything else that the report should say."""

    text: str
    given_up: int | None = None  # the block, if one was


@dataclass(frozen=True)
class Joined(Event):
    """A host takes part from now on, or again: what it is."""

    host: str
    facts: dict[str, Any]  # as ``host.json`` has them of a study on one host
    versions: dict[str, str] = field(default_factory=dict)  # that are its own, such as the kernel's

    def __post_init__(self) -> None:
        """Raise ``ValueError`` where the host has no name."""
        super().__post_init__()
        if not self.host:
            raise ValueError("the host has no name")


@dataclass(frozen=True)
class Planned(Event):
    """The run begins; with ``until``, ``until`` and ``budget_seconds`` take the place of the header's."""

    blocks: int
    until: Until | None = None
    budget_seconds: float | None = None
    sha256: dict[str, str] = field(default_factory=dict)  # of the run's own files


@dataclass(frozen=True)
class Resumed(Event):
    """It is gone on with, as ``Planned`` says."""

    blocks: int
    until: Until | None = None
    budget_seconds: float | None = None
    extended_from: int | None = None  # usable blocks there were when a finished run was


@dataclass(frozen=True)
class Ended(Event):
    """The process ended by itself."""

    how: str  # "done", "interrupted", "failed"
    why: StopReason | None = None
    cause: str = ""  # of a failure that ended the run; logs once did not say it

    @property
    def stopped(self) -> StopReason:
        """Why measuring stopped; logs once did not say it, because there was but one reason."""
        return self.why if self.why is not None else "blocks" if self.how == "done" else ""


_KINDS = {kind.__name__.lower(): kind for kind in (
    Started, Finished, Failed, Lost, Dropped, Note, Joined, Planned, Resumed, Ended,
)}  # fmt: skip


def line_of(event: Event) -> bytes:
    """The event as its line, with the line's end. What has its default is left out."""
    defaults = {
        attribute.name: attribute.default if attribute.default_factory is MISSING else attribute.default_factory()
        for attribute in fields(event)
    }
    values = {name: value for name, value in asdict(event).items() if value != defaults[name]}
    return sealed({"event": type(event).__name__.lower(), **values})


def event_in(line: bytes, *, sealed_before: bool = False) -> Event:
    """The event of a line without its end; from the first sealed line on all must be.

    Raises:
        ValueError: It is none, or is not as it was written.

    """
    document = json.loads(line)
    if not isinstance(document, dict) or (kind := _KINDS.get(document.get("event", ""))) is None:
        raise ValueError("it is not an event")
    if (sealed_before or "sum" in document) and not is_sealed(line):
        raise ValueError("it is not as it was written")
    return value_of(
        kind, {attribute.name: document[attribute.name] for attribute in fields(kind) if attribute.name in document}
    )


def read_events(path: Path, budget: Budget | None = None) -> Iterator[Event]:
    """The events of a run folder, oldest first. Raises ``UserError`` at a line that is none, but for a torn last.

    They count against the ``budget`` twice, as they are read again for the series.
    """
    try:
        content = read_part(path, EVENTS, EVENTS_LIMIT_BYTES)
    except FileNotFoundError:
        content = b""
    except OSError as error:
        raise DamageError(f"{path / EVENTS}: can't be read: {error.strerror}") from None
    if not content and has_trials(path):
        raise DamageError(
            f"{path / EVENTS}: is empty or missing, though there are trials, none of which counts without it; "
            "put it back from a copy, or use a new folder"
        )
    values = _see_that_it_is_moderate(path, content)
    if budget is not None:
        budget.take_document(path, content, 2 * values)
    *lines, _torn = content.split(b"\n")
    seals = False  # logs of an older dbdyno have none
    for number, line in enumerate(lines, 1):
        try:
            yield event_in(line, sealed_before=seals)
        except (ValueError, TypeError, RecursionError):
            raise DamageError(
                f"{path / EVENTS}:{number}: not a line of the event log; the run folder is damaged. Put the file back "
                "from a copy, or cut it before this line: --resume measures again what it no longer has"
            ) from None
        seals = seals or is_sealed(line)


def _see_that_it_is_moderate(path: Path, content: bytes) -> int:
    """Return at most how many values the events hold.

    Raises ``DamageError`` where there are more events than of the largest plan, or more values in them.
    """
    events = content.count(b"\n")
    if events > EVENTS_MAX:
        raise damaged(path / EVENTS, f"it holds {events} events; a run has at most {EVENTS_MAX}")
    try:
        return see_that_it_is_moderate(content, _VALUES_OF_AN_EVENT * events + VALUES_MAX)
    except ValueError as error:
        raise damaged(path / EVENTS, str(error)) from None


@dataclass
class LogSize:
    """What an event log holds that its reader counts: at most so much of each."""

    size_bytes: int = 0
    events: int = 0
    values: int = 0
    escapes: int = 0

    @classmethod
    def count(cls, content: bytes) -> "LogSize":
        """Return that of an event log, or of a line of it."""
        return cls(len(content), content.count(b"\n"), values_most(content), content.count(b"\\"))

    def with_line(self, line: "LogSize") -> "LogSize":
        """Return that of the log with one more line."""
        return LogSize(*(getattr(self, attribute.name) + getattr(line, attribute.name) for attribute in fields(self)))

    def why_not(self, event: Event) -> str:
        """Return why a log of this size could not be read again, or not be ended; nothing where it can."""
        reserve = _TO_END_WITH if isinstance(event, Started) else 0
        if self.size_bytes > EVENTS_LIMIT_BYTES - 1024 * reserve:
            return f"it would be larger than {EVENTS_LIMIT_BYTES // MIB} MiB, which is all that is read"
        if self.events > EVENTS_MAX - reserve:
            return f"it would hold more than {EVENTS_MAX} events, which is all that is read"
        if self.values > _VALUES_OF_AN_EVENT * self.events + VALUES_MAX or self.escapes > ESCAPES_MAX:
            return "it would hold more values than are read"
        return ""


def log_size(path: Path) -> LogSize:
    """Return what the event log of a run folder holds. Raises ``OSError``."""
    return LogSize.count(read_part(path, EVENTS, EVENTS_LIMIT_BYTES)) if os.path.lexists(path / EVENTS) else LogSize()


def append_event(path: Path, event: Event, log: LogSize) -> LogSize:
    """Write an event to a log that holds so much, on disk when this returns; return what it holds then.

    Raises:
        OSError: It can't be written, or the log would be one that ``read_events`` does not read.
        ValueError: ``read_events`` would not read the line again, and one that it refuses would cost the run.

    """
    line = _readable_line(event)
    after = log.with_line(LogSize.count(line))
    if why := after.why_not(event):
        raise OSError(errno.EFBIG, f"{why}; begin a new run for what is left", str(path / EVENTS))
    handle = open_regular(path / EVENTS, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        append_line(handle, line)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path / EVENTS)) from None
    finally:
        os.close(handle)
    return after


def _readable_line(event: Event) -> bytes:
    """The event's line, which ``event_in`` reads. Raises ``ValueError``."""
    try:
        line = line_of(event)
        event_in(line[:-1], sealed_before=True)
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"no event of a run: {error}") from None
    return line


def cut_torn_line(path: Path) -> None:
    """Remove what a kill left of a last line, or the next line would be glued to it. Raises ``OSError``."""
    if os.path.lexists(path / EVENTS):
        content = read_part(path, EVENTS, EVENTS_LIMIT_BYTES)
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            handle = open_regular(path / EVENTS, os.O_WRONLY)
            try:
                os.ftruncate(handle, len(whole))
            finally:
                os.close(handle)


def has_trials(path: Path) -> bool:
    """Whether a trial has been begun in a run folder."""
    try:
        return any((path / "trials").iterdir())
    except OSError:
        return False
