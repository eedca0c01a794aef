"""A source and its replica: the options of each, how the replica is told to follow, and how far it is.

By position in the source's binary log, which both products have alike: a replica that begins with a copy of the
source's data needs no more. Sources: the manuals' pages of CHANGE MASTER TO (MariaDB) and CHANGE REPLICATION SOURCE TO
(MySQL 8.0.23), and of semi-synchronous replication in both.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dbdyno.errors import TrialError
from dbdyno.model.printable import short
from dbdyno.servers.contract import (
    Address,
    ReplicaHealth,
    ReplicaMode,
    ReplicaPosition,
    ReplicaTerms,
    Replicating,
    ServerError,
)
from dbdyno.servers.mysql.connection import Connection, Cursor, connect, rows
from dbdyno.servers.sources.installation import Installation

SOURCE_ID, REPLICA_ID = 1, 2
USER = "dbdyno_replica"
BEGIN_SECONDS = 30.0  # in which a replica must have connected
PINGS = 5
STILL_SECONDS = 2.0  # in which a replica that has read its relay log has applied some more of it
# The first version of each product that has the words below.
_SINCE = {"mariadb": (10, 5), "mysql": (8, 0, 26)}
_SAID = {"mariadb": "MariaDB since 10.5", "mysql": "MySQL since 8.0.26"}
_MODULES = {"source": "semisync_source.so", "replica": "semisync_replica.so"}  # of MySQL; MariaDB has it built in
_ANSWER_BYTES = 300  # of an error of a replica's, in a sentence


@dataclass(frozen=True)
class Dialect:
    """What a product calls the two roles, in statements, variables and columns."""

    source: str  # in names of variables: rpl_semi_sync_SOURCE_enabled
    replica: str
    source_word: str  # in columns of the replica's status: SOURCE_Log_File
    replica_word: str
    show_status: str
    has_modules: bool  # for semi-synchronous replication, which are loaded

    def settings(self, replicating: Replicating) -> dict[str, str]:
        """The variables of semi-synchronous replication of a role, with what they are to be; none without it."""
        terms = replicating.terms
        if terms.mode == "async":
            return {}
        if replicating.role == "replica":
            return {f"rpl_semi_sync_{self.replica}_enabled": "ON"}
        return {
            f"rpl_semi_sync_{self.source}_enabled": "ON",
            f"rpl_semi_sync_{self.source}_wait_point": terms.wait_point.upper(),
            f"rpl_semi_sync_{self.source}_timeout": str(round(terms.timeout_seconds * 1000)),
        }


_MARIADB = Dialect("master", "slave", "Master", "Slave", "SHOW SLAVE STATUS", has_modules=False)
_MYSQL = Dialect("source", "replica", "Source", "Replica", "SHOW REPLICA STATUS", has_modules=True)
_BINARY_LOG_STATUS_SINCE = (8, 2)  # the first MySQL that calls SHOW MASTER STATUS so


def dialect_of(installation: Installation) -> Dialect:
    """The words of a product."""
    return _MARIADB if installation.product == "mariadb" else _MYSQL


def replication_mistake(installation: Installation, mode: ReplicaMode) -> str:
    """Why a build can be neither source nor replica; empty where it can."""
    if installation.release < _SINCE[installation.product]:
        return f"{installation.title} is too old for it: dbdyno replicates {' and '.join(_SAID.values())}"
    if mode == "semisync" and dialect_of(installation).has_modules:
        folder = installation.plugins
        lacking = [module for module in _MODULES.values() if folder is None or not (folder / module).is_file()]
        if lacking:
            return f"{installation.title} ({installation.name}) comes without {' and '.join(lacking)}; give async"
    return ""


def replication_options(installation: Installation, replicating: Replicating) -> list[str]:
    """What makes a server the source or the replica; after its other options."""
    dialect = dialect_of(installation)
    if replicating.role == "source":
        options = [f"--server-id={SOURCE_ID}"]
    else:
        skip = "--skip-slave-start" if installation.product == "mariadb" else "--skip-replica-start=ON"
        # Nobody writes to a replica; what the source did is applied all the same.
        options = [f"--server-id={REPLICA_ID}", "--relay-log=relay-bin", "--read-only=ON", skip]
    settings = dialect.settings(replicating)
    if settings and dialect.has_modules:
        options.append(f"--plugin-load-add={_MODULES[replicating.role]}")
    return [*options, *(f"--{name.replace('_', '-')}={value}" for name, value in settings.items())]


# What of the data a further server has of its own, or not at all: logs of its own, and what names the server.
_NOT_COPIED = ("binlog.", "relay-bin", "auto.cnf", "server.pid", "master.info", "relay-log.info")


def is_copied(name: str) -> bool:
    """Whether a further server begins with a copy of this file or folder of the data."""
    return not name.startswith(_NOT_COPIED)


@dataclass(frozen=True)
class MysqlReplication:
    """Two servers of one build. Each method raises ``ServerError``."""

    installation: Installation
    source: Address
    replica: Address
    terms: ReplicaTerms

    @property
    def dialect(self) -> Dialect:
        """The product's words."""
        return dialect_of(self.installation)

    def begin(self, host: str, port: int, password: str) -> None:
        """Have the replica follow from the source's present position. Raises ``TrialError`` where it does not."""
        with connect(self.source) as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION sql_log_bin = 0")  # the account is the source's alone
            cursor.execute("CREATE USER %s@%s IDENTIFIED BY %s", (USER, host, password))
            cursor.execute("GRANT REPLICATION SLAVE ON *.* TO %s@%s", (USER, host))
            file, position = _position(cursor, self.installation)
        with connect(self.replica) as connection, connection.cursor() as cursor:
            place = (host, port, file, position)
            if self.installation.product == "mariadb":
                cursor.execute(
                    "CHANGE MASTER TO MASTER_HOST = %s, MASTER_PORT = %s, MASTER_LOG_FILE = %s, MASTER_LOG_POS = %s, "
                    "MASTER_USER = %s, MASTER_PASSWORD = %s, MASTER_USE_GTID = no, MASTER_CONNECT_RETRY = 1, "
                    "MASTER_SSL = 0",
                    (*place, USER, password),
                )
                cursor.execute("START SLAVE")
            else:
                cursor.execute(
                    "CHANGE REPLICATION SOURCE TO SOURCE_HOST = %s, SOURCE_PORT = %s, SOURCE_LOG_FILE = %s, "
                    "SOURCE_LOG_POS = %s, SOURCE_CONNECT_RETRY = 1, SOURCE_SSL = 0, GET_SOURCE_PUBLIC_KEY = 1",
                    place,
                )
                cursor.execute("START REPLICA USER = %s PASSWORD = %s", (USER, password))  # kept in no file
        self._await_begun()

    def _await_begun(self) -> None:
        """Wait until the replica follows, and the source waits for it where it is to."""
        deadline, trouble = time.monotonic() + BEGIN_SECONDS, ""
        while time.monotonic() < deadline:
            health = self.health()
            trouble = health.trouble
            if not trouble:
                return
            time.sleep(0.02)
        raise TrialError(f"server.replica: after {BEGIN_SECONDS:g} s {trouble}")

    def health(self) -> ReplicaHealth:
        """Whether both of the replica's threads run, and whether the source waits for it."""
        word = self.dialect.replica_word
        with connect(self.replica) as connection, connection.cursor() as cursor:
            status = _status(cursor, self.dialect)
        for thread, task in (("IO", "fetches the source's log"), ("SQL", "applies it")):
            if status.get(f"{word}_{thread}_Running") != "Yes":
                said = short(str(status.get(f"Last_{thread}_Error") or ""), _ANSWER_BYTES)
                return ReplicaHealth(f"the replica's thread that {task} does not run{f': {said}' if said else ''}")
        if self.terms.mode == "async":
            return ReplicaHealth("")
        with connect(self.source) as connection, connection.cursor() as cursor:
            semi = _semi_sync(cursor)
        counts = {name: int(semi.get(f"{self.dialect.source}_{name}", "0")) for name in _WAITS}
        waits, microseconds, without = (counts[name] for name in _WAITS)
        return ReplicaHealth(self._not_waiting(semi), waits, microseconds / 1e6, without)

    def _not_waiting(self, semi: Mapping[str, str]) -> str:
        """Why the source does not wait for the replica; empty where it does."""
        source = self.dialect.source
        clients = semi.get(f"{source}_clients", "none")
        if clients in {"0", "none"}:
            return f"the source knows of no semi-synchronous replica ({source}_clients is {clients})"
        status = semi.get(f"{source}_status", "none")
        return "" if status == "ON" else f"the source does not wait for the replica ({source}_status is {status})"

    @staticmethod
    def round_trip_ms(host: str, port: int, password: str) -> float:
        """The shortest of a few pings to the source, by the replica's account and over its way."""
        with connect(Address(USER, host=host, port=port, password=password)) as connection:
            return min(_ping_ms(connection) for _ in range(PINGS))

    def settle(self, limit_seconds: float) -> None:
        """Wait until the replica of a source that is gone has applied what it had received.

        The last transaction may have come in part, so its end is not waited for: all is applied once the replica says
        that it has read its relay log, and its position has reached the end of that or stands still.
        """
        deadline, word = time.monotonic() + limit_seconds, self.dialect.replica_word
        place, since = ("", 0), time.monotonic()
        with connect(self.replica) as connection, connection.cursor() as cursor:
            while True:
                status = _status(cursor, self.dialect)
                if status.get(f"{word}_SQL_Running") != "Yes":
                    said = short(str(status.get("Last_SQL_Error") or "it says nothing"), _ANSWER_BYTES)
                    raise TrialError(f"server.replica: the replica does not apply what it has received: {said}")
                received, applied = self.places(status)
                if applied != place:
                    place, since = applied, time.monotonic()
                has_read = "has read all relay log" in str(status.get(f"{word}_SQL_Running_State"))
                stands_still = applied == received or time.monotonic() - since > STILL_SECONDS
                if has_read and stands_still and status.get(f"{word}_IO_Running") != "Yes":
                    return
                if time.monotonic() > deadline:
                    raise TrialError(
                        f"server.replica: {limit_seconds:g} s after the source was lost the replica had not applied "
                        "all that it had received; give a longer crash.recovery_limit"
                    )
                time.sleep(0.02)

    def places(self, status: Mapping[str, Any]) -> tuple[tuple[str, int], tuple[str, int]]:
        """File and position in the source's log up to which a replica has received it, and applied it."""
        word = self.dialect.source_word
        received = str(status.get(f"{word}_Log_File")), int(status.get(f"Read_{word}_Log_Pos") or 0)
        return received, (str(status.get(f"Relay_{word}_Log_File")), int(status.get(f"Exec_{word}_Log_Pos") or 0))

    def observed(self) -> dict[str, str]:
        """What both show of themselves in replication. Raises ``TrialError`` where that is not what was asked for."""
        shown: dict[str, str] = {}
        roles: tuple[tuple[Literal["source", "replica"], Address, str], ...] = (
            ("source", self.source, self.dialect.source),
            ("replica", self.replica, self.dialect.replica),
        )
        for role, address, word in roles:
            with connect(address) as connection, connection.cursor() as cursor:
                cursor.execute("SHOW GLOBAL VARIABLES")
                variables = {str(name): str(value) for name, value in rows(cursor, 2)}
                counters = _semi_sync(cursor)
            for name, value in self.dialect.settings(Replicating(role, self.terms)).items():
                if variables.get(name, "").upper() != value:
                    got = variables.get(name) or "no such variable"
                    raise TrialError(f"server.replica: asked for {name} = {value}, the {role} took {got}")
            mine = {name: value for name, value in variables.items() if name.startswith(f"rpl_semi_sync_{word}_")}
            shown |= mine if self.terms.mode == "semisync" else {}
            shown |= {name: value for name, value in counters.items() if name in {f"{word}_status", f"{word}_clients"}}
            shown |= {f"{role}_{name}": variables.get(name, "") for name in ("server_id", "binlog_format")}
        return {name: short(value) for name, value in sorted(shown.items())}

    def reader(self) -> "MysqlReplicaReader":
        """A reader of the replica's position."""
        return MysqlReplicaReader(self)


