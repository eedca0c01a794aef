"""The data of a study on an external server: loaded into the database that it was lent, and gone at the end.

No image can be put back there. So the data is loaded anew for each trial whose load writes, and kept for those that
follow where the load only reads.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from dbdyno.errors import HostError, TrialError
from dbdyno.model.printable import short
from dbdyno.servers.contract import Holdings, ServerError, Session
from dbdyno.servers.products import external_server
from dbdyno.stack.image import Image
from dbdyno.stack.layer import StackContext
from dbdyno.stack.undo.external_server import DropAccount, DropExternalTables
from dbdyno.stack.undo.log import Journal
from dbdyno.study.server_url import server_url
from dbdyno.system.state import new_token


class ExternalDatabase(Image):
    """The database of one server for the length of one run.

    A lock on the server keeps out other runs, of this host and of others; it ends with the connection that holds it.
    """

    def __init__(self, url: str, option_file: str | None, journal: Journal) -> None:
        self._url, self._option_file, self._journal = url, option_file, journal
        self._database, self._token = server_url(url).database, new_token()
        self._session: Session | None = None
        self._loaded: str | None = None  # the key of what lies there unchanged
        self._account: str | None = None
        self._dropping = ExitStack()

    @contextmanager
    def taken(self) -> Iterator["ExternalDatabase"]:
        """Mark the database as ours; empty it at the end. Raises ``HostError`` where it is not ours to use."""
        with self._journal.undoing(DropExternalTables(self._url, self._option_file, self._token)):
            try:
                self._held()
                with self._dropping:
                    yield self
            finally:
                if self._session:
                    self._session.close()

    def fill(self, key: str, prepare: Callable[[], None], *, keep: bool) -> None:
        """Have the data of a key there, loaded now or, where it was to be kept, before. Raises ``TrialError``."""
        session = self._held()
        if keep and self._loaded == key:
            return
        self._loaded = None
        try:
            database = session.database(self._database)
            database.drop(database.holdings().ours)
        except ServerError as error:
            raise TrialError(f"the database {self._database} can't be emptied: {error}") from None
        prepare()
        self._loaded = key if keep else None

    def account(self) -> str:
        """The account that a study's own SQL runs as, ``user@host``; from now on it is dropped at the end."""
        if self._account is None:
            try:
                user, host = self._held().account(self._token)
            except ServerError as error:
                raise TrialError(f"no account for the script: {error}") from None
            undo = DropAccount(self._url, self._option_file, user, host)
            self._dropping.enter_context(self._journal.undoing(undo))
            self._account = f"{user}@{host}"
        return self._account

    def _held(self) -> Session:
        """A session with the lock and the mark, also after the server was restarted."""
        try:
            if self._session:
                self._session.ping()
                return self._session
        except ServerError:
            self._session, self._loaded = None, None
        with ExitStack() as closing:
            session = external_server(self._url, self._option_file).connected()
            closing.callback(session.close)  # and with it the lock
            try:
                self._take(session)
            except ServerError as error:
                raise TrialError(f"the database {self._database} can't be used: {error}") from None
            closing.pop_all()
        self._session = session
        return session

    def _take(self, session: Session) -> None:
        session.keep_open()
        database = session.database(self._database)
        database.lock()
        found = database.holdings()
        if found.others:
            raise HostError(not_ours(self._database, found))
        database.mark(self._token)


def not_ours(database: str, found: Holdings) -> str:
    """Why a database can't be used."""
    kind, name = short(found.others[0].kind.lower().replace("base ", "")), short(found.others[0].name)
    others = f" and {len(found.others) - 1} more" if len(found.others) > 1 else ""
    return (
        f"the database {database} holds the {kind} {name}{others}, which dbdyno did not make in this study; "
        "name an empty database"
    )


@dataclass(frozen=True)
class ExternalData:
    """The data of one treatment in the database that the study was lent."""

    database: ExternalDatabase
    key: str  # what it depends on
    prepare: Callable[[StackContext], None]
    only_read: bool  # by the load
    confined: bool = False  # it is SQL of the study's own, which runs as an account that reaches nothing else
    name: str = "data"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The data in its tables."""
        account = self.database.account() if self.confined else None
        context = replace(below, endpoint=replace(below.server, account=account))
        self.database.fill(self.key, lambda: self.prepare(context), keep=self.only_read)
        how = "once, as the load only reads" if self.only_read else "anew for each trial"
        yield context.raised(self.name, {"from": "load", "loaded": how})
