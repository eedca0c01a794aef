"""The database that a study was lent on a server that runs already: marked, and emptied of what dbdyno made.

The mark is a table whose comment holds a token of the run. Nothing is ever dropped in a database without it. The load
generator knows the mark too, and then leaves the schema itself alone (``names.rs``).
"""

import re
from dataclasses import dataclass

from dbdyno.errors import HostError
from dbdyno.servers.running import Cursor

MARK, _MARK_COMMENT = "dbdyno_run", "dbdyno run "
_SCRIPT_RECORD = "dbdyno_script"  # where a script's prepare writes down what it makes
_SYSBENCH = re.compile(r"sbtest[0-9]+")  # these have no comment
_LOCK_SECONDS = 60  # a statement of a killed load may still be under way

_HOLDINGS = (
    "SELECT TABLE_TYPE, TABLE_NAME, TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s "
    "UNION ALL SELECT ROUTINE_TYPE, ROUTINE_NAME, ROUTINE_COMMENT FROM information_schema.ROUTINES "
    "WHERE ROUTINE_SCHEMA = %s "
    "UNION ALL SELECT 'EVENT', EVENT_NAME, EVENT_COMMENT FROM information_schema.EVENTS WHERE EVENT_SCHEMA = %s"
)


@dataclass(frozen=True)
class Thing:
    """Something in a database."""

    kind: str
    name: str
    comment: str


@dataclass(frozen=True)
class Holdings:
    """What a database holds."""

    token: str | None  # of the mark, if it is there
    ours: list[Thing]  # what dbdyno made, but for the mark
    others: list[Thing]  # in a database without the mark, all of it


def exists(cursor: Cursor, database: str) -> bool:
    """Whether there is such a database, as far as this user may know."""
    return bool(cursor.execute("SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = %s", (database,)))


def holdings(cursor: Cursor, database: str) -> Holdings:
    """What a database holds, and whose it is. Raises ``pymysql.Error``."""
    cursor.execute(_HOLDINGS, (database,) * 3)
    things = [Thing(*(str(value or "") for value in row)) for row in cursor.fetchall()]
    marks = [one for one in things if one.name == MARK and one.comment.startswith(_MARK_COMMENT)]
    if not marks:
        return Holdings(None, [], things)
    rest = [one for one in things if one not in marks]
    recorded = _recorded(cursor, database) if any(_is_record(one) for one in rest) else set()
    ours = [one for one in rest if _is_ours(one, recorded)]
    others = [one for one in rest if one not in ours]
    return Holdings(marks[0].comment.removeprefix(_MARK_COMMENT), ours, others)


def lock(cursor: Cursor, database: str, patience_seconds: int = 3) -> None:
    """Keep out other runs until the connection ends. Raises ``HostError`` where one is at it, ``pymysql.Error``."""
    cursor.execute("SELECT GET_LOCK(%s, %s)", (f"dbdyno {database}"[:64], patience_seconds))
    if cursor.fetchone() != (1,):
        raise HostError(f"another dbdyno works in the database {database}; wait for it or end it")


def mark(cursor: Cursor, database: str, token: str) -> None:
    """Mark a database as this run's. Raises ``pymysql.Error``."""
    table = f"{_quoted(database)}.{MARK}"
    cursor.execute(f"CREATE TABLE IF NOT EXISTS {table} (nothing INT) COMMENT = '{_MARK_COMMENT}{token}'")
    cursor.execute(f"ALTER TABLE {table} COMMENT = '{_MARK_COMMENT}{token}'")  # that of a killed run


def unmark(cursor: Cursor, database: str) -> None:
    """Take the mark away. Raises ``pymysql.Error``."""
    cursor.execute(f"DROP TABLE IF EXISTS {_quoted(database)}.{MARK}")


def drop(cursor: Cursor, database: str, things: list[Thing]) -> None:
    """Drop what dbdyno made; a script's record goes last, as it tells what is. Raises ``pymysql.Error``."""
    cursor.execute(f"SET SESSION lock_wait_timeout = {_LOCK_SECONDS}, SESSION foreign_key_checks = 0")
    for one in sorted(things, key=_is_record):
        what = one.kind if one.kind in {"VIEW", "SEQUENCE", "PROCEDURE", "FUNCTION", "EVENT"} else "TABLE"
        cursor.execute(f"DROP {what} IF EXISTS {_quoted(database)}.{_quoted(one.name)}")


def _recorded(cursor: Cursor, database: str) -> set[tuple[str, str]]:
    cursor.execute(f"SELECT kind, name FROM {_quoted(database)}.{_SCRIPT_RECORD}")  # noqa: S608  (quoted)
    return {(str(kind), str(name)) for kind, name in cursor.fetchall()}


def _is_record(one: Thing) -> bool:
    return one.name == _SCRIPT_RECORD and one.comment.startswith("dbdyno ")


def _is_ours(one: Thing, recorded: set[tuple[str, str]]) -> bool:
    by_name = one.kind == "BASE TABLE" and bool(_SYSBENCH.fullmatch(one.name))
    return by_name or one.comment.startswith("dbdyno ") or (one.kind, one.name) in recorded


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
