"""What a program of ours on another host says, a line of JSON each: parsed here into typed messages, or refused.

The host may be broken, or lie. So nothing of a line is used before it is known to be one of the messages that the
program can say, each field of its type and within its bounds; what is shown to a person is made fit to print. What a
message means for a run, as whether a block was asked for, is decided where the run is known.
"""

import io
import math
import re
import shutil
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from dbdyno.crash.trial_cuts import LEFT_BYTES
from dbdyno.errors import TrialError
from dbdyno.hosts.contract import LieError
from dbdyno.model.printable import NO_BREAK, printable, printable_document, short
from dbdyno.mysql.server_url import CLIENT_PASSWORD_VARIABLE
from dbdyno.plan.order import Slot
from dbdyno.plan.plan import Plan
from dbdyno.run import sparse_tar
from dbdyno.run.fleet.request import Request
from dbdyno.run.host_program import Send
from dbdyno.run.images import CachedImage, Images, Wanted, arriving, find, known, wanted_images
from dbdyno.run.ports import Ports
from dbdyno.stack.erase import Erasing
from dbdyno.stack.space import bytes_on_disk
from dbdyno.stack.undo_log import Journal, journalled
from dbdyno.store.cuts import CUTS
from dbdyno.store.documents import json_object, value_of
from dbdyno.store.events import Dropped, Event, Note, TrialEvent, event_in, line_of, read_events
from dbdyno.store.run_folder import RunFolder
from dbdyno.study.rules import ABLE
from dbdyno.system.files import file_sha256
from dbdyno.system.interrupt import Interrupted, interruptible

# One block of a host under test, in one file: its events, and the folders of its trials.
#
# States that are kept of power cuts are large, and evidence that a run can do without. So where a block has any there
# are two files, one with and one without them.


EVENTS = "events.jsonl"


def events_of(path: Path, block: int) -> Iterator[Event]:
    """What happened in a block of a run folder, in order; what names no block belongs to the one it happened in."""
    now = 0
    for event in read_events(path):
        if isinstance(event, TrialEvent):
            now = event.block
        if now == block and isinstance(event, TrialEvent | Dropped | Note):
            yield event


@dataclass(frozen=True)
class PackedBlock:
    """A block in a file, as who fetches it gets to know it; with states the room that they take."""

    path: str
    sha256: str
    states_bytes: int = 0
    states: dict[str, str] | None = None  # the same with states, where there are any and they fit

    def __post_init__(self) -> None:
        """Raise ``ValueError`` where that can't be."""
        if self.states_bytes < 0 or (self.states is not None and self.states.keys() != {"path", "sha256"}):
            raise ValueError("packed is not a block")

    def file(self, free_bytes: int) -> tuple[str, str]:
        """Path and SHA-256 of the file to fetch to a disk with so much room, on which it is unpacked as well."""
        if self.states and free_bytes >= 2 * self.states_bytes + LEFT_BYTES:
            return self.states["path"], self.states["sha256"]
        return self.path, self.sha256


def pack_block(run: RunFolder, block: int, into: Path) -> PackedBlock:
    """Make the files of a block; those of the block before are removed."""
    for before in into.glob("block-*.tar"):
        before.unlink()
    events = list(events_of(run.path, block))
    trials = dict.fromkeys(event.trial for event in events if isinstance(event, TrialEvent))
    folders = [path for trial in trials if (path := run.path / "trials" / trial).is_dir()]
    plain, states = into / f"block-{block}.tar", into / f"block-{block}-states.tar"
    _pack(plain, events, [(path, [file for file in path.iterdir() if file.name != CUTS]) for path in folders])
    needed = sum(bytes_on_disk(path / CUTS) for path in folders if (path / CUTS).is_dir())
    packed = PackedBlock(str(plain), file_sha256(plain), needed)
    if not needed or shutil.disk_usage(into).free < needed + LEFT_BYTES:
        return packed
    _pack(states, events, [(path, list(path.iterdir())) for path in folders])
    return replace(packed, states={"path": str(states), "sha256": file_sha256(states)})


def _pack(path: Path, events: Sequence[Event], folders: Sequence[tuple[Path, Sequence[Path]]]) -> None:
    with tarfile.open(path, "w") as packed:
        content = b"".join(map(line_of, events))
        about = tarfile.TarInfo(EVENTS)
        about.size = len(content)
        packed.addfile(about, io.BytesIO(content))
        for folder, files in folders:
            packed.add(folder, f"trials/{folder.name}", recursive=False)
            for file in sorted(files):
                sparse_tar.add(packed, file, f"trials/{folder.name}/{file.name}")


