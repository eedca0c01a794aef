"""The workload ``fio``: KDiskMark's profiles and job files, run by fio itself on files of the trial's own.

The profiles' options are those that KDiskMark gives (its ``src/benchmark.cpp``).
"""

import time
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import TrialError
from dbdyno.servers.user import own_folder
from dbdyno.stack.layer import StackContext
from dbdyno.study.fio_job import job_mistakes, written_anew
from dbdyno.study.tools import FioSection
from dbdyno.system.clock import now_ns
from dbdyno.workload.fio_output import INTERVAL_MS, LOGS, read_fio
from dbdyno.workload.program import Program, home_of_program, run_program
from dbdyno.workload.time_limit import DAY_SECONDS
from dbdyno.workload.tool import ByTool
from dbdyno.workload.tool_load import ToolLoad

FIO = Program(("fio",), "fio")
FILE = "dbdyno.fio"  # the one file of a profile
MIX_READ_PERCENT = 70  # KDiskMark's
LAYOUT_BLOCK = "1M"
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
            argv = ["fio", "--create_only=1", str(self._job(home, context.files))]
        else:
            size = f"--size={self.section.size_bytes}"
            argv = ["fio", "--name=layout", f"--directory={context.files}", f"--filename={FILE}", size]
            argv += ["--rw=write", f"--bs={LAYOUT_BLOCK}", "--ioengine=psync", "--refill_buffers", "--end_fsync=1"]
        run_program(context, "fio", argv, folder=context.scratch, limit_seconds=DAY_SECONDS, cwd=home)

    def run(self, context: StackContext, seed: int, folder: Path) -> ToolLoad:
        """Run the profile or the job. Raises ``TrialError`` with fio's own words."""
        assert context.files is not None  # noqa: S101  (a fio load has them)
        home = home_of_program(context)
        argv = ["fio", "--output-format=json+", "--group_reporting", "--lat_percentiles=1", *_logging(home)]
        argv += [str(self._job(home, context.files))] if self.section.job else self._profile(context.files, seed)
        # fio's logs have the time of day; the probes have the monotonic clock.
        ahead_ns = _ahead_ns()
        ended = run_program(context, "fio", argv, folder=folder, limit_seconds=self.limit_seconds, cwd=home)
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

    def _job(self, home: Path, files: Path) -> Path:
        """The job file, held to the trial's folder; only fio's user writes below ``home``, so it stands beside it."""
        assert self.section.job is not None  # noqa: S101  (asked by the caller)
        try:
            text = Path(self.section.job).read_text(encoding="utf-8")
        except OSError as error:
            raise TrialError(f"{self.section.job}: can't be read: {error.strerror}") from None
        folder = Path(self.section.job).parent
        for said in job_mistakes(text, folder):  # once more: it may have been changed since the study was read
            raise TrialError(f"{self.section.job}: {said}")
        job = home.parent / "job.fio"
        job.write_text(written_anew(text, {"directory": str(files)}, folder), encoding="utf-8")
        job.chmod(0o644)
        return job


def _logging(home: Path) -> list[str]:
    own_folder(home / "log")
    names = [f"--write_{log}_log={home / 'log' / 'fio'}" for log in LOGS]
    return [*names, f"--log_avg_msec={INTERVAL_MS}", "--per_job_logs=0", "--log_unix_epoch=1"]


def _ahead_ns() -> int:
    """How far the time of day is ahead of the monotonic clock; corrections of either's rate are of both."""
    return max(time.time_ns() - now_ns() for _ in range(3))  # who is held up between both reads has less
