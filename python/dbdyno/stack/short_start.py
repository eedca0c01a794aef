"""Whether programs of this host take what a study gives them: settings, options of mkfs and mount, jobs of fio.

That very server is started on scratch data for a moment, and asked; mkfs and mount get a file for a device. Here
``new``, ``plan`` and ``run`` ask; what a server took is told by the comparison that each trial makes. Nothing of the
study is touched: the server has a scratch folder, a socket in it and no port, and runs as the user that it has in a
trial. Answers are kept in the state folder for as long as program, settings and the host's limits are the same.
"""

import hashlib
import json
import os
import resource
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self, get_args

from dbdyno.errors import DbdynoError, HostError, TrialError
from dbdyno.filesystems import BY_FUSE, KINDS, TMPFS, Kind
from dbdyno.host.processor import memory_facts
from dbdyno.host.read import text_of
from dbdyno.model.printable import short
from dbdyno.mysql.settings import Setting
from dbdyno.servers.contract import How, NotStartedError, SettingOutcome
from dbdyno.servers.products import own_server
from dbdyno.servers.sources.installation import Installation, find_server
from dbdyno.servers.user import own_folder, server_user, unprivileged
from dbdyno.stack.layer import BlockDevice, Layer, StackContext
from dbdyno.stack.layers.filesystem import Filesystem
from dbdyno.stack.layers.memory import MemoryFilesystem
from dbdyno.stack.layers.scratch import scratch
from dbdyno.stack.layers.server import ServerLayer, server_logs
from dbdyno.stack.layers.zfs_pool import ZfsPool
from dbdyno.stack.loop import attach_loop
from dbdyno.stack.tools import needed, run_tool, tool_done
from dbdyno.stack.undo.actions import DetachLoops
from dbdyno.stack.undo_log import Journal, journalled
from dbdyno.store.parts import write_synced
from dbdyno.study.schema import FilesystemSection
from dbdyno.study.units import format_bytes
from dbdyno.system.interrupt import Interrupted, interruptible
from dbdyno.system.locks import another_run
from dbdyno.system.state import existing, make_state_folder, state_folder

FORMAT = 1  # of what is kept
FOLDER = "takes"  # in the state folder
KEPT_MAX, KEPT_BYTES_MAX = 1000, 1_000_000
READY_SECONDS = 60.0  # in which the server must answer
REFUSALS_MAX = 16  # of one set of settings: each costs a start
ROOM_BYTES = 512 * 1024**2  # for a server's own data, and once more for its system tables
SHARE_MAX = 0.5  # of the host's memory, and of the room on its disk: others need some
MEMORY_SHARE_MAX = 0.9  # what wants more of this host's memory can't be had
NOT_SET = frozenset({"port"})  # which would open one

FILE_BYTES = 16 * 1024**3  # of a file without content, where the study does not say how large the device is
MKFS_SECONDS = 30.0
IMAGE_BYTES = 1024**3  # of one that is mounted, likewise

Say = Callable[[str], None]


@dataclass(frozen=True)
class StartRequest:
    """A server and what it would be started with."""

    server: str  # as the study names it
    engine: str
    settings: tuple[tuple[str, Setting], ...]
    clients: int = 0  # that use it at once
    disk_in_memory: bool = False  # which needs the half of the memory that the server leaves
    table_options: str = ""  # with which a table is made, too


