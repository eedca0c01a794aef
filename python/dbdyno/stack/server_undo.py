"""What undoes a change on a server that runs already. No password is in it: that comes from where the run had it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pymysql

from dbdyno.errors import HostError, TrialError, UserError
from dbdyno.servers import lent_database
from dbdyno.servers.running import Cursor, Value, global_value, set_global, talking_to
from dbdyno.stack.undo_kind import Undo
from dbdyno.study.server_url import server_url

_AGAIN = "once it is mended: dbdyno restore"
_PATIENCE_SECONDS = 5.0  # with a server that is being restarted
_gone: set[str] = set()  # servers that were away for so long: waiting for them again would only take time


@contextmanager
def _talking_to(url: str, option_file: str | None) -> Iterator[Cursor]:
    patience = 0.0 if url in _gone else _PATIENCE_SECONDS
    _gone.add(url)
    with talking_to(url, option_file, patience) as cursor:
        _gone.discard(url)
        yield cursor


@dataclass(frozen=True)
class SetGlobal(Undo):
    """Set a server's variable back to what it was."""

    url: str
    option_file: str | None
    name: str
    value: Value

    def apply(self) -> bool:
        """Set it if it differs."""
        try:
            with _talking_to(self.url, self.option_file) as cursor:
                if global_value(cursor, self.name) == self.value:
                    return False
                set_global(cursor, self.name, self.value)
        except (TrialError, UserError, HostError) as error:
            raise HostError(f"{error}; {_AGAIN}") from None
        return True

    def said(self) -> str:
        """Name the variable, its value and the server."""
        return f"set {self.name} of the server at {server_url(self.url).place} back to {self.value}"


@dataclass(frozen=True)
class DropLent(Undo):
    """Drop what a run made in the database that it was lent, if the database still has that run's mark."""

    url: str
    option_file: str | None
    token: str

    def apply(self) -> bool:
        """Drop what dbdyno made and nothing else; the mark goes last."""
        database = server_url(self.url).database
        try:
            with _talking_to(self.url, self.option_file) as cursor:
                if lent_database.holdings(cursor, database).token != self.token:
                    return False
                lent_database.lock(cursor, database)
                found = lent_database.holdings(cursor, database)
                if found.token != self.token:  # another run was faster
                    return False
                lent_database.drop(cursor, database, found.ours)
                lent_database.unmark(cursor, database)
        except (TrialError, UserError, HostError, pymysql.Error) as error:
            raise HostError(f"{error}; {_AGAIN}") from None
        return True

    def said(self) -> str:
        """Name the database and the server."""
        url = server_url(self.url)
        return f"drop the tables of dbdyno in the database {url.database} of the server at {url.place}"
