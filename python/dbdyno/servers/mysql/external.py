"""An external server: logging in to it, and what to say where that fails."""

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import cast

from pymysql.constants import CR, ER

from dbdyno._native import option_lines
from dbdyno.errors import HostError, TrialError, UserError
from dbdyno.model.printable import short
from dbdyno.model.similar import did_you_mean
from dbdyno.mysql.server_url import PASSWORD_VARIABLE, ServerUrl, server_url
from dbdyno.mysql.settings import Setting, setting_bytes, text_mistake
from dbdyno.servers.contract import Address, Mode, ServerError, Settings, Tls, Value
from dbdyno.servers.mysql.connection import Connection, Cursor, MysqlDatabase, connect, row, rows
from dbdyno.servers.mysql.server import MysqlServer, settings_of
from dbdyno.system.state import new_token

# The login of an external server: the study's URL, and a password that is in no study and no run folder.


GROUPS = ("client", "client-server", "client-mariadb", "dbdyno")
_ALL_MAY = 0o006  # read or write it


def address_of(url: str, option_file: str | None) -> Address:
    """Where and how to log in. Raises ``UserError`` where the option file can't be used.

    The password is the variable's; where that is not set, the option file's; else there is none.
    """
    parts = server_url(url)
    from_file = _password_in(Path(option_file), parts) if option_file else None
    password = os.environ.get(PASSWORD_VARIABLE, from_file) or ""
    socket = Path(parts.socket) if parts.socket else None
    mode = parts.ssl_mode or ("disabled" if socket else "preferred")
    tls = Tls(cast("Mode", mode), parts.ssl_ca, parts.ssl_cert, parts.ssl_key)
    return Address(parts.user, socket, parts.host, parts.port, tls, password)


def how_to_give_a_password(option_file: str | None) -> str:
    """The remedy where a server does not let us in."""
    place = f"or put it into {option_file}" if option_file else "or name a file that holds it in server.option_file"
    return f"set {PASSWORD_VARIABLE} to its password, {place}"


def _password_in(path: Path, url: ServerUrl) -> str | None:
    try:
        mode, text = path.stat().st_mode, path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UserError(f"server.option_file: {path} can't be read: {reason}") from None
    if mode & _ALL_MAY:
        raise UserError(f"server.option_file: anybody may read or write {path}; chmod 600 {path}")
    options = read_options(text)
    reported = {"host": url.host, "port": str(url.port), "user": url.user, "socket": url.socket}
    for name, value in reported.items():
        if name in options and options[name] != value:
            reason = f"is for {name} {options[name]!r}, not for the server of the study"
            raise UserError(f"server.option_file: {path} {reason}; name another, or leave {name} out of it")
    return options.get("password")


def read_options(text: str) -> dict[str, str]:
    """What MySQL's option files say in the groups that concern us; of an option given twice the last one holds."""
    options = {}
    for _, group, line_kind, name, value in option_lines(text):
        if line_kind == "option" and group in GROUPS:
            options[name.lower().replace("_", "-").removeprefix("loose-")] = value or ""
    return options


# The account that a study's own SQL runs as on an external server: rights on its database, and no others.
#
# The load generator makes it, with a password that leaves that process nowhere, and drops it after each step. Here it
# is named, so that it can be dropped after a kill too, and a login is asked whether it could make it.


_USER_START, _TOKEN_CHARACTERS = "dbdyno_", 9  # MySQL 5.6 takes names of 16
_ACCOUNT_DENIED = {ER.DBACCESS_DENIED_ERROR, ER.TABLEACCESS_DENIED_ERROR, ER.SPECIFIC_ACCESS_DENIED_ERROR}
_NO_PLUGIN = "no_such_plugin_of_dbdyno"
# What shows the rights that every account has, where the server knows such a thing and the login may look.
_GIVEN_TO_ALL = (
    "SHOW GRANTS FOR PUBLIC",
    "SELECT CONCAT('the mandatory role ', @@GLOBAL.mandatory_roles) FROM DUAL WHERE @@GLOBAL.mandatory_roles <> ''",
    "SELECT CONCAT('rights on the schema ', Db, ' by a row of mysql.db without a user') FROM mysql.db WHERE User = ''",
)


