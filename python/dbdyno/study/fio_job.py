"""fio's job files and its logs of requests: what of them dbdyno reads."""

import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path

from dbdyno.model.fio import JobLine, fio_percent, job_lines, variables_in, with_variables
from dbdyno.system.files import MIB, read_regular, read_text

# I/O logs of fio (``read_iolog``), of versions 2 and 3 (fio(1), "I/O REPLAY - LOG FORMATS").
#
# A log comes along with a study and names files by any path. So all of it is checked, and written anew for the trial:
# its files are plain names in the trial's own folder, none is reached beyond what was laid out for it, and what fio
# makes nothing of on a file (``trim``) is left out.


LOG_BYTES_MOST = 64 * MIB
LOGS_MOST = 16  # of one job
FILES_MOST = 1000
REACH_BYTES_MOST = 1 << 46  # 64 TiB
_HEADS = {b"fio version 2 iolog": 2, b"fio version 3 iolog": 3}
_BLKTRACE = (b"\x07tae", b"eat\x07")  # how a record of blktrace begins, in either order of bytes
_FILE_ACTIONS = frozenset({"add", "open", "close"})
_PLACED = frozenset({"read", "write", "trim"})
_ACTIONS = _PLACED | {"sync", "datasync", "wait"}
_NUMBER = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True)
class LogLine:
    """An action of a log, at microseconds since its start; ``wait`` is in these, and no action of its own."""

    at_us: int
    file: str  # by its plain name
    action: str
    offset: int = 0
    length: int = 0


@dataclass(frozen=True)
class IoLog:
    """How many bytes each file of a log needs, and how many of its actions are trims."""

    path: Path
    reach_bytes: dict[str, int]
    trims: int

    def lines(self) -> Iterator[LogLine]:
        """Yield what fio is to replay, read again: all lines in memory take ten times the bytes of the file."""
        return (line for line in _lines_of(self.path) if line.action != "trim")