def unpack_block(path: Path, into: Path, limit_of: sparse_tar.LimitOf) -> list[Event]:
    """Unpack such a file into an empty folder; its events. Trials then lie in ``into/trials``.

    Raises ``tarfile.TarError`` or ``ValueError`` where it is none.
    """
    sparse_tar.extract(path, into, limit_of)
    try:
        lines = (into / EVENTS).read_bytes().splitlines()
    except OSError:
        raise ValueError("it holds no events") from None
    try:
        return [event_in(line) for line in lines]
    except (ValueError, TypeError, RecursionError):
        raise ValueError("it holds a line that is not an event") from None


def renumber_trial(trial: str, block: int) -> str:
    """The name of a trial, its block having another number (see ``Slot.id``)."""
    return f"b{block:04d}{trial[trial.index('a') :]}"


def in_block(event: TrialEvent, block: int, host: str) -> TrialEvent:
    """An event of a trial as the run of all hosts has it."""
    return replace(event, trial=renumber_trial(event.trial, block), block=block, host=host)


# Prepared data on a host under test, before its blocks: which it needs and has, making it, taking in another host's.
#
# What is sent is read where it is kept; only a host that makes or takes in something has work to do.


TASKS = frozenset({"images", "prepare", "take"})
_LOOK_AGAIN_SECONDS = 0.05


@dataclass(frozen=True)
class HostImage:
    """An image that a host needs, as the host says it."""

    key: str
    about: str
    depends_on: dict[str, Any] = field(default_factory=dict)
    sha256: str = ""  # empty: it is not there
    path: str = ""
    bytes: int = 0


@dataclass(frozen=True)
class ImageTask:
    """One of ``TASKS``, on this host."""

    request: Request
    plan: Plan
    erase: frozenset[str]
    send: Send
    ports: Ports

    def do(self) -> list[HostImage]:
        """Do it; what the host then has of what it needs. Nothing where a signal ended it."""
        wanted = wanted_images(self.plan.makers(), self.ports)
        what = f"data of a study on several hosts, as {self.request.host}"
        with suppress(Interrupted), interruptible(self._say), journalled(what) as journal:
            if self.request.task == "images":
                return [self._kept_image(image) for image in wanted]
            if self.request.task == "prepare":
                self._prepare(journal, wanted)
            else:
                self._take(journal, {image.key for image in wanted})
            return [_host_image(image, known(image.key)) for image in wanted]
        return []

    def _say(self, text: str) -> None:
        self.send({"say": text})

    def _kept_image(self, image: Wanted) -> HostImage:
        """What is kept, proved to be whole; nothing where kept data are not wanted."""
        try:
            return _host_image(image, None if self.request.fresh_images else find(image.key))
        except (TrialError, OSError) as error:
            self._say(str(error))
            return _host_image(image, None)

    def _prepare(self, journal: Journal, wanted: list[Wanted]) -> None:
        """Make an image, of which only what is kept stays."""
        spec = next(image.spec for image in wanted if image.key == self.request.image)
        fresh, specs = self.request.fresh_images, self.plan.makers()
        with Images(journal, Erasing(self.erase), self._say, specs=specs, fresh=fresh, ports=self.ports) as images:
            images.of(spec)

    def _take(self, journal: Journal, using: set[str]) -> None:
        """Have an image copied here."""
        request = self.request
        with arriving(request.image, request.image_sha256, request.image_bytes, using, journal) as into:
            self.send({"into": str(into)})
            while not into.exists():  # it comes whole or not at all
                time.sleep(_LOOK_AGAIN_SECONDS)


def _host_image(image: Wanted, kept: CachedImage | None) -> HostImage:
    if kept is None:
        return HostImage(image.key, image.about, image.depends_on)
    return HostImage(image.key, image.about, image.depends_on, kept.sha256, str(kept.path), kept.bytes)


# What a message may hold. A message is a line that a host's program writes; the frames that carry it have bounds of
# their own (``hosts.frames``), and how many lines a host may send is in ``asking``.

