"""The workload ``fio``: KDiskMark's profiles and job files, run by fio itself on files of the trial's own.

The profiles' options are those that KDiskMark gives (its ``src/benchmark.cpp``).
"""

import json
import math
import os
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.errors import TrialError
from dbdyno.servers.user import own_folder, read_log
from dbdyno.stack.layer import StackContext
from dbdyno.study.fio_job import JobSources, job_sources, read_io_log, render_job, render_log
from dbdyno.study.fio_rules import job_mistakes
from dbdyno.study.workloads import FioSection
from dbdyno.system.files import MIB, read_text
from dbdyno.system.interrupt import now_ns
from dbdyno.workload.load import DAY_SECONDS, Columns, percentiles
from dbdyno.workload.tool_load import (
    ByTool,
    Program,
    ProgramRun,
    ToolLoad,
    client_cpu,
    home_of_program,
    positive,
    run_program,
)

# What fio prints and logs, as the figures and the series of a trial.
#
# fio(1): "JSON+ OUTPUT", "LOG FILE FORMATS".


INTERVAL_MS = 100
LOGS = ("bw", "iops", "lat")
DIRECTIONS = ("read", "write", "trim")
LOG_BYTES_MAX = 256 * 1024**2

Entry = tuple[int, float, int]  # milliseconds, value, direction (0 read, 1 write, 2 trim)


def read_fio(ended: ProgramRun, home: Path, folder: Path, ahead_ns: int) -> ToolLoad:
    """The load of a run of fio; its logs are kept in ``folder``.

    ``ahead_ns`` is how far the time of day is ahead of the monotonic clock. Raises ``TrialError``.
    """
    run = parse_output(ended.stdout)
    logs = {name: _log(home, folder, name) for name in LOGS}
    figures = fio_figures(run["jobs"])
    seconds = figures["seconds_real"]
    entries = [entry[0] for log in logs.values() for entry in log]
    # fio does not say when it began to measure: an interval before its first log entry, or its runtime before its end.
    start_ns = ended.end_ns - round(seconds * 1e9)
    if entries:
        start_ns = min(entries) * 1_000_000 - INTERVAL_MS * 1_000_000 - ahead_ns
    start_ns = min(max(start_ns, ended.start_ns), ended.end_ns - 1)
    end_ns = min(start_ns + round(seconds * 1e9), ended.end_ns)
    series = log_columns(logs, (start_ns + ahead_ns) / 1e6)
    reported = {
        "kind": "fio",
        "version": run.get("fio version"),
        "directions": {name: _direction(run["jobs"], name) for name in DIRECTIONS if _total(run["jobs"], name)},
        "jobs": [str(job.get("jobname")) for job in run["jobs"]],
        "latency": "from submission to completion",
    }
    return ToolLoad(
        reported=reported,
        window_ns=(start_ns, end_ns),
        figures={**figures, **client_cpu(ended)},
        series=series,
        rate="iops",
        before_seconds=(start_ns - ended.start_ns) / 1e9,
    )


def parse_output(text: str) -> dict[str, Any]:
    """The JSON that fio prints, which notes in plain text may precede. Raises ``TrialError``."""
    try:
        run = json.loads(text[text.index("{") :])
        jobs = run["jobs"]
        failed = [job for job in jobs if job["error"]]
    except (ValueError, KeyError, TypeError) as error:
        raise TrialError(f"fio's output is not what fio writes: {error!r}") from None
    if failed:
        raise TrialError(f"fio: job {failed[0].get('jobname')}: error {failed[0]['error']}")
    if not jobs:
        raise TrialError("fio ran no job")
    return dict(run)


