"""``[workload]`` of other programs, run as what they are. Fields are called as the programs call them."""

import re
import shlex
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, StrictBool, StrictInt

from dbdyno.study.section import Line, matching
from dbdyno.study.sql_sections import OltpEvents, SlapTable
from dbdyno.study.units import Duration, Size
from dbdyno.study.workload_section import Count, WorkloadSection

# Metrics that a program reports, by what they are of.
CLIENT = ("seconds_real", "seconds_user", "seconds_sys")
QUERIES = ("queries_per_second", "client_cpu_us_per_query", "server_cpu_us_per_query", "written_bytes_per_query",
           "read_bytes_per_query")  # fmt: skip
LATENCIES = tuple(f"latency_ms_{name}" for name in ("mean", "p50", "p95", "p99", "p999", "max"))
BONNIE = ("seeks_per_second", "write_megabytes_per_second", "rewrite_megabytes_per_second", "read_megabytes_per_second",
          "file_creates_per_second", "file_stats_per_second", "file_deletes_per_second")  # fmt: skip

_PROFILE = r"(SEQ|RND)([1-9][0-9]{0,3})([KM]) Q([1-9][0-9]{0,3})T([1-9][0-9]{0,2})"
Profile = Annotated[
    str, matching(_PROFILE, 'is no profile in KDiskMark\'s words, such as "SEQ1M Q8T1" or "RND4K Q32T16"')
]
Unit = Annotated[
    str,
    matching(r"[\w /%.-]{1,24}", 'is no unit of at most 24 letters, digits, blanks or / % . -, such as "requests/s"'),
]


def _whole_seconds(seconds: float) -> float:
    if seconds != round(seconds):
        raise ValueError("sysbench can't keep; give whole seconds")
    return seconds


def _words(text: str) -> str:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"can't be split into words: {str(error).lower()}") from None
    if not words:
        raise ValueError("names no program")
    return text


def _figure(text: str) -> str:
    if text.startswith("$."):
        if re.fullmatch(r"\$(\.[A-Za-z_][\w-]*|\[[0-9]+\])+", text):
            return text
        raise ValueError('is no path in JSON, such as "$.runs[0].rate"')
    try:
        groups = re.compile(text).groups
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from None
    if groups != 1:
        raise ValueError(f"has {groups} groups; give one, around the number")
    return text


class FioSection(WorkloadSection):
    """``fio``: one of KDiskMark's profiles, or a job file of the user's own."""

    METRIC: ClassVar[str] = "megabytes_per_second"
    REPORTS: ClassVar[frozenset[str] | None] = frozenset({"megabytes_per_second", "iops", *LATENCIES, *CLIENT})
    SECONDARY: ClassVar[tuple[str, ...]] = ("iops", "latency_ms_mean", "latency_ms_p99", "latency_ms_max")
    SERVER: ClassVar[Literal["needed", "either", "none"]] = "none"
    FILES: ClassVar[bool] = True

    kind: Literal["fio"]
    """fio itself on files of the measured filesystem, without a server: [tools.md](tools.md)."""
    profile: Profile | None = None
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
    def data_bytes(self) -> int:
        """A profile's file; of a job file's nothing is known."""
        return 0 if self.job else self.size_bytes

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
        match = re.fullmatch(_PROFILE, self.profile or "")
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


class BonnieSection(WorkloadSection):
    """``bonnie``: Bonnie++ on a file and many small files."""

    AMOUNT: ClassVar[str] = "size"
    METRIC: ClassVar[str] = "seeks_per_second"
    SECONDARY: ClassVar[tuple[str, ...]] = BONNIE
    REPORTS: ClassVar[frozenset[str] | None] = frozenset({*BONNIE, *CLIENT})
    SERVER: ClassVar[Literal["needed", "either", "none"]] = "none"
    FILES: ClassVar[bool] = True

    kind: Literal["bonnie"]
    """Bonnie++ on a file, and on many small ones: [tools.md](tools.md)."""
    size: Annotated[Size, Field(ge=16 * 1024**2)]
    """Of the file: more than `memory`, twice as much if you can, or the page cache answers. Whole MiB."""
    files: Annotated[StrictInt, Field(ge=0, le=1024)] = 16
    """So many times 1024 empty files are made, looked at and deleted; 0: none."""
    per_char: StrictBool = False
    """Whether single characters are written and read too, which takes long and measures the C library."""

    @property
    def data_bytes(self) -> int:
        """The file."""
        return self.size


