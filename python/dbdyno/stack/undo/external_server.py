"""What undoes a change on an external server. No password is in it: that comes from where the run had it."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbdyno.errors import HostError, TrialError, UserError
from dbdyno.model.printable import short
from dbdyno.mysql.server_url import ServerUrl, server_url
from dbdyno.stack.undo.kind import Undo

if TYPE_CHECKING:
    from dbdyno.servers.contract import Session, Value

_PATIENCE_SECONDS = 5.0  # with a server that is being restarted
_gone: set[str] = set()  # servers that were away for so long: waiting for them again would only take time


@dataclass(frozen=True)
class _OnServer(Undo):
    """A change of a server that may be away, or being restarted."""

    url: str
    option_file: str | None

    @property
    def server(self) -> ServerUrl:
        """Where it is, as a text names it."""
        return server_url(self.url)

    def apply(self) -> bool:
        """Log in and undo it. Raises ``HostError``."""
        from dbdyno.servers.products import external_server  # what reads undo logs seldom speaks to a server

        patience = 0.0 if self.url in _gone else _PATIENCE_SECONDS
        _gone.add(self.url)
        try:
            with external_server(self.url, self.option_file).session(patience) as session:
                _gone.discard(self.url)
                return self._undo(session)
        except (TrialError, UserError, HostError) as error:
            raise HostError(f"{error}; once it is fixed: dbdyno restore") from None

    @abstractmethod
    def _undo(self, session: "Session") -> bool:
        """Undo it over a session; whether anything had to be done."""


@dataclass(frozen=True)
class SetGlobal(_OnServer):
    """Set a server's variable back to what it was, if it differs."""

    WHAT = "set {self.name} of the server at {self.server.place} back to {self.shown}"

    name: str
    value: "Value"

    @property
    def shown(self) -> str:
        """The value, in a line."""
        return short(str(self.value))

    def _undo(self, session: "Session") -> bool:
        if session.variable(self.name) == self.value:
            return False
        session.set_variable(self.name, self.value)
        return True


@dataclass(frozen=True)
class DropExternalTables(_OnServer):
    """Drop what a run made in an external database and nothing else, if the database still has that run's mark."""

    WHAT = "drop the tables of dbdyno in the database {self.server.database} of the server at {self.server.place}"

    token: str

    def _undo(self, session: "Session") -> bool:
        database = session.database(self.server.database)
        if database.holdings().token != self.token:
            return False
        database.lock()
        holdings = database.holdings()
        if holdings.token != self.token:  # another run was faster
            return False
        database.drop(holdings.ours)
        database.unmark()  # last
        return True


@dataclass(frozen=True)
class DropAccount(_OnServer):
    """Drop the account that a script ran as, if it is there."""

    WHAT = "drop the account '{self.user}'@'{self.host}' of the server at {self.server.place}"

    user: str
    host: str

    def _undo(self, session: "Session") -> bool:
        return session.drop_account(self.user, self.host)