class Starting(ExitStack):
    """Starts of servers, which have system tables made once for all that these do not depend on."""

    def __enter__(self) -> Self:
        """Nothing is started yet; from now on a signal ends what will be."""
        super().__enter__()
        self.enter_context(_ended_by_signals())
        return self

    def try_settings(self, request: StartRequest, say: Say = lambda _: None) -> list[SettingOutcome]:
        """What a server makes of settings in which it has found no mistake; ``say`` tells what takes a moment.

        Raises ``DbdynoError`` where it can't be tried here.
        """
        installation, settings = find_server(request.server), dict(request.settings)
        mistakes = own_server(installation, request.engine, settings, request.clients).mistakes()
        if mistakes:  # with these it is not even started
            return [SettingOutcome(name, settings[name], "refused", said=mistake) for name, mistake in mistakes.items()]
        settings = {name: value for name, value in settings.items() if name not in NOT_SET}
        oversized = list(_oversize_outcomes(installation, request, settings))
        for outcome in oversized:
            del settings[outcome.name]

        def start() -> list[SettingOutcome]:
            _check_host_is_idle()
            _check_room()
            say(f"starting {request.server} for a moment, to see which settings it takes")
            return list(_Starts(installation, request, self._tables).outcomes(settings))

        return [*_answer(_facts(installation, request, settings), start), *oversized]

    @cached_property
    def _tables(self) -> Path:
        """A folder for system tables."""
        journal = self.enter_context(journalled("system tables for servers that are tried"))
        return self.enter_context(scratch(journal)).scratch


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Have a signal first end what was started, and then this process; where signals have another meaning, that."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    try:
        with interruptible(lambda _: None):
            yield
    except Interrupted:
        raise KeyboardInterrupt from None


def _check_host_is_idle() -> None:
    if other := another_run():
        raise HostError(f"this would disturb another run on this host: {other}")


def _check_room() -> None:
    """Raise ``HostError`` where a server would find the disk full, which it waits for somebody to mend."""
    if (free := _free_bytes()) < ROOM_BYTES:
        raise HostError(
            f"the disk of the state folder {state_folder()} has {format_bytes(free)} free, and a start"
            f" of a server needs {format_bytes(ROOM_BYTES)}; make room on it, or set DBDYNO_STATE_DIR to a folder on"
            " another one"
        )


def _free_bytes() -> int:
    return shutil.disk_usage(existing(state_folder())).free


def _oversize_outcomes(
    installation: Installation, request: StartRequest, settings: Mapping[str, Setting]
) -> Iterator[SettingOutcome]:
    """Settings that want more of the host than a trial of them may take."""
    memory, files = own_server(installation, request.engine, settings, request.clients).amounts()
    total_bytes = memory_facts()["bytes"]
    for name, amount in memory.items() if isinstance(total_bytes, int) else ():
        text = f"of the memory of this host ({format_bytes(total_bytes)})"
        if amount > MEMORY_SHARE_MAX * total_bytes:
            text = f"is more than {100 * MEMORY_SHARE_MAX:.0f} % {text}"
            yield SettingOutcome(name, settings[name], "refused", said=text)
        elif amount > SHARE_MAX * total_bytes and request.disk_in_memory:
            text = f"is more than half {text}, and the disk in memory needs the other half"
            yield SettingOutcome(name, settings[name], "refused", said=text)
        elif amount > SHARE_MAX * total_bytes:
            yield SettingOutcome(name, settings[name], "not tried", said=f"is more than half {text}")
    free_bytes = max(0, _free_bytes() - ROOM_BYTES)
    for name, amount in files.items():
        # The trial's own disk, on which the files will lie, may have more room than the one of this attempt.
        if amount > SHARE_MAX * free_bytes:
            text = f"is more than half of the room on the state folder's disk ({format_bytes(free_bytes)})"
            yield SettingOutcome(name, settings[name], "not tried", said=text)


