"""The run folder: ``run.toml``, the event log, ``host.json``, ``study.toml`` and one folder per trial.

Truth is the event log: one fsync'd line per event; only a torn last line is forgiven. A trial can count when the log
says that it finished, and its files are on disk before that line is written.
"""

import fcntl
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.errors import HostError, UserError
from dbdyno.store.documents import VALUES_MAX, json_object, see_that_it_is_moderate
from dbdyno.store.events import EVENTS, Event, Finished, Planned, append_event, cut_torn_line, log_size, read_events
from dbdyno.store.header import RUN, Header, header_in
from dbdyno.store.others import Budget
from dbdyno.store.parts import damaged, read_part, see_that_it_is_as_written, sums_of, why_wrong, write_synced
from dbdyno.store.records import FailedTrial, Run, Trial
from dbdyno.store.series import write_series
from dbdyno.store.trials import TRIAL, FileAllowance, read_trial, trial_file
from dbdyno.store.void_blocks import History
from dbdyno.system.files import is_full, near_file, open_regular, others_write, trusted_users, why_not_written

if TYPE_CHECKING:
    from dbdyno.store.series import Column

HOST = "host.json"
STUDY = "study.toml"
LOCK = "lock"  # held by the process that writes the run
_OWN_FILES = (RUN, HOST, STUDY)
_TOML_WEIGHT = 3  # as many times as much time as JSON takes
_BEFORE_THE_HEADER = {LOCK, "trials", HOST, STUDY, *(f"{name}.part" for name in _OWN_FILES)}


class RunFolder:
    """A run folder that is being written; one writer at a time. ``history`` is what its events say so far."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            check_owner(path)
            self._lock = open_regular(path / LOCK, os.O_WRONLY | os.O_CREAT)
        except OSError as error:
            raise UserError(f"{error.filename or path} can't be written: {error.strerror}") from None
        try:
            self._begin_to_write()
        except BaseException:
            self.close()
            raise

    def _begin_to_write(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            cut_torn_line(self.path)
        except BlockingIOError:
            raise UserError(f"{self.path}: another dbdyno is writing this run") from None
        except OSError as error:
            raise UserError(f"{self.path / EVENTS} can't be written: {error.strerror}") from None
        self.history = History.of(read_events(self.path))
        self._size = log_size(self.path)

    def close(self) -> None:
        """Let another process write."""
        os.close(self._lock)

    def append(self, event: Event) -> None:
        """One more event, on disk when this returns; from ``Planned`` on the run's own files are as they are."""
        if isinstance(event, Planned):
            event = replace(event, sha256=sums_of(self.path, [name for name in _OWN_FILES if _exists(self.path, name)]))
        self._size = append_event(self.path, event, self._size)
        self.history.add(event)

    def trial_folder(self, trial_id: str) -> Path:
        """An empty folder for a trial that is about to begin; what an earlier, unfinished try left is removed."""
        folder = self.path / "trials" / trial_id
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)
        else:
            folder.unlink(missing_ok=True)
        folder.mkdir(parents=True)
        return folder

    def finish(self, trial: Trial, series: "Mapping[str, Mapping[str, Column]]") -> None:
        """Store a finished trial: series and scalars first, then the event."""
        folder = self.path / "trials" / trial.id
        for name, columns in series.items():
            write_series(folder / f"{name}.parquet", columns)
        write_synced(folder / TRIAL, json.dumps(asdict(trial), indent=1).encode())
        names = [TRIAL, *(file.name for file in sorted(folder.glob("*.parquet")))]
        sums = sums_of(self.path, [trial_file(trial.id, name) for name in names])
        place = trial.id, trial.block, trial.attempt, trial.treatment
        self.append(Finished(*place, disturbed=trial.disturbed, sha256=sums, host=trial.host))