def plain_file(name: str) -> str:
    """Return a name without a folder, another one for another path."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.")[-100:] or "file"


def read_io_log(path: Path) -> IoLog:
    """Read a log. Raises ``OSError``, and ``ValueError`` with the line of what is not as fio writes it."""
    status = path.stat()
    return _read(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=LOGS_MOST)
def _read(path: Path, _size: int, _mtime_ns: int) -> IoLog:
    reach_bytes, trims = dict[str, int](), 0
    for line in _lines_of(path):
        trims += line.action == "trim"
        if line.action in _PLACED:
            end = line.offset + line.length
            if end > REACH_BYTES_MOST:
                raise ValueError(
                    f"reaches {end} bytes into {line.file}; at most {REACH_BYTES_MOST >> 40} TiB are allowed"
                )
            reach_bytes[line.file] = max(reach_bytes.get(line.file, 0), end)
        if len(reach_bytes) > FILES_MOST:
            raise ValueError(f"names more than {FILES_MOST} files")
    if not reach_bytes:
        raise ValueError("reads and writes nothing")
    return IoLog(path, reach_bytes, trims)


def _lines_of(path: Path) -> Iterator[LogLine]:
    content = read_regular(path, LOG_BYTES_MOST)
    if content[:4] in _BLKTRACE:
        raise ValueError('is a trace of blktrace; kind = "trace" replays it, as workload.file')
    head, _, rest = content.partition(b"\n")
    version = _HEADS.get(head.strip())
    if version is None:
        raise ValueError(
            'line 1: is not a log of fio\'s; it begins with "fio version 2 iolog" or "fio version 3 iolog"'
        )
    texts = (text.decode("utf-8", errors="replace") for text in io.BytesIO(rest))
    yield from _lines(texts, version)


def _lines(texts: Iterable[str], version: int) -> Iterator[LogLine]:
    """Yield the actions; an action on a file that was not added and opened would crash fio."""
    waited_us, is_open = 1, dict[str, bool]()  # fio takes a time of 0 for none
    for number, text in enumerate(texts, 2):
        words = text.split()
        if not words:
            continue
        try:
            at_us, words = (_number(words[0]), words[1:]) if version > 2 else (waited_us, words)  # noqa: PLR2004
            line = _line(at_us, words)
            if line.action == "wait":
                waited_us += line.offset
                continue
            if line.action == "add":
                is_open.setdefault(line.file, False)
            elif line.file not in is_open:
                raise ValueError(f"{line.action} of a file before its add")  # noqa: TRY301
            elif line.action in {"open", "close"}:
                is_open[line.file] = line.action == "open"
            elif not is_open[line.file]:
                raise ValueError(f"{line.action} of a file that is not open")  # noqa: TRY301
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        yield line


def _line(at_us: int, words: list[str]) -> LogLine:
    name, action, *places = [*words, "", ""][: max(2, len(words))]
    if action in _FILE_ACTIONS and not places:
        return LogLine(at_us, plain_file(name), action)
    if action in _ACTIONS and len(places) == 2:  # noqa: PLR2004
        return LogLine(at_us, plain_file(name), action, *map(_number, places))
    raise ValueError("is not FILE ACTION, or FILE ACTION OFFSET LENGTH, as fio writes it")


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"has {text[:20]!r} in place of a number")
    return int(text)


def render_log(log: IoLog) -> Iterator[str]:
    """Yield the lines of a log of version 3 for the trial: fio 3.33 waits for ever at a ``wait`` of version 2."""
    yield "fio version 3 iolog\n"
    for line in log.lines():
        is_placed = line.action in _ACTIONS
        yield f"{line.at_us} {line.file} {line.action}{f' {line.offset} {line.length}' if is_placed else ''}\n"


# Job files of fio: how one is read, and how it is written anew for a trial, held to the trial's own folder.
#
# A job file comes along with a study, so it is text from anywhere. What one may say is in ``fio_rules``; here is what
# is made of it once nothing is wrong with it.


DEPTH_MOST = 10  # of files that include each other
LENT_BYTES = 1 << 30  # of a file in place of a device, whose size a job leaves to the device; a profile has as much

# What the trial decides: where files lie, what fio prints and logs, how it is started, what is around it.
DECIDED = frozenset(
    """
    directory filename_format opendir file_dir lockfile unique_filename allow_file_create allow_mounted_write unlink
    write_bw_log write_lat_log write_hist_log write_iops_log write_iolog log_avg_msec log_hist_msec log_hist_coarseness
    log_max_value log_window_value log_offset log_prio log_compression log_compression_cpus log_store_compressed
    log_unix_epoch log_alternate_epoch log_issue_time log_entries per_job_logs bwavgtime iopsavgtime bandwidth_log
    gtod_reduce disable_lat disable_clat disable_slat disable_bw_measurement disable_bw clocksource gtod_cpu clat_cpu
    lat_percentiles clat_percentiles slat_percentiles percentile_list significant_figures unified_rw_reporting
    new_group stats disk_util group_reporting mem iomem mem_align iomem_align hugepage_size lockmem numa_cpu_nodes
    numa_mem_policy numa_mem_nodes ioscheduler cgroup cgroup_weight cgroup_nodelete uid gid create_only unit_base
    rwmixcycle name description profile minimal client error_dump verify_dump verify_state_save verify_state_load
    replay_redirect
    """.split()  # noqa: SIM905
)
SIZES = {"size", "filesize", "file_size", "io_size", "io_limit", "offset", "offset_increment"}


@cache
def known_variables() -> Mapping[str, str]:
    """What stands for a variable in a job file: the environment's, and fio's own of this host."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    own = {"pagesize": os.sysconf("SC_PAGE_SIZE"), "mb_memory": memory >> 20, "ncpus": os.cpu_count() or 1}
    return {**os.environ, **{name: str(value) for name, value in own.items()}}


def included(text: str, folder: Path | None, files: dict[str, Path] | None = None) -> Iterator[JobLine]:
    """Yield the lines of a job file and of those that it includes, which lie in its own folder.

    ``files`` gets those that are included, by their names. Raises ``ValueError`` with the line of what can't be.
    """
    yield from _expand_includes(text, folder, [], {} if files is None else files)


def _expand_includes(text: str, folder: Path | None, outer: list[JobLine], files: dict[str, Path]) -> Iterator[JobLine]:
    above = outer[-1] if outer else None
    for line in job_lines(text, above.section if above else None, above.value if above else ""):
        if line.word != "include":
            yield line
            continue
        if folder is None or len(outer) >= DEPTH_MOST:
            raise ValueError(
                f"{line.where}: include reads another file, {DEPTH_MOST} deep at most; write its lines here"
            )
        try:
            files[line.value] = in_folder(folder, line.value)
            text_inside = read_text(files[line.value])
        except (OSError, ValueError) as error:
            reason = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error
            reason = f"can't be read: {error.strerror}" if isinstance(error, OSError) else reason
            raise ValueError(f"{line.where}: include {line.value[:60]!r} {reason}") from None
        for number, inner in enumerate(_expand_includes(text_inside, folder, [*outer, line], files)):
            if number >= _LINES_MOST:
                raise ValueError(f"{line.where}: include {line.value[:60]!r} has over {_LINES_MOST} lines")
            yield inner


_LINES_MOST = 10_000


