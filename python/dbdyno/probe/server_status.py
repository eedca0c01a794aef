"""The server's own counters, over a connection of the probe's own: one query a sample.

The numbers are those of SHOW GLOBAL STATUS. Where the server has them as a table too, they come as one text in one row,
which costs this process half as much.
"""

import contextlib
import os
import re
from pathlib import Path

import pymysql

from dbdyno.probe.sampler import Source
from dbdyno.servers import process
from dbdyno.servers.address import Address

# Counters become rates per second; gauges are shown as they stand.
COUNTERS = (
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
GAUGES = ("Threads_running", "Innodb_buffer_pool_pages_dirty", CHECKPOINT_AGE, "Innodb_row_lock_current_waits",
          "Innodb_history_list_length", "Key_blocks_not_flushed", "Aria_pagecache_blocks_not_flushed")  # fmt: skip
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
_POSITIONS = re.compile(r"^Log sequence number +(\d+)$.*?^Last checkpoint at +(\d+)$", re.MULTILINE | re.DOTALL)


class ServerStatusSource(Source):
    """Status of one server. A counter that this server lacks is left out.

    With the server's ``pid`` it also tells what its questions cost the server.
    """

    name = "server_status"

    def __init__(self, where: Address | Path, pid: int | None = None) -> None:
        try:
            self._connection = process.connect(where)
            self._cursor = self._connection.cursor()
            self._cursor.execute("SET SESSION group_concat_max_len = 65536")
            self._one_text = bool(self._tried(_AS_ONE_TEXT))
            self._thread = self._thread_file(pid)
            self._age, self._until_engine_status = "", 0
            self._engine_status = False
            self._engine_status = CHECKPOINT_AGE not in self.sample()
        except pymysql.Error as error:
            raise ConnectionError(str(error)) from error
        self._burned_before = self._burned()

    def read(self) -> str:
        """The counters and gauges as they stand: ``NAME=NUMBER`` with commas."""
        try:
            self._cursor.execute(_AS_ONE_TEXT if self._one_text else _AS_ROWS)
            rows = self._cursor.fetchall()
            if self._engine_status:
                self._ask_engine()
        except (pymysql.Error, AttributeError) as error:
            raise ConnectionError(str(error)) from error
        return (rows[0][0] if self._one_text else ",".join(map("=".join, rows))) + self._age

    def counters(self, raw: str) -> dict[str, float]:
        """The same by name; the checkpoint's age from the log's positions where only these are told."""
        try:
            found = {name: float(value) for name, value in (pair.split("=") for pair in raw.split(","))}
        except ValueError as error:
            raise ConnectionError(f"the server tells of itself {raw[:100]}") from error
        if _NOW in found:
            found[CHECKPOINT_AGE] = found.pop(_NOW) - found.pop(_CHECKPOINT)
        return found

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """Counters per second, gauges as they stand."""
        rates = {f"{name}/s": (after[name] - before[name]) / seconds for name in COUNTERS if name in after}
        return rates | {name: after[name] for name in GAUGES if name in after}

    def outside_seconds(self) -> float:
        """CPU of the server's thread that answers; 0 where that can't be told."""
        return max(0.0, self._burned() - self._burned_before)

    def close(self) -> None:
        """End the connection."""
        self._connection.close()
        if self._thread is not None:
            os.close(self._thread)

    def _ask_engine(self) -> None:
        """Read the log's positions from the engine's own report, now and then: older servers tell them nowhere else."""
        if self._until_engine_status == 0:
            self._age = checkpoint_age(str(self._tried("SHOW ENGINE INNODB STATUS", 2)))
            self._engine_status = bool(self._age)  # where it tells nothing, or not to this user, it won't later either
            self._until_engine_status = _ENGINE_STATUS_EVERY
        self._until_engine_status -= 1

    def _tried(self, query: str, column: int = 0) -> object:
        """A value of the first row that a query tells, or nothing where this server does not know or allow it."""
        try:
            self._cursor.execute(query)
            rows = self._cursor.fetchall()
        except (pymysql.ProgrammingError, pymysql.OperationalError):
            return None
        return rows[0][column] if rows else None

    def _thread_file(self, pid: int | None) -> int | None:
        thread = next((found for query in _THREAD if (found := self._tried(query))), None) if pid else None
        if thread is None:
            return None
        with contextlib.suppress(OSError):
            return os.open(f"/proc/{pid}/task/{thread}/schedstat", os.O_RDONLY)
        return None

    def _burned(self) -> float:
        """Seconds that the thread has run (Documentation/scheduler/sched-stats.rst)."""
        if self._thread is None:
            return 0.0
        with contextlib.suppress(OSError):
            return int(os.pread(self._thread, 128, 0).split()[0]) / 1e9
        return 0.0


def checkpoint_age(engine_status: str) -> str:
    """The distance of the log's positions as ``,NAME=NUMBER``; empty where the report tells none."""
    told = _POSITIONS.search(engine_status)
    return f",{CHECKPOINT_AGE}={int(told[1]) - int(told[2])}" if told else ""
