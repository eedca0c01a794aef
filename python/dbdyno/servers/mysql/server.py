"""What a server that answers is asked, whoever started it: its settings, counters and tables."""

import re
import socket as socketlib
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dbdyno.errors import TrialError
from dbdyno.model.printable import one_line, short
from dbdyno.mysql.settings import FSYNCS_DONE, Setting
from dbdyno.servers.contract import (
    Address,
    LoadTable,
    NotStartedError,
    ServerError,
    SettingOutcome,
    Settings,
    TableFormats,
)
from dbdyno.servers.mysql.connection import MARK, Cursor, connect, row, rows
from dbdyno.servers.mysql.setting_outcomes import not_granted, setting_outcomes
from dbdyno.servers.mysql.table_formats import TRIED, encrypted_files, encrypts, table_formats, tried_table
from dbdyno.servers.user import read_log
from dbdyno.system.child import exit_words

# A server's process: when it answers, how it is stopped, why it ended.


START_SECONDS, STOP_SECONDS = 120.0, 60.0

# What the log says, and what it means to a reader of one line.
_CAUSES = (
    (r"unknown (?:variable|option) '([^']+)'", "the server does not know the setting {0}"),
    (r"Bind on TCP/IP port", "the TCP port is taken by another server; choose another port or leave it out"),
    (r"Bind on unix socket|Can't start server : Bind|another server running", "the socket is taken by another server"),
    (r"No space left on device|Disk is full|errno: 28", "the disk is full"),
    (r"Cannot allocate memory|Out of memory", "the server found too little memory; look at stack.memory"),
    (r"\[ERROR\] (.+)", "{0}"),
    (r"(?:FATAL ERROR|ERROR|Error|mkdir|chmod): (.+)", "{0}"),  # of the install script
)


def await_ready(
    process: "subprocess.Popen[bytes]", socket: Path, log: Path, limit_seconds: float | None = None
) -> None:
    """Wait until the server answers. Raises ``NotStartedError`` with the cause when it exits or takes too long."""
    limit = START_SECONDS if limit_seconds is None else limit_seconds
    deadline = time.monotonic() + limit
    while True:
        if process.poll() is not None:
            ended = exit_words(process.returncode)
            raise NotStartedError(f"the server ended while starting ({ended}): {cause_in(log)}", process.returncode)
        try:
            _knock(socket)
            connect(socket, 5).close()
        except (OSError, ServerError):
            if time.monotonic() > deadline:
                complaint = f"the server does not answer after {limit:g} s: {cause_in(log)}"
                raise NotStartedError(complaint, None) from None
            time.sleep(0.02)
        else:
            return


def _knock(address: Path) -> None:
    """See whether anybody listens, which costs less than a login. Raises ``OSError``."""
    with socketlib.socket(socketlib.AF_UNIX) as client:
        client.settimeout(5)
        client.connect(str(address))


def stop(process: "subprocess.Popen[bytes]") -> None:
    """End the server: politely, then for good."""
    if process.poll() is None:
        process.terminate()
    for _ in range(2):
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
        else:
            return
    raise TrialError(
        f"the server (pid {process.pid}) does not end, even when killed: its device does not respond; see dmesg"
    )


def cause_in(log: Path) -> str:
    """Why a server would not run, in one sentence, from its error log."""
    content = read_log(log)
    if content is None:
        return "it left no error log"
    text = content.decode(errors="replace")
    for pattern, words in _CAUSES:
        match = re.search(pattern, text)
        if match:
            return short(words.format(*match.groups()), 300)
    last = [line for line in text.splitlines() if line.strip()][-1:]
    return f"its log ends with: {short(last[0], 300)}" if last else "its error log is empty"