@dataclass(frozen=True)
class _Starts:
    """Starts of one server with one set of settings, or with some of these."""

    installation: Installation
    request: StartRequest
    tables: Path  # holds system tables that were made for earlier starts

    def outcomes(self, settings: Mapping[str, Setting]) -> Iterator[SettingOutcome]:
        """Start the server; without a setting that it refuses once more, for what it makes of the others."""
        left = dict(settings)
        for _ in range(REFUSALS_MAX):
            answer = self._start(left)
            if isinstance(answer, list):
                yield from answer
                return
            name, sentence = answer if answer[0] else self._culprit(left, answer[1])
            yield SettingOutcome(name, left.pop(name), "refused", said=f"{self.request.server} says: {sentence}")
        raise HostError(f"{self.request.server} refuses {REFUSALS_MAX} settings or more; give fewer")

    def _culprit(self, settings: Mapping[str, Setting], sentence: str) -> tuple[str, str]:
        """A setting that the server refuses, where its sentence names none: by halves; and what it then says."""
        if isinstance(refused := self._start({}), tuple):
            raise HostError(
                f"{self.request.server} does not start here, even without the study's settings: {refused[1]}"
            )
        names = list(settings)
        while len(names) > 1:
            half = names[: len(names) // 2]
            answer = self._start({name: settings[name] for name in half})
            if isinstance(answer, tuple):
                if answer[0]:
                    return answer
                names, sentence = half, answer[1]
            else:
                names = names[len(half) :]
        return names[0], sentence

    def _start(self, settings: Mapping[str, Setting]) -> list[SettingOutcome] | tuple[str, str]:
        """What the server made of settings, or the one that it refuses, "" where it names none, and its sentence.

        Raises ``DbdynoError`` where it can't be started for another reason.
        """
        request = self.request
        own = own_server(self.installation, request.engine, settings, request.clients)
        depends = [self.installation.identity, request.engine, sorted(own.data_settings.items())]
        tables = self.tables / hashlib.sha256(json.dumps(depends).encode()).hexdigest()[:16]
        with journalled(f"what {request.server} takes") as journal, scratch(journal) as ground:
            below = _with_folder(ground)
            log = ground.scratch / "server.log"
            arguments = self.installation, settings, request.engine, request.clients
            layer = ServerLayer(
                *arguments, install=True, log=log, tables=tables, ready_seconds=READY_SECONDS, is_killed=True
            )
            try:
                return layer.try_settings(below, request.table_options)
            except TrialError as error:
                is_silent = isinstance(error, NotStartedError) and error.code is None
                if is_silent or _free_bytes() < SHARE_MAX * ROOM_BYTES:
                    raise HostError(f"{request.server} with these settings: {error}") from None
                name, sentence = own.refusal(_log_text(below))
                return (name if name in settings else ""), sentence or str(error)


def _log_text(below: StackContext) -> str:
    log = below.scratch / "server.log"
    log_text = log.read_bytes().decode(errors="replace") if log.is_file() else ""
    return f"{server_logs(below)}\n{log_text}"


def _with_folder(ground: StackContext) -> StackContext:
    """The scratch folder with one for data, which the server's user may pass."""
    folder = ground.scratch / "data"
    folder.mkdir()
    folder.chmod(0o711)
    return replace(ground, directory=folder)


@dataclass(frozen=True)
class MkfsOptions:
    """A filesystem, what it would be made with, and of what size."""

    filesystem: str
    options: str
    size: int | None = None  # bytes; None where the device is one that there is
    devices: int = 1


def mkfs_outcome(request: MkfsOptions) -> SettingOutcome:
    """Whether the program that makes a filesystem takes the options, tried on files.

    Raises ``DbdynoError`` where it can't be tried here.
    """
    kind = KINDS[request.filesystem]
    program = Path(needed(kind.program, kind.package)).stat()

    def make() -> list[SettingOutcome]:
        _check_host_is_idle()
        with _ended_by_signals():
            complaint = _try_mkfs(kind, request)
            # If it fails without the options as well, these are not what it minds.
            if complaint and (without := _try_mkfs(kind, replace(request, options=""))):
                raise TrialError(f"{kind.program} can make no filesystem here, even without options: {short(without)}")
        return [SettingOutcome("mkfs", request.options, "refused" if complaint else "as asked", said=short(complaint))]

    facts = [*asdict(request).values(), program.st_size, program.st_mtime_ns, os.uname().release]
    return _answer(facts, make)[0]


def _try_mkfs(kind: Kind, request: MkfsOptions) -> str:
    with journalled(f"what {kind.program} takes") as journal, scratch(journal) as ground:
        folder = ground.scratch / "files"
        own_folder(folder)
        files = [folder / f"disk{number}" for number in range(request.devices)]
        for file in files:
            with file.open("xb") as empty:
                empty.truncate(request.size or FILE_BYTES)
            if user := server_user():
                os.chown(file, user.pw_uid, user.pw_gid)
        try:
            if kind.name == BY_FUSE:
                below = replace(ground, device=BlockDevice(files[0], rotational=False, disposable=True))
                with ZfsPool(FilesystemSection(mkfs=request.options), format=True, is_tried=False).raised(below):
                    return ""
            making = [*kind.making(request.options, None), *kind.trying, *map(str, files)]
            argv = unprivileged([needed(making[0], kind.package), *making[1:]])
            run_tool(without_mounts(argv) if server_user() else argv, timeout_seconds=MKFS_SECONDS)
        except TrialError as error:
            text = str(error).replace(str(folder), "DEVICE").replace(f"'dbdyno-{ground.scratch.name}'", "the pool")
            _, failed, message = text.partition(": exit ")
            return message.partition(": ")[2].partition(" / Usage")[0] if failed else text
    return ""


def without_mounts(argv: list[str]) -> list[str]:
    """A command that sees no mounted filesystem: mkfs.btrfs fails at one that it may not enter, or that is dead."""
    hide = "mount -t tmpfs -o mode=755 dbdyno /proc && mkdir /proc/self && : > /proc/self/mounts"
    hide += ' && ln -s self/mounts /proc/mounts && exec "$@"'
    return ["unshare", "--mount", "--propagation", "private", "--", "/bin/sh", "-c", hide, "sh", *argv]


def fio_complaint(job: str) -> str:
    """What this host's fio has against a job file that was written for a trial; empty if nothing.

    Raises ``DbdynoError`` where it can't be asked.
    """
    program = Path(needed("fio", "fio"))
    stat = program.stat()

    def parse() -> list[SettingOutcome]:
        with _ended_by_signals(), journalled("what fio takes") as journal, scratch(journal) as ground:
            file = ground.scratch / "job.fio"
            file.write_text(job, encoding="utf-8")
            file.chmod(0o644)
            done = tool_done(unprivileged([str(program), "--parse-only", str(file)]), timeout_seconds=MKFS_SECONDS)
        lines = [line.strip() for line in done.err.splitlines() if " dropped" not in line]
        complaint = short(" / ".join(filter(None, lines)) or done.message) if done.code else ""
        return [SettingOutcome("job", "", "refused" if complaint else "as asked", said=complaint)]

    return _answer(["fio", job, str(program), stat.st_size, stat.st_mtime_ns], parse)[0].said


@dataclass(frozen=True)
class MountOptions:
    """A filesystem, what it would be made with, and what it would be mounted with."""

    filesystem: str
    options: str  # of mount
    mkfs: str = ""
    size: int = IMAGE_BYTES
    devices: int = 1


def mount_outcome(request: MountOptions) -> SettingOutcome:
    """Whether the kernel takes mount options, tried on an image of that filesystem; ``got`` is what it then lists.

    Raises ``DbdynoError`` where it can't be tried here.
    """
    kind = KINDS[request.filesystem]

    def mount() -> list[SettingOutcome]:
        _check_host_is_idle()
        _check_room()
        with _ended_by_signals():
            how, got, complaint = _try_mount(kind, request)
            if how == "refused" and (without := _try_mount(kind, replace(request, options="")))[0] == "refused":
                raise TrialError(f"no {kind.name} can be mounted here, even without options: {without[2]}")
        return [SettingOutcome("mount", request.options, how, got, complaint)]

    return _answer(["mount", *asdict(request).values(), os.uname().release], mount)[0]


def _try_mount(kind: Kind, request: MountOptions) -> tuple[How, str, str]:
    """Return what became of the options, what the kernel lists, and what was said against them."""
    with (
        journalled(f"what a mount of {kind.name} takes") as journal,
        scratch(journal) as ground,
        ExitStack() as ending,
    ):
        if kind is TMPFS:
            layer: Layer = MemoryFilesystem(request.size, request.options)
            below = ground
        else:
            files = [ground.scratch / f"disk{number}" for number in range(request.devices)]
            paths = [ending.enter_context(_attach_file(journal, file, request.size)) for file in files]
            first, *others = [BlockDevice(path, rotational=False, disposable=True) for path in paths]
            section = FilesystemSection(mkfs=request.mkfs, mount=request.options)
            layer = Filesystem(kind, section, format=True, limit_seconds=MKFS_SECONDS, is_tried=False)
            below = replace(ground, device=first, beside=tuple(others))
        try:
            with layer.raised(below) as mounted:
                return "as asked", short(str(mounted.observed[layer.name]["mount_options"])), ""
        except TrialError as error:
            text = str(error).replace(str(ground.scratch), "DEVICE")
            _, failed, message = text.partition(": exit ")
            return "refused", "", short(message.partition(": ")[2] if failed else text)


@contextmanager
def _attach_file(journal: Journal, file: Path, size: int) -> Iterator[Path]:
    """A loop device over a new file without content."""
    with file.open("xb") as empty:
        empty.truncate(size)
    with journal.undoing(DetachLoops(str(file))):
        yield attach_loop(file)


def _facts(installation: Installation, request: StartRequest, settings: Mapping[str, Setting]) -> list[Any]:
    """What the answer depends on: the program, what it is started with, and what the host lets it have."""
    own = own_server(installation, request.engine, settings, request.clients)
    user = server_user()
    return [
        installation.identity,
        str(installation.basedir),
        request.engine,
        *([request.table_options] if request.table_options else []),
        sorted(own.settings.items()),
        user.pw_name if user else os.geteuid(),
        [resource.getrlimit(limit) for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_MEMLOCK, resource.RLIMIT_AS)],
        text_of(Path("/proc/sys/vm/nr_hugepages"), ""),
        os.uname().release,
    ]