class MysqlReplicaReader:
    """Source and replica, each over a connection of its own. Raises ``ServerError``."""

    def __init__(self, replication: MysqlReplication) -> None:
        self._replication, self._dialect = replication, replication.dialect
        self._source, self._replica = connect(replication.source), connect(replication.replica)
        self._of_source, self._of_replica = self._source.cursor(), self._replica.cursor()
        self._before: dict[str, float] = {}  # bytes of the source's files before each one

    def position(self) -> ReplicaPosition:
        """Where both are; the source is asked first, so that what the replica lacks is never overstated."""
        self._of_source.execute("SHOW BINARY LOGS")
        written = 0.0
        for name, size in _first_two(self._of_source):
            self._before[name] = written
            written += float(size)
        return self._of(written)

    def close(self) -> None:
        """End both connections."""
        for connection in (self._source, self._replica):
            connection.close()

    def _of(self, written: float) -> ReplicaPosition:
        word, status = self._dialect.source_word, _status(self._of_replica, self._dialect)
        received, applied = (self._bytes(*place) for place in self._replication.places(status))
        behind = status.get(f"Seconds_Behind_{word}")
        return ReplicaPosition(written, received, applied, math.nan if behind is None else float(behind))

    def _bytes(self, file: str, position: int) -> float:
        """A position of the replica's as bytes since the source's first file; one that is not listed yet is next."""
        return self._before.get(file, max(self._before.values(), default=0.0)) + position