LINE_BYTES_MAX = 4 * 1024**2
NO_MORE = -1  # in the file that says up to which block a host may run: end
_TEXT_MAX = 20_000  # characters of what is shown
_KEPT = f"\n\t{NO_BREAK}"  # of what is not printable, in what is shown
_SHA256 = re.compile(r"[0-9a-f]{64}")
_WORD = re.compile(r"[a-z][a-z0-9_-]{0,63}")  # of a load's name
_FLAG = re.compile(r"--[a-z][a-z0-9-]{0,63}(=[^\0\n]*)?")
_TEXT_FLAGS = {"share"}  # of dbdyno-load, whose value has a slash and is no file
_FILE_FLAGS = {
    "json",
    "series",
    "hlog",
    "start-file",
    "ledger",
    "cut-socket",
    "socket",
    "script",
    "trace",
    "csv",
    "defaults-file",
    "defaults-extra-file",
    "server-public-key-path",
}
_TLS_FILES = {"ssl-ca", "ssl-cert", "ssl-key"}


class Message:
    """What every message is; its first field has the name by which it is known on the line."""

    shown: ClassVar[frozenset[str]] = frozenset()  # fields that a person is shown
    brings: ClassVar[bool] = False  # something that a program can only have after work: what it may say begins anew


@dataclass(frozen=True)
class Gone(Message):
    """The program has ended; that is no fault where it had said so. No program says it."""

    why: str


@dataclass(frozen=True)
class Say(Message):
    """A sentence for the user."""

    shown = frozenset({"say"})
    say: str


@dataclass(frozen=True)
class Beats(Message):
    """It goes on, and has nothing to say; so many times by now."""

    beats: int


@dataclass(frozen=True)
class Failed(Message):
    """It ends, as this is in the way."""

    shown = frozenset({"error"})
    error: str


@dataclass(frozen=True)
class EndsWell(Message):
    """It ends: so far it came."""

    ended: str


@dataclass(frozen=True)
class NeedsKernel(Message):
    """It ends, as the next trial needs the host to be restarted with this kernel."""

    kernel: str


@dataclass(frozen=True)
class MemberFacts:
    """What a host is before it is touched: what it lacks; if nothing, what there is to know."""

    lacking: list[str]
    serials: list[str]
    awake: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    host: dict[str, Any] = field(default_factory=dict)
    erases: dict[str, str] = field(default_factory=dict)
    free_bytes: int = 0

    def __post_init__(self) -> None:
        """Raise ``ValueError`` where it lacks nothing and does not say what it is."""
        cores = self.host.get("cores")
        known = isinstance(cores, int) and cores > 0 and "kernel" in self.versions and self.free_bytes >= 0
        if not self.lacking and not known:
            raise ValueError("facts contain neither missing requirements nor a description of the host")


@dataclass(frozen=True)
class FactsAnswer(Message):
    """The answer to what a host is."""

    shown = frozenset({"facts"})
    facts: MemberFacts


@dataclass(frozen=True)
class ImagesOnHost:
    """The images that a host needs, as it has them."""

    images: list[HostImage]

    def __post_init__(self) -> None:
        """Raise ``ValueError`` where one can't be."""
        for image in self.images:
            if image.bytes < 0 or (image.sha256 and not _SHA256.fullmatch(image.sha256)) or not image.key:
                raise ValueError("images has an invalid entry")


@dataclass(frozen=True)
class ImagesAnswer(Message):
    """The answer to a task of prepared data."""

    facts: ImagesOnHost


@dataclass(frozen=True)
class Into(Message):
    """The place to which prepared data are to be copied."""

    into: str


@dataclass(frozen=True)
class JoinedIn(Message):
    """It is ready to run blocks: what the host is, and the file that it looks at."""

    shown = frozenset({"joined", "versions"})
    joined: dict[str, Any]
    versions: dict[str, str]
    go: str

    def __post_init__(self) -> None:
        """Raise ``ValueError`` where nothing is said of the host."""
        if not self.joined:
            raise ValueError("joined is empty")


@dataclass(frozen=True)
class Asks(Message):
    """It asks to begin this block, by its own count."""

    asks: int


@dataclass(frozen=True)
class TrialBegins(Message):
    """A trial begins; the host sends nothing until it is over."""

    shown = frozenset({"note"})
    trial: Slot
    note: str


@dataclass(frozen=True)
class TrialOver(Message):
    """The trial has taken so long."""

    trial_done: float

    def __post_init__(self) -> None:
        """Raise ``ValueError`` where that is no time."""
        if self.trial_done < 0:
            raise ValueError("trial_done is below 0")


