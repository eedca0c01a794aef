"""Jobs in fio's words, from a job file or from options, as a load of a simulated point."""

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from dbdyno.errors import UserError
from dbdyno.model.fio import KB_BASES, JobLine, fio_bytes, fio_percent, fio_seconds, job_lines
from dbdyno.study.mistakes import did_you_mean

Job = dict[str, Any]
GIB = 1 << 30

PATTERNS = {
    "read": ("sequential", 100), "write": ("sequential", 0), "randread": ("random", 100), "randwrite": ("random", 0),
    "rw": ("sequential", 50), "readwrite": ("sequential", 50), "randrw": ("random", 50),
}  # fmt: skip
CLASSES = {"1": "real-time", "2": "best-effort", "3": "idle"}
# What changes nothing here: names and places, what fio prints and writes down, what data it writes, how it asks the
# kernel and for how much memory. Each job is asynchronous as by libaio, and draws its offsets from the seed of its
# point, without a map of those that it had (norandommap).
WITHOUT_EFFECT = frozenset(
    """
    name description filename directory filename_format nrfiles openfiles unique_filename create_on_open
    create_serialize create_fsync fallocate overwrite pre_read iomem mem hipri registerfiles fixedbufs sqthread_poll
    sqthread_poll_cpu userspace_reap nonvectored force_async thread group_reporting new_group time_based invalidate
    fadvise_hint norandommap softrandommap randrepeat allrandrepeat randseed random_generator use_os_rand
    refill_buffers scramble_buffers zero_buffers buffer_pattern buffer_compress_percentage buffer_compress_chunk
    dedupe_percentage dedupe_mode dedupe_working_set_percentage io_submit_mode gtod_reduce disable_lat disable_clat
    disable_slat disable_bw_measurement clocksource gtod_cpu
    lat_percentiles clat_percentiles slat_percentiles percentile_list significant_figures unified_rw_reporting
    write_bw_log write_lat_log write_hist_log write_iops_log log_avg_msec log_hist_msec log_hist_coarseness
    log_max_value log_offset log_prio log_compression log_unix_epoch per_job_logs bwavgtime iopsavgtime stats disk_util
    exitall exitall_on_error continue_on_error loops cpus_allowed cpus_allowed_policy numa_cpu_nodes numa_mem_policy
    nice end_fsync fsync_on_close lockmem unit_base
    """.split()  # noqa: SIM905  (a list of so many words would be a page)
)


# Words of those that a reader may miss in the result, so they are named.
PASSED_OVER = WITHOUT_EFFECT - {"name", "description", "group_reporting", "time_based", "invalidate", "norandommap"}
ONE_AT_A_TIME = frozenset({"sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"})  # these engines know no iodepth
ENGINES = (*sorted(ONE_AT_A_TIME), "libaio", "posixaio", "io_uring")
BLOCK_BYTES = 4096  # fio's own
REFUSED = (
    (("stonewall", "wait_for_previous", "wait_for", "startdelay", "start_delay"),
     "has jobs follow each other; give each to a simulation of its own"),
    (("bssplit", "bsrange", "blocksize_range"), "gives several block sizes; a simulated job has one, bs"),
    (("rate", "rate_iops", "rate_min", "rate_iops_min"),
     "holds the rate down; a simulated job goes as fast as it can, or pauses for thinktime"),
    (("verify", "do_verify"), "has what was written read back; simulate the writes, and the reads as another job"),
    (("read_iolog", "replay_redirect"), "replays a log: give that log to dbdyno simulate itself"),
    (("include",), "reads another file; write its lines here"),
)  # fmt: skip
REASONS = {word: reason for words, reason in REFUSED for word in words}


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError("is no whole number")
    return int(text)