def in_folder(folder: Path, name: str) -> Path:
    """Return a file of the job file's own folder. Raises ``ValueError`` where it is elsewhere."""
    file = (folder / name).resolve()
    if not name or not file.is_relative_to(folder.resolve()):
        raise ValueError("is not in the folder of the job file")
    return file


@dataclass(frozen=True)
class JobSources:
    """What a job file that is without a mistake is made of, beside its own lines."""

    includes: dict[str, Path]
    logs: dict[str, Path]  # of ``read_iolog``
    variables: dict[str, str]  # of the environment and of this host, that stand in it, with their values

    @property
    def reach_bytes(self) -> dict[str, int]:
        """How many bytes the logs need of each of their files."""
        sizes: dict[str, int] = {}
        for path in self.logs.values():
            for name, size in read_io_log(path).reach_bytes.items():
                sizes[name] = max(size, sizes.get(name, 0))
        return sizes


def job_sources(path: Path) -> JobSources:
    """Return what a job file reads. Raises ``OSError`` and ``ValueError``."""
    sources = JobSources({}, {}, {})
    for line in included(read_text(path), path.parent, sources.includes):
        if not line.word or line.word in DECIDED:
            continue
        for name in variables_in(line.value):
            if name in known_variables():
                sources.variables[name] = known_variables()[name]
        if line.word == "read_iolog":
            for name in log_names(with_variables(line.value, known_variables())):
                sources.logs[name] = in_folder(path.parent, name)
    return sources


def log_names(value: str) -> list[str]:
    """Return the logs that a ``read_iolog`` names."""
    return [name for name in value.split(":") if name]


@dataclass
class TrialJob:
    """A section as it is written for fio, and what was done to it."""

    name: str
    options: list[JobLine] = field(default_factory=list)
    own_lines: list[JobLine] = field(default_factory=list)  # of these, as the file has them
    passed_over: list[str] = field(default_factory=list)
    devices: list[str] = field(default_factory=list)
    is_lent: bool = False  # whether something of it is of the size of a device
    replays: bool = False  # whether it replays a log


def trial_jobs(text: str, folder: Path | None) -> Iterator[TrialJob]:
    """Yield the sections of a job file that is without a mistake, as they are written for fio."""
    job: TrialJob | None = None
    has_size: dict[bool, bool] = {True: False}  # whether [global], and whether the job, says how large its files are

    def done(job: TrialJob) -> TrialJob:
        has_size[True] |= job.name == "global" and job.replays  # a log says itself how far it reaches
        if job.name != "global" and not (has_size[True] or has_size.get(False) or job.replays):
            job.is_lent = True
            job.options.append(JobLine(0, job.name, "size", str(LENT_BYTES)))
        return job

    for line in included(text, folder):
        if not line.word:
            if job is not None:
                yield done(job)
            job = TrialJob(line.section or "")
            has_size[False] = False
        elif job is not None:
            if line.word in DECIDED:
                job.passed_over.append(line.word)
                continue
            job.own_lines.append(line)
            job.options.append(_option_for_trial(line, job))
            if line.word in {"size", "filesize", "file_size"}:
                has_size[job.name == "global"] = True
    if job is not None:
        yield done(job)


def _option_for_trial(line: JobLine, job: TrialJob) -> JobLine:
    """Return an option held to the trial's folder: plain names, not paths; bytes, not a percentage of a device."""
    value = with_variables(line.value, known_variables())
    if line.word == "filename":
        names = [plain_file(name) for name in re.split(r"(?<!\\):", value)]
        if ":".join(names) != value:
            job.devices.append(line.value[:60])
        value = ":".join(names)
    elif line.word == "ioengine":
        value = value.lower()
    elif line.word == "read_iolog":
        job.replays = True
    elif line.word in SIZES and (percent := fio_percent(value)) is not None:
        job.is_lent = True
        value = str(LENT_BYTES * percent // 100 // 4096 * 4096)
    return replace(line, value=value)


def render_job(
    text: str, forced: dict[str, str], folder: Path | None = None, logs: Mapping[str, str] | None = None
) -> str:
    """The job file of what was read of ``text`` and nothing else, with options that are forced upon every job.

    ``logs`` says where those that it replays lie for fio, by their names.
    """
    lines: list[str] = []
    for job in trial_jobs(text, folder):
        # In [global] as well: fio names a file by the folder that it has read of by then.
        lines += ["", f"[{job.name}]", *(f"{key}={forced[key]}" for key in forced)]
        for line in job.options:
            if line.word == "read_iolog":
                lines.append(f"read_iolog={':'.join((logs or {}).get(log, log) for log in log_names(line.value))}")
            elif line.word not in forced:
                lines.append(f"{line.word}={line.value}" if line.value else line.word)
    return "\n".join(lines).lstrip("\n") + "\n"