# The server's own counters: one question a sample.
#
# The numbers are those of SHOW GLOBAL STATUS. Where the server has them as a table too, they come as one text in one
# row, which costs this process half as much.


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
    "Innodb_history_list_length", "Key_blocks_not_flushed", "Aria_pagecache_blocks_not_flushed", FSYNCS_DONE,
)  # fmt: skip
# The log's positions, whose difference is the checkpoint's age: MySQL has no name for it.
_NOW, _CHECKPOINT = "Innodb_redo_log_current_lsn", "Innodb_redo_log_checkpoint_lsn"
_NAMES = ",".join(f"'{name}'" for name in dict.fromkeys((*COUNTERS, *GAUGES, _NOW, _CHECKPOINT)))
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
        self._one_text = bool(self._try_query(_AS_ONE_TEXT))
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
            counters = {name: float(value) for name, value in (pair.split("=") for pair in text.split(","))}
        except ValueError as error:
            raise ServerError(f"the server's status is {short(text, 100)}") from error
        if _NOW in counters and _CHECKPOINT in counters:
            counters[CHECKPOINT_AGE] = counters.pop(_NOW) - counters.pop(_CHECKPOINT)
        return counters

    def thread(self) -> int | None:
        """The number that the server's host knows the thread by that answers this connection."""
        thread_id = str(next((number for query in _THREAD if (number := self._try_query(query))), ""))
        return int(thread_id) if thread_id.isdecimal() else None  # it becomes part of a path

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def _ask_engine(self) -> None:
        """Read the log's positions from the engine's own report, now and then: older servers have them nowhere else."""
        if self._until_engine_status == 0:
            self._age = checkpoint_age(str(self._try_query("SHOW ENGINE INNODB STATUS", 2)))
            self._engine_status = bool(self._age)  # where it says nothing, or not to this user, it won't later either
            self._until_engine_status = _ENGINE_STATUS_EVERY
        self._until_engine_status -= 1

    def _try_query(self, query: str, column: int = 0) -> object:
        """A value of the first row of a query, or nothing where this server does not know or allow it."""
        try:
            self._cursor.execute(query)
            answers = rows(self._cursor, column + 1)
        except ServerError:
            return None
        return answers[0][column] if answers else None


def _as_one_text(variables: list[tuple[Any, ...]]) -> str:
    return ",".join(f"{name}={value}" for name, value in variables)


def checkpoint_age(engine_status: str) -> str:
    """The distance of the log's positions as ``,NAME=NUMBER``; empty where the report has none."""
    reported = _POSITIONS.search(engine_status)
    return f",{CHECKPOINT_AGE}={int(reported[1]) - int(reported[2])}" if reported else ""


# The variables by which two servers can be compared: settings, and nothing that names a place, a build or a moment.


VARIABLES_MAX = 1000  # of one server; the largest has some 700
VALUE_MAX = 1000  # characters
_OF_A_PLACE = re.compile(
    r".*(dir|_dirs?|_file|_path|_paths|_uuid|_version|_address|_host)|hostname|socket|port|extra_port|pid_file|server_id"
    r"|version|version_.*|timestamp|license|system_time_zone|report_.*|pseudo_.*|gtid_(executed|purged|current_pos|"
    r"binlog_pos|binlog_state|slave_pos)|last_insert_id|identity|rand_seed.*|insert_id|error_count|warning_count"
)
_SETTINGS = {"innodb_data_file_path", "innodb_temp_data_file_path"}  # sizes, whatever their names say
# Sizes of the tables of instruments, and what serves other nodes or another protocol: no load of a study meets them.
_ASIDE = re.compile(r"performance_schema_.+|wsrep_.*|group_replication_.*|mysqlx_.*|rocksdb_.*")
_FLAGS = ("optimizer_switch",)  # each holds a list of name=value


def comparable(variables: Mapping[str, str]) -> dict[str, str]:
    """Return those of ``variables`` that are settings, by name; each flag of a list of flags under its own."""
    settings: dict[str, str] = {}
    for name, value in sorted(variables.items()):
        if name in _FLAGS:
            pairs = (flag.partition("=") for flag in value.split(",") if flag)
            settings |= {f"{name}.{one_line(flag)}": one_line(setting) for flag, _, setting in pairs}
        elif name in _SETTINGS or not (_OF_A_PLACE.fullmatch(name) or _ASIDE.fullmatch(name) or _is_path(value)):
            settings[name] = one_line(value[:VALUE_MAX])
    return dict(list(settings.items())[:VARIABLES_MAX])


def _is_path(value: str) -> bool:
    return value.startswith(("/", "./"))


WORTH_SHOWING = frozenset({
    "version", "version_comment", "version_compile_machine", "version_source_revision", "innodb_version",
    "innodb_buffer_pool_size", "innodb_flush_log_at_trx_commit", "innodb_flush_method", "innodb_log_file_size",
    "innodb_doublewrite", "innodb_io_capacity", "sync_binlog", "log_bin", "key_buffer_size", "query_cache_type",
    "default_storage_engine", "max_connections",
})  # fmt: skip
_NEW_NAMES = {"tx_isolation": "transaction_isolation", "tx_read_only": "transaction_read_only"}
_TABLES = (  # a view has no engine, and the mark is no data
    "SELECT table_name, engine, row_format, COALESCE(create_options, '') FROM information_schema.tables "
    "WHERE table_schema = %s AND table_name <> %s AND table_type = 'BASE TABLE'"
)


