"""The server's own counters: one question a sample.

The numbers are those of SHOW GLOBAL STATUS. Where the server has them as a table too, they come as one text in one row,
which costs this process half as much.
"""

import re
from typing import Any

from dbdyno.model.printable import short
from dbdyno.servers.address import Address
from dbdyno.servers.contract import ServerError
from dbdyno.servers.mysql.connection import connect, row, rows

# Counters become rates per second; gauges are shown as they stand.
COUNTERS: tuple[str, ...] = (
    "Questions", "Table_locks_waited",
    "Innodb_data_fsyncs", "Innodb_os_log_fsyncs", "Innodb_os_log_written", "Innodb_log_writes", "Innodb_log_waits",
    "Innodb_pages_read", "Innodb_pages_written", "Innodb_dblwr_writes", "Innodb_rows_inserted",
    "Innodb_buffer_pool_reads", "Innodb_buffer_pool_read_requests", "Innodb_buffer_pool_wait_free",
    "Innodb_row_lock_waits", "Innodb_row_lock_time",
    "Key_read_requests", "Key_reads", "Key_write_requests", "Key_writes",
    "Aria_pagecache_read_requests", "Aria_pagecache_reads", "Aria_pagecache_write_requests", "Aria_pagecache_writes",
    "Aria_transaction_log_syncs",
)  # fmt: skip
CHECKPOINT_AGE = "Innodb_checkpoint_age"
GAUGES: tuple[str, ...] = (
    "Threads_running", "Innodb_buffer_pool_pages_dirty", "Innodb_buffer_pool_pages_free",
    "Innodb_buffer_pool_pages_total", CHECKPOINT_AGE, "Innodb_row_lock_current_waits",
    "Innodb_history_list_length", "Key_blocks_not_flushed", "Aria_pagecache_blocks_not_flushed",
)  # fmt: skip
# The log's positions, whose difference is the checkpoint's age: MySQL has no name for it.
_NOW, _CHECKPOINT = "Innodb_redo_log_current_lsn", "Innodb_redo_log_checkpoint_lsn"
_NAMES = ",".join(f"'{name}'" for name in (*COUNTERS, *GAUGES, _NOW, _CHECKPOINT))
_AS_ONE_TEXT = (
    "SELECT GROUP_CONCAT(VARIABLE_NAME, '=', VARIABLE_VALUE) FROM performance_schema.global_status"  # noqa: S608  (names of our own)
    f" WHERE VARIABLE_NAME IN ({_NAMES})"
)
_AS_ROWS = f"SHOW GLOBAL STATUS WHERE Variable_name IN ({_NAMES})"
_THREAD = (  # of the server, that answers this connection
    "SELECT tid FROM information_schema.processlist WHERE id = CONNECTION_ID()",
    "SELECT thread_os_id FROM performance_schema.threads WHERE processlist_id = CONNECTION_ID()",
)
_ENGINE_STATUS_EVERY = 10  # samples
_POSITIONS = re.compile(
    r"^Log sequence number +([0-9]{1,20})$.*?^Last checkpoint at +([0-9]{1,20})$", re.MULTILINE | re.DOTALL
)


class MysqlStatus:
    """Status of one server, over a connection of its own. A counter that this server lacks is left out."""

    counters, gauges = COUNTERS, GAUGES

    def __init__(self, address: Address) -> None:
        self._connection = connect(address)
        self._cursor = self._connection.cursor()
        self._cursor.execute("SET SESSION group_concat_max_len = 65536")
        self._one_text = bool(self._tried(_AS_ONE_TEXT))
        self._age, self._until_engine_status = "", 0
        self._engine_status = False
        self._engine_status = CHECKPOINT_AGE not in self.numbers(self.text())

    def text(self) -> str:
        """The counters and gauges as they stand: ``NAME=NUMBER`` with commas. Raises ``ServerError``."""
        self._cursor.execute(_AS_ONE_TEXT if self._one_text else _AS_ROWS)
        text = str(row(self._cursor)[0]) if self._one_text else _as_one_text(rows(self._cursor, 2))
        if self._engine_status:
            self._ask_engine()
        return text + self._age

    @staticmethod
    def numbers(text: str) -> dict[str, float]:
        """The same by name; the checkpoint's age from the log's positions where there are only these."""
        try:
            found = {name: float(value) for name, value in (pair.split("=") for pair in text.split(","))}
        except ValueError as error:
            raise ServerError(f"the server's status is {short(text, 100)}") from error
        if _NOW in found and _CHECKPOINT in found:
            found[CHECKPOINT_AGE] = found.pop(_NOW) - found.pop(_CHECKPOINT)
        return found

    def thread(self) -> int | None:
        """The number that the server's host knows the thread by that answers this connection."""
        found = str(next((number for query in _THREAD if (number := self._tried(query))), ""))
        return int(found) if found.isdecimal() else None  # it becomes part of a path

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def _ask_engine(self) -> None:
        """Read the log's positions from the engine's own report, now and then: older servers have them nowhere else."""
        if self._until_engine_status == 0:
            self._age = checkpoint_age(str(self._tried("SHOW ENGINE INNODB STATUS", 2)))
            self._engine_status = bool(self._age)  # where it says nothing, or not to this user, it won't later either
            self._until_engine_status = _ENGINE_STATUS_EVERY
        self._until_engine_status -= 1

    def _tried(self, query: str, column: int = 0) -> object:
        """A value of the first row of a query, or nothing where this server does not know or allow it."""
        try:
            self._cursor.execute(query)
            found = rows(self._cursor, column + 1)
        except ServerError:
            return None
        return found[0][column] if found else None


def _as_one_text(variables: list[tuple[Any, ...]]) -> str:
    return ",".join(f"{name}={value}" for name, value in variables)


def checkpoint_age(engine_status: str) -> str:
    """The distance of the log's positions as ``,NAME=NUMBER``; empty where the report has none."""
    reported = _POSITIONS.search(engine_status)
    return f",{CHECKPOINT_AGE}={int(reported[1]) - int(reported[2])}" if reported else ""