class Accounts:
    """The accounts of a login's server. Each method raises ``ServerError``."""

    cursor: Cursor

    def account(self, token: str) -> tuple[str, str]:
        """User and host of a run's account; the host is the one this host comes from, as the server sees it."""
        self.cursor.execute("SELECT USER()")
        host = str(row(self.cursor)[0]).rpartition("@")[2] or "%"
        if not re.fullmatch(r"[\w.:%-]+", host, re.ASCII):
            raise HostError(f"the server sees this host come from {host!r}, for which no account can be created")
        return _USER_START + token[:_TOKEN_CHARACTERS], host

    def drop_account(self, user: str, host: str) -> bool:
        """Drop an account and end its sessions, as far as the login may; whether it was there. Raises ``ServerError``.

        The sessions of a killed load go on with their statements, which may lock what is to be dropped next.
        """
        sessions = f"SELECT ID FROM information_schema.PROCESSLIST WHERE USER = '{user}'"  # noqa: S608  (letters and digits)
        if not _refusal(self.cursor, sessions):
            for (number,) in rows(self.cursor, 1):
                _refusal(self.cursor, f"KILL {int(number)}")
        try:
            self.cursor.execute(f"DROP USER '{user}'@'{host}'")
        except ServerError as error:
            if error.code == ER.CANNOT_USER:
                return False
            raise
        return True

    def why_no_account(self, database: str) -> tuple[str, str] | None:
        """Why no account confined to the database can be made, and what to do about it. Changes nothing.

        It is asked for what it must refuse, and checks rights first: an account with a plugin that there is not, and
        rights for an account that there is not.
        """
        self.cursor.execute("SELECT CURRENT_USER()")
        user, _, host = str(row(self.cursor)[0]).rpartition("@")
        login = f"'{user}'@'{host}'"
        somebody = f"'{_USER_START}{new_token()[:_TOKEN_CHARACTERS]}'@'localhost'"
        pattern = re.sub(r"([\\_%])", r"\\\1", database).replace("`", "``")
        # Else servers before MySQL 8 may make the account when it is given a right.
        _refusal(self.cursor, "SET SESSION sql_mode = 'NO_AUTO_CREATE_USER'")
        remedies = {
            f"CREATE USER {somebody} IDENTIFIED WITH {_NO_PLUGIN}": f"GRANT CREATE USER ON *.* TO {login}",
            f"GRANT ALL PRIVILEGES ON `{pattern}`.* TO {somebody}": f"GRANT ALL PRIVILEGES ON `{pattern}`.* TO {login} "
            "WITH GRANT OPTION",
        }
        for statement, remedy in remedies.items():
            error = _refusal(self.cursor, statement)
            if error and error.code in _ACCOUNT_DENIED:
                return str(error), remedy
            if error and error.code == ER.OPTION_PREVENTS_STATEMENT:
                return str(error), "start it without that option"
        for question in _GIVEN_TO_ALL:
            grants = [] if _refusal(self.cursor, question) else [short(str(grant)) for (grant,) in rows(self.cursor, 1)]
            if excess := [grant for grant in grants if not grant.startswith("GRANT USAGE ON *.* ")]:
                return f"the server gives every account more than its database: {excess[0]}", "revoke that"
        return None


def _refusal(cursor: Cursor, statement: str) -> ServerError | None:
    """The server's error, if it is one."""
    try:
        cursor.execute(statement)
    except ServerError as error:
        return error
    return None


# A login on an external server: its variables are read and set, and its databases and accounts looked at.


_RESIZE_SECONDS = 120.0
_SLEEP_SECONDS = 31_536_000  # of a session that says nothing through whole trials
_AFTER_ALL = "version"  # a variable that no server lets anybody set


