"""``[workload]``: one section class per kind of load. Names say the same as the flags of ``dbdyno VERB``."""

import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, StrictInt

from dbdyno.study.section import Line, Section
from dbdyno.study.units import Duration, Size

Count = Annotated[StrictInt, Field(ge=1)]
Some = Annotated[StrictInt, Field(ge=0, le=100_000)]
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
    msg = 'must be error codes as one text, such as "1213,1205", or "all" or "none"'
    raise ValueError(msg)


def _pairs(text: str) -> str:
    """``"name=value"``, several between commas."""
    if text and not re.fullmatch(r"\s*:?\w+\s*=[^,]*(,\s*:?\w+\s*=[^,]*)*", text):
        msg = 'must be names with values, such as "buy=3,look=7"'
        raise ValueError(msg)
    return text


ErrorCodes = Annotated[str, BeforeValidator(_error_codes)]


class WorkloadSection(Section):
    """What every kind has."""

    AMOUNT: ClassVar[str] = ""  # the field that bounds a run by an amount, if there is one
    DATA: ClassVar[frozenset[str]] = frozenset()  # the fields that shape the prepared data; the others shape the load
    METRIC: ClassVar[str] = "queries_per_second"  # what verdicts are about unless the study says

    kind: str
    clients: Annotated[StrictInt, Field(ge=1, le=4096)] = 1
    ignore_errors: ErrorCodes = "none"
    io_threads: Annotated[StrictInt, Field(ge=1, le=64)] = 1

    def data(self) -> dict[str, Any]:
        """What the prepared data depends on, as values that JSON holds."""
        return self.model_dump(include={"kind", *self.DATA})

    @property
    def seconds_bound(self) -> float | None:
        """Measured seconds, where time bounds a run."""
        return None

    @property
    def seconds_before(self) -> float:
        """Seconds of the same load before measuring."""
        return 0.0


class LoopSection(WorkloadSection):
    """A kind whose clients go round and round: closed (each waits for its answer) or open (at a rate)."""

    duration: Annotated[Duration, Field(ge=0.1)] | None = None
    rate: Annotated[float, Field(ge=0, le=1e8)] = 0.0  # events per second; 0: closed
    arrivals: Literal["poisson", "fixed"] = "poisson"
    think_time: Annotated[Duration, Field(ge=0)] = 0.0
    think_distribution: Literal["exponential", "fixed"] = "exponential"
    warmup: Annotated[Duration, Field(ge=0)] = 0.5

    @property
    def seconds_bound(self) -> float | None:
        """Measured seconds, where time bounds a run."""
        return self.duration

    @property
    def seconds_before(self) -> float:
        """Seconds of the same load before measuring."""
        return self.warmup


class SlapSection(LoopSection):
    """``slap``: mysqlslap's auto-generated SQL; names and defaults are mysqlslap's."""

    AMOUNT: ClassVar[str] = "queries"
    DATA: ClassVar[frozenset[str]] = frozenset(
        {"int_cols", "char_cols", "autoincrement", "guid_primary", "secondary_indexes", "initial_rows"}
    )

    kind: Literal["slap"]
    load: Literal["read", "key", "write", "update", "mixed"] = "mixed"
    queries: Count | None = None
    int_cols: Annotated[StrictInt, Field(ge=0, le=500)] = 1
    char_cols: Annotated[StrictInt, Field(ge=0, le=500)] = 1
    autoincrement: StrictBool = False
    guid_primary: StrictBool = False
    secondary_indexes: Annotated[StrictInt, Field(ge=0, le=60)] = 0
    initial_rows: Count = 100  # mysqlslap's write-number
    unique_queries: Count = 10
    unique_writes: Count = 10
    commit_every: Annotated[StrictInt, Field(ge=0)] = 0


class KeysSection(LoopSection):
    """A kind that draws keys by one of sysbench's distributions; what is left out is as in sysbench."""

    AMOUNT: ClassVar[str] = "events"
    DISTRIBUTION: ClassVar[tuple[str, ...]] = (
        *("rand_spec_iter", "rand_spec_pct", "rand_spec_res"),
        *("rand_pareto_h", "rand_zipfian_exp", "rand_exponential_rate"),
    )

    events: Count | None = None
    rand_spec_iter: Annotated[StrictInt, Field(ge=1, le=1000)] | None = None
    rand_spec_pct: Annotated[float, Field(ge=0, le=100)] | None = None
    rand_spec_res: Annotated[float, Field(ge=0, le=100)] | None = None
    rand_pareto_h: Annotated[float, Field(gt=0, lt=1)] | None = None
    rand_zipfian_exp: Annotated[float, Field(ge=0, le=100)] | None = None
    rand_exponential_rate: Annotated[float, Field(gt=0, le=100)] | None = None
    prepared: StrictBool = True


