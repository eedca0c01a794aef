"""Job files of fio: what one may say.

One could make fio write to a device, load a library or run a shell command; so what is not known to be harmless is
refused, and what the trial decides itself is passed over.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from dbdyno.model.fio import fio_percent, variables_in, with_variables
from dbdyno.model.printable import short
from dbdyno.model.similar import did_you_mean
from dbdyno.model.wording import count
from dbdyno.study.fio_job import (
    DECIDED,
    LENT_BYTES,
    LOGS_MOST,
    SIZES,
    IoLog,
    TrialJob,
    in_folder,
    included,
    known_variables,
    log_names,
    read_io_log,
    trial_jobs,
)
from dbdyno.study.units import format_bytes

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
    experimental_verify
    zero_buffers refill_buffers scramble_buffers buffer_pattern
    buffer_compress_percentage buffer_compress_chunk dedupe_percentage dedupe_mode dedupe_global
    dedupe_working_set_percentage steadystate steadystate_duration steadystate_ramp_time
    steadystate_check_interval ss ss_dur ss_ramp
    thread nice prio prioclass cpus_allowed cpus_allowed_policy hipri fixedbufs registerfiles sqthread_poll
    sqthread_poll_cpu nonvectored force_async userspace_reap libaio_vectored uncached cmdprio_percentage cmdprio
    cmdprio_class cmdprio_bssplit continue_on_error ignore_error exitall exitall_on_error exit_what filename stonewall
    wait_for_previous startdelay start_delay
    read_iolog read_iolog_chunked replay_no_stall replay_time_scale replay_scale replay_align replay_skip
    """.split()  # noqa: SIM905  (a list of so many words would be a page)
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
_LIKE = {  # engines of other systems and of devices alone, and what does the same on a file here
    "windowsaio": "libaio", "solarisaio": "libaio", "io_uring_cmd": "io_uring", "libblkio": "io_uring",
    "xnvme": "io_uring", "sg": "psync", "nvme": "io_uring", "spdk": "io_uring",
}  # fmt: skip
_REFUSED = "can't be set by a study: it could reach beyond the trial's own folder, or change what fio prints"
_OF_ZONES = "is of zoned devices, which files are not; leave it out"
_TRIMS = "trims, which fio does on devices alone; a trial has files: leave it out"
_REASONS = {
    "wait_for": "makes jobs wait for a job by its name; stonewall makes all wait",
    **dict.fromkeys(("trim_percentage", "trim_verify_zero", "trim_backlog", "trim_backlog_batch"), _TRIMS),
    **dict.fromkeys(
        ("max_open_zones", "job_max_open_zones", "read_beyond_wp", "zone_reset_threshold", "zone_reset_frequency"),
        _OF_ZONES,
    ),
    "exec_prerun": "runs a command; leave it out", "exec_postrun": "runs a command; leave it out",
    "fill_device": "writes until the filesystem is full; give size",
    "fill_fs": "writes until the filesystem is full; give size",
}  # fmt: skip
_SHARE = r"\w+(?:/\d{0,3})?"
# Their slashes stand before percentages, and name nothing.
SHARES = {
    "cmdprio_bssplit": rf"{_SHARE}(?:/\d/\d{{1,2}})?(?::{_SHARE}(?:/\d/\d{{1,2}})?)*",
    "bssplit": rf"{_SHARE}(?::{_SHARE})*(?:,{_SHARE}(?::{_SHARE})*){{0,2}}",
    "random_distribution": (
        r"random|(?:zipf|pareto|normal)(?::[\d.]+){0,2}"
        r"|zoned(?:_abs)?(?::\d{1,3}/[\w.]*)+(?:,\d{1,3}/[\w.]*(?::\d{1,3}/[\w.]*)*){0,2}"
    ),
}
_SHARES_EXAMPLE = {
    "cmdprio_bssplit": "64k/40:1m/60",
    "bssplit": "4k/60:16k/40",
    "random_distribution": "zipf:1.2 or zoned:60/10:40/90",
}


def job_mistakes(text: str, folder: Path | None = None) -> Iterator[str]:
    """What is wrong with a job file, each with its line; ``folder`` is where it lies."""
    jobs = 0
    try:
        for line in included(text, folder):
            if line.section is None:
                yield f"{line.where}: {line.word[:60]!r} stands in no section; begin with a line such as [job]"
            elif not line.word:
                if _plain_name(line.section) is None:
                    yield f"{line.where}: [{line.section[:60]}] is not a plain name for a job"
                jobs += line.section != "global"
            elif mistake := _option_mistake(line.word, line.value, folder):
                yield f"{line.where}: {line.word[:60]} {mistake}"
    except ValueError as error:
        yield str(error)
        return
    if not jobs:
        yield "holds no job; give a section such as [job]"