def _ping_ms(connection: Connection) -> float:
    began = time.perf_counter()
    connection.ping()
    return 1000 * (time.perf_counter() - began)


def _status(cursor: Cursor, dialect: Dialect) -> dict[str, Any]:
    """The replica's status by column. Raises ``ServerError`` where it is none."""
    cursor.execute(dialect.show_status)
    names = [str(column[0]) for column in cursor.description or ()]
    table = rows(cursor, len(names))
    if not table:
        raise ServerError("the replica knows of no source")
    return dict(zip(names, table[0], strict=True))


def _position(cursor: Cursor, installation: Installation) -> tuple[str, int]:
    """File and position at which the source's binary log ends. Raises ``ServerError``."""
    is_new = installation.product == "mysql" and installation.release >= _BINARY_LOG_STATUS_SINCE
    cursor.execute("SHOW BINARY LOG STATUS" if is_new else "SHOW MASTER STATUS")
    ((file, position),) = _first_two(cursor)[:1] or [("", 0)]
    if not file:
        raise ServerError("the source writes no binary log")
    return file, int(position)


def _first_two(cursor: Cursor) -> list[tuple[str, Any]]:
    """The first two columns of the last statement, of which versions add others behind."""
    table = rows(cursor, len(cursor.description or ()))
    if any(len(columns) < 2 for columns in table):  # noqa: PLR2004
        raise ServerError("the server lists its binary log by one column")
    return [(str(columns[0]), columns[1]) for columns in table]


_SEMI_SYNC = "Rpl_semi_sync_"
_WAITS = ("tx_waits", "tx_wait_time", "no_tx")  # of a source; the time in microseconds


def _semi_sync(cursor: Cursor) -> dict[str, str]:
    """The counters of semi-synchronous replication, without what their names have in common."""
    cursor.execute(f"SHOW GLOBAL STATUS LIKE '{_SEMI_SYNC}%'")
    return {str(name).removeprefix(_SEMI_SYNC): str(value) for name, value in rows(cursor, 2)}