@dataclass(frozen=True)
class BlockOver(Message):
    """A block is over, and can be fetched."""

    brings = True
    block: int
    packed: PackedBlock
    seconds: float  # that a block took; 0: not known

    def __post_init__(self) -> None:
        """Raise ``ValueError`` where that can't be."""
        if self.seconds < 0:
            raise ValueError("seconds is below 0")
        for sha256 in (self.packed.sha256, *([self.packed.states["sha256"]] if self.packed.states else [])):
            if not _SHA256.fullmatch(sha256):
                raise ValueError("packed.sha256 is not a SHA-256")


@dataclass(frozen=True)
class ClientLoad:
    """The part of one client host in a load: the load generator and nothing else, which names no file there."""

    argv: list[str]
    environment: dict[str, str]
    files: dict[str, str]  # flag -> content

    def __post_init__(self) -> None:
        """Raise ``ValueError`` where it would have a client host do anything else."""
        program, *words = self.argv or [""]
        if program != "dbdyno-load" or not words or words[0] not in ABLE:
            raise ValueError("load.argv is not a load of dbdyno-load")
        for word in words:
            name = word.removeprefix("--").partition("=")[0]
            of_file = name in _FILE_FLAGS | _TLS_FILES or ("/" in word and name not in _TEXT_FLAGS)
            if of_file or not (_FLAG.fullmatch(word) or _WORD.fullmatch(word)):
                raise ValueError(f"load.argv holds {short(name, 40)!r}, which does not belong to a load")
        if not self.environment.keys() <= {"LC_ALL", CLIENT_PASSWORD_VARIABLE} or not self.files.keys() <= _TLS_FILES:
            raise ValueError("load has an environment or files that do not belong to a load")


@dataclass(frozen=True)
class HostsLoad:
    """A load as client hosts are to offer it."""

    each: dict[str, ClientLoad]
    limit_seconds: float

    def __post_init__(self) -> None:
        """Raise ``ValueError`` where nobody is to offer it, or in no time."""
        if not self.each or self.limit_seconds <= 0:
            raise ValueError("load has no host or no duration")


@dataclass(frozen=True)
class AsksForLoad(Message):
    """It asks for a load, and where what came of it is to be put."""

    load: HostsLoad
    answer: str


Kinds = Mapping[str, type[Message]]  # the first field of a message -> what it is
ALWAYS: Kinds = {"say": Say, "error": Failed}
OF_FACTS: Kinds = {**ALWAYS, "facts": FactsAnswer}
OF_IMAGES: Kinds = {**ALWAYS, "beats": Beats, "facts": ImagesAnswer, "into": Into}
OF_BLOCKS: Kinds = {
    **ALWAYS,
    "beats": Beats,
    "joined": JoinedIn,
    "asks": Asks,
    "trial": TrialBegins,
    "trial_done": TrialOver,
    "block": BlockOver,
    "kernel": NeedsKernel,
    "load": AsksForLoad,
    "ended": EndsWell,
}


def parse(host: str, line: bytes, kinds: Kinds) -> Message:
    """The message of a line. Raises ``LieError`` where it is none of these kinds."""
    try:
        document = json_object(line)
        _check_numbers(document)
        kind = _kind(document, kinds)
        fit = {key: printable_document(value, _TEXT_MAX, _KEPT) for key, value in document.items() if key in kind.shown}
        return value_of(kind, {**document, **fit})
    except ValueError as error:
        excerpt = short(line[:200].decode(errors="replace"), 60)
        raise LieError(f"{host}: its message is invalid ({short(str(error))}): {excerpt}") from None


def _kind(document: Mapping[str, Any], kinds: Kinds) -> type[Message]:
    name = next((key for key in document if key in kinds), None)
    if name is None:
        raise ValueError("there is no such message")
    return kinds[name]


def _check_numbers(document: object) -> None:
    """Raise ``ValueError`` where a number is none that JSON knows; how deep a document may be, its reader has seen."""
    if isinstance(document, dict | list):
        for each in document.values() if isinstance(document, dict) else document:
            _check_numbers(each)
    elif isinstance(document, float) and not math.isfinite(document):
        raise ValueError("it holds a number that is not finite")


def fit_text(text: str) -> str:
    """What a host said, for a person: nothing that a terminal obeys, and no book."""
    return printable(text[:_TEXT_MAX], keep=_KEPT)