def fio_figures(jobs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Throughput (MB/s, decimal), IOPS and latencies over all jobs and directions; latencies by fio's histogram.

    Its buckets, and so how coarse a percentile is, stand in ``model.metrics``.
    """
    seconds = positive(_seconds(jobs, DIRECTIONS), "fio's runtime")
    operations = sum(_total(jobs, name) for name in DIRECTIONS)
    moved = sum(int(job[name]["io_bytes"]) for job in jobs for name in DIRECTIONS if name in job)
    figures = {
        "seconds_real": seconds,
        "megabytes_per_second": moved / 1e6 / seconds,
        "iops": positive(operations / seconds, "IOPS"),
    }
    latencies = [job[name]["lat_ns"] for job in jobs for name in DIRECTIONS if name in job]
    latencies = [latency for latency in latencies if latency.get("N")]
    if latencies:
        count = sum(latency["N"] for latency in latencies)
        figures["latency_ms_mean"] = math.fsum(latency["mean"] * latency["N"] for latency in latencies) / count / 1e6
        figures["latency_ms_max"] = max(latency["max"] for latency in latencies) / 1e6
        bins: defaultdict[int, int] = defaultdict(int)
        for latency in latencies:
            for at_ns, times in latency.get("bins", {}).items():
                bins[int(at_ns)] += int(times)
        values = percentiles(bins)
        figures |= {f"latency_ms_{name}": min(value / 1e6, figures["latency_ms_max"]) for name, value in values.items()}
    return figures


def log_columns(logs: Mapping[str, Sequence[Entry]], start_ms: float) -> Columns:
    """The series of a run: MB/s, IOPS and mean latency of each interval, over all jobs and directions.

    Each job logs by itself: what ended in the same interval is added up, and latencies are averaged by direction,
    weighted with its IOPS. An interval without an entry had no I/O.
    """
    by_name = {name: _gather_intervals(entries, start_ms) for name, entries in logs.items()}
    last = max((index for by_interval in by_name.values() for index in by_interval), default=-1)
    series: dict[str, list[float]] = {"t_s": [], "megabytes_per_second": [], "iops": [], "latency_ms_mean": []}
    for index in range(last + 1):
        moved, operations, late = (by_name.get(name, {}).get(index, {}) for name in LOGS)
        done = {way: math.fsum(values) for way, values in operations.items()}
        weights = {way: done.get(way, 0.0) for way in late}
        means = {way: math.fsum(values) / len(values) for way, values in late.items()}
        weight = math.fsum(weights.values())
        series["t_s"].append((index + 1) * INTERVAL_MS / 1000)
        series["megabytes_per_second"].append(math.fsum(v for values in moved.values() for v in values) * 1024 / 1e6)
        series["iops"].append(math.fsum(done.values()))
        mean = math.fsum(means[way] * weights[way] for way in means) / weight if weight else math.nan
        series["latency_ms_mean"].append(mean / 1e6)
    return {name: list(values) for name, values in series.items()}


def _gather_intervals(entries: Sequence[Entry], start_ms: float) -> dict[int, dict[int, list[float]]]:
    """Interval -> direction -> values; an entry stands at the end of its interval."""
    intervals: dict[int, dict[int, list[float]]] = {}
    for at_ms, value, way in entries:
        index = max(0, round((at_ms - start_ms) / INTERVAL_MS) - 1)
        intervals.setdefault(index, {}).setdefault(way, []).append(value)
    return intervals


def parse_log(text: str) -> list[Entry]:
    """The entries of a log: ``time (ms), value, direction, ...`` on each line. Raises ``TrialError``."""
    try:
        rows = [line.split(",") for line in text.splitlines() if line.strip()]
        return [(int(row[0]), float(row[1]), int(row[2])) for row in rows]
    except (ValueError, IndexError) as error:
        raise TrialError(f"fio's log is not what fio writes: {error}") from None


def _log(home: Path, folder: Path, name: str) -> list[Entry]:
    content = read_log(home / "log" / f"fio_{name}.log", LOG_BYTES_MAX)
    if content is None:
        return []
    (folder / f"fio_{name}.log").write_bytes(content)
    return parse_log(content.decode(errors="replace"))


def _most(jobs: Sequence[Mapping[str, Any]], direction: str, field: str) -> float:
    return max((float(job[direction][field]) for job in jobs if direction in job), default=0.0)


def _seconds(jobs: Sequence[Mapping[str, Any]], directions: Sequence[str]) -> float:
    """How long jobs ran: those of a group beside each other, groups one after the other (``stonewall``)."""
    groups: defaultdict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for job in jobs:
        groups[int(job.get("groupid", 0))].append(job)
    return sum(max(_most(group, name, "runtime") for name in directions) for group in groups.values()) / 1000


def _total(jobs: Sequence[Mapping[str, Any]], direction: str) -> int:
    return sum(int(job[direction]["total_ios"]) for job in jobs if direction in job)


def _direction(jobs: Sequence[Mapping[str, Any]], name: str) -> dict[str, float]:
    """What a trial keeps of one direction of a mix."""
    moved = sum(int(job[name]["io_bytes"]) for job in jobs if name in job)
    return {"operations": _total(jobs, name), "bytes": moved, "seconds": _seconds(jobs, (name,))}


FIO = Program(("fio",), "fio")
FILE = "dbdyno.fio"  # the one file of a profile
MIX_READ_PERCENT = 70  # KDiskMark's
LAYOUT = ("rw=write", "bs=1M", "ioengine=psync", "refill_buffers", "end_fsync=1")
_SET_NS_MIN = INTERVAL_MS * 1_000_000 // 2  # by which the time of day was set, rather than both clocks read apart


@dataclass(frozen=True)
class Fio(ByTool[FioSection]):
    """The fio load of one treatment."""

    tool = FIO

    def prepare(self, context: StackContext) -> None:
        """Lay out the files: a trial reads, or writes over, what is there already."""
        assert context.files is not None  # noqa: S101  (a fio load has them)
        home = home_of_program(context)
        if self.section.job:
            sources = self._sources()
            if sources.logs:
                lay_out = home.parent / "layout.fio"
                lay_out.write_text(_layout(sources.reach_bytes), encoding="utf-8")
                lay_out.chmod(0o644)
                argv = ["fio", str(lay_out)]
                run_program(context, "fio", argv, folder=context.scratch, limit_seconds=DAY_SECONDS, cwd=context.files)
            argv = ["fio", "--create_only=1", str(self._job(home, context.files, sources))]
        else:
            size = f"--size={self.section.size_bytes}"
            argv = ["fio", "--name=layout", f"--directory={context.files}", f"--filename={FILE}", size]
            argv += [f"--{option}" for option in LAYOUT]
        run_program(context, "fio", argv, folder=context.scratch, limit_seconds=DAY_SECONDS, cwd=self._cwd(context))

    def run(self, context: StackContext, seed: int, folder: Path) -> ToolLoad:
        """Run the profile or the job. Raises ``TrialError`` with fio's own words."""
        assert context.files is not None  # noqa: S101  (a fio load has them)
        home = home_of_program(context)
        argv = ["fio", "--output-format=json+", "--group_reporting", "--lat_percentiles=1", *_logging(home)]
        if self.section.job:
            argv += [str(self._job(home, context.files, self._sources()))]
        else:
            argv += self._profile(context.files, seed)
        # fio's logs have the time of day; the probes have the monotonic clock.
        ahead_ns = _ahead_ns()
        limit, cwd = self.limit_seconds, self._cwd(context)
        ended = run_program(context, "fio", argv, folder=folder, limit_seconds=limit, cwd=cwd)
        if abs(_ahead_ns() - ahead_ns) > _SET_NS_MIN:
            raise TrialError("the time of day was set while fio ran, which dates its logs: they fit no other series")
        return read_fio(ended, home, folder, ahead_ns)

    def _profile(self, files: Path, seed: int) -> list[str]:
        section = self.section
        is_random, block, depth, threads = section.shape
        order = {"read": "read", "write": "write", "mix": "rw"}[section.load or "read"]
        argv = ["--name=profile", f"--directory={files}", f"--filename={FILE}", f"--size={section.size_bytes}"]
        argv += [f"--rw={'rand' if is_random else ''}{order}", f"--rwmixread={MIX_READ_PERCENT}", f"--bs={block}"]
        argv += [f"--iodepth={depth}", f"--numjobs={threads}", "--ioengine=libaio", f"--direct={section.direct:d}"]
        argv += ["--refill_buffers", "--end_fsync=1", f"--randseed={seed % 2**32}", "--time_based"]
        argv += [f"--runtime={round(section.measured_seconds * 1000)}ms"]
        return [*argv, f"--ramp_time={round(section.warmup * 1000)}ms"] if section.warmup else argv

    def _cwd(self, context: StackContext) -> Path:
        """Where fio stands: under ``directory`` it crashes as it replays a log, so its files are named from here."""
        assert context.files is not None  # noqa: S101  (a fio load has them)
        return context.files if self.section.job and self._sources().logs else home_of_program(context)

    def _sources(self) -> JobSources:
        """What the job file reads. Raises ``TrialError``: it may have been changed since the study was read."""
        try:
            return job_sources(Path(self.section.job or ""))
        except (OSError, ValueError) as error:
            raise TrialError(f"{self.section.job}: {getattr(error, 'strerror', None) or error}") from None

    def _job(self, home: Path, files: Path, sources: JobSources) -> Path:
        """The job file, held to the trial's folder; only fio's user writes below ``home``, so it stands beside it."""
        path = Path(self.section.job or "")
        try:
            text = read_text(path)
            for mistake in job_mistakes(text, path.parent):  # once more: it may have been changed
                raise TrialError(f"{path}: {mistake}")
            logs = {}
            for number, (name, log) in enumerate(sources.logs.items()):
                copy = home.parent / f"{number}.iolog"
                with copy.open("w", encoding="utf-8") as file:
                    file.writelines(render_log(read_io_log(log)))
                copy.chmod(0o644)
                logs[name] = os.path.relpath(copy, files)
            forced = {} if logs else {"directory": str(files)}
            job = home.parent / "job.fio"
            job.write_text(render_job(text, forced, path.parent, logs), encoding="utf-8")
            job.chmod(0o644)
        except (OSError, ValueError) as error:
            raise TrialError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
        return job


def _layout(reach_bytes: Mapping[str, int]) -> str:
    """Return the job that lays out files for logs to be replayed on, one after the other."""
    common = "\n".join(LAYOUT)
    jobs = [
        f"[{number}]\nstonewall\nfilename={name}\nsize={-(-size // MIB) * MIB}\n"
        for number, (name, size) in enumerate(reach_bytes.items())
    ]
    return f"[global]\n{common}\n{''.join(jobs)}"


def _logging(home: Path) -> list[str]:
    own_folder(home / "log")
    names = [f"--write_{log}_log={home / 'log' / 'fio'}" for log in LOGS]
    return [*names, f"--log_avg_msec={INTERVAL_MS}", "--per_job_logs=0", "--log_unix_epoch=1"]


def _ahead_ns() -> int:
    """How far the time of day is ahead of the monotonic clock; corrections of either's rate are of both."""
    return max(time.time_ns() - now_ns() for _ in range(3))  # noqa: TID251 - who is held up between both reads has less
