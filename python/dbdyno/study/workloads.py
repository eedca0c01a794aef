"""``[workload]``: one section class per kind of load. Names say the same as the flags of ``dbdyno VERB``.

Kinds that run other people's programs are in ``tools``.
"""

import re
import shlex
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, StrictInt

from dbdyno.model.metrics import LATENCIES
from dbdyno.mysql.table_options import parse_table_options
from dbdyno.study.document import Count, HostName, Line, Some, WorkloadSection, matching
from dbdyno.study.fio_job import JobSources, job_sources
from dbdyno.study.units import SHORTEST_STEADY_SECONDS, Duration, Size, WarmUp

# Fields of loads that dbdyno and the program itself both offer: mysqlslap's SQL, sysbench's tables and events.


class SlapTable(WorkloadSection):
    """mysqlslap's generated SQL; names and defaults are mysqlslap's."""

    load: Literal["read", "key", "write", "update", "mixed"] = "mixed"
    """`read`: SELECT of the whole table. `key`: SELECT by key. `write`: INSERT. `update`: UPDATE by key; without a key,
    of the whole table. `mixed`: INSERT and SELECT in turn, the SELECT by key only if there is one.
    """
    int_cols: Annotated[StrictInt, Field(ge=0, le=500)] = 1
    """Integer columns."""
    char_cols: Annotated[StrictInt, Field(ge=0, le=500)] = 1
    """Columns `VARCHAR(128)`, filled with 126 characters; one column of either kind is needed."""
    autoincrement: StrictBool = False
    """Give the table a serial id."""
    guid_primary: StrictBool = False
    """Give it a UUID as primary key; `load = "key"` needs one of the two."""
    secondary_indexes: Annotated[StrictInt, Field(ge=0, le=60)] = 0
    """Columns of UUIDs, each with a unique index."""
    initial_rows: Count = 100
    """mysqlslap's write-number: the table starts with this many rows less one."""
    unique_queries: Count = 10
    """Distinct statements less one; all clients walk the same list."""
    unique_writes: Count = 10
    """Distinct rows among the initial ones."""
    commit_every: Annotated[StrictInt, Field(ge=0)] = 0
    """COMMIT after this many statements of a client; 0: every statement commits itself."""


class SbtestTables(WorkloadSection):
    """sysbench's tables, under sysbench's names."""

    SBTEST: ClassVar[frozenset[str]] = frozenset({"tables", "table_size", "auto_inc", "secondary", "create_secondary"})

    tables: Count = 1
    """Tables `sbtest1`, `sbtest2`, ..."""
    table_size: Count = 10_000
    """Rows of each, about 240 bytes a row with the index."""
    auto_inc: StrictBool = True
    """Whether the server makes ids."""
    secondary: StrictBool = False
    """An index on `id` in place of the primary key."""
    create_secondary: StrictBool = True
    """An index on `k`."""

    @property
    def data_bytes(self) -> int:
        """The rows alone: two integers, CHAR(120) and CHAR(60)."""
        return self.tables * self.table_size * 188


class OltpEvents(SbtestTables):
    """sysbench's OLTP scripts and what an event of theirs is made of."""

    load: Literal[
        "read_only",
        "read_write",
        "write_only",
        "point_select",
        "update_index",
        "update_non_index",
        "insert",
        "delete",
    ] = "read_write"
    """sysbench's script `oltp_...` of this name."""
    skip_trx: StrictBool = False
    """Whether BEGIN and COMMIT are left out."""
    point_selects: Some = 10
    """SELECTs by id of an event."""
    range_selects: StrictBool = True
    """Range SELECTs at all."""
    range_size: Count = 100
    """Rows of a range."""
    simple_ranges: Some = 1
    """SELECTs of a range."""
    sum_ranges: Some = 1
    """SELECTs of a range's sum."""
    order_ranges: Some = 1
    """SELECTs of a range in order."""
    distinct_ranges: Some = 1
    """SELECTs of a range's distinct values."""
    index_updates: Some = 1
    """UPDATEs of the indexed column."""
    non_index_updates: Some = 1
    """UPDATEs of a column without an index."""
    delete_inserts: Some = 1
    """A DELETE and an INSERT of the same id."""


