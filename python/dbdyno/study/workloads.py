"""``[workload]``: one section class per kind of load. Names say the same as the flags of ``dbdyno VERB``.

Kinds that run other people's programs are in ``tools``.
"""

import re
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BeforeValidator, Field, StrictBool, StrictInt

from dbdyno.study.section import HostName, Line, matching
from dbdyno.study.sql_sections import OltpEvents, SbtestTables, SlapTable
from dbdyno.study.tools import Tools
from dbdyno.study.trace_section import TraceSection
from dbdyno.study.units import Duration, Size
from dbdyno.study.warm_up import SHORTEST_STEADY_SECONDS, WarmUp
from dbdyno.study.workload_section import Count, Some, WorkloadSection

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


class GeneratedSection(WorkloadSection):
    """A kind that ``dbdyno-load`` offers."""

    clients: Annotated[StrictInt, Field(ge=1, le=4096)] = 1
    """Connections."""
    ignore_errors: ErrorCodes = "none"
    """Error codes that do not fail the trial, as one text: `"1213,1205"`, or `"all"`. The report says what was met."""
    io_threads: Annotated[StrictInt, Field(ge=1, le=64)] = 1
    """Threads of the load generator that share the connections."""
    clients_from: list[HostName] = Field(default_factory=list, max_length=100)
    """Names from the file of hosts, such as `["c1", "c2"]`: each of them has its share of `clients` and `rate`, and
    `io_threads` of its own, instead of this machine. See [hosts.md](hosts.md#load-from-other-hosts). Needs `duration`.
    """


class LoopSection(GeneratedSection):
    """A kind whose clients go round and round: closed (each waits for its answer) or open (at a rate)."""

    duration: Annotated[Duration, Field(ge=0.1)] | None = None
    """Measured time. No event starts after it; those in flight are waited for. Give this or the amount, not both."""
    rate: Annotated[float, Field(ge=0, le=1e8)] = 0.0
    """Open loop: events per second of all clients together; latency counts from when an event was due. 0: closed loop.
    """
    arrivals: Literal["poisson", "fixed"] = "poisson"
    """Times between the events of an open loop. Needs `rate`."""
    think_time: Annotated[Duration, Field(ge=0)] = 0.0
    """Closed loop: mean pause of a client between its events. Not with a `rate`."""
    think_distribution: Literal["exponential", "fixed"] = "exponential"
    """Of that pause. Needs `think_time`."""
    warmup: WarmUp = 0.5
    """The same load before measuring, not counted. Its writes stay. `steady`: until its rate no longer drifts."""
    warmup_max: Annotated[Duration, Field(ge=SHORTEST_STEADY_SECONDS)] = 60.0
    """How long `warmup = "steady"` takes at most; then it is measured all the same, and the report says so."""

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
    """The amount. What does not divide evenly is left out."""