class SmackSection(KeysSection):
    """``smack``: Super-Smack's statements by random primary key, over rows of a given size."""

    DATA: ClassVar[frozenset[str]] = frozenset({"rows", "row_size", "key", "compressible"})

    kind: Literal["smack"]
    load: Literal["insert", "select", "update", "delete", "mixed"] = "select"
    rows: Annotated[StrictInt, Field(ge=1, le=10**10)] = 90_000  # in the table before a run
    row_size: Annotated[Size, Field(ge=32, le=65_000)] = 1024
    key: Literal["integer", "char"] = "integer"
    compressible: Annotated[StrictInt, Field(ge=0, le=100)] = 50  # percent of a row
    rand_type: Distribution = "uniform"


class OltpSection(KeysSection):
    """``oltp``: sysbench's OLTP loads, under sysbench's names."""

    # sysbench draws the values of the column k by the same distribution, so keys shape data and load.
    DATA: ClassVar[frozenset[str]] = frozenset(
        {"tables", "table_size", "auto_inc", "secondary", "create_secondary", "rand_type", *KeysSection.DISTRIBUTION}
    )

    kind: Literal["oltp"]
    ignore_errors: ErrorCodes = "1213,1020,1205"  # sysbench's: deadlock, changed since read, lock wait timeout
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
    tables: Count = 1
    table_size: Count = 10_000  # rows of each
    auto_inc: StrictBool = True
    secondary: StrictBool = False
    create_secondary: StrictBool = True
    rand_type: Distribution = "special"
    skip_trx: StrictBool = False
    point_selects: Some = 10
    range_selects: StrictBool = True
    range_size: Count = 100
    simple_ranges: Some = 1
    sum_ranges: Some = 1
    order_ranges: Some = 1
    distinct_ranges: Some = 1
    index_updates: Some = 1
    non_index_updates: Some = 1
    delete_inserts: Some = 1
    reconnect_every: Some = 0  # events of a client

    def data(self) -> dict[str, Any]:
        """What the prepared data depends on: a load that makes up the ids of its rows starts from empty tables."""
        return {**super().data(), "empty": self.load == "insert" and not self.auto_inc}


class IngestSection(LoopSection):
    """``ingest``: rows into a table with three secondary indexes, as fast as it takes them."""

    AMOUNT: ClassVar[str] = "rows"
    DATA: ClassVar[frozenset[str]] = frozenset({"initial_rows", "value_range"})
    METRIC: ClassVar[str] = "rows_per_second"

    kind: Literal["ingest"]
    mode: Literal["procedure", "statement"] = "procedure"
    rows: Count | None = None  # of all clients together
    rows_per_call: Annotated[StrictInt, Field(ge=1, le=10**9)] = 1000  # of the procedure
    rows_per_insert: Annotated[StrictInt, Field(ge=1, le=10_000)] = 1  # four parameters each, 65,535 in a statement
    rows_per_commit: Annotated[StrictInt, Field(ge=1, le=10**9)] = 1
    value_range: Annotated[StrictInt, Field(ge=1, le=2**31 - 1)] = 100_000_000  # of an INT
    initial_rows: Annotated[StrictInt, Field(ge=0)] = 0
    prepared: StrictBool = True
    warmup: Annotated[Duration, Field(ge=0)] = 0.0  # the table starts empty; a warm-up would fill it


class BulkSection(WorkloadSection):
    """``bulk``: sysbench's prepare as a load of its own: tables made, filled and indexed; its data bounds it."""

    METRIC: ClassVar[str] = "rows_per_second"

    kind: Literal["bulk"]
    tables: Count = 1
    table_size: Count = 10_000  # rows of each
    auto_inc: StrictBool = True
    secondary: StrictBool = False
    create_secondary: StrictBool = True
    batch_bytes: Annotated[Size, Field(ge=1024)] = 512 * 1024  # of an INSERT


class ScriptSection(LoopSection):
    """``script``: a SQL file of the user's own, with parameters, transactions and weights."""

    AMOUNT: ClassVar[str] = "events"
    DATA: ClassVar[frozenset[str]] = frozenset({"file", "set"})

    kind: Literal["script"]
    file: Line  # relative to the study
    events: Count | None = None
    weights: Annotated[str, AfterValidator(_pairs)] = ""  # of blocks: "buy=3,look=7"
    set: Annotated[str, AfterValidator(_pairs)] = ""  # constants of the file: "rows=5000"
    prepared: StrictBool = True


Workload = SlapSection | SmackSection | OltpSection | IngestSection | BulkSection | ScriptSection
KINDS: dict[str, type[WorkloadSection]] = {
    "slap": SlapSection,
    "smack": SmackSection,
    "oltp": OltpSection,
    "ingest": IngestSection,
    "bulk": BulkSection,
    "script": ScriptSection,
}
