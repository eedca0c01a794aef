"""Job files of fio: what one may say, and how it is held to the trial's own folder.

A job file comes along with a study, so it is text from anywhere. It could make fio write to a device, to load
a library or to run a shell command; so what is not known to be harmless is refused, and what the trial decides itself
is passed over.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from dbdyno.model.fio import JobLine, fio_percent, job_lines, with_variables
from dbdyno.study.mistakes import did_you_mean
from dbdyno.system.files import read_text

DEPTH_MOST = 10  # of files that include each other
LENT_BYTES = 1 << 30  # of a file in place of a device, whose size a job leaves to the device; a profile has as much

# fio(1). Nothing that names a file, a device, a library or a command, and nothing that changes what fio prints.
ALLOWED = frozenset(
    """
    readwrite rw rwmixread rwmixwrite rw_sequencer blocksize bs blocksize_range bsrange bssplit
    blocksize_unaligned bs_unaligned blockalign ba bs_is_seq_rand size io_size filesize file_size nrfiles openfiles
    file_service_type numjobs iodepth iodepth_batch iodepth_batch_submit iodepth_batch_complete
    iodepth_batch_complete_min iodepth_batch_complete_max iodepth_low io_submit_mode serialize_overlap ioengine direct
    buffered sync atomic fsync fdatasync end_fsync fsync_on_close sync_file_range write_barrier overwrite fallocate
    fadvise_hint write_hint invalidate pre_read kb_base nowait
    create_serialize create_fsync create_on_open file_append unlink_each_loop offset offset_increment offset_align
    number_ios io_limit loops time_based runtime ramp_time rate rate_min rate_iops rate_iops_min rate_process
    rate_cycle ratemin ratecycle timeout rate_ignore_thinktime thinktime thinktime_spin thinktime_blocks
    thinktime_blocks_type thinktime_iotime
    latency_target latency_window latency_percentile latency_run max_latency randrepeat randseed allrandrepeat
    norandommap softrandommap random_generator random_distribution percentage_random unified_random_bytes
    zonemode zonesize zonerange zoneskip flow flow_id flow_watermark flow_sleep
    verify do_verify verify_offset verify_interval verify_pattern verify_fatal verify_async verify_backlog
    verify_backlog_batch verify_only verify_write_sequence verify_header_seed verifysort verifysort_nr
    trim_percentage trim_verify_zero trim_backlog
    trim_backlog_batch experimental_verify
    zero_buffers refill_buffers scramble_buffers buffer_pattern
    buffer_compress_percentage buffer_compress_chunk dedupe_percentage dedupe_mode dedupe_global
    dedupe_working_set_percentage steadystate steadystate_duration steadystate_ramp_time
    steadystate_check_interval ss ss_dur ss_ramp
    thread nice prio prioclass cpus_allowed cpus_allowed_policy hipri fixedbufs registerfiles sqthread_poll
    sqthread_poll_cpu nonvectored force_async userspace_reap libaio_vectored uncached cmdprio_percentage cmdprio
    cmdprio_class continue_on_error ignore_error exitall exitall_on_error exit_what filename stonewall
    wait_for_previous startdelay start_delay
    """.split()  # noqa: SIM905  (a list of so many words would be a page)
)
# What the trial decides: where files lie, what fio prints and logs, how it is started, what is around it.
_DECIDED = frozenset(
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
    """.split()  # noqa: SIM905
)
_UNNAMED = {
    "name",
    "description",
    "group_reporting",
    "new_group",
    "unit_base",
    "rwmixcycle",
}  # of no consequence to anyone
ENGINES = ("sync", "psync", "vsync", "pvsync", "pvsync2", "libaio", "posixaio", "io_uring", "mmap", "splice")
_REFUSED = "can't be set by a study: it could reach beyond the trial's own folder, or change what fio prints"
_REASONS = {
    "wait_for": "has jobs wait for one by its name; stonewall has all wait",
    "read_iolog": 'replays a log; kind = "trace" does: give the log as workload.file',
    "exec_prerun": "runs a command; leave it out", "exec_postrun": "runs a command; leave it out",
    "fill_device": "writes until the filesystem is full; give size",
    "fill_fs": "writes until the filesystem is full; give size",
}  # fmt: skip
_SHARE = r"\w+(?:/\d{0,3})?"
# Their slashes stand before percentages, and name nothing.
_SHARES = {
    "bssplit": rf"{_SHARE}(?::{_SHARE})*(?:,{_SHARE}(?::{_SHARE})*){{0,2}}",
    "random_distribution": (
        r"random|(?:zipf|pareto|normal)(?::[\d.]+){0,2}"
        r"|zoned(?:_abs)?(?::\d{1,3}/[\w.]*)+(?:,\d{1,3}/[\w.]*(?::\d{1,3}/[\w.]*)*){0,2}"
    ),
}
_SHARES_EXAMPLE = {"bssplit": "4k/60:16k/40", "random_distribution": "zipf:1.2 or zoned:60/10:40/90"}
_SIZES = {"size", "filesize", "file_size", "io_size", "io_limit", "offset", "offset_increment"}