def create(
    path: Path,
    header: Header,
    host: Mapping[str, Any],
    study: str = "",
    *,
    remedy: str = "name a new folder, or go on with this run by --resume",
) -> RunFolder:
    """A new run folder, with the ``study``'s text as it was written; ``remedy`` is said of a folder with something in.

    Raises:
        UserError: it exists and is not empty, or can't be made.

    """
    try:
        make_folder(path)
        # A run killed before its header was whole had no trial: it may be begun anew.
        if {entry.name for entry in path.iterdir()} - _BEFORE_THE_HEADER:
            raise UserError(f"{path} is not empty; {remedy}")
        folder = RunFolder(path)
        try:
            _write_own_files(path, header, host, study)
        except OSError:
            folder.close()
            raise
    except OSError as error:
        wrong = HostError if is_full(error) else UserError
        raise wrong(why_not_written(error, path)) from None
    return folder


def _write_own_files(path: Path, header: Header, host: Mapping[str, Any], study: str) -> None:
    """Write what a run begins with, ``run.toml`` last: with it the run has begun. Raises ``OSError``."""
    (path / "trials").mkdir(exist_ok=True)
    write_synced(path / HOST, json.dumps(host, indent=1).encode())
    if study:
        write_synced(path / STUDY, study.encode())
    write_synced(path / RUN, header.to_toml())


def is_begun(path: Path) -> bool:
    """Whether a folder holds a run that got as far as its header. One that was killed before is begun anew."""
    return any(_exists(path, name) for name in (RUN, EVENTS))


def preload() -> None:
    """Import now what storing needs: a signal in the middle of an import leaves it half done."""
    import numpy as np  # noqa: F401


def read_header(path: Path) -> Header:
    """What a run began with. Raises ``UserError`` where this is no run folder of this format."""
    return header_in(path, _own_file(path, RUN))


def read_run(path: Path, without: Collection[str] = (), budget: Budget | None = None) -> Run:
    """Everything a run folder says but its series, ``without`` some trials. Raises ``UserError`` where it can't be.

    ``budget`` is that of the command, where it reads run folders of others.
    """
    own = {name: _own_file(path, name) for name in _OWN_FILES if name != STUDY or _exists(path, name)}
    if budget is not None:
        _count_own_files(path, own, budget)
    header = header_in(path, own[RUN])
    history = History.of(read_events(path, budget))
    _see_that_they_are_as_they_were(path, own, history.own_sums)
    try:
        host = json_object(own[HOST])
    except ValueError as error:
        raise damaged(path / HOST, why_wrong(error)) from None
    try:
        study_text = own.get(STUDY, b"").decode("utf-8")
    except UnicodeDecodeError:
        raise damaged(path / STUDY, "it is not UTF-8 text") from None
    known = {treatment.id for treatment in header.design.tried}
    for event in history.finished.values():
        if event.treatment not in known:
            raise damaged(
                path / EVENTS, f"trial {event.trial} is of {event.treatment[:40]!r}, which is not a treatment"
            )
    allowance = FileAllowance(budget=budget)
    trials = [read_trial(path, event, allowance) for event in history.finished.values() if event.trial not in without]
    return _run_of(header, history, trials, host, study_text)


def _count_own_files(path: Path, own: Mapping[str, bytes], budget: Budget) -> None:
    for name, content in own.items():
        try:
            values = see_that_it_is_moderate(content, VALUES_MAX) if name != STUDY else 0
        except ValueError as error:
            raise damaged(path / name, str(error)) from None
        budget.take_document(path, content, _TOML_WEIGHT * values if name == RUN else values)


def _why_no_run(path: Path) -> str:
    if not path.exists():
        return f"there is no folder {path}; dbdyno runs lists the run folders there are{near_file(path)}"
    runs = (folder.parent for folder in sorted(path.glob(f"*/{RUN}")))
    if (first := next(runs, None)) is not None:
        return f"{path} holds run folders and is none; name one of them, such as {first}"
    return f"{path} is not a run folder: it holds no {RUN}; dbdyno runs lists those there are"


def _own_file(path: Path, name: str) -> bytes:
    try:
        return read_part(path, name)
    except (FileNotFoundError, NotADirectoryError):
        if name != RUN:
            raise damaged(path / name, "it is missing") from None
        raise UserError(_why_no_run(path)) from None
    except OSError as error:
        raise UserError(f"{path / name}: can't be read: {error.strerror}") from None