def _size(field: str) -> Callable[[Job, str], None]:
    """Return how a size is put into a job: ``field`` ends in the unit it is put in, bytes or percent of the drive."""

    def put(job: Job, text: str) -> None:
        percent = fio_percent(text)
        if percent is None:
            job[f"{field}_bytes"] = fio_bytes(text, job.get("kb_base", KB_BASES[0]))
            job.pop(f"{field}_percent", None)
        else:
            job[f"{field}_percent"] = percent
            job.pop(f"{field}_bytes", None)

    return put


def _block(job: Job, text: str) -> None:
    job["block_bytes"] = fio_bytes(text, job.get("kb_base", KB_BASES[0]))


def _kb_base(job: Job, text: str) -> None:
    if text not in map(str, KB_BASES):
        raise ValueError("is neither 1024 nor 1000")
    job["kb_base"] = int(text)


def _pattern(job: Job, text: str) -> None:
    if text not in PATTERNS:
        raise ValueError(f"is none of {', '.join(PATTERNS)}{did_you_mean(text, PATTERNS)}")
    job["pattern"], percent = PATTERNS[text]
    if percent in {0, 100} or "read_percent" not in job:
        job["read_percent"] = percent


def _mix(job: Job, percent: int) -> None:
    if job.get("read_percent") not in {0, 100} or "pattern" not in job:
        job["read_percent"] = percent


def _direct(job: Job, text: str) -> None:
    if text not in {"0", "1"}:
        raise ValueError("is neither 0 (through the page cache) nor 1 (past it)")
    job["direct"] = text == "1"


def _buffered(job: Job, text: str) -> None:
    if text not in {"0", "1"}:
        raise ValueError("is neither 0 (past the page cache) nor 1 (through it)")
    job["direct"] = text == "0"


def _engine(job: Job, text: str) -> None:
    if text not in ENGINES:
        raise ValueError(f"is none of {', '.join(ENGINES)}, whose requests can be simulated")
    job["engine"] = text


def _amount(job: Job, text: str) -> None:
    if fio_percent(text) is not None:
        raise ValueError("is a percentage; write how many bytes")
    job["io_bytes"] = fio_bytes(text, job.get("kb_base", KB_BASES[0]))


def _class(job: Job, text: str) -> None:
    if text not in CLASSES:
        raise ValueError("is none of 1 (real-time), 2 (best-effort), 3 (idle)")
    job["class"] = CLASSES[text]


def _set(field: str, read: Callable[[str], Any]) -> Callable[[Job, str], None]:
    def put(job: Job, text: str) -> None:
        job[field] = read(text)

    return put


WORDS: dict[str, Callable[[Job, str], None]] = {
    "rw": _pattern,
    "readwrite": _pattern,
    "rwmixread": lambda job, text: _mix(job, _whole(text)),
    "rwmixwrite": lambda job, text: _mix(job, 100 - _whole(text)),
    "kb_base": _kb_base,
    "bs": _block,
    "blocksize": _block,
    "iodepth": _set("depth", _whole),
    "iodepth_batch": _set("batch", _whole),
    "iodepth_batch_submit": _set("batch", _whole),
    "numjobs": _set("processes", _whole),
    "size": _size("range"),
    "filesize": _size("range"),
    "offset": _size("offset"),
    "thinktime": _set("think_us", lambda text: round(fio_seconds(text, "us") * 1e6)),
    "fsync": _set("fsync_every", _whole),
    "fdatasync": _set("fsync_every", _whole),
    "number_ios": _set("ios", _whole),
    "runtime": _set("runtime_s", fio_seconds),
    "timeout": _set("runtime_s", fio_seconds),
    "ramp_time": _set("ramp_s", fio_seconds),
    "prio": _set("priority", _whole),
    "prioclass": _class,
    "direct": _direct,
    "buffered": _buffered,
    "ioengine": _engine,
    "io_size": _amount,
    "io_limit": _amount,
}