def _table_options(text: str) -> str:
    parse_table_options(text)
    return " ".join(text.split())


class OwnTables(WorkloadSection):
    """A kind whose tables ``dbdyno-load`` makes."""

    table_options: Annotated[str, AfterValidator(_table_options)] = ""
    """The [end of CREATE TABLE](workloads.md#table-options), such as `"ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8"`."""

    def data(self) -> dict[str, Any]:
        """What the prepared data depends on: options of its tables, where there are any."""
        return super().data() | ({"table_options": self.table_options} if self.table_options else {})


# ``[workload]`` of other programs, run as what they are. Fields are called as the programs call them.


# Metrics that a program reports, by what they are of.
CLIENT = ("seconds_real", "seconds_user", "seconds_sys")
QUERIES = ("queries_per_second", "client_cpu_us_per_query", "server_cpu_us_per_query", "written_bytes_per_query",
           "read_bytes_per_query")  # fmt: skip
BONNIE = ("seeks_per_second", "write_megabytes_per_second", "rewrite_megabytes_per_second", "read_megabytes_per_second",
          "file_creates_per_second", "file_stats_per_second", "file_deletes_per_second")  # fmt: skip

_PROFILE = r"(SEQ|RND)([1-9][0-9]{0,3})([KM]) Q([1-9][0-9]{0,3})T([1-9][0-9]{0,2})"
Profile = Annotated[
    str, matching(_PROFILE, 'is not a profile in KDiskMark\'s words, such as "SEQ1M Q8T1" or "RND4K Q32T16"')
]
Unit = Annotated[
    str,
    matching(
        r"[\w /%.-]{1,24}", 'is not a unit of at most 24 letters, digits, blanks or / % . -, such as "requests/s"'
    ),
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
        raise ValueError('is not a path in JSON, such as "$.runs[0].rate"')
    try:
        groups = re.compile(text).groups
    except re.error as error:
        raise ValueError(f"is not a regular expression: {error}") from None
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
    """In KDiskMark's words, such as `"RND4K Q32T16"`: sequential or random, block size, queue depth, threads with a
    queue each.
    """
    load: Literal["read", "write", "mix"] | None = None
    """What a profile does; `mix` is 70 % reads."""
    job: Line | None = None
    """A job file of fio's, relative to the study. It says all else."""
    size: Annotated[Size, Field(ge=1024**2)] | None = None
    """The size of the profile's one file, laid out before the trials; 1 GiB unless given."""
    duration: Annotated[Duration, Field(ge=0.5)] | None = None
    """Measured time of a profile; 5 s unless given."""
    warmup: Annotated[Duration, Field(ge=0)] = 0.0
    """fio's `ramp_time`: the same load before, not measured."""
    direct: StrictBool = True
    """Past the page cache (O_DIRECT)."""

    @property
    def data_bytes(self) -> int:
        """A profile's file, or what logs reach to; of a job file's own files nothing is known."""
        return sum(self._sources.reach_bytes.values()) if self.job else self.size_bytes

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
        if not self.job:
            return {"kind": self.kind, "size": self.size_bytes}
        variables = self.variables()
        return {"kind": self.kind, **self.own_files(), **self.secret_files()} | (
            {"variables": variables} if variables else {}
        )

    def own_files(self) -> dict[str, str]:
        """The job file, and those that it includes."""
        included = {f"include {name}": str(path) for name, path in self._sources.includes.items()}
        return {"job": self.job} | included if self.job else {}

    def secret_files(self) -> dict[str, str]:
        """The logs that it replays: too long to be kept with each run."""
        return {f"read_iolog {name}": str(path) for name, path in self._sources.logs.items()}

    def variables(self) -> dict[str, str]:
        """Those in the job file."""
        return self._sources.variables

    @property
    def _sources(self) -> JobSources:
        """What the job file reads, which is without a mistake."""
        return job_sources(Path(self.job)) if self.job else JobSources({}, {}, {})

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
    """The size of the file, in whole MiB: more than `memory`, best twice, or the page cache answers."""
    files: Annotated[StrictInt, Field(ge=0, le=1024)] = 16
    """So many times 1024 empty files are made, looked at and deleted; 0: none."""
    per_char: StrictBool = False
    """Write and read single characters too, which measures the C library."""

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
    """The amount: transactions of all clients together. Give this or `duration`."""
    duration: Annotated[Duration, Field(ge=1), AfterValidator(_whole_seconds)] | None = None
    """Measured time, in whole seconds."""
    rate: Annotated[StrictInt, Field(ge=0, le=10**8)] = 0
    """Transactions offered per second; 0: as many as possible."""
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
    """Queries of all clients together (`number-of-queries`)."""
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
    """The program and its arguments, without a shell; a path is relative to the study."""
    figure: Annotated[str, AfterValidator(_figure)] | None = None
    """The figure in what it prints: a regular expression with one group (its last match counts), or a path in JSON such
    as `"$.rate"`. If not given, its seconds.
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


class DumpSection(OwnTables):
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
    """mariadb-dump's `--single-transaction`; else it locks the tables."""
    no_autocommit: StrictBool = False
    """mariadb-dump's `--no-autocommit`: one COMMIT for each table."""

    @property
    def data_bytes(self) -> int:
        """The rows, and the file."""
        return 2 * self.tables * self.table_size * 188


Tools = FioSection | BonnieSection | SysbenchSection | MysqlslapSection | CommandSection | DumpSection


# ``[workload]`` of a recorded block trace; it runs on simulated stacks alone.


class TraceSection(WorkloadSection):
    """``trace``: the requests of a block trace, on a simulated stack."""

    METRIC: ClassVar[str] = "latency_ms_mean"
    REPORTS: ClassVar[frozenset[str] | None] = frozenset(
        {"iops", "megabytes_per_second", "seconds_real", "achieved_ratio", *LATENCIES}
    )
    SECONDARY: ClassVar[tuple[str, ...]] = ("iops", "megabytes_per_second", "latency_ms_p99", "latency_ms_max")
    SERVER: ClassVar[Literal["needed", "either", "none"]] = "none"
    ON_HOST: ClassVar[bool] = False

    kind: Literal["trace"]
    """A block trace replayed on a simulated stack: [workloads.md](workloads.md#trace)."""
    file: Line
    """The trace, relative to the study."""
    replay: Literal["open", "closed"] = "open"
    """At recorded times (`open`), or each after what it waited for then."""
    speed: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    """An open replay is so many times as fast as recorded."""
    time_unit: Literal["s", "ms", "us", "100ns", "ns"] | None = None
    """The unit of the trace's times, if its format leaves that open; a plausible one if not given."""
    length_unit: Literal["sectors", "bytes"] | None = None
    """The same of its places and lengths."""
    fold: bool = False
    """What ends beyond the device wraps around, instead of being left out."""
    duration: Annotated[Duration, Field(ge=0.1)] | None = None
    """How much of the trace is replayed; to its end if not given."""

    def data(self) -> dict[str, Any]:
        """It has none: what is read and written is not looked at."""
        return {"kind": self.kind}

    def secret_files(self) -> dict[str, str]:
        """The trace: too long to be kept with each run."""
        return {"file": self.file}


Distribution = Literal["uniform", "gaussian", "special", "pareto", "zipfian", "exponential"]

_ERROR_CODE_MAX = 65535  # two bytes in the protocol


def _error_codes(text: object) -> str:
    """``"all"``, ``"none"`` or codes separated by commas; a list would be a factor."""
    if isinstance(text, str):
        codes = text.replace(" ", "")
        if codes in {"all", "none"}:
            return codes
        if re.fullmatch(r"[0-9]+(,[0-9]+)*", codes) and all(int(code) <= _ERROR_CODE_MAX for code in codes.split(",")):
            return codes
    raise ValueError('must be error codes as one text, such as "1213,1205", or "all" or "none"')


ErrorCodes = Annotated[str, BeforeValidator(_error_codes)]
# Several between commas, or none.
Pairs = Annotated[
    str, matching(r"(\s*:?\w+\s*=[^,]*(,\s*:?\w+\s*=[^,]*)*)?", 'must be names with values, such as "buy=3,look=7"')
]
# Of tpcc.
Mix = Annotated[
    str,
    matching(
        r"\s*\w+\s*(=\s*\d+\s*)?(,\s*\w+\s*(=\s*\d+\s*)?)*",
        'must be names with weights, such as "new_order=45,payment=43"',
    ),
]


class GeneratedSection(OwnTables):
    """A kind that ``dbdyno-load`` offers."""

    clients: Annotated[StrictInt, Field(ge=1, le=4096)] = 1
    """Connections."""
    ignore_errors: ErrorCodes = "none"
    """Error codes that do not fail the trial, such as `"1213,1205"`, or `"all"`."""
    io_threads: Annotated[StrictInt, Field(ge=1, le=64)] = 1
    """Threads that share the connections."""
    clients_from: list[HostName] = Field(default_factory=list, max_length=100)
    """[Hosts](hosts.md#load-from-other-hosts), such as `["c1", "c2"]`, which share `clients` and `rate`. Needs
    `duration`.
    """


class LoopSection(GeneratedSection):
    """A kind whose clients go round and round: closed (each waits for its answer) or open (at a rate)."""

    duration: Annotated[Duration, Field(ge=0.1)] | None = None
    """Measured time, after which no event starts. Give this or the amount."""
    rate: Annotated[float, Field(ge=0, le=1e8)] = 0.0
    """[Open loop](load.md#closed-loop-open-loop-and-what-a-stall-does-to-them): events per second of all clients. 0:
    closed loop.
    """
    arrivals: Literal["poisson", "fixed"] = "poisson"
    """Times between the events of an open loop. Needs `rate`."""
    think_time: Annotated[Duration, Field(ge=0)] = 0.0
    """Closed loop: mean pause of a client between its events. Not with a `rate`."""
    think_distribution: Literal["exponential", "fixed"] = "exponential"
    """The distribution of that pause. Needs `think_time`."""
    warmup: WarmUp = 0.5
    """The same load before measuring. `steady`: until its rate no longer drifts."""
    warmup_max: Annotated[Duration, Field(ge=SHORTEST_STEADY_SECONDS)] = 60.0
    """The most that `warmup = "steady"` takes."""

    @property
    def seconds_before(self) -> float:
        """Until steady, the bound."""
        return self.warmup_max if self.warmup == "steady" else self.warmup


class SlapSection(SlapTable, LoopSection):
    """``slap``: mysqlslap's auto-generated SQL; names and defaults are mysqlslap's."""

    AMOUNT: ClassVar[str] = "queries"
    DATA: ClassVar[frozenset[str]] = frozenset(
        {"int_cols", "char_cols", "autoincrement", "guid_primary", "secondary_indexes", "initial_rows"}
    )
    ONLY_READ: ClassVar[tuple[str, ...]] = ("read", "key")

    kind: Literal["slap"]
    """mysqlslap's generated SQL."""
    queries: Count | None = None
    """The amount: queries of all clients, divided evenly among them."""


class KeysSection(LoopSection):
    """A kind that draws keys by one of sysbench's distributions; what is left out is as in sysbench."""

    AMOUNT: ClassVar[str] = "events"
    DISTRIBUTION: ClassVar[tuple[str, ...]] = (
        *("rand_spec_iter", "rand_spec_pct", "rand_spec_res"),
        *("rand_pareto_h", "rand_zipfian_exp", "rand_exponential_rate"),
    )

    events: Count | None = None
    """The amount: events of all clients."""
    rand_spec_iter: Annotated[StrictInt, Field(ge=1, le=1000)] | None = None
    """`special`: how many numbers are averaged. sysbench's 12 if not given."""
    rand_spec_pct: Annotated[float, Field(ge=0, le=100)] | None = None
    """`special`: percent of the keys that are hot. 1 if not given."""
    rand_spec_res: Annotated[float, Field(ge=0, le=100)] | None = None
    """`special`: percent of the accesses that go to these. 75 if not given."""
    rand_pareto_h: Annotated[float, Field(gt=0, lt=1)] | None = None
    """`pareto`: its shape. 0.2 if not given."""
    rand_zipfian_exp: Annotated[float, Field(ge=0, le=100)] | None = None
    """`zipfian`: its exponent. 0.8 if not given."""
    rand_exponential_rate: Annotated[float, Field(gt=0, le=100)] | None = None
    """`exponential`: its rate. 10 if not given."""
    prepared: StrictBool = True
    """Prepared statements, or text."""


class SmackSection(KeysSection):
    """``smack``: Super-Smack's statements by random primary key, over rows of a given size."""

    DATA: ClassVar[frozenset[str]] = frozenset({"rows", "row_size", "key", "compressible"})
    ONLY_READ: ClassVar[tuple[str, ...]] = ("select",)

    kind: Literal["smack"]
    """Super-Smack's INSERT, SELECT, UPDATE, DELETE by random primary key over rows of a given size."""
    load: Literal["insert", "select", "update", "delete", "mixed"] = "select"
    """By primary key; `insert` adds new keys, `mixed` is UPDATE and SELECT in turn."""
    rows: Annotated[StrictInt, Field(ge=1, le=10**10)] = 90_000
    """Rows of the table before a run."""
    row_size: Annotated[Size, Field(ge=32, le=65_000)] = 1024
    """The size of a row, its key included."""
    key: Literal["integer", "char"] = "integer"
    """BIGINT, or CHAR(25) as Super-Smack's user names."""
    compressible: Annotated[StrictInt, Field(ge=0, le=100)] = 50
    """Percent of a row's content that compresses away."""
    rand_type: Distribution = "uniform"
    """Which keys are hot."""

    @property
    def data_bytes(self) -> int:
        """The rows alone."""
        return self.rows * self.row_size


class OltpSection(OltpEvents, KeysSection):
    """``oltp``: sysbench's OLTP loads, under sysbench's names."""

    # sysbench draws the values of the column k by the same distribution, so keys shape data and load.
    DATA: ClassVar[frozenset[str]] = OltpEvents.SBTEST | {"rand_type", *KeysSection.DISTRIBUTION}
    ONLY_READ: ClassVar[tuple[str, ...]] = ("read_only", "point_select")

    kind: Literal["oltp"]
    """sysbench's OLTP loads: its tables, statements and distributions."""
    ignore_errors: ErrorCodes = "1213,1020,1205"
    """sysbench's: deadlock, record changed since last read, lock wait timeout."""
    rand_type: Distribution = "special"
    """Which ids are hot, in the load and, as in sysbench, in the column `k`."""
    reconnect_every: Some = 0
    """A client takes a new connection after so many events; 0: never."""

    def data(self) -> dict[str, Any]:
        """What the prepared data depends on: a load that makes up the ids of its rows starts from empty tables."""
        return {**super().data(), "empty": self.load == "insert" and not self.auto_inc}


class TpccSection(LoopSection):
    """``tpcc``: the tables and transactions of TPC-C."""

    AMOUNT: ClassVar[str] = "events"
    DATA: ClassVar[frozenset[str]] = frozenset({"warehouses"})
    TERMINALS: ClassVar[int] = 10  # of a warehouse, clause 4.2.1
    WAREHOUSE_BYTES: ClassVar[int] = 80_000_000

    kind: Literal["tpcc"]
    """The five transactions of TPC-C over its nine tables. No TPC result."""
    warehouses: Annotated[StrictInt, Field(ge=1, le=100_000)] = 1
    """Warehouses, of about 100 MB each."""
    mix: Mix = "new_order=45,payment=43,order_status=4,delivery=4,stock_level=4"
    """Weights of the transactions, or one name alone: `"new_order"`."""
    keying: StrictBool = False
    """The standard's keying and think times, with 10 clients a warehouse."""
    events: Count | None = None
    """The amount: transactions of all clients."""
    ignore_errors: ErrorCodes = "1213,1205,1020"
    """Deadlock, lock wait timeout, record changed: the transaction is sent again."""

    @property
    def metric(self) -> str:
        """New orders, where there are any."""
        return "new_orders_per_minute" if "new_order" in self.mix else self.METRIC

    @property
    def connections(self) -> int:
        """Terminals, or clients."""
        return self.TERMINALS * self.warehouses if self.keying else self.clients

    @property
    def data_bytes(self) -> int:
        """The rows alone."""
        return self.warehouses * self.WAREHOUSE_BYTES


class LedgerSection(LoopSection):
    """``ledger``: transactions of which every one is known afterwards."""

    AMOUNT: ClassVar[str] = "events"
    DATA: ClassVar[frozenset[str]] = frozenset({"accounts"})
    METRIC: ClassVar[str] = "events_per_second"
    ACCOUNT_BYTES: ClassVar[int] = 150

    kind: Literal["ledger"]
    """Transactions of which every one is known afterwards, so that what a crash has left of them can be counted."""
    accounts: Annotated[StrictInt, Field(ge=2, le=10**8)] = 20_000
    """Accounts between which amounts are moved, of about 150 bytes each."""
    parts: Annotated[StrictInt, Field(ge=2, le=16)] = 2
    """Accounts that a transaction changes."""
    payload: Annotated[Size, Field(ge=1, le=7000)] = 200
    """Bytes of the row that a transaction adds."""
    blob_share: Annotated[StrictInt, Field(ge=0, le=100)] = 5
    """Percent of these rows that have a blob, which takes pages of its own."""
    blob_size: Annotated[Size, Field(ge=16_385, le=2**20)] = 20_000
    """Bytes of a blob."""
    ddl: StrictBool = False
    """A further connection makes, fills, alters, renames, truncates and drops tables."""
    events: Count | None = None
    """The amount: transactions of all clients."""
    ignore_errors: ErrorCodes = "1213,1205,1020"
    """Deadlock, lock wait timeout, record changed: the transaction is sent again."""

    @property
    def data_bytes(self) -> int:
        """The accounts alone."""
        return self.accounts * self.ACCOUNT_BYTES


class IngestSection(LoopSection):
    """``ingest``: rows into a table with three secondary indexes, as fast as it takes them."""

    AMOUNT: ClassVar[str] = "rows"
    DATA: ClassVar[frozenset[str]] = frozenset({"initial_rows", "value_range"})
    METRIC: ClassVar[str] = "rows_per_second"

    kind: Literal["ingest"]
    """Rows into a table with three secondary indexes; it starts empty unless it has `initial_rows`."""
    mode: Literal["procedure", "statement"] = "procedure"
    """An event is a CALL that adds `rows_per_call` rows, or an INSERT of `rows_per_insert` (or a transaction of
    such).
    """
    rows: Count | None = None
    """The amount: rows of all clients."""
    rows_per_call: Annotated[StrictInt, Field(ge=1, le=10**9)] = 1000
    """Rows added by a CALL."""
    rows_per_insert: Annotated[StrictInt, Field(ge=1, le=10_000)] = 1
    """Rows of an INSERT."""
    rows_per_commit: Annotated[StrictInt, Field(ge=1, le=10**9)] = 1
    """Rows of a transaction; 1: every row of a CALL, or every INSERT, commits itself."""
    value_range: Annotated[StrictInt, Field(ge=1, le=2**31 - 1)] = 100_000_000
    """The indexed integers are 0 to this."""
    initial_rows: Annotated[StrictInt, Field(ge=0)] = 0
    """Rows that the table starts with."""
    prepared: StrictBool = True
    """Prepared statements, or text."""
    warmup: WarmUp = 0.0
    """A warm-up fills the table."""


class BulkSection(SbtestTables, GeneratedSection):
    """``bulk``: sysbench's prepare as a load of its own: tables made, filled and indexed; its data bounds it."""

    METRIC: ClassVar[str] = "rows_per_second"

    kind: Literal["bulk"]
    """sysbench's prepare, measured: tables made, filled, indexed. It starts empty; its data bounds it. A table is
    filled by one client, so `clients` may not exceed `tables`.
    """
    batch_bytes: Annotated[Size, Field(ge=1024)] = 512 * 1024
    """Greatest length of an INSERT; less than the server's `max_allowed_packet`."""


class ScriptSection(LoopSection):
    """``script``: a SQL file of the user's own, with parameters, transactions and weights."""

    AMOUNT: ClassVar[str] = "events"
    DATA: ClassVar[frozenset[str]] = frozenset({"file", "set"})

    kind: Literal["script"]
    """A SQL file of yours, with parameters, transactions and weights: [script.md](script.md)."""
    file: Line
    """Relative to the study; kept in the run folder."""
    setup: Line | None = None
    """A script whose setup section makes the tables and whose constants `file` shares. Scripts with the same one begin
    with the same prepared data.
    """
    events: Count | None = None
    """The amount: events of all clients."""
    weights: Pairs = ""
    """The weights of its blocks: `"buy=3,look=7"`. The file's if not given."""
    set: Pairs = ""
    """Its constants: `"items=5000"`. The file's if not given."""
    prepared: StrictBool = True
    """Prepared statements, or text."""

    def data(self) -> dict[str, Any]:
        """What makes the tables; which script uses them afterwards is no matter."""
        fields = super().data()
        return (
            {"setup": self.setup, **{name: fields[name] for name in fields if name != "file"}} if self.setup else fields
        )

    def own_files(self) -> dict[str, str]:
        """The script, and what makes its tables."""
        return {"file": self.file} | ({"setup": self.setup} if self.setup else {})


class ReplayLogSection(GeneratedSection):
    """``replay-log``: a server's slow or general query log, with its sessions and times."""

    DATA: ClassVar[frozenset[str]] = frozenset({"setup"})
    METRIC: ClassVar[str] = "latency_ms_p99"

    kind: Literal["replay-log"]
    """A slow or general query log of MySQL or MariaDB, its statements sent when they came."""
    file: Line
    """The log, relative to the study. The run folder keeps no text of it."""
    setup: Line | None = None
    """SQL that makes the tables, such as a dump."""
    speed: Annotated[float, Field(ge=0, le=1e6)] = 1.0
    """How many times as fast as logged; 0: without waiting."""
    writes: StrictBool = False
    """Send the statements that write, too."""
    from_schema: Line | None = None
    """The schema of the log whose statements are sent, where it has several."""
    duration: Annotated[Duration, Field(ge=0.1)] | None = None
    """The length of a run; to the log's end if not given."""
    clients: Annotated[StrictInt, Field(ge=1, le=4096)] = 100
    """The most connections of the log at a time."""

    @property
    def metric(self) -> str:
        """How many are answered is the log's, unless they come as fast as they can."""
        return self.METRIC if self.speed else "queries_per_second"

    @property
    def only_reads(self) -> bool:
        """What is sent is the server's to refuse if it writes."""
        return not self.writes

    def secret_files(self) -> dict[str, str]:
        """The log and the dump."""
        return {"file": self.file} | ({"setup": self.setup} if self.setup else {})


Workload = (
    SlapSection
    | SmackSection
    | OltpSection
    | TpccSection
    | LedgerSection
    | IngestSection
    | BulkSection
    | ScriptSection
    | ReplayLogSection
    | Tools
    | TraceSection
)
KINDS: dict[str, type[WorkloadSection]] = {section.named(): section for section in get_args(Workload)}
USERS_SQL = ("script", "replay-log")  # kinds whose statements are the user's own
