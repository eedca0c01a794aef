"""What undoes a change on an external server. No password is in it: that comes from where the run had it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dbdyno.errors import HostError, TrialError, UserError
from dbdyno.model.printable import short
from dbdyno.servers.contract import Session, Value
from dbdyno.servers.products import external_server
from dbdyno.stack.undo.kind import Undo
from dbdyno.study.server_url import server_url

_AGAIN = "once it is mended: dbdyno restore"
_PATIENCE_SECONDS = 5.0  # with a server that is being restarted
_gone: set[str] = set()  # servers that were away for so long: waiting for them again would only take time


@contextmanager
def _session(url: str, option_file: str | None) -> Iterator[Session]:
    patience = 0.0 if url in _gone else _PATIENCE_SECONDS
    _gone.add(url)
    with external_server(url, option_file).session(patience) as session:
        _gone.discard(url)
        yield session


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
            with _session(self.url, self.option_file) as session:
                if session.variable(self.name) == self.value:
                    return False
                session.set_variable(self.name, self.value)
        except (TrialError, UserError, HostError) as error:
            raise HostError(f"{error}; {_AGAIN}") from None
        return True

    def said(self) -> str:
        """Name the variable, its value and the server."""
        return f"set {self.name} of the server at {server_url(self.url).place} back to {short(str(self.value))}"


@dataclass(frozen=True)
class DropExternalTables(Undo):
    """Drop what a run made in an external database, if the database still has that run's mark."""

    url: str
    option_file: str | None
    token: str

    def apply(self) -> bool:
        """Drop what dbdyno made and nothing else; the mark goes last."""
        try:
            with _session(self.url, self.option_file) as session:
                database = session.database(server_url(self.url).database)
                if database.holdings().token != self.token:
                    return False
                database.lock()
                found = database.holdings()
                if found.token != self.token:  # another run was faster
                    return False
                database.drop(found.ours)
                database.unmark()
        except (TrialError, UserError, HostError) as error:
            raise HostError(f"{error}; {_AGAIN}") from None
        return True

    def said(self) -> str:
        """Name the database and the server."""
        url = server_url(self.url)
        return f"drop the tables of dbdyno in the database {url.database} of the server at {url.place}"


@dataclass(frozen=True)
class DropAccount(Undo):
    """Drop the account that a script ran as."""

    url: str
    option_file: str | None
    user: str
    host: str

    def apply(self) -> bool:
        """Drop it if it is there."""
        try:
            with _session(self.url, self.option_file) as session:
                return session.drop_account(self.user, self.host)
        except (TrialError, UserError, HostError) as error:
            raise HostError(f"{error}; {_AGAIN}") from None

    def said(self) -> str:
        """Name the account and the server."""
        return f"drop the account '{self.user}'@'{self.host}' of the server at {server_url(self.url).place}"