def _answer(facts: list[Any], ask: Callable[[], list[SettingOutcome]]) -> list[SettingOutcome]:
    """What was answered earlier by the same facts; else what ``ask`` returns, which is kept."""
    key = hashlib.sha256(json.dumps([FORMAT, *facts]).encode()).hexdigest()[:32]
    outcomes = _read_answer(key)
    if outcomes is None:
        outcomes = ask()
        _write_answer(key, outcomes)
    return outcomes


def _read_answer(key: str) -> list[SettingOutcome] | None:
    """The answer that was stored earlier, unless others could have written it."""
    try:
        if not state_folder().is_dir():
            return None
        with (make_state_folder() / FOLDER / f"{key}.json").open("rb") as file:
            outcomes = [SettingOutcome(**entry) for entry in json.loads(file.read(KEPT_BYTES_MAX))]
    except (OSError, ValueError, TypeError, DbdynoError):
        return None
    texts = (text for outcome in outcomes for text in (outcome.name, outcome.how, outcome.got, outcome.said))
    is_whole = all(isinstance(text, str) for text in texts) and all(
        outcome.how in get_args(How) for outcome in outcomes
    )
    return outcomes if is_whole else None


def _write_answer(key: str, outcomes: list[SettingOutcome]) -> None:
    """Keep it, and of all that is kept the latest."""
    with suppress(OSError, DbdynoError):
        file = make_state_folder() / FOLDER / f"{key}.json"
        file.parent.mkdir(exist_ok=True)
        files = sorted(file.parent.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        for old in files[: max(0, len(files) - KEPT_MAX)]:
            old.unlink(missing_ok=True)
        write_synced(file, json.dumps([asdict(outcome) for outcome in outcomes]).encode())
