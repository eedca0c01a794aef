"""What ``simulate`` was given: its options, and fio's words for them."""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dbdyno._native import trace_summary
from dbdyno.errors import UserError
from dbdyno.model.fio import (
    KB_BASES,
    JobLine,
    fio_bytes,
    fio_percent,
    fio_range,
    fio_seconds,
    fio_sizes,
    fio_split,
    is_job_file,
    with_variables,
)
from dbdyno.model.quantity import size_bytes
from dbdyno.model.similar import did_you_mean
from dbdyno.simulation.sweep import (
    BRIEF_FROM,
    FIO,
    JOBS,
    LOAD,
    QUEUE,
    SET,
    SimulatedPoint,
    combinations,
    in_words,
    merge,
    split,
    whole,
)
from dbdyno.study.document import read_document
from dbdyno.study.fio_job import included, known_variables
from dbdyno.study.mistakes import Mistake, explain, place_of
from dbdyno.study.simulated_loads import page_cache
from dbdyno.study.units import format_bytes, in_file

# Jobs in fio's words, from a job file or from options, as a load of a simulated point.


Job = dict[str, Any]
GIB = 1 << 30
REPLAYS = ("open", "closed")
PROCESSES_MOST = 1000  # that offset_increment sets apart

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
    name description filename directory filename_format nrfiles openfiles unique_filename create_on_open opendir
    create_serialize create_fsync create_only fallocate overwrite pre_read iomem mem iomem_align mem_align hugepage_size
    hipri hipri_percentage registerfiles fixedbufs sqthread_poll sqthread_poll_cpu userspace_reap nonvectored
    uncached nowait libaio_vectored libaio_time_slice force_async cmd_type md_per_io_size thread group_reporting
    new_group time_based invalidate file_service_type
    fadvise_hint norandommap softrandommap randrepeat allrandrepeat randseed random_generator use_os_rand
    refill_buffers scramble_buffers zero_buffers buffer_pattern buffer_compress_percentage buffer_compress_chunk
    dedupe_percentage dedupe_mode dedupe_global dedupe_working_set_percentage io_submit_mode gtod_reduce disable_lat
    disable_clat disable_slat disable_bw_measurement disable_bw clocksource gtod_cpu clat_cpu
    lat_percentiles clat_percentiles slat_percentiles percentile_list significant_figures unified_rw_reporting
    write_bw_log write_lat_log write_hist_log write_iops_log write_iolog log_avg_msec log_hist_msec log_hist_coarseness
    log_max_value log_window_value log_offset log_prio log_compression log_compression_cpus log_store_compressed
    log_unix_epoch log_alternate_epoch log_issue_time log_entries
    per_job_logs bwavgtime iopsavgtime stats disk_util rw_sequencer bs_is_seq_rand kb_base
    exitall exitall_on_error exit_what continue_on_error ignore_error error_dump loops cpus_allowed cpumask
    cpus_allowed_policy numa_cpu_nodes numa_mem_policy numa_mem_nodes
    nice end_fsync fsync_on_close lockmem lockfile unit_base unlink unlink_each_loop allow_file_create
    allow_mounted_write file_append write_hint bs_unaligned blocksize_unaligned ba blockalign uid gid
    atomic experimental_verify gpu_dev_ids cuda_io sg_write_mode stream_id readfua writefua pi_act pi_chk apptag
    apptag_mask fdp fdp_pli fdp_pli_select dataplacement plids plid_select xnvme_async xnvme_sync xnvme_admin
    xnvme_dev_nsid xnvme_iovec libblkio_driver libblkio_path libblkio_pre_connect_props libblkio_pre_start_props
    libblkio_num_entries libblkio_vectored profile bandwidth_log minimal client replay_redirect replay_align
    replay_scale merge_blktrace_file
    """.split()  # noqa: SIM905  (a list of so many words would be a page)
) - {"kb_base"}
# What fio would do and a simulated job does not, though what it does otherwise is as said.
NOT_SIMULATED = {
    "verify": "what was written is not read back", "rate_min": "no job ends for being slow",
    "steadystate": "the whole time is simulated", "iodepth_batch_complete": "completions are taken one by one",
    "sync_file_range": "writes are not pushed out early", "cmdprio_percentage": "all have one priority",
    "rate_cycle": "a rate holds from I/O to I/O", "thinktime_spin": "pauses take no CPU",
    "ioscheduler": "see --scheduler", "exec_prerun": "no command is run", "cgroup": "there are no groups",
    "max_latency": "no job ends for being slow", "job_max_copies": "", "idle": "there is no idle class for CPU",
}  # fmt: skip
_SAME = {
    "do_verify": "verify", "ss": "steadystate", "rate_iops_min": "rate_min", "iodepth_low": "iodepth_batch_complete",
    "iodepth_batch_complete_min": "iodepth_batch_complete", "iodepth_batch_complete_max": "iodepth_batch_complete",
    "serialize_overlap": "iodepth_batch_complete", "rate_ignore_thinktime": "rate_cycle", "ratecycle": "rate_cycle",
    "ratemin": "rate_min", "exec_postrun": "exec_prerun", "cgroup_weight": "cgroup", "cgroup_nodelete": "cgroup",
    "thinktime_iotime": "thinktime_spin", "thinktime_blocks_type": "thinktime_spin", "cmdprio": "cmdprio_percentage",
    "cmdprio_class": "cmdprio_percentage", "cmdprio_bssplit": "cmdprio_percentage", "rwmixcycle": "rate_cycle",
}  # fmt: skip


def _not_simulated(word: str) -> str:
    """Return the word of ``NOT_SIMULATED`` that speaks of this one; empty if it is simulated, or unknown."""
    if word.startswith("verify"):
        return "verify"
    if word.startswith(("steadystate", "ss_")):
        return "steadystate"
    base_word = _SAME.get(word, word)
    return base_word if base_word in NOT_SIMULATED else ""


# Words of those that a reader may miss in the result, so they are named.
PASSED_OVER = WITHOUT_EFFECT - {"name", "description", "group_reporting", "time_based", "invalidate", "norandommap"}
ONE_AT_A_TIME = frozenset({"sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"})  # these engines know no iodepth
ENGINES = (*sorted(ONE_AT_A_TIME), "libaio", "posixaio", "io_uring")
# Other ways to ask a drive for the same, which a simulated job asks for as by libaio.
OTHER_ENGINES = frozenset(
    """windowsaio solarisaio io_uring_cmd libblkio xnvme sg nvme spdk libcufile libhipfile splice syslet-rw guasi
    """.split()  # noqa: SIM905
)
NO_DRIVE = {
    "null": "asks no drive for anything", "net": "is of a network", "netsplice": "is of a network",
    "rdma": "is of a network", "cpuio": "burns CPU and asks no drive", "libpmem": "is of memory",
    "dev-dax": "is of memory", "mtd": "is of raw flash", "exec": "runs a program",
}  # fmt: skip
BLOCK_BYTES = 4096  # fio's own
BLOCK_BYTES_MOST = 1 << 20  # of one request; a larger block is several
RANGE_SIZES_MOST = 256  # of a bsrange, evenly over it
REFUSED = (
    (("wait_for",), "has jobs wait for one by its name; stonewall has all wait"),
    (("trim_percentage", "trim_verify_zero", "trim_backlog", "num_range"), "trims, which no drive here is a model of"),
    (("zonemode", "zonesize", "zonerange", "zoneskip", "read_beyond_wp", "max_open_zones", "zone_reset_threshold"),
     "has a job go by zones, which is not simulated"),
    (("flow", "flow_watermark", "flow_sleep", "flow_id"), "ties jobs to each other's rates, which is not simulated"),
    (("latency_target", "latency_window", "latency_percentile", "latency_run"),
     "has fio look for a depth; give several: --iodepth 1,4,16"),
    (("fill_device", "fill_fs"), "writes until the drive is full; give size"),
    (("replay_no_stall",), "leaves out the log's times; give the log to dbdyno simulate itself, with --replay closed"),
)  # fmt: skip
REASONS = {word: reason for words, reason in REFUSED for word in words}


def _whole(text: str) -> int:
    text = text.removesuffix("%")
    if text.isascii() and text.isdecimal() and len(text) <= 18:  # noqa: PLR2004 - what 64 bits hold
        return int(text)
    try:
        return fio_bytes(text)  # 2k are 2048, 0x10 are 16
    except ValueError:
        raise ValueError("is not a whole number") from None


def _percent(text: str) -> int:
    if (percent := _whole(text)) > 100:  # noqa: PLR2004
        raise ValueError("is over 100 %")
    return percent


def _kb(job: Job) -> int:
    """Return what a k stands for in a job's sizes: 1024 or 1000."""
    return int(job.get("kb_base", KB_BASES[0]))