class SysbenchSection(OltpEvents):
    """``sysbench``: sysbench's own OLTP scripts; fields are those of ``oltp``, where sysbench 1.0 has them."""

    AMOUNT: ClassVar[str] = "events"
    DATA: ClassVar[frozenset[str]] = OltpEvents.SBTEST | {"rand_type"}
    REPORTS: ClassVar[frozenset[str] | None] = frozenset(
        {"events_per_second", "errors", "reconnects", *QUERIES, *LATENCIES, *CLIENT}
    )

    kind: Literal["sysbench"]
    """sysbench's own OLTP scripts, run by sysbench: [tools.md](tools.md)."""
    clients: Annotated[StrictInt, Field(ge=1, le=4096)] = 1
    """sysbench's threads, each with a connection."""
    events: Count | None = None
    """The amount, of all clients together. This or `duration`."""
    duration: Annotated[Duration, Field(ge=1), AfterValidator(_whole_seconds)] | None = None
    """Measured time, in whole seconds."""
    rate: Annotated[StrictInt, Field(ge=0, le=10**8)] = 0
    """Transactions per second that are offered; 0: as many as there can be."""
    rand_type: Literal["uniform", "gaussian", "special", "pareto"] = "special"
    """Which ids are hot."""
    prepared: StrictBool = True
    """Prepared statements, or text."""


class MysqlslapSection(SlapTable):
    """``mysqlslap``: mysqlslap's own run of the SQL that it generates."""

    AMOUNT: ClassVar[str] = "queries"
    METRIC: ClassVar[str] = "queries_per_second"
    REPORTS: ClassVar[frozenset[str] | None] = frozenset({*QUERIES, *CLIENT})

    kind: Literal["mysqlslap"]
    """mysqlslap's own generated SQL, run by mysqlslap: [tools.md](tools.md)."""
    clients: Annotated[StrictInt, Field(ge=1, le=4096)] = 1
    """mysqlslap's `concurrency`."""
    queries: Count
    """Of all clients together (`number-of-queries`). What does not divide evenly is left out."""
    iterations: Annotated[StrictInt, Field(ge=1, le=1000)] = 1
    """Runs inside a trial, each on new tables; seconds are their mean."""


class CommandSection(WorkloadSection):
    """``command``: any program, and how to read its figure."""

    AMOUNT: ClassVar[str] = "what it does"
    REPORTS: ClassVar[frozenset[str] | None] = frozenset({"figure_more", "figure_less", *CLIENT})
    SECONDARY: ClassVar[tuple[str, ...]] = ("seconds_real", "seconds_user", "seconds_sys")
    SERVER: ClassVar[Literal["needed", "either", "none"]] = "either"
    FILES: ClassVar[bool] = True

    kind: Literal["command"]
    """Any program, beside a server or, with `server = "none"`, on the filesystem alone: [tools.md](tools.md)."""
    command: Annotated[Line, AfterValidator(_words)]
    """The program and its arguments, split into words as a shell does, without one. A path is relative to the study."""
    figure: Annotated[str, AfterValidator(_figure)] | None = None
    """Where its figure stands in what it prints: a regular expression with one group (its last match counts), or a path
    in JSON such as `"$.rate"`. If not given, the figure is its seconds.
    """
    unit: Unit = "figure"
    """What the figure is called in reports, such as `"requests/s"`."""
    better: Literal["more", "less"] = "more"
    """Which figure is better."""
    time_limit: Annotated[Duration, Field(ge=1)] = 3600.0
    """A program that runs longer is ended, and the trial has failed."""

    @property
    def metric(self) -> str:
        """The figure, else the seconds."""
        if self.figure is None:
            return "seconds_real"
        return "figure_more" if self.better == "more" else "figure_less"

    @property
    def words(self) -> list[str]:
        """The program and its arguments."""
        return shlex.split(self.command)


class DumpSection(WorkloadSection):
    """``dump``: a logical backup by mariadb-dump, or putting one back."""

    DATA: ClassVar[frozenset[str]] = frozenset({"load", "tables", "table_size", "no_autocommit"})
    METRIC: ClassVar[str] = "megabytes_per_second"
    SECONDARY: ClassVar[tuple[str, ...]] = ("rows_per_second", "seconds_real", "seconds_user")
    REPORTS: ClassVar[frozenset[str] | None] = frozenset({"megabytes_per_second", "rows_per_second", *CLIENT})
    FILES: ClassVar[bool] = True

    kind: Literal["dump"]
    """A logical backup of sysbench's tables, made or put back: [tools.md](tools.md)."""
    load: Literal["dump", "restore"]
    """`dump`: mariadb-dump writes the tables into a file. `restore`: the client reads one into an empty schema."""
    tables: Annotated[StrictInt, Field(ge=1, le=1000)] = 1
    """Tables as sysbench makes them."""
    table_size: Annotated[StrictInt, Field(ge=1)] = 10_000
    """Rows of each, about 195 bytes a row in the file."""
    single_transaction: StrictBool = True
    """mariadb-dump's `--single-transaction`: a consistent view without locks, of engines that have transactions. Else
    it locks the tables.
    """
    no_autocommit: StrictBool = False
    """mariadb-dump's `--no-autocommit`: a COMMIT after each table, and so fewer of them when it is put back."""

    @property
    def data_bytes(self) -> int:
        """The rows, and the file."""
        return 2 * self.tables * self.table_size * 188


Tools = FioSection | BonnieSection | SysbenchSection | MysqlslapSection | CommandSection | DumpSection