@dataclass(frozen=True)
class MysqlSession(Accounts):
    """One connection and its cursor. Each method raises ``ServerError``."""

    connection: Connection
    cursor: Cursor

    def version(self) -> str:
        """The version that the server reports, with its build's comment."""
        return short(f"{self.variable('version')} ({self.variable('version_comment')})")

    def settings(self) -> Settings:
        """Its version, variables and engines."""
        return settings_of(self.cursor)

    def database(self, name: str) -> MysqlDatabase:
        """One of its databases."""
        return MysqlDatabase(self.cursor, name)

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
                return setting_bytes(value)
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
            if _is_text(now) and (mistake := text_mistake(name, str(value))):
                return mistake
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
        status_rows = rows(self.cursor, 2)
        return allowed, str(status_rows[0][1]) if status_rows else 0

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
            status_rows = rows(self.cursor, 2)
            if (
                not status_rows
                or not status_rows[0][1]
                or str(status_rows[0][1]).startswith(("Completed", "Size did not change"))
            ):
                return
            time.sleep(0.05)


def _is_text(value: Value) -> bool:
    """Whether what a variable holds is neither a number nor a switch; what is not set is of those that take text."""
    return value is None or (isinstance(value, str) and value.upper() not in {"ON", "OFF", "YES", "NO"})


_NO_PLUGIN_LOGIN = 1698  # ER_ACCESS_DENIED_NO_PASSWORD_ERROR
_DENIED = {ER.ACCESS_DENIED_ERROR, ER.DBACCESS_DENIED_ERROR, _NO_PLUGIN_LOGIN}
# It may be about to come back.
_AWAY = {CR.CR_CONNECTION_ERROR, CR.CR_CONN_HOST_ERROR, CR.CR_SERVER_GONE_ERROR, CR.CR_SERVER_LOST,
         ER.SERVER_SHUTDOWN, ER.CON_COUNT_ERROR}  # fmt: skip


@dataclass(frozen=True)
class ExternalMysql:
    """A server as a study names it, and the file that may hold its password."""

    url: str
    option_file: str | None

    @property
    def address(self) -> Address:
        """Where and how to log in. Raises ``UserError`` where the option file can't be used."""
        return address_of(self.url, self.option_file)

    @property
    def server(self) -> MysqlServer:
        """What it can be asked."""
        return MysqlServer(self.address)

    def connected(self, patience_seconds: float = 0.0) -> MysqlSession:
        """A session. Raises ``TrialError`` where the server is away, ``HostError`` where it refuses the login."""
        address, deadline = self.address, time.monotonic() + patience_seconds
        while True:
            try:
                connection = connect(address)
                return MysqlSession(connection, connection.cursor())
            except ServerError as error:
                why = self._login_error(address, error)
                if isinstance(why, HostError) or time.monotonic() > deadline:
                    raise why from None
            time.sleep(0.2)

    def _login_error(self, address: Address, error: ServerError) -> HostError | TrialError:
        place = server_url(self.url).place
        if error.code in _DENIED:
            remedy = how_to_give_a_password(self.option_file)
            if address.tls.mode == "disabled" and not address.socket:
                remedy += "; if it takes encrypted connections only, add ?ssl-mode=required to stack.server"
            return HostError(f"{place} does not let {address.user} in: {error}; {remedy}")
        if error.code not in _AWAY:
            return HostError(f"dbdyno can't talk to the server at {place}: {error}")
        return TrialError(f"the server at {place} does not answer: {error}")

    @contextmanager
    def session(self, patience_seconds: float = 0.0) -> Iterator[MysqlSession]:
        """A session for as long as the context lasts. Raises ``TrialError`` for what is refused in it."""
        session = self.connected(patience_seconds)
        try:
            yield session
        except ServerError as error:
            raise TrialError(f"the server at {server_url(self.url).place}: {error}") from None
        finally:
            session.close()