class KeysSection(LoopSection):
    """A kind that draws keys by one of sysbench's distributions; what is left out is as in sysbench."""

    AMOUNT: ClassVar[str] = "events"
    DISTRIBUTION: ClassVar[tuple[str, ...]] = (
        *("rand_spec_iter", "rand_spec_pct", "rand_spec_res"),
        *("rand_pareto_h", "rand_zipfian_exp", "rand_exponential_rate"),
    )

    events: Count | None = None
    """The amount."""
    rand_spec_iter: Annotated[StrictInt, Field(ge=1, le=1000)] | None = None
    """Of `special`: how many numbers are averaged. sysbench's 12 if not given."""
    rand_spec_pct: Annotated[float, Field(ge=0, le=100)] | None = None
    """Of `special`: percent of the keys that are hot. 1 if not given."""
    rand_spec_res: Annotated[float, Field(ge=0, le=100)] | None = None
    """Of `special`: percent of the accesses that go to these. 75 if not given."""
    rand_pareto_h: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Of `pareto`: its shape. 0.2 if not given."""
    rand_zipfian_exp: Annotated[float, Field(ge=0, le=100)] | None = None
    """Of `zipfian`: its exponent. 0.8 if not given."""
    rand_exponential_rate: Annotated[float, Field(gt=0, le=100)] | None = None
    """Of `exponential`: its rate. 10 if not given."""
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
    """Of a row, its key included."""
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
    """How many, of about 100 MB each."""
    mix: Mix = "new_order=45,payment=43,order_status=4,delivery=4,stock_level=4"
    """Weights of the transactions, or one name alone: `"new_order"`. The standard's if not given."""
    keying: StrictBool = False
    """The standard's keying and think times, with 10 clients a warehouse: then `clients` is not given."""
    events: Count | None = None
    """The amount: transactions."""
    ignore_errors: ErrorCodes = "1213,1205,1020"
    """Deadlock, lock wait timeout, record changed since last read: the transaction is sent again."""

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
    """A connection more, that makes, fills, alters, renames, truncates and drops tables; in no figure of the load."""
    events: Count | None = None
    """The amount: transactions."""
    ignore_errors: ErrorCodes = "1213,1205,1020"
    """Deadlock, lock wait timeout, record changed since last read: the transaction is sent again."""

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
    """`procedure`: an event is a CALL of a stored procedure that adds `rows_per_call` rows. `statement`: an INSERT of
    `rows_per_insert` rows, or a transaction of such INSERTs.
    """
    rows: Count | None = None
    """The amount."""
    rows_per_call: Annotated[StrictInt, Field(ge=1, le=10**9)] = 1000
    """Of a CALL. What was added is counted when it ends."""
    rows_per_insert: Annotated[StrictInt, Field(ge=1, le=10_000)] = 1
    """Of an INSERT."""
    rows_per_commit: Annotated[StrictInt, Field(ge=1, le=10**9)] = 1
    """Rows of a transaction; 1: every row of a CALL, or every INSERT, commits itself."""
    value_range: Annotated[StrictInt, Field(ge=1, le=2**31 - 1)] = 100_000_000
    """The indexed integers are 0 to this."""
    initial_rows: Annotated[StrictInt, Field(ge=0)] = 0
    """Rows that the table starts with."""
    prepared: StrictBool = True
    """Prepared statements, or text."""
    warmup: WarmUp = 0.0
    """None, since the table starts empty and a warm-up would fill it."""


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
    """Relative to the study. Its text is part of the run's identity and kept in the run folder."""
    events: Count | None = None
    """The amount."""
    weights: Pairs = ""
    """Of its blocks: `"buy=3,look=7"`. The file's if not given."""
    set: Pairs = ""
    """Its constants: `"items=5000"`. The file's if not given."""
    prepared: StrictBool = True
    """Prepared statements, or text."""

    def own_files(self) -> dict[str, str]:
        """The script."""
        return {"file": self.file}


class ReplayLogSection(GeneratedSection):
    """``replay-log``: a server's slow or general query log, with its sessions and times."""

    DATA: ClassVar[frozenset[str]] = frozenset({"setup"})
    METRIC: ClassVar[str] = "latency_ms_p99"

    kind: Literal["replay-log"]
    """A slow or general query log of MySQL or MariaDB, its statements sent when they came."""
    file: Line
    """The log, relative to the study. The run folder keeps the SHA-256 of its content and no text of it."""
    setup: Line | None = None
    """SQL that makes the tables, such as a dump, relative to the study; kept as the log is. If not given, what the log
    itself makes is there (`writes`), or nothing.
    """
    speed: Annotated[float, Field(ge=0, le=1e6)] = 1.0
    """Times as fast as logged; 0: each session sends its next statement when the one before is answered."""
    writes: StrictBool = False
    """Send the statements that write, too. Else all that is sent runs in transactions that only read."""
    from_schema: Line | None = None
    """The schema of the log whose statements are sent, where it has several."""
    duration: Annotated[Duration, Field(ge=0.1)] | None = None
    """Of a run; to the log's end if not given. No statement starts after it."""
    clients: Annotated[StrictInt, Field(ge=1, le=4096)] = 100
    """Connections at most. A log with more sessions at a time is refused."""

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
KINDS: dict[str, type[WorkloadSection]] = {one.named(): one for one in get_args(Workload)}
USERS_SQL = ("script", "replay-log")  # kinds whose statements are the user's own