def job_notes(text: str, folder: Path | None = None) -> Iterator[str]:
    """What is otherwise with a job file in a trial than with fio alone."""
    jobs = list(trial_jobs(text, folder))
    if words := dict.fromkeys(word for job in jobs for word in job.passed_over if word not in _UNNAMED):
        yield f"ignored, because the trial decides it: {', '.join(words)}"
    values = dict.fromkeys(name for job in jobs for line in job.own_lines for name in variables_in(line.value))
    if values:
        shown = ", ".join(f"{name} = {short(known_variables()[name], 60)}" for name in values)
        yield f"variables are replaced by their present values, which the run folder keeps: {shown}"
    for name, log in _logs_of(jobs, folder).items():
        files = len(log.reach_bytes)
        yield (
            f"{name} is replayed on {count(files, 'file')} of {format_bytes(sum(log.reach_bytes.values()))} in all"
            + (f"; its {count(log.trims, 'trim')} left out, because files take none" if log.trims else "")
        )
    if devices := dict.fromkeys(name for job in jobs for name in job.devices):
        yield f"files in the trial's own folder take the place of {', '.join(list(devices)[:6])}"
    if any(job.is_lent for job in jobs):
        yield f"what a job leaves to the size of a device is {LENT_BYTES >> 30} GiB here; give size for another"


def _plain_name(section: str) -> re.Match[str] | None:
    return re.fullmatch(r"[\w .,:+()%=-]{1,80}", section)


def _logs_of(jobs: list[TrialJob], folder: Path | None) -> dict[str, IoLog]:
    values = (line.value for job in jobs for line in job.own_lines if line.word == "read_iolog")
    names = dict.fromkeys(name for value in values for name in log_names(with_variables(value, known_variables())))
    return {name: read_io_log(in_folder(folder, name)) for name in names} if folder else {}


def _option_mistake(name: str, value: str, folder: Path | None) -> str:
    if name in DECIDED:
        return ""
    return _name_mistake(name) or _value_mistake(name, value, folder)


def _name_mistake(name: str) -> str:
    if name in _REASONS:
        return _REASONS[name]
    if name not in ALLOWED:
        return f"{_REFUSED}{did_you_mean(name, ALLOWED)}"
    return ""


def _value_mistake(name: str, written: str, folder: Path | None) -> str:  # noqa: PLR0911  (a reason each)
    try:
        value = with_variables(written, known_variables())
    except ValueError as error:
        return str(error)
    shown = written[:60]  # what a variable holds may be a secret
    if name == "filename":
        return "" if value and len(value) < _NAME_MOST else f"is {shown!r}; give a name of a file"
    if name == "read_iolog":
        return _log_mistake(value, folder)
    if why := _why_not_on_files(name, value):
        return f"is {shown!r}; {why}"
    if name in SHARES:
        if re.fullmatch(SHARES[name], value) is None:
            return f"is {shown!r}; write it as fio does, such as {_SHARES_EXAMPLE[name]}"
        return ""
    if re.search(r"[/$`'\\\0-\x1f]", value):
        return f"is {shown!r}, which may name a file or an environment variable; leave it out"
    if name in SIZES:
        try:
            fio_percent(value)
        except ValueError as error:
            return f"is {shown!r}; it {error}"
    return ""


def _why_not_on_files(name: str, value: str) -> str:
    """Return what to write instead of a value that asks for more than files."""
    if name == "ioengine" and value.lower() not in ENGINES:
        instead = _LIKE.get(value.lower())
        return f"write {instead}" if instead else f"allowed are {', '.join(ENGINES)}"
    if name in {"rw", "readwrite"} and "trim" in value:
        return f"it {_TRIMS}"
    return f"it {_OF_ZONES}" if name == "zonemode" and value == "zbd" else ""


def _log_mistake(value: str, folder: Path | None) -> str:
    """Return what is wrong with the logs that a job replays."""
    names = log_names(value)
    if folder is None or not names or len(names) > LOGS_MOST:
        return f"is {value[:60]!r}; give the name of a log beside the job file, or of up to {LOGS_MOST}"
    for name in names:
        try:
            read_io_log(in_folder(folder, name))
        except OSError as error:
            return f"{name[:60]!r} can't be read: {error.strerror}"
        except ValueError as error:
            return f"{name[:60]!r} {error}"
    return ""


_NAME_MOST = 1000