@dataclass(frozen=True)
class MysqlServer:
    """One server, asked over a connection of its own each time. Each method raises ``ServerError``."""

    address: Address
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of variables that have a few words

    def settings(self) -> Settings:
        """Its version, variables and engines."""
        with connect(self.address) as connection, connection.cursor() as cursor:
            return settings_of(cursor)

    def status(self) -> MysqlStatus:
        """A reader of its counters."""
        return MysqlStatus(self.address)

    def tables(self, schema: str) -> list[LoadTable]:
        """The tables of a schema, without dbdyno's own mark."""
        with connect(self.address) as connection, connection.cursor() as cursor:
            cursor.execute(_TABLES, (schema, MARK))
            return [LoadTable(*map(str, columns)) for columns in rows(cursor, 4)]

    def table_formats(self, schema: str, tables: Sequence[LoadTable], options: str) -> TableFormats:
        """What ``tables``, one at least, have of the options that were added to CREATE TABLE."""
        with connect(self.address) as connection, connection.cursor() as cursor:
            return table_formats(cursor, schema, tables, options)

    def encrypted_files(self, schema: str) -> int:
        """How many files of a schema's tables are encrypted, as far as it shows that."""
        with connect(self.address) as connection, connection.cursor() as cursor:
            return encrypted_files(cursor, schema)

    def encrypts(self, schema: str) -> bool:
        """Whether tables of a schema, which has some, are encrypted unless they say otherwise, as far as shown."""
        with connect(self.address) as connection, connection.cursor() as cursor:
            return encrypts(cursor, schema)

    def try_table(self, engine: str, options: str) -> SettingOutcome:
        """What it makes of options in CREATE TABLE, by making a table in a schema of its own."""
        self.create_schema(TRIED)
        with connect(self.address) as connection, connection.cursor() as cursor:
            outcome = tried_table(cursor, TRIED, engine, options)
            if outcome.how != "as asked":
                return outcome
        made = self.table_formats(TRIED, self.tables(TRIED), options)
        return replace(outcome, how="in name only", said=made.missing) if made.missing else outcome

    def create_schema(self, schema: str) -> None:
        """Make an empty schema."""
        with connect(self.address) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE SCHEMA `{schema}`")

    def admit(self, user: str, password: str, schema: str) -> None:
        """Make an account that any host may log in to, with all rights on one schema and none elsewhere."""
        pattern = re.sub(r"([\\_%])", r"\\\1", schema).replace("`", "``")
        with connect(self.address) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE USER %s@'%%' IDENTIFIED BY %s", (user, password))
            cursor.execute(f"GRANT ALL PRIVILEGES ON `{pattern}`.* TO %s@'%%'", (user,))
        # It shows that it works; and MySQL 8 takes later logins without TLS, as it knows the password by now.
        connect(replace(self.address, user=user, password=password)).close()

    cause = staticmethod(cause_in)

    def setting_outcomes(self, settings: Mapping[str, Setting], readback: Settings, log: str) -> list[SettingOutcome]:
        """What it made of each setting."""
        return setting_outcomes(settings, readback.variables, log, self.choices)

    @staticmethod
    def not_granted(readback: Settings, log: str) -> dict[str, str]:
        """Variables that are on though the host does not give what they ask for."""
        return not_granted(readback.variables, log)


def settings_of(cursor: Cursor) -> Settings:
    """What the server says over one connection. Raises ``ServerError``."""
    cursor.execute("SHOW GLOBAL VARIABLES")
    variables = dict(with_new_names((str(name), str(value)) for name, value in rows(cursor, 2)))
    cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_version'")
    tls = rows(cursor, 2)
    cursor.execute("SHOW ENGINES")
    engines = sorted(short(str(row[0])) for row in rows(cursor, 6) if str(row[1]) in {"YES", "DEFAULT"})
    encrypted = (tls and short(str(tls[0][1] or ""))) or "none"
    folder = Path(variables.get("datadir", ""))
    version, settings = variables.get("version", "none"), comparable(variables)
    return Settings(version, folder, variables, WORTH_SHOWING, settings, engines, encrypted)


def with_new_names(shown: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Variables as SHOW has them; one that an older server shows by another name than its option's by both."""
    for name, value in shown:
        yield name, value
        if name in _NEW_NAMES:
            yield _NEW_NAMES[name], value
