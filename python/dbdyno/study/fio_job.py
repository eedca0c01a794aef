"""Job files of fio: what one may say, and how it is held to the trial's own folder.

A job file comes along with a study, so it is text from anywhere. It could make fio write to a device, to load
a library or to run a shell command; so what is not known to be harmless is refused.
"""

import re
from collections.abc import Iterator

from dbdyno.model.fio import job_lines
from dbdyno.study.mistakes import did_you_mean

# fio(1). Nothing that names a file, a device, a library or a command, and nothing that changes what fio prints.
ALLOWED = frozenset(
    """
    readwrite rw rwmixread rwmixwrite rw_sequencer blocksize bs blocksize_range bsrange bssplit blocksize_unaligned
    bs_unaligned blockalign ba bs_is_seq_rand size io_size filesize nrfiles openfiles file_service_type numjobs
    iodepth iodepth_batch iodepth_batch_submit iodepth_batch_complete iodepth_batch_complete_min
    iodepth_batch_complete_max iodepth_low io_submit_mode serialize_overlap ioengine direct buffered sync fsync
    fdatasync end_fsync fsync_on_close sync_file_range overwrite fallocate fadvise_hint invalidate pre_read
    create_serialize create_fsync create_on_open file_append unlink_each_loop offset offset_increment offset_align
    number_ios io_limit loops time_based runtime ramp_time rate rate_min rate_iops rate_iops_min rate_process
    rate_cycle thinktime thinktime_spin thinktime_blocks thinktime_iotime latency_target latency_window
    latency_percentile max_latency randrepeat randseed allrandrepeat norandommap softrandommap random_generator
    random_distribution percentage_random unified_random_bytes zero_buffers refill_buffers scramble_buffers
    buffer_compress_percentage buffer_compress_chunk dedupe_percentage dedupe_mode dedupe_working_set_percentage
    thread nice prio prioclass cpus_allowed cpus_allowed_policy hipri fixedbufs registerfiles sqthread_poll
    nonvectored userspace_reap libaio_vectored description group_reporting exitall_on_error filename
    """.split()  # noqa: SIM905  (a list of so many words would be a page)
)
ENGINES = ("sync", "psync", "vsync", "pvsync", "pvsync2", "libaio", "posixaio", "io_uring", "mmap")
_REFUSED = "can't be set by a study: it could reach beyond the trial's own folder, or change what fio prints"
_IN_TURN = {"stonewall", "wait_for_previous", "wait_for", "startdelay", "start_delay"}
_PLACES = {"directory", "filename_format", "opendir", "file_dir", "lockfile"}
_SHARE = r"\w+/\d{0,3}"
# Their slashes stand before percentages, and name nothing.
_SHARES = {
    "bssplit": rf"{_SHARE}(?::{_SHARE})*(?:,{_SHARE}(?::{_SHARE})*){{0,2}}",
    "random_distribution": r"random|(?:zipf|pareto|normal)(?::[\d.]+){1,2}|zoned(?:_abs)?(?::\w+/[\w.]+)+",
}
_SHARES_EXAMPLE = {"bssplit": "4k/60:16k/40", "random_distribution": "zipf:1.2 or zoned:60/10:40/90"}


def job_mistakes(text: str) -> Iterator[str]:
    """What is wrong with a job file, each with its line."""
    jobs = 0
    for line in job_lines(text):
        where = f"line {line.number}"
        if line.section is None:
            yield f"{where}: {line.word!r} stands in no section; begin with a line such as [job]"
        elif not line.word:
            if re.fullmatch(r"[\w .-]{1,60}", line.section) is None:
                yield f"{where}: [{line.section[:60]}] is no plain name for a job"
            jobs += line.section != "global"
        elif mistake := _option_mistake(line.word, line.value):
            yield f"{where}: {line.word[:60]} {mistake}"
    if not jobs:
        yield "holds no job; give a section such as [job]"


def _option_mistake(name: str, value: str) -> str:
    return _name_mistake(name) or _value_mistake(name, value)


def _name_mistake(name: str) -> str:
    if name in _PLACES:
        return "is set by dbdyno: the trial's own folder is used; leave it out"
    if name in _IN_TURN:
        return "has jobs follow each other; a trial measures one thing, so give a job file to each"
    if name not in ALLOWED:
        return f"{_REFUSED}{did_you_mean(name, ALLOWED)}"
    return ""


def _value_mistake(name: str, value: str) -> str:
    if name == "ioengine" and value not in ENGINES:
        return f"is {value[:60]!r}; allowed are {', '.join(ENGINES)}"
    if name == "filename" and not re.fullmatch(r"[A-Za-z0-9_-][\w.-]*", value):
        return f"is {value[:60]!r}; give a plain name, without a folder: it is a file in the trial's own"
    if name in _SHARES:
        if re.fullmatch(_SHARES[name], value) is None:
            return f"is {value[:60]!r}; write it as fio does, such as {_SHARES_EXAMPLE[name]}"
        return ""
    if name != "description" and ("/" in value or "$" in value or "`" in value):
        return f"is {value[:60]!r}, which may name a file or an environment variable; leave it out"
    return ""


def written_anew(text: str, forced: dict[str, str]) -> str:
    """The job file of what was read of ``text`` and nothing else, with options that are forced upon every job."""
    lines: list[str] = []
    for line in job_lines(text):
        if not line.word:
            lines += ["", f"[{line.section}]"]
            if line.section != "global":
                lines += [f"{key}={forced[key]}" for key in forced]
        elif line.word not in forced:
            lines.append(f"{line.word}={line.value}" if line.value else line.word)
    return "\n".join(lines).lstrip("\n") + "\n"