def put(job: Job, word: str, value: str) -> None:
    """Put what an option of fio asks for into a job. Raises ``ValueError`` with what is wrong with it."""
    if word in WITHOUT_EFFECT:
        return
    if word in REASONS:
        raise ValueError(REASONS[word])
    if "$" in value:
        raise ValueError("holds a variable; write its value")
    if word not in WORDS:
        known = did_you_mean(word, [*WORDS, *WITHOUT_EFFECT])
        raise ValueError(f"is no option of a simulated job{known or '; known are ' + ', '.join(sorted(WORDS))}")
    WORDS[word](job, value)


def jobs_of(path: Path, text: str) -> tuple[list[Job], list[str]]:
    """Return the jobs of a job file, each with what ``[global]`` says, and which words change nothing here.

    Raises ``UserError`` with the line.
    """
    lines = list(job_lines(text))
    passed_over = dict.fromkeys(line.word for line in lines if line.word in PASSED_OVER)
    common: Job = {}
    jobs: list[Job] = []
    job: Job | None = None
    for line in _kb_base_first(lines):
        if not line.word:
            job = common if line.section == "global" else dict(common)
            if line.section != "global":
                jobs.append(job)
            continue
        where = f"{path}: line {line.number}: {line.word}"
        if job is None:
            raise UserError(f"{where} stands in no section; begin with a line such as [job]")
        value = line.value or "1"  # a word alone is a switch that is on
        try:
            put(job, line.word, value)
        except ValueError as error:
            raise UserError(f"{where}={value} {error}") from None
    if not jobs:
        raise UserError(f"{path}: holds no job; give a section such as [job]")
    return [_whole_job(one) for one in jobs], list(passed_over)


def _kb_base_first(lines: Iterable[JobLine]) -> list[JobLine]:
    """Return the lines, in each section its ``kb_base`` first, as fio reads it: sizes above it go by it, too."""
    section, placed = 0, []
    for line in lines:
        section += not line.word
        placed.append((section, line.word not in {"", "kb_base"}, line))
    return [line for _, _, line in sorted(placed, key=lambda one: one[:2])]


def _whole_job(job: Job) -> Job:
    """Return a job as its words say it together, in whichever order they stand."""
    said = {word: job.pop(word) for word in ("kb_base", "engine", "io_bytes") if word in job}
    if said.get("engine") in ONE_AT_A_TIME:
        job["depth"] = 1
    if "io_bytes" in said and "ios" not in job:
        job["ios"] = max(said["io_bytes"] // job.get("block_bytes", BLOCK_BYTES), 1)
    return job


def on_a_drive(job: Mapping[str, Any], size_bytes: int) -> Job:
    """Return a job whose percentages are those of a drive of so many bytes, in whole pages."""
    found, page = dict(job), 4096
    for field in ("offset", "range"):
        if (percent := found.pop(f"{field}_percent", None)) is not None:
            found[f"{field}_bytes"] = size_bytes * percent // 100 // page * page
    if "range_percent" in job:
        found["range_bytes"] = min(found["range_bytes"], size_bytes - found.get("offset_bytes", 0))
    return found


def times_of(jobs: list[Job]) -> tuple[float | None, float]:
    """Take the longest ``runtime`` and ``ramp_time`` out of jobs, seconds; the first is None where none has one."""
    runtime = max((job.pop("runtime_s") for job in jobs if "runtime_s" in job), default=None)
    return runtime, max((job.pop("ramp_s") for job in jobs if "ramp_s" in job), default=0.0)


def reach_bytes(jobs: list[Mapping[str, Any]]) -> int:
    """Return how far the jobs reach on a drive where all say so; else 0. Buffered jobs' files get twice their size."""
    if any("range_percent" in job or "offset_percent" in job for job in jobs):
        return 0
    if not all(job.get("direct", True) for job in jobs):
        sizes = [job.get("range_bytes", math.inf) for job in jobs]
        return 0 if math.inf in sizes else max(int(2 * sum(sizes)) // GIB * GIB, GIB)
    ends = [job.get("offset_bytes", 0) + job.get("range_bytes", math.inf) for job in jobs]
    return 0 if math.inf in ends else int(max(ends))
