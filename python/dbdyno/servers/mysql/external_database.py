"""The database that a study was lent on an external server: marked, and emptied of what dbdyno made.

The mark is a table whose comment holds a token of the run. Nothing is ever dropped in a database without it. The load
generator knows the mark too, and then leaves the schema itself alone (``names.rs``).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.errors import HostError
from dbdyno.servers.contract import Holdings, Thing
from dbdyno.servers.mysql.connection import Cursor, row, rows

MARK, _MARK_COMMENT = "dbdyno_run", "dbdyno run "
_SCRIPT_RECORD = "dbdyno_script"  # where a script's prepare writes down what it makes
_BEGUN = "BEGUN"  # its row as long as prepare is not done: then all that is there was made by it
_SYSBENCH = re.compile(r"sbtest[0-9]+")  # these have no comment
_LOCK_SECONDS = 60  # a statement of a killed load may still be running

_HOLDINGS = (
    "SELECT TABLE_TYPE, TABLE_NAME, TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s "
    "UNION ALL SELECT ROUTINE_TYPE, ROUTINE_NAME, ROUTINE_COMMENT FROM information_schema.ROUTINES "
    "WHERE ROUTINE_SCHEMA = %s "
    "UNION ALL SELECT 'EVENT', EVENT_NAME, EVENT_COMMENT FROM information_schema.EVENTS WHERE EVENT_SCHEMA = %s"
)


@dataclass(frozen=True)
class MysqlDatabase:
    """One database, over one session. Each method raises ``ServerError``."""

    cursor: Cursor
    name: str

    def exists(self) -> bool:
        """Whether there is such a database, as far as this user may know."""
        question = "SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = %s"
        return bool(self.cursor.execute(question, (self.name,)))

    def holdings(self) -> Holdings:
        """What it holds, and whose that is."""
        self.cursor.execute(_HOLDINGS, (self.name,) * 3)
        things = [Thing(*(str(value or "") for value in columns)) for columns in rows(self.cursor, 3)]
        marks = [thing for thing in things if thing.name == MARK and thing.comment.startswith(_MARK_COMMENT)]
        if not marks:
            return Holdings(None, [], things)
        rest = [thing for thing in things if thing not in marks]
        recorded = self._record_entries() if any(_is_record(thing) for thing in rest) else set()
        ours = [thing for thing in rest if _is_ours(thing, recorded)]
        others = [thing for thing in rest if thing not in ours]
        return Holdings(marks[0].comment.removeprefix(_MARK_COMMENT), ours, others)

    def lock(self, patience_seconds: int = 3) -> None:
        """Keep out other runs until the connection ends. Raises ``HostError`` where one is at it."""
        self.cursor.execute("SELECT GET_LOCK(%s, %s)", (f"dbdyno {self.name}"[:64], patience_seconds))
        if row(self.cursor) != (1,):
            raise HostError(f"another dbdyno works in the database {self.name}; wait for it or end it")

    def mark(self, token: str) -> None:
        """Mark it as this run's."""
        table = self._quote(MARK)
        self.cursor.execute(f"CREATE TABLE IF NOT EXISTS {table} (nothing INT) COMMENT = '{_MARK_COMMENT}{token}'")
        self.cursor.execute(f"ALTER TABLE {table} COMMENT = '{_MARK_COMMENT}{token}'")  # that of a killed run

    def unmark(self) -> None:
        """Take the mark away."""
        self.cursor.execute(f"DROP TABLE IF EXISTS {self._quote(MARK)}")

    def drop(self, things: Sequence[Thing]) -> None:
        """Drop what dbdyno made; a script's record goes last, as it lists the others."""
        self.cursor.execute(f"SET SESSION lock_wait_timeout = {_LOCK_SECONDS}, SESSION foreign_key_checks = 0")
        for thing in sorted(things, key=_is_record):
            kind = thing.kind if thing.kind in {"VIEW", "SEQUENCE", "PROCEDURE", "FUNCTION", "EVENT"} else "TABLE"
            self.cursor.execute(f"DROP {kind} IF EXISTS {self._quote(thing.name)}")

    def _record_entries(self) -> set[tuple[str, str]]:
        self.cursor.execute(f"SELECT kind, name FROM {self._quote(_SCRIPT_RECORD)}")  # noqa: S608  (quoted)
        return {(str(kind), str(name)) for kind, name in rows(self.cursor, 2)}

    def _quote(self, name: str) -> str:
        return ".".join(f"`{part.replace('`', '``')}`" for part in (self.name, name))


def _is_record(thing: Thing) -> bool:
    return thing.name == _SCRIPT_RECORD and thing.comment.startswith("dbdyno ")


def _is_ours(thing: Thing, recorded: set[tuple[str, str]]) -> bool:
    by_name = thing.kind == "BASE TABLE" and bool(_SYSBENCH.fullmatch(thing.name))
    begun = any(kind == _BEGUN for kind, _ in recorded)
    return begun or by_name or thing.comment.startswith("dbdyno ") or (thing.kind, thing.name) in recorded
