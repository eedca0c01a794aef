"""The data of a study on a server that runs already: loaded into the database that it was lent, and gone at the end.

No image can be put back there. So the data is loaded anew for each trial whose load writes, and kept for those that
follow where the load only reads.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

import pymysql

from dbdyno.errors import HostError, TrialError
from dbdyno.servers import lent_database
from dbdyno.servers.running import Connection, connected
from dbdyno.stack.journal import Journal
from dbdyno.stack.layer import Stand
from dbdyno.stack.server_undo import DropLent
from dbdyno.state import new_token
from dbdyno.study.server_url import server_url

_SLEEP_SECONDS = 31_536_000  # the lock's connection says nothing through whole trials


class LentDatabase:
    """The database of one server for the length of one run.

    A lock on the server keeps out other runs, of this host and of others; it ends with the connection that holds it.
    """

    def __init__(self, url: str, option_file: str | None, journal: Journal) -> None:
        self._url, self._option_file, self._journal = url, option_file, journal
        self._database, self._token = server_url(url).database, new_token()
        self._connection: Connection | None = None
        self._loaded: str | None = None  # the key of what lies there unchanged

    @contextmanager
    def taken(self) -> Iterator["LentDatabase"]:
        """Mark the database as ours; empty it at the end. Raises ``HostError`` where it is not ours to use."""
        with self._journal.undoing(DropLent(self._url, self._option_file, self._token)):
            try:
                self._hold()
                yield self
            finally:
                if self._connection:
                    with suppress(pymysql.Error):
                        self._connection.close()

    def fill(self, key: str, prepare: Callable[[], None], *, keep: bool) -> None:
        """Have the data of a key there, loaded now or, where it was to be kept, before. Raises ``TrialError``."""
        self._hold()
        if keep and self._loaded == key:
            return
        self._loaded = None
        assert self._connection is not None  # noqa: S101  (``_hold`` made it)
        try:
            with self._connection.cursor() as cursor:
                found = lent_database.holdings(cursor, self._database)
                lent_database.drop(cursor, self._database, found.ours)
        except pymysql.Error as error:
            raise TrialError(f"the database {self._database} can't be emptied: {error.args[-1]}") from None
        prepare()
        self._loaded = key if keep else None

    def _hold(self) -> None:
        """Have the lock and the mark, also after the server was restarted."""
        try:
            if self._connection:
                self._connection.ping(reconnect=False)
                return
        except pymysql.Error:
            self._connection, self._loaded = None, None
        with ExitStack() as closing:
            connection = connected(self._url, self._option_file)
            closing.callback(connection.close)  # and with it the lock
            try:
                self._take(connection)
            except pymysql.Error as error:
                raise TrialError(f"the database {self._database} can't be used: {error.args[-1]}") from None
            closing.pop_all()
        self._connection = connection

    def _take(self, connection: Connection) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SET SESSION wait_timeout = {_SLEEP_SECONDS}")
            lent_database.lock(cursor, self._database)
            found = lent_database.holdings(cursor, self._database)
            if found.others:
                raise HostError(not_ours(self._database, found))
            lent_database.mark(cursor, self._database, self._token)


def not_ours(database: str, found: lent_database.Holdings) -> str:
    """Why a database can't be used."""
    kind, name = found.others[0].kind.lower().replace("base ", ""), found.others[0].name
    others = f" and {len(found.others) - 1} more" if len(found.others) > 1 else ""
    return (
        f"the database {database} holds the {kind} {name}{others}, which dbdyno did not make in this study; "
        "name an empty database"
    )


@dataclass(frozen=True)
class LentData:
    """The data of one treatment in the database that the study was lent."""

    database: LentDatabase
    key: str  # what it depends on
    prepare: Callable[[Stand], None]
    only_read: bool  # by the load
    name: str = "data"

    @contextmanager
    def raised(self, below: Stand) -> Iterator[Stand]:
        """The data in its tables."""
        self.database.fill(self.key, lambda: self.prepare(below), keep=self.only_read)
        how = "once, as the load only reads" if self.only_read else "anew for each trial"
        yield below.raised(self.name, {"from": "load", "loaded": how})
