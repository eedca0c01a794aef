"""What a server that answers is asked, whoever started it: its settings, counters and tables."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from dbdyno.model.printable import short
from dbdyno.servers.address import Address
from dbdyno.servers.contract import Settings, Table, Taken
from dbdyno.servers.mysql.comparable import comparable
from dbdyno.servers.mysql.connection import Cursor, connect, rows
from dbdyno.servers.mysql.external_database import MARK
from dbdyno.servers.mysql.process import cause_in
from dbdyno.servers.mysql.status import MysqlStatus
from dbdyno.servers.mysql.taken import not_granted, taken
from dbdyno.study.section import Setting

WORTH_SHOWING = frozenset({
    "version", "version_comment", "version_compile_machine", "version_source_revision", "innodb_version",
    "innodb_buffer_pool_size", "innodb_flush_log_at_trx_commit", "innodb_flush_method", "innodb_log_file_size",
    "innodb_doublewrite", "innodb_io_capacity", "sync_binlog", "log_bin", "key_buffer_size", "query_cache_type",
    "default_storage_engine", "max_connections",
})  # fmt: skip
_NEW_NAMES = {"tx_isolation": "transaction_isolation", "tx_read_only": "transaction_read_only"}
_TABLES = (  # a view has no engine, and the mark is no data
    "SELECT table_name, engine, row_format FROM information_schema.tables WHERE table_schema = %s "
    "AND table_name <> %s AND table_type = 'BASE TABLE'"
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

    def tables(self, schema: str) -> list[Table]:
        """The tables of a schema, without dbdyno's own mark."""
        with connect(self.address) as connection, connection.cursor() as cursor:
            cursor.execute(_TABLES, (schema, MARK))
            return [Table(*map(str, found)) for found in rows(cursor, 3)]

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

    def taken(self, asked: Mapping[str, Setting], found: Settings, log: str) -> list[Taken]:
        """What it made of each setting."""
        return taken(asked, found.variables, log, self.choices)

    @staticmethod
    def not_granted(found: Settings, log: str) -> dict[str, str]:
        """Variables that are on though the host does not give what they ask for."""
        return not_granted(found.variables, log)


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
