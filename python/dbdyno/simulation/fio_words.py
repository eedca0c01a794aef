"""Jobs in fio's words, from a job file or from options, as a load of a simulated point."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dbdyno.errors import UserError
from dbdyno.model.quantity import duration_seconds, size_bytes
from dbdyno.study.mistakes import did_you_mean

Job = dict[str, Any]
GIB = 1 << 30

PATTERNS = {
    "read": ("sequential", 100), "write": ("sequential", 0), "randread": ("random", 100), "randwrite": ("random", 0),
    "rw": ("sequential", 50), "readwrite": ("sequential", 50), "randrw": ("random", 50),
}  # fmt: skip
CLASSES = {"1": "real-time", "2": "best-effort", "3": "idle"}
# What changes nothing here: names, what fio prints, how it asks the kernel; each job is asynchronous as by libaio.
WITHOUT_EFFECT = frozenset("name description filename ioengine group_reporting time_based thread invalidate".split())  # noqa: SIM905


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError("is no whole number")
    return int(text)


def _bytes(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() else size_bytes(text)


def _seconds(text: str) -> float:
    return float(text) if text.isascii() and text.isdecimal() else duration_seconds(text)


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
    "bs": _set("block_bytes", _bytes),
    "blocksize": _set("block_bytes", _bytes),
    "iodepth": _set("depth", _whole),
    "numjobs": _set("processes", _whole),
    "size": _set("range_bytes", _bytes),
    "offset": _set("offset_bytes", _bytes),
    "thinktime": _set("think_us", lambda text: _whole(text) if text.isdecimal() else round(_seconds(text) * 1e6)),
    "fsync": _set("fsync_every", _whole),
    "fdatasync": _set("fsync_every", _whole),
    "number_ios": _set("ios", _whole),
    "runtime": _set("runtime_s", _seconds),
    "ramp_time": _set("ramp_s", _seconds),
    "prio": _set("priority", _whole),
    "prioclass": _class,
    "direct": _direct,
}


def put(job: Job, word: str, value: str) -> None:
    """Put what an option of fio asks for into a job. Raises ``ValueError`` with what is wrong with it."""
    if word in WITHOUT_EFFECT:
        return
    if word not in WORDS:
        known = did_you_mean(word, [*WORDS, *WITHOUT_EFFECT])
        raise ValueError(f"is no option of a simulated job{known or '; known are ' + ', '.join(sorted(WORDS))}")
    WORDS[word](job, value)


def jobs_of(path: Path, text: str) -> list[Job]:
    """Return the jobs of a job file, each with what ``[global]`` says. Raises ``UserError`` with the line."""
    common: Job = {}
    jobs: list[Job] = []
    job: Job | None = None
    for line, section, word, value in _lines(text):
        if section is not None:
            job = common if section == "global" else dict(common)
            if section != "global":
                jobs.append(job)
            continue
        if job is None:
            raise UserError(f"{path}: line {line}: {word} stands in no section; begin with a line such as [job]")
        try:
            put(job, word, value)
        except ValueError as error:
            raise UserError(f"{path}: line {line}: {word}={value} {error}") from None
    if not jobs:
        raise UserError(f"{path}: holds no job; give a section such as [job]")
    return jobs


def _lines(text: str) -> Iterator[tuple[int, str | None, str, str]]:
    for number, raw in enumerate(text.splitlines(), 1):
        line = re.split(r"\s[#;]", raw.strip())[0].strip()
        if not line or line[0] in "#;":
            continue
        if line.startswith("["):
            yield number, line.strip("[]").strip(), "", ""
            continue
        word, _, value = line.partition("=")
        yield number, None, word.strip().lower(), value.strip() or "1"


def is_job_file(head: bytes) -> bool:
    """Whether a file begins as fio's job files do: with a section."""
    lines = (line.strip() for line in head.splitlines())
    return next((line.startswith(b"[") for line in lines if line and line[:1] not in b"#;"), False)


def times_of(jobs: list[Job]) -> tuple[float | None, float]:
    """Take the longest ``runtime`` and ``ramp_time`` out of jobs, seconds; the first is None where none has one."""
    runtime = max((job.pop("runtime_s") for job in jobs if "runtime_s" in job), default=None)
    return runtime, max((job.pop("ramp_s") for job in jobs if "ramp_s" in job), default=0.0)


def reach_bytes(jobs: list[Mapping[str, Any]]) -> int:
    """Return how far the jobs reach on a drive where all say so; else 0. Buffered jobs' files get twice their size."""
    if not all(job.get("direct", True) for job in jobs):
        sizes = [job.get("range_bytes", math.inf) for job in jobs]
        return 0 if math.inf in sizes else max(int(2 * sum(sizes)) // GIB * GIB, GIB)
    ends = [job.get("offset_bytes", 0) + job.get("range_bytes", math.inf) for job in jobs]
    return 0 if math.inf in ends else int(max(ends))