def _size(field: str) -> Callable[[Job, str], None]:
    """Return how a size is put into a job: ``field`` ends in the unit it is put in, bytes or percent of the drive."""

    def put(job: Job, text: str) -> None:
        percent = fio_percent(text)
        if percent is None:
            job[f"{field}_bytes"] = fio_bytes(text, _kb(job))
            job.pop(f"{field}_percent", None)
        else:
            job[f"{field}_percent"] = percent
            job.pop(f"{field}_bytes", None)

    return put


def _block(job: Job, text: str) -> None:
    read, write = fio_sizes(text, _kb(job))
    _put_blocks(job, [(read, 1)], [(write, 1)])


def _split(job: Job, text: str) -> None:
    _put_blocks(job, *fio_split(text, _kb(job)))


def _range(job: Job, text: str) -> None:
    def blocks(least: int, most: int) -> list[tuple[int, int]]:
        if least == 0:
            raise ValueError("begins at 0 bytes")
        step = max(least, -(-(most - least) // RANGE_SIZES_MOST // least) * least)
        return [(size, 1) for size in range(least, most + 1, step)]

    read, write = fio_range(text, _kb(job))
    _put_blocks(job, blocks(*read), blocks(*write))


def _put_blocks(job: Job, read: list[tuple[int, int]], write: list[tuple[int, int]]) -> None:
    if not all(size for size, _ in [*read, *write]):
        raise ValueError("has a size of 0 bytes")
    for name in ("read_blocks", "write_blocks"):
        job.pop(name, None)
    if len(read) == len(write) == 1 and read[0][0] == write[0][0]:
        job["block_bytes"] = read[0][0]
        return
    job["block_bytes"] = min(size for size, _ in [*read, *write])
    job["read_blocks"], job["write_blocks"] = [list(block) for block in read], [list(block) for block in write]


def _kb_base(job: Job, text: str) -> None:
    if text not in map(str, KB_BASES):
        raise ValueError("is neither 1024 nor 1000")
    job["kb_base"] = int(text)


def _pattern(job: Job, text: str) -> None:
    name, colon, after = text.partition(":")
    if "trim" in name:
        raise ValueError("trims, which no drive here is a model of")
    if name not in PATTERNS:
        raise ValueError(f"is none of {', '.join(PATTERNS)}{did_you_mean(name, PATTERNS)}")
    job["pattern"], job["read_percent"] = PATTERNS[name]
    for former in ("run", "gap_bytes"):  # of a pattern that was said before
        job.pop(former, None)
    if colon and job["pattern"] == "random":
        job["run"] = _whole(after)
    elif colon:
        job["gap_bytes"] = fio_bytes(after.removeprefix("-"), _kb(job)) * (-1 if after.startswith("-") else 1)


def apply_mix(job: Job) -> Job:
    """Return a job whose mix is that of ``rwmixread``, wherever that stood, if its pattern reads and writes."""
    percent = job.pop("mix_percent", None)
    if percent is not None and ("pattern" not in job or job["read_percent"] not in {0, 100}):
        job["read_percent"] = percent
    return job


def _direct(job: Job, text: str) -> None:
    if text not in {"0", "1"}:
        raise ValueError("is neither 0 (through the page cache) nor 1 (past it)")
    job["direct"] = text == "1"


def _buffered(job: Job, text: str) -> None:
    if text not in {"0", "1"}:
        raise ValueError("is neither 0 (past the page cache) nor 1 (through it)")
    job["direct"] = text == "0"


def _engine(job: Job, text: str) -> None:
    name = text.lower()
    if name in NO_DRIVE:
        raise ValueError(f"{NO_DRIVE[name]}; simulated are {', '.join(ENGINES)}")
    if name not in {*ENGINES, *OTHER_ENGINES}:
        known = f"the requests of {', '.join(ENGINES)}{did_you_mean(name, ENGINES)}"
        raise ValueError(f"is an engine that can't be simulated; simulated are {known}")
    job["engine"] = name


def _rate(unit: str, read: Callable[[Job, str], int]) -> Callable[[Job, str], None]:
    """Return how a rate is put into a job: one for both ways, or of reads, writes and trims."""

    def put(job: Job, text: str) -> None:
        parts = [part.strip() for part in text.split(",")]
        for way, part in (("read", parts[0]), ("write", parts[1] if len(parts) > 1 else parts[0])):
            if part:
                job[f"{way}_rate_{unit}"] = read(job, part)

    return put


def _process(job: Job, text: str) -> None:
    if text not in {"linear", "poisson"}:
        raise ValueError("is neither linear nor poisson")
    job["poisson"] = text == "poisson"


def _sync(job: Job, text: str) -> None:
    if text not in {"0", "none"}:
        job["fsync_every"] = 1  # O_SYNC and O_DSYNC: a write is done when it is on the medium


def _spread(job: Job, text: str) -> None:
    """Put in which offsets are preferred, by fio's name and its shape."""
    name, *parts = text.split(":")
    shapes = {"zipf": 1.1, "pareto": 0.2, "normal": None}
    if name == "random":
        job.pop("spread", None)
    elif name in shapes:
        shape = parts[0] if parts else shapes[name]
        try:
            job["spread"] = {name: float(shape or "")}
        except ValueError:
            raise ValueError("has no number as its shape; write it as fio does, such as zipf:1.2") from None
    elif name == "zoned" and parts:
        job["spread"] = {"zones": _zones(parts)}
    else:
        known = did_you_mean(name, [*shapes, "random", "zoned"])
        raise ValueError(f"is none of random, zipf:1.2, pareto:0.2, normal:10, zoned:60/10:40/90{known}")


def _zones(parts: list[str]) -> list[list[int]]:
    """Return percent of accesses and of the range of each zone; those left blank share what the others leave."""
    entries = []
    for part in parts:
        match = re.fullmatch(r"(\d{1,3})/(\d{0,3})", part.split(",")[0].strip())
        if match is None:
            raise ValueError("has a zone that is not percent of accesses/percent of the range, such as 60/10")
        entries.append([int(match[1]), int(match[2]) if match[2] else None])
        if "," in part:
            break  # what follows is of writes, which go as reads here
    blank = [entry for entry in entries if entry[1] is None]
    left = 100 - sum(entry[1] or 0 for entry in entries)
    for at, entry in enumerate(blank):
        entry[1] = left // len(blank) + (at < left % len(blank))
    spare = 100 - sum(entry[0] or 0 for entry in entries)
    if spare > 0 and left > 0 and not blank:
        entries.append([spare, left])
    return [[accesses or 0, share or 0] for accesses, share in entries]


def _increment(job: Job, text: str) -> None:
    percent = fio_percent(text)
    job["increment"] = (
        "offset_bytes" if percent is None else "offset_percent",
        (fio_bytes(text, _kb(job)) if percent is None else percent),
    )


def _amount(job: Job, text: str) -> None:
    if fio_percent(text) is not None:
        raise ValueError("is a percentage; write how many bytes")
    job["io_bytes"] = fio_bytes(text, _kb(job))


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
    "rwmixread": lambda job, text: job.update(mix_percent=_percent(text)),
    "rwmixwrite": lambda job, text: job.update(mix_percent=100 - _percent(text)),
    "kb_base": _kb_base,
    "bs": _block,
    "blocksize": _block,
    "bssplit": _split,
    "bsrange": _range,
    "blocksize_range": _range,
    "random_distribution": _spread,
    "percentage_random": lambda job, text: job.update(random_percent=_percent(text.split(",")[0])),
    "rate": _rate("bytes", lambda job, text: fio_bytes(text, _kb(job))),
    "rate_iops": _rate("ios", lambda _job, text: _whole(text)),
    "rate_process": _process,
    "sync": _sync,
    "startdelay": _set("start_us", lambda text: round(fio_seconds(text.split("-")[0]) * 1e6)),
    "start_delay": _set("start_us", lambda text: round(fio_seconds(text.split("-")[0]) * 1e6)),
    "thinktime_blocks": _set("think_every", _whole),
    "offset_increment": _increment,
    "read_iolog": _set("read_iolog", str),
    "replay_time_scale": _set("speed_percent", _whole),
    "write_barrier": _set("fsync_every", _whole),
    "file_size": _size("range"),
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
    if word in WITHOUT_EFFECT or _not_simulated(word):
        return
    if word in REASONS:
        raise ValueError(REASONS[word])
    if word not in WORDS:
        known = did_you_mean(word, [*WORDS, *WITHOUT_EFFECT])
        raise ValueError(f"is not an option of a simulated job{known or '; known are ' + ', '.join(sorted(WORDS))}")
    WORDS[word](job, value)


def jobs_of(path: Path, text: str) -> tuple[list[Job], list[str]]:
    """Return the jobs of a job file, each with what ``[global]`` says, and which words change nothing here.

    Where jobs follow each other (``stonewall``), each has its ``group``: those of a group run beside each other. Raises
    ``UserError`` with the line.
    """
    try:
        lines = list(included(text, path.parent))
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
    passed_over = dict.fromkeys(filter(None, (_note_on(line.word) for line in lines)))
    sections = _Sections()
    for line in _kb_base_first(lines):
        if not line.word:
            sections.begin(line.section or "job")
            continue
        where = f"{path}: {line.where}: {line.word}"
        if line.section is None:
            raise UserError(f"{where} stands in no section; begin with a line such as [job]")
        try:
            sections.take(line)
        except ValueError as error:
            raise UserError(f"{where}={line.value or 1} {error}") from None
    if not sections.jobs:
        raise UserError(f"{path}: holds no job; give a section such as [job]")
    jobs = [_whole_job(job, passed_over) for job in sections.jobs]
    _mark_groups(jobs, sections.names, sections.walls)
    return [part for job in jobs for part in _processes_apart(job)], list(passed_over)


@dataclass
class _Sections:
    """The jobs of a file as far as it has been read; each begins with what ``[global]`` has said so far."""

    common: Job = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    walls: list[bool] = field(default_factory=list)  # whether a job waits for those before
    wall: bool = False  # whether all that follow do
    is_global: bool = False

    def begin(self, section: str) -> None:
        self.is_global = section == "global"
        if not self.is_global:
            self.jobs.append(dict(self.common))
            self.names.append(section)
            self.walls.append(self.wall)

    def take(self, line: JobLine) -> None:
        """Take an option of the section that was begun last. Raises ``ValueError`` with what is wrong with it."""
        value = line.value or "1"  # a word alone is a switch that is on
        if line.word in WORDS or line.word in IN_TURN:
            value = with_variables(value, known_variables())
        if line.word not in IN_TURN:
            put(self.common if self.is_global else self.jobs[-1], line.word, value)
        elif self.is_global:
            self.wall = value != "0"
        else:
            self.walls[-1] = value != "0"


IN_TURN = {"stonewall", "wait_for_previous"}


def _note_on(word: str) -> str:
    """Return how a word that changes nothing here is told to the reader; empty where that is no news."""
    if word in PASSED_OVER:
        return word
    reason = NOT_SIMULATED.get(_not_simulated(word), "")
    return f"{word} ({reason})" if reason else ""


def _mark_groups(jobs: list[Job], names: list[str], walls: list[bool]) -> None:
    """Mark the jobs that run beside each other, where a wall has some wait for those before."""
    groups: list[list[int]] = [[]]
    for at, is_wall in enumerate(walls):
        if is_wall and groups[-1]:
            groups.append([])
        groups[-1].append(at)
    if len(groups) == 1:
        return
    for number, group in enumerate(groups, 1):
        label = f"{number}: {'+'.join(names[at] for at in group)[:60]}"
        for at in group:
            jobs[at]["group"] = label


def _processes_apart(job: Job) -> Iterator[Job]:
    """Yield a job as it is, or one for each of its processes where each begins somewhere else."""
    (name, step), processes = job.pop("increment", ("", 0)), job.get("processes", 1)
    if not step or processes > PROCESSES_MOST:
        yield job
        return
    for number in range(processes):
        yield {**job, "processes": 1, name: job.get(name, 0) + number * step}


def _kb_base_first(lines: Iterable[JobLine]) -> list[JobLine]:
    """Return the lines, in each section its ``kb_base`` first, as fio reads it: sizes above it go by it, too."""
    section, placed = 0, []
    for line in lines:
        section += not line.word
        placed.append((section, line.word not in {"", "kb_base"}, line))
    return [line for _, _, line in sorted(placed, key=lambda entry: entry[:2])]


def _whole_job(job: Job, passed_over: dict[str, None]) -> Job:
    """Return a job as its words say it together, in whichever order they stand."""
    apply_mix(job)
    options = {word: job.pop(word) for word in ("kb_base", "engine", "io_bytes") if word in job}
    if options.get("engine") in ONE_AT_A_TIME:
        job["depth"] = 1
    elif not job.get("direct", True) and job.get("depth", 1) > 1:
        job["depth"] = 1
        passed_over["iodepth (through the page cache a process does one after the other)"] = None
    if "io_bytes" in options:
        amount = max(round(options["io_bytes"] / _mean_block_bytes(job)), 1)
        job["ios"] = min(amount, job.get("ios", amount))
    for name in ("think_every", "run"):
        if job.get(name) == 0:
            del job[name]
    pieces, rest = divmod(job.get("block_bytes", 0), BLOCK_BYTES_MOST)
    if pieces > 1 and not rest and "read_blocks" not in job:
        # The kernel cuts it up as well; the pieces of one are outstanding together.
        job["block_bytes"] = BLOCK_BYTES_MOST
        job["depth"] = job.get("depth", 1) * pieces if job.get("direct", True) else 1
        if job.get("pattern") == "random":
            job["run"] = job.get("run", 1) * pieces
        if "ios" in job:
            job["ios"] *= pieces
        passed_over["bs over 1m (counted in pieces of 1 MiB)"] = None
    return job


def _mean_block_bytes(job: Job) -> float:
    """Return how large a request of a job is on average, over its reads and writes."""

    def mean(blocks: list[list[int]]) -> float:
        return sum(size * share for size, share in blocks) / sum(share for _, share in blocks)

    if "read_blocks" not in job:
        return float(job.get("block_bytes", BLOCK_BYTES))
    read_share = job.get("read_percent", 100) / 100
    return float(read_share * mean(job["read_blocks"]) + (1 - read_share) * mean(job["write_blocks"]))


def on_a_drive(job: Mapping[str, Any], size_bytes: int) -> Job:
    """Return a job whose percentages are those of a drive of so many bytes, in whole pages."""
    job_on_drive, page = dict(job), 4096
    for name in ("offset", "range"):
        if (percent := job_on_drive.pop(f"{name}_percent", None)) is not None:
            job_on_drive[f"{name}_bytes"] = (
                job_on_drive.get(f"{name}_bytes", 0) + size_bytes * percent // 100 // page * page
            )
    if "range_percent" in job:
        room = size_bytes - job_on_drive.get("offset_bytes", 0)
        if room <= 0:
            raise UserError(
                f"a job begins {job_on_drive['offset_bytes']} bytes into a drive of {size_bytes}; give less offset or"
                " offset_increment, or fewer processes"
            )
        job_on_drive["range_bytes"] = min(job_on_drive["range_bytes"], room)
    return job_on_drive


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


# What is asked of a simulation, in the words of the command line, as points.


# The load of a server from a TOML file: ``[ingest]`` with ``[cache]``, or ``[commits]``; a list is several values.


# Table of the file -> where its fields stand in the load of a point; "" for the load itself.
TABLES = {"ingest": {"ingest": "table", "cache": "cache"}, "commits": {"commits": ""}}


@dataclass
class ServerLoad:
    """A load, the fields that have several values, and where in the file each field stands."""

    kind: str
    fields: dict[str, Any]
    factors: dict[str, list[tuple[str, Any]]] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    @property
    def ends(self) -> bool:
        """Whether it ends by itself: an ingest of so many rows."""
        return bool(self.fields.get("table", {}).get("rows"))


def read_server_load(path: Path) -> ServerLoad:
    """Return what the file says. Raises ``UserError`` with file, line and field."""
    _, raw, lines = read_document(path)
    kinds = [kind for kind in TABLES if kind in raw]
    if len(kinds) != 1:
        raise UserError(
            f"{path}: has {' and '.join(kinds) or 'neither [ingest] nor [commits]'}; give one of these tables"
        )
    tables = TABLES[kinds[0]]
    load = ServerLoad(kinds[0], {"kind": kinds[0]}, places={"load": str(path)})

    def refuse(text: str, *where: str) -> UserError:
        return UserError(explain(path, lines, Mistake(where, text)))

    for name, table in raw.items():
        if name not in tables:
            text = f"is not a table of this load; known are {', '.join(tables)}{did_you_mean(name, tables)}"
            raise refuse(text, name)
        if not isinstance(table, dict):
            raise refuse(f"must be a table: [{name}]", name)
        for key, setting in table.items():
            try:
                levels = [(text, _in(tables[name], key, value)) for text, value in _levels(key, setting)]
            except ValueError as error:
                raise refuse(str(error), name, key) from None
            place = place_of(path, lines, Mistake((name, key), ""))
            load.places |= {f"load.{key}": place, f"load.{tables[name]}.{key}": place}
            if isinstance(setting, list):
                load.factors[LOAD + key] = levels
            else:
                merge(load.fields, levels[0][1])
    return load


def _in(table: str, key: str, value: object) -> dict[str, Any]:
    return {table: {key: value}} if table else {key: value}


def _levels(key: str, setting: object) -> Iterator[tuple[str, object]]:
    values = setting if isinstance(setting, list) else [setting]
    if not values:
        raise ValueError("is an empty list; give a value")
    texts = [str(value) for value in values]
    if len(set(texts)) < len(texts):
        raise ValueError("holds a value twice")
    for text, value in zip(texts, values, strict=True):
        yield text, _value(key, value)


def _value(key: str, value: object) -> object:
    if isinstance(value, str) and key.endswith("_bytes"):
        try:
            return in_file(size_bytes)(value)
        except ValueError as error:
            raise ValueError(f"is {value[:40]!r}, which {error}") from None
    if not isinstance(value, str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError("must be a number, a text, true or false, or a list of these")
    return value


HEAD_BYTES = 1 << 16
SIZE_BYTES = 16 << 30  # of a device that nothing says the size of
FIELDS = {"bs": "block_bytes", "iodepth": "depth", "numjobs": "processes", "rwmixread": "read_percent",
          "thinktime": "think_us", "fsync": "fsync_every", "direct": "direct"}  # fmt: skip
SECONDS = 10.0  # of jobs that don't say how long


@dataclass(frozen=True)
class SweepRequest:
    """What is asked; several values stand in one text, with commas."""

    files: Sequence[Path]
    device: str
    kernel: str
    scheduler: str = ""
    nr_requests: str = ""
    queue_depth: str = ""
    tunables: Sequence[str] = ()  # NAME=VALUE[,VALUE...]
    fio: Mapping[str, str] = field(default_factory=dict)  # an option of fio to its values
    cache: Mapping[str, str] = field(default_factory=dict)  # memory, filesystem, mount, to their values
    size_bytes: int | None = None
    seconds: float | None = None
    warm_up: float | None = None
    seed: int = 1
    repeat: int = 1
    format: str | None = None
    replay: str = ""
    speed: float | None = None
    trace_device: str | None = None
    time_unit: str | None = None
    length_unit: str | None = None
    fold: bool = False


@dataclass(frozen=True)
class PointLoad:
    """The load of all points, how long it is, how far it reaches, and how its results must be read."""

    fields: dict[str, Any]
    seconds: float | None
    warm_up: float
    reach_bytes: int
    replay: str  # "open", "closed", or "" of jobs
    said: str
    span_s: float = 0.0  # of a trace, as it was recorded
    factors: Mapping[str, list[tuple[str, Any]]] = field(default_factory=dict)  # of the file itself
    places: Mapping[str, str] = field(default_factory=dict)  # of its fields in the file
    passed_over: Sequence[str] = ()  # words of the file that change nothing in a simulation


def points_of(request: SweepRequest, watch: Callable[[float, int], None]) -> tuple[PointLoad, list[SimulatedPoint]]:
    """Return the load and all points. ``watch`` hears how many requests of a trace have been read.

    Raises ``UserError`` with the option or the file and line that is wrong.
    """
    load = _load(request, watch)
    factors = _factors(request, {} if request.files else request.fio) | dict(load.factors)
    seeds = range(request.seed, request.seed + request.repeat)
    common: dict[str, Any] = {
        "size_bytes": request.size_bytes or load.reach_bytes or SIZE_BYTES,
        "warm_up_s": load.warm_up if request.warm_up is None else request.warm_up,
        "load": load.fields,
    }
    seconds = request.seconds or load.seconds
    if seconds is not None:
        common["duration_s"] = seconds
    if span := seconds or load.span_s:
        common["interval_s"] = min(1.0, max(span / 100, 1e-6))
    count = len(seeds)
    for levels in factors.values():
        count *= len(levels)
    if count > BRIEF_FROM:
        common |= {"sample_most": 0, "intervals_most": 1}
    return load, combinations(common, factors, seeds)


def _factors(request: SweepRequest, fio: Mapping[str, str]) -> dict[str, list[tuple[str, Any]]]:
    def texts(option: str, text: str) -> list[str]:
        parts = split(text)
        if not all(parts) or len(set(parts)) < len(parts):
            raise UserError(f"{option} {text[:60]!r} holds an empty value, or one twice; separate values by one comma")
        return parts

    factors: dict[str, list[tuple[str, Any]]] = {
        "device": [(text, text) for text in texts("--device", request.device)],
        "kernel": [(text, text) for text in texts("--kernel", request.kernel)],
    }
    if request.scheduler:
        factors["scheduler"] = [(text, text) for text in texts("--scheduler", request.scheduler)]
    for name, option, levels_text in (
        ("nr_requests", "--nr-requests", request.nr_requests),
        ("queue_depth", "--queue-depth", request.queue_depth),
    ):
        if levels_text:
            factors[name] = [(text, whole(option, text)) for text in texts(option, levels_text)]
    for text in request.tunables:
        name, equals, values = text.partition("=")
        if not equals or not name:
            raise UserError(f"--set {text[:60]!r} is not TUNABLE=VALUE, such as fifo_batch=16")
        factors[name if name in QUEUE else SET + name] = [
            (value, whole(f"--set {name}", value)) for value in texts(f"--set {name}", values)
        ]
    for word, values in fio.items():
        factors[FIO + word] = [(value, _job(word, value)) for value in texts(f"--{word}", values)]
    for word, values in request.cache.items():
        factors[LOAD + word] = [(value, {"cache": _cache(word, value)}) for value in texts(f"--{word}", values)]
    return factors


def _cache(word: str, value: str) -> dict[str, Any]:
    known = {"filesystem": ("ext3", "ext4"), "mount": ("data=ordered", "data=writeback")}
    if word in known and value not in known[word]:
        raise UserError(
            f"--{word} {value[:40]!r} is none of {', '.join(known[word])}{did_you_mean(value, known[word])}"
        )
    if word == "filesystem":
        return page_cache(filesystem=value)
    if word == "mount":
        return page_cache(mount=value)
    try:
        return page_cache(memory=size_bytes(value))
    except ValueError as error:
        raise UserError(f"--{word} {value[:40]!r} {error}") from None


def _job(word: str, value: str) -> dict[str, Any]:
    job: dict[str, Any] = {}
    try:
        put(job, word, value)
    except ValueError as error:
        raise UserError(f"--{word} {value[:40]!r} {error}") from None
    return apply_mix(job)


def _load(request: SweepRequest, watch: Callable[[float, int], None]) -> PointLoad:
    if request.files and request.files[0].suffix == ".toml":
        return _of_server(request)
    if not request.files:
        if "rw" not in request.fio:
            raise UserError("give a trace, a job file of fio, or --rw such as --rw randwrite")
        return _of_jobs([{}], f"jobs of {_options_text(request.fio)}", request)
    head = _head(request.files[0])
    if request.format is None and is_job_file(head):
        if request.fio:
            word = next(iter(request.fio))
            raise UserError(f"--{word} is for jobs without a file; write {word} into {request.files[0]}")
        text = request.files[0].read_text(errors="replace")
        jobs, passed_over = jobs_of(request.files[0], text)
        if any("read_iolog" in job for job in jobs):
            return _of_iolog(jobs, request, watch)
        return _of_jobs(jobs, f"the jobs of {request.files[0].name}", request, passed_over)
    for word in (*request.fio, *request.cache):
        raise UserError(f"--{word} is for jobs, and {request.files[0]} is a trace")
    return _of_trace(request, watch)


def _of_iolog(jobs: list[dict[str, Any]], request: SweepRequest, watch: Callable[[float, int], None]) -> PointLoad:
    """Return the load of a job that replays a log: a trace."""
    path = request.files[0]
    if len(jobs) > 1:
        raise UserError(f"{path}: read_iolog needs a job that is alone in its file; give the log itself")
    speed = request.speed or (jobs[0]["speed_percent"] / 100 if jobs[0].get("speed_percent") else None)
    return _of_trace(replace(request, files=(path.parent / jobs[0]["read_iolog"],), speed=speed), watch)


def _options_text(fio: Mapping[str, str]) -> str:
    return ", ".join(f"{word}={values}" for word, values in fio.items())


def _refuse_of_traces(request: SweepRequest, load: str) -> None:
    trace_options = {
        "--replay": request.replay, "--speed": request.speed, "--trace-device": request.trace_device,
        "--time-unit": request.time_unit, "--length-unit": request.length_unit, "--fold": request.fold,
    }  # fmt: skip
    for option, value in trace_options.items():
        if value:
            raise UserError(f"{option} is for traces; {load} no recorded times")


def _of_server(request: SweepRequest) -> PointLoad:
    path = request.files[0]
    if len(request.files) > 1:
        raise UserError(f"{path} is a load by itself; leave out {request.files[1]}")
    for word in (*request.fio, *request.cache):
        raise UserError(f"--{word} is for jobs; write what this load has into {path}")
    _refuse_of_traces(request, f"{path} has")
    server_load = read_server_load(path)
    seconds = None if server_load.ends else SECONDS
    description = f"[{server_load.kind}] of {path.name}"
    return PointLoad(
        server_load.fields, seconds, 0.0, 0, "", description, factors=server_load.factors, places=server_load.places
    )


def _of_jobs(
    jobs: list[dict[str, Any]], description: str, request: SweepRequest, passed_over: Sequence[str] = ()
) -> PointLoad:
    _refuse_of_traces(request, "jobs have")
    direct = (
        [str(int(job.get("direct", True))) for job in jobs] if request.files else split(request.fio.get("direct", "1"))
    )
    if request.cache and "0" not in direct:
        where = f"write direct=0 into {request.files[0]}" if request.files else "give --direct 0"
        raise UserError(f"--{next(iter(request.cache))} is of the page cache, which these jobs go past; {where}")
    places = {f"load.jobs[0].{field_name}": f"--{word}" for word, field_name in FIELDS.items()}
    if request.files:
        places = {"load": str(request.files[0])}
    reach = reach_bytes(list(jobs))
    size = request.size_bytes or reach or SIZE_BYTES
    groups: dict[str, list[dict[str, Any]]] = {}
    for job in jobs:
        job.pop("speed_percent", None)
        groups.setdefault(job.pop("group", ""), []).append(on_a_drive(job, size))
    if len(groups) > 1:
        factors = {JOBS: [(name, _phase(group, request)) for name, group in groups.items()]}
        description += ", one group after the other, each on a drive as it is at first"
        longest = max((value.get("duration_s", 0.0) for _, value in factors[JOBS]), default=0.0)
        return PointLoad(
            {"kind": "jobs", "jobs": []}, longest or None, 0.0, reach, "", description,
            factors=factors, places=places, passed_over=passed_over,
        )  # fmt: skip
    (alone,) = groups.values()
    phase = _phase(alone, request)
    return PointLoad(
        phase["load"], phase.get("duration_s"), phase["warm_up_s"], reach, "", description,
        places=places, passed_over=passed_over,
    )  # fmt: skip


def _phase(jobs: list[dict[str, Any]], request: SweepRequest) -> dict[str, Any]:
    """Return the fields of a point whose load are these jobs beside each other, and how long it is."""
    runtime, ramp = times_of(jobs)
    ends = bool(jobs) and all(job.get("ios") for job in jobs)
    seconds = request.seconds or runtime or (None if ends else SECONDS)
    warm_up = ramp if request.warm_up is None else request.warm_up
    length = {} if seconds is None else {"duration_s": seconds}
    return {"load": {"kind": "jobs", "jobs": jobs}, "warm_up_s": warm_up, **length}


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except OSError as error:
        raise UserError(f"{path}: can't be read: {error.strerror}") from None


def _of_trace(request: SweepRequest, watch: Callable[[float, int], None]) -> PointLoad:
    replay = request.replay or "open"
    if replay not in REPLAYS:
        raise UserError(f"--replay is open or closed, not {replay[:40]}{did_you_mean(replay, REPLAYS)}")
    fields: dict[str, Any] = {"files": [str(path) for path in request.files], "replay": replay}
    trace_fields = {"format": request.format, "speed": request.speed, "device": request.trace_device}
    trace_fields |= {"time_unit": request.time_unit, "length_unit": request.length_unit}
    fields |= {name: value for name, value in trace_fields.items() if value is not None}
    if request.fold:
        if request.size_bytes is None:
            raise UserError("--fold needs --size, the size of the device that the trace is folded onto")
        fields["fold"] = True
    try:
        summary = json.loads(trace_summary(json.dumps(fields), watch))
    except ValueError as error:
        raise UserError(in_words(str(error), {})) from None
    counts = dict(summary["devices"])
    if request.trace_device is None and len(counts) > 1:
        devices = ", ".join(f"{name} ({count} requests)" for name, count in counts.items())
        raise UserError(f"{request.files[0]} is of several devices: {devices}; choose one by --trace-device")
    if not summary["requests"]:
        names = f"; it has {', '.join(counts)}" if counts else ""
        raise UserError(
            f"{request.files[0]} holds no request{' of that device' if request.trace_device else ''}{names}"
        )
    reach = -(-summary["end_sector"] * 512 // GIB) * GIB
    description = f"a trace of {summary['requests']:,} requests in {summary['span_s']:,.4g} s, {replay} replay"
    end_bytes = summary["end_sector"] * 512
    if request.fold and request.size_bytes is not None and end_bytes > request.size_bytes:
        description += f", folded from {format_bytes(end_bytes)} onto {format_bytes(request.size_bytes)}"
    # The size is what the trace reaches, unless given, and may be more than a drive has.
    places = {} if request.size_bytes else {"size_bytes": "give --fold and --size, or a larger --device"}
    return PointLoad(
        {"kind": "trace", **fields}, None, 0.0, reach, replay, description, summary["span_s"], places=places
    )