@cache
def known_variables() -> Mapping[str, str]:
    """What stands for a variable in a job file: the environment's, and fio's own of this host."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    own = {"pagesize": os.sysconf("SC_PAGE_SIZE"), "mb_memory": memory >> 20, "ncpus": os.cpu_count() or 1}
    return {**os.environ, **{name: str(value) for name, value in own.items()}}


def included(text: str, folder: Path | None) -> Iterator[JobLine]:
    """Yield the lines of a job file and of those that it includes, which lie in its own folder.

    Raises ``ValueError`` with the line of what can't be included.
    """
    yield from _included(text, folder, [])


def _included(text: str, folder: Path | None, outer: list[JobLine]) -> Iterator[JobLine]:
    above = outer[-1] if outer else None
    for line in job_lines(text, above.section if above else None, above.value if above else ""):
        if line.word != "include":
            yield line
            continue
        if folder is None or len(outer) >= DEPTH_MOST:
            raise ValueError(
                f"{line.where}: include reads another file, {DEPTH_MOST} deep at most; write its lines here"
            )
        file = (folder / line.value).resolve()
        if not line.value or not file.is_relative_to(folder.resolve()):
            raise ValueError(f"{line.where}: include {line.value[:60]!r} is not in the folder of the job file")
        try:
            found = read_text(file)
        except (OSError, ValueError) as error:
            said = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise ValueError(f"{line.where}: include {line.value[:60]!r} can't be read: {said}") from None
        for number, one in enumerate(_included(found, folder, [*outer, line])):
            if number >= _LINES_MOST:
                raise ValueError(f"{line.where}: include {line.value[:60]!r} has over {_LINES_MOST} lines")
            yield one


_LINES_MOST = 10_000


@dataclass
class _Job:
    """A section as it is written for fio, and what was done to it."""

    name: str
    options: list[JobLine] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)
    devices: list[str] = field(default_factory=list)
    lent: bool = False


def job_mistakes(text: str, folder: Path | None = None) -> Iterator[str]:
    """What is wrong with a job file, each with its line; ``folder`` is where it lies."""
    jobs = 0
    try:
        for line in included(text, folder):
            if line.section is None:
                yield f"{line.where}: {line.word[:60]!r} stands in no section; begin with a line such as [job]"
            elif not line.word:
                if _plain_name(line.section) is None:
                    yield f"{line.where}: [{line.section[:60]}] is no plain name for a job"
                jobs += line.section != "global"
            elif mistake := _option_mistake(line.word, line.value):
                yield f"{line.where}: {line.word[:60]} {mistake}"
    except ValueError as error:
        yield str(error)
        return
    if not jobs:
        yield "holds no job; give a section such as [job]"


def job_notes(text: str, folder: Path | None = None) -> Iterator[str]:
    """What is otherwise with a job file in a trial than with fio alone."""
    jobs = list(_jobs(text, folder))
    if words := dict.fromkeys(word for job in jobs for word in job.passed_over if word not in _UNNAMED):
        yield f"passed over, as the trial decides it: {', '.join(words)}"
    if devices := dict.fromkeys(name for job in jobs for name in job.devices):
        yield f"files in the trial's own folder take the place of {', '.join(list(devices)[:6])}"
    if any(job.lent for job in jobs):
        yield f"what a job leaves to the size of a device is {LENT_BYTES >> 30} GiB here; give size for another"


def _plain_name(section: str) -> re.Match[str] | None:
    return re.fullmatch(r"[\w .,:+()%=-]{1,80}", section)


def _option_mistake(name: str, value: str) -> str:
    if name in _DECIDED:
        return ""
    return _name_mistake(name) or _value_mistake(name, value)


def _name_mistake(name: str) -> str:
    if name in _REASONS:
        return _REASONS[name]
    if name not in ALLOWED:
        return f"{_REFUSED}{did_you_mean(name, ALLOWED)}"
    return ""


def _value_mistake(name: str, given: str) -> str:  # noqa: PLR0911  (a reason each)
    try:
        value = with_variables(given, known_variables())
    except ValueError as error:
        return str(error)
    shown = given[:60]  # what a variable holds may be a secret
    if name == "filename":
        return "" if value and len(value) < _NAME_MOST else f"is {shown!r}; give a name of a file"
    if name == "ioengine" and value.lower() not in ENGINES:
        return f"is {shown!r}; allowed are {', '.join(ENGINES)}"
    if name in _SHARES:
        if re.fullmatch(_SHARES[name], value) is None:
            return f"is {shown!r}; write it as fio does, such as {_SHARES_EXAMPLE[name]}"
        return ""
    if re.search(r"[/$`'\\\0-\x1f]", value):
        return f"is {shown!r}, which may name a file or an environment variable; leave it out"
    if name in _SIZES:
        try:
            fio_percent(value)
        except ValueError as error:
            return f"is {shown!r}; it {error}"
    return ""


_NAME_MOST = 1000


def _jobs(text: str, folder: Path | None) -> Iterator[_Job]:
    """Yield the sections of a job file that is without a mistake, as they are written for fio."""
    job: _Job | None = None
    has_size: dict[bool, bool] = {True: False}  # whether [global], and whether the job, says how large its files are

    def done(job: _Job) -> _Job:
        if job.name != "global" and not (has_size[True] or has_size.get(False)):
            job.lent = True
            job.options.append(JobLine(0, job.name, "size", str(LENT_BYTES)))
        return job

    for line in included(text, folder):
        if not line.word:
            if job is not None:
                yield done(job)
            job = _Job(line.section or "")
            has_size[False] = False
        elif job is not None:
            if line.word in _DECIDED:
                job.passed_over.append(line.word)
                continue
            job.options.append(_held(line, job))
            if line.word in {"size", "filesize", "file_size"}:
                has_size[job.name == "global"] = True
    if job is not None:
        yield done(job)


def _held(line: JobLine, job: _Job) -> JobLine:
    """Return an option held to the trial's folder: plain names, not paths; bytes, not a percentage of a device."""
    value = with_variables(line.value, known_variables())
    if line.word == "filename":
        names = [_plain_file(name) for name in re.split(r"(?<!\\):", value)]
        if ":".join(names) != value:
            job.devices.append(line.value[:60])
        value = ":".join(names)
    elif line.word == "ioengine":
        value = value.lower()
    elif line.word in _SIZES and (percent := fio_percent(value)) is not None:
        job.lent = True
        value = str(LENT_BYTES * percent // 100 // 4096 * 4096)
    return replace(line, value=value)


def _plain_file(name: str) -> str:
    """Return a name without a folder, another one for another path."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.")[-100:] or "file"


def written_anew(text: str, forced: dict[str, str], folder: Path | None = None) -> str:
    """The job file of what was read of ``text`` and nothing else, with options that are forced upon every job."""
    lines: list[str] = []
    for job in _jobs(text, folder):
        # In [global] as well: fio names a file by the folder that it has read of by then.
        lines += ["", f"[{job.name}]", *(f"{key}={forced[key]}" for key in forced)]
        for line in job.options:
            if line.word not in forced:
                lines.append(f"{line.word}={line.value}" if line.value else line.word)
    return "\n".join(lines).lstrip("\n") + "\n"
