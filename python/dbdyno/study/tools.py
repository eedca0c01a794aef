"""``[workload]`` of somebody else's programs, run as what they are. Fields are called as the programs call them."""

import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, StrictBool

from dbdyno.study.section import Line
from dbdyno.study.units import Duration, Size
from dbdyno.study.workload_section import WorkloadSection

# Metrics that a program tells, by what they are of.
CLIENT = ("seconds_real", "seconds_user", "seconds_sys")
LATENCIES = tuple(f"latency_ms_{name}" for name in ("mean", "p50", "p95", "p99", "p999", "max"))

_PROFILE = re.compile(r"(SEQ|RND)([1-9][0-9]{0,3})([KM]) Q([1-9][0-9]{0,3})T([1-9][0-9]{0,2})")


def _profile(text: str) -> str:
    if not _PROFILE.fullmatch(text):
        msg = 'is no profile in KDiskMark\'s words, such as "SEQ1M Q8T1" or "RND4K Q32T16"'
        raise ValueError(msg)
    return text


class FioSection(WorkloadSection):
    """``fio``: one of KDiskMark's profiles, or a job file of the user's own."""

    METRIC: ClassVar[str] = "megabytes_per_second"
    TELLS: ClassVar[frozenset[str] | None] = frozenset({"megabytes_per_second", "iops", *LATENCIES, *CLIENT})
    SCREENED: ClassVar[tuple[str, ...]] = ("iops", "latency_ms_mean", "latency_ms_p99", "latency_ms_max")
    SERVER: ClassVar[Literal["needed", "either", "none"]] = "none"
    FILES: ClassVar[bool] = True

    kind: Literal["fio"]
    """fio itself on files of the measured filesystem, without a server: [tools.md](tools.md)."""
    profile: Annotated[str, AfterValidator(_profile)] | None = None
    """In KDiskMark's words, such as `"SEQ1M Q8T1"` or `"RND4K Q32T16"`: sequential or random, block size, queue depth,
    threads with a queue each. Required without `job`.
    """
    load: Literal["read", "write", "mix"] | None = None
    """Of a profile, which needs one; `mix` is 70 % reads."""
    job: Line | None = None
    """A job file of fio's, relative to the study. It says everything else itself."""
    size: Annotated[Size, Field(ge=1024**2)] | None = None
    """Of the profile's one file, laid out before the trials; 1 GiB unless given."""
    duration: Annotated[Duration, Field(ge=0.5)] | None = None
    """Measured time of a profile; 5 s unless given."""
    warmup: Annotated[Duration, Field(ge=0)] = 0.0
    """fio's `ramp_time`: the same load before, not measured."""
    direct: StrictBool = True
    """Past the page cache (O_DIRECT)."""

    @property
    def size_bytes(self) -> int:
        """Size of a profile's file; KDiskMark's is 1 GiB."""
        return 1024**3 if self.size is None else self.size

    @property
    def measured_seconds(self) -> float:
        """Seconds of a profile; KDiskMark's are 5."""
        return 5.0 if self.duration is None else self.duration

    @property
    def shape(self) -> tuple[bool, int, int, int]:
        """Of a profile: whether random, block size in bytes, queue depth, and threads that have one each."""
        match = _PROFILE.fullmatch(self.profile or "")
        assert match is not None  # noqa: S101  (a rule of the study format)
        order, number, unit, depth, threads = match.groups()
        return order == "RND", int(number) * {"K": 1024, "M": 1024**2}[unit], int(depth), int(threads)

    def data(self) -> dict[str, Any]:
        """A file of that size, or what the job lays out."""
        return {"kind": self.kind} | ({"job": self.job} if self.job else {"size": self.size_bytes})

    def own_files(self) -> dict[str, str]:
        """The job file."""
        return {"job": self.job} if self.job else {}

    @property
    def seconds_bound(self) -> float | None:
        """Measured seconds of a profile; a job file has its own bounds."""
        return None if self.job else self.measured_seconds

    @property
    def seconds_before(self) -> float:
        """Seconds of the same load before measuring."""
        return self.warmup
