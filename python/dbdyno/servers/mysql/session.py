"""A login on an external server: its variables are read and set, and its databases and accounts looked at."""

import time
from dataclasses import dataclass
from decimal import Decimal

from pymysql.constants import ER

from dbdyno.model.printable import short
from dbdyno.model.quantity import size_bytes
from dbdyno.servers.contract import ServerError, Settings, Value
from dbdyno.servers.mysql.connection import Connection, Cursor, row, rows
from dbdyno.servers.mysql.external_database import Database
from dbdyno.servers.mysql.script_account import Accounts
from dbdyno.servers.mysql.server import settings_of
from dbdyno.study.mistakes import did_you_mean
from dbdyno.study.section import Setting
from dbdyno.study.server_settings import text_mistake

_RESIZE_SECONDS = 120.0
_SLEEP_SECONDS = 31_536_000  # of a session that says nothing through whole trials
_AFTER_ALL = "version"  # a variable that no server lets anybody set


@dataclass(frozen=True)
class Session(Accounts):
    """One connection and its cursor. Each method raises ``ServerError``."""

    connection: Connection
    cursor: Cursor

    def version(self) -> str:
        """The version that the server reports, with its build's comment."""
        return short(f"{self.variable('version')} ({self.variable('version_comment')})")

    def settings(self) -> Settings:
        """Its version, variables and engines."""
        return settings_of(self.cursor)

    def database(self, name: str) -> Database:
        """One of its databases."""
        return Database(self.cursor, name)

    def variable(self, name: str) -> Value:
        """A variable as a number or a text, the way SET takes it."""
        self.cursor.execute(f"SELECT @@GLOBAL.`{name}`")
        value = row(self.cursor)[0]
        if isinstance(value, bytes):
            return value.decode(errors="replace")
        if isinstance(value, Decimal | float):
            return float(value)
        return value if isinstance(value, int | None) else str(value)

    @staticmethod
    def as_set(value: Setting, now: Value) -> Value:
        """A study's value the way SET takes it: numbers without units. ``now`` is what the variable is."""
        if isinstance(value, bool):
            return "ON" if value else "OFF"
        if isinstance(value, str) and isinstance(now, int | float):
            try:
                return size_bytes(value)
            except ValueError:
                return value  # ON of a switch
        return value

    def set_variable(self, name: str, value: Value) -> None:
        """Set a variable and wait until that is done."""
        self.cursor.execute(f"SET GLOBAL `{name}` = %s", (value,))
        if name.startswith("innodb_buffer_pool"):
            self._await_resized()

    def why_not_settable(self, name: str, value: Setting) -> str:
        """What the server has against setting a variable while it runs; empty if nothing. Changes nothing.

        A server checks all assignments of one SET before it makes the first. So another one that it must refuse is
        added: which of the two it refuses is the answer.
        """
        try:
            now = self.variable(name)
            if _is_text(now) and (said := text_mistake(name, str(value))):
                return said
            self.cursor.execute(f"SET GLOBAL `{name}` = %s, GLOBAL {_AFTER_ALL} = ''", (self.as_set(value, now),))
        except ServerError as error:
            why = str(error)
            if f"'{_AFTER_ALL}'" in why:
                return ""
            if error.code == ER.UNKNOWN_SYSTEM_VARIABLE:
                return f"the server has no such variable{did_you_mean(name, list(self.settings().variables))}"
            if error.code == ER.INCORRECT_GLOBAL_LOCAL_VAR:
                return f"it can be set only where the server is started, and this one is not restarted ({why})"
            return why
        return "the server does not say whether it can be set"

    def connections(self) -> tuple[Value, Value]:
        """How many connections the server allows, and how many are taken, as it says."""
        allowed = self.variable("max_connections")
        self.cursor.execute("SHOW GLOBAL STATUS LIKE 'Threads_connected'")
        found = rows(self.cursor, 2)
        return allowed, str(found[0][1]) if found else 0

    def keep_open(self) -> None:
        """Keep the session through whole trials in which nothing is asked."""
        self.cursor.execute(f"SET SESSION wait_timeout = {_SLEEP_SECONDS}")

    def ping(self) -> None:
        """Ask for a sign of life."""
        self.connection.ping(reconnect=False)

    def close(self) -> None:
        """End the connection, and with it its locks."""
        self.connection.close()

    def _await_resized(self) -> None:
        """InnoDB resizes its buffer pool after it has answered."""
        deadline = time.monotonic() + _RESIZE_SECONDS
        while time.monotonic() < deadline:
            self.cursor.execute("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_resize_status'")
            found = rows(self.cursor, 2)
            if not found or not found[0][1] or str(found[0][1]).startswith(("Completed", "Size did not change")):
                return
            time.sleep(0.05)


def _is_text(value: Value) -> bool:
    """Whether what a variable holds is neither a number nor a switch; what is not set is of those that take text."""
    return value is None or (isinstance(value, str) and value.upper() not in {"ON", "OFF", "YES", "NO"})
