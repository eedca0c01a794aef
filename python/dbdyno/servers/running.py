"""A server that runs already: talking to it, and its variables."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, TypeAlias

import pymysql
from pymysql.constants import CR, ER

from dbdyno.clean import one_line
from dbdyno.errors import HostError, TrialError
from dbdyno.servers import process
from dbdyno.servers.login import address_of, how_to_give_a_password
from dbdyno.study.section import Setting
from dbdyno.study.server_url import server_url
from dbdyno.study.units import size_bytes

Cursor = pymysql.cursors.Cursor
Connection: TypeAlias = "pymysql.Connection[Cursor]"
Value = int | float | str | None  # of a variable, as JSON keeps it

_NO_PLUGIN_LOGIN = 1698  # ER_ACCESS_DENIED_NO_PASSWORD_ERROR
_DENIED = {ER.ACCESS_DENIED_ERROR, ER.DBACCESS_DENIED_ERROR, _NO_PLUGIN_LOGIN}
# It may be about to come back.
_AWAY = {CR.CR_CONNECTION_ERROR, CR.CR_CONN_HOST_ERROR, CR.CR_SERVER_GONE_ERROR, CR.CR_SERVER_LOST,
         ER.SERVER_SHUTDOWN, ER.CON_COUNT_ERROR}  # fmt: skip
_RESIZE_SECONDS = 120.0
_AFTER_ALL = "version"  # a variable that no server lets anybody set


def connected(url: str, option_file: str | None, patience_seconds: float = 0.0) -> Connection:
    """A control connection. Raises ``TrialError`` where the server is away, ``HostError`` where it lets nobody in."""
    address, deadline = address_of(url, option_file), time.monotonic() + patience_seconds
    while True:
        try:
            return process.connect(address)
        except (pymysql.Error, OSError) as error:
            code = error.args[0] if error.args else 0
            place = server_url(url).place
            if code in _DENIED:
                remedy = how_to_give_a_password(option_file)
                if address.tls.mode == "disabled" and not address.socket:
                    remedy += "; if it takes encrypted connections only, add ?ssl-mode=required to stack.server"
                raise HostError(f"{place} does not let {address.user} in: {_said(error)}; {remedy}") from None
            if code not in _AWAY:
                raise HostError(f"the server at {place} can't be talked to: {_said(error)}") from None
            if time.monotonic() > deadline:
                raise TrialError(f"the server at {place} does not answer: {_said(error)}") from None
        time.sleep(0.2)


@contextmanager
def talking_to(url: str, option_file: str | None, patience_seconds: float = 0.0) -> Iterator[Cursor]:
    """A cursor for as long as the context lasts. Raises as ``connected`` does; ``TrialError`` for what is refused."""
    with connected(url, option_file, patience_seconds) as connection, connection.cursor() as cursor:
        try:
            yield cursor
        except pymysql.Error as error:
            raise TrialError(f"the server at {server_url(url).place} says: {_said(error)}") from None


def version_of(url: str, option_file: str | None) -> str:
    """The version that the server tells, with its build's comment."""
    with talking_to(url, option_file) as cursor:
        return f"{global_value(cursor, 'version')} ({global_value(cursor, 'version_comment')})"


def global_value(cursor: Cursor, name: str) -> Value:
    """A variable as a number or a text, the way SET takes it. Raises ``pymysql.Error``."""
    cursor.execute(f"SELECT @@GLOBAL.`{name}`")
    value = _row(cursor)[0]
    return float(value) if isinstance(value, Decimal) else value.decode() if isinstance(value, bytes) else value


def set_global(cursor: Cursor, name: str, value: Value) -> None:
    """Set a variable and wait until that is done. Raises ``pymysql.Error``."""
    cursor.execute(f"SET GLOBAL `{name}` = %s", (value,))
    if name.startswith("innodb_buffer_pool"):
        _await_resized(cursor)


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


def why_not_settable(cursor: Cursor, name: str, value: Setting) -> str:
    """What the server has against setting a variable while it runs; empty if nothing. Changes nothing.

    A server checks all assignments of one SET before it makes the first. So another one that it must refuse is added:
    which of the two it refuses is the answer.
    """
    try:
        now = global_value(cursor, name)
        cursor.execute(f"SET GLOBAL `{name}` = %s, GLOBAL {_AFTER_ALL} = ''", (as_set(value, now),))
    except pymysql.Error as error:
        said = _said(error)
        if f"'{_AFTER_ALL}'" in said:
            return ""
        if error.args[0] == ER.UNKNOWN_SYSTEM_VARIABLE:
            return "the server has no such variable"
        if error.args[0] == ER.INCORRECT_GLOBAL_LOCAL_VAR:
            return f"it can be set only where the server is started, and this one is not restarted ({said})"
        return said
    return "the server does not tell whether it can be set"


def _await_resized(cursor: Cursor) -> None:
    """InnoDB resizes its buffer pool after it has answered."""
    deadline = time.monotonic() + _RESIZE_SECONDS
    while time.monotonic() < deadline:
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_resize_status'")
        found = cursor.fetchone()
        if not found or not found[1] or str(found[1]).startswith(("Completed", "Size did not change")):
            return
        time.sleep(0.05)


def _row(cursor: Cursor) -> tuple[Any, ...]:
    found = cursor.fetchone()
    assert found is not None  # noqa: S101  (a SELECT of a variable has a row)
    return tuple(found)


def _said(error: Exception) -> str:
    """An error in the server's own words, on one line."""
    return one_line(str(error.args[-1] if error.args else error))[:300]
