"""Fields of loads that dbdyno and the program itself both offer: mysqlslap's SQL, sysbench's tables and events."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StrictBool, StrictInt

from dbdyno.study.workload_section import Count, Some, WorkloadSection


class SlapTable(WorkloadSection):
    """mysqlslap's generated SQL; names and defaults are mysqlslap's."""

    load: Literal["read", "key", "write", "update", "mixed"] = "mixed"
    """`read`: SELECT of the whole table. `key`: SELECT by key. `write`: INSERT. `update`: UPDATE by key; without a key,
    of the whole table. `mixed`: INSERT and SELECT in turn, the SELECT by key only if there is one.
    """
    int_cols: Annotated[StrictInt, Field(ge=0, le=500)] = 1
    """Integer columns."""
    char_cols: Annotated[StrictInt, Field(ge=0, le=500)] = 1
    """Columns `VARCHAR(128)`, filled with 126 characters. One column of either kind is needed."""
    autoincrement: StrictBool = False
    """Give the table a serial id."""
    guid_primary: StrictBool = False
    """Give the table a UUID as primary key. Not both; `load = "key"` needs one of them."""
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
    """The server makes ids."""
    secondary: StrictBool = False
    """An index on `id` in place of the primary key."""
    create_secondary: StrictBool = True
    """There is an index on `k`."""

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
    """No BEGIN and COMMIT."""
    point_selects: Some = 10
    """SELECTs by id of an event."""
    range_selects: StrictBool = True
    """Whether there are range SELECTs at all."""
    range_size: Count = 100
    """Rows of a range."""
    simple_ranges: Some = 1
    """SELECTs of a range of an event."""
    sum_ranges: Some = 1
    """SELECTs of a sum over a range."""
    order_ranges: Some = 1
    """SELECTs of a range in order."""
    distinct_ranges: Some = 1
    """SELECTs of a range's distinct values."""
    index_updates: Some = 1
    """UPDATEs of the indexed column of an event."""
    non_index_updates: Some = 1
    """UPDATEs of a column without an index."""
    delete_inserts: Some = 1
    """A DELETE and an INSERT of the same id."""