def _exists(path: Path, name: str) -> bool:
    return os.path.lexists(path / name)  # run folders of an older dbdyno hold no study file


def _see_that_they_are_as_they_were(path: Path, own: Mapping[str, bytes], sums: Mapping[str, str]) -> None:
    """Raise ``DamageError`` where a file of the run's own is another than when the run was planned."""
    for name, recorded in sums.items():
        if name not in own:
            raise damaged(path / name, "it is missing")
        try:
            see_that_it_is_as_written(hashlib.sha256(own[name]).hexdigest(), recorded)
        except ValueError as error:
            raise damaged(path / name, str(error)) from None


def _run_of(header: Header, history: History, trials: list[Trial], host: dict[str, Any], study_text: str) -> Run:
    ended = history.ended
    return Run(
        title=header.title,
        question=header.question,
        design=history.changed(header.design),
        trials=trials,
        failures=[
            FailedTrial(failure.trial, failure.block, failure.attempt, failure.treatment, failure.cause, failure.host)
            for failure in history.failures
        ],
        host=host,
        hosts={name: joined.facts for name, joined in history.hosts.items()},
        versions=header.versions,
        ended=ended.how if ended else "running",
        notes=history.notes,
        setup=header.setup(),
        stopped=ended.stopped if ended else "",
        failure=ended.cause if ended else "",
        study=header.study_without_paths(),
        dropped=frozenset(history.dropped),
        extended_from=history.extended_from,
        expect=header.expect,
        scale=header.scale,
        reported=header.reported,
        study_file=header.study_file if study_text else "",
        study_text=study_text,
        prices=header.cost,
        imported=header.imported,
    )


# Whether a run folder may be written to, or obeyed: it is ours, nobody else can change it, no link leads away.


def make_folder(path: Path) -> None:
    """Make a run folder and what lacks above it, writable by no others whatever the umask. Raises ``OSError``."""
    for folder in reversed(path.parents):
        if not folder.exists():
            folder.mkdir(mode=0o755)
    path.mkdir(mode=0o755, exist_ok=True)


def check_owner(path: Path) -> None:
    """Raise ``UserError`` where a run folder or anything in it is another user's to change. Raises ``OSError``.

    It is asked before a run folder is written to, and before what it holds is mounted or run with our rights: its study
    names programs, its kept states hold filesystems. Reading is another matter: who writes a report only reads, never
    through a link, and may read anybody's folder.
    """
    remedy = "name a folder of your own, or have its owner run dbdyno"
    trusted = trusted_users()
    for place in dict.fromkeys([path.lstat(), path.stat()]):
        if place.st_uid not in trusted:
            raise UserError(f"{path} belongs to another user (uid {place.st_uid}), who could change it; {remedy}")
    _check_writers(path, path.stat(), remedy)
    above = path.resolve().parent
    mode = above.stat().st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise UserError(f"{above} can be written by everybody, so {path} can be replaced; chmod o-w it, or {remedy}")
    for entry in _entries(path):
        if entry.is_symlink():
            raise UserError(f"{entry.path} is a link; dbdyno writes to no run folder that holds one: remove it")
        status = entry.stat(follow_symlinks=False)
        if status.st_uid not in trusted:
            raise UserError(f"{entry.path} belongs to another user (uid {status.st_uid}); {remedy}")
        _check_writers(Path(entry.path), status, remedy)
    trials = path / "trials"
    if os.path.lexists(trials) and not trials.is_dir():
        raise UserError(f"{trials} is not a folder; put it back from a copy, or remove it")


def _check_writers(path: Path, status: os.stat_result, remedy: str) -> None:
    """Raise ``UserError`` where everybody may write to a file or a folder, or, where we are root, another group."""
    if status.st_mode & stat.S_IWOTH:
        raise UserError(f"{path} can be written by everybody; chmod o-w it, or {remedy}")
    if os.geteuid() == 0 and others_write(status):
        raise UserError(f"{path} can be written by the group {status.st_gid}; chmod g-w it, or {remedy}")


def _entries(path: Path) -> Iterator[os.DirEntry[str]]:
    """Everything below a run folder, a folder before what lies in it."""
    folders = [str(path)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                yield entry
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
