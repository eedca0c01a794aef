"""An external server: logging in to it, and what to say where that fails."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pymysql.constants import CR, ER

from dbdyno.errors import HostError, TrialError
from dbdyno.servers.address import Address
from dbdyno.servers.contract import ServerError
from dbdyno.servers.mysql.connection import connect
from dbdyno.servers.mysql.login import address_of, how_to_give_a_password
from dbdyno.servers.mysql.server import MysqlServer
from dbdyno.servers.mysql.session import Session
from dbdyno.study.server_url import server_url

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

    def connected(self, patience_seconds: float = 0.0) -> Session:
        """A session. Raises ``TrialError`` where the server is away, ``HostError`` where it refuses the login."""
        address, deadline = self.address, time.monotonic() + patience_seconds
        while True:
            try:
                connection = connect(address)
                return Session(connection, connection.cursor())
            except ServerError as error:
                why = self._refused(address, error)
                if isinstance(why, HostError) or time.monotonic() > deadline:
                    raise why from None
            time.sleep(0.2)

    def _refused(self, address: Address, error: ServerError) -> HostError | TrialError:
        place = server_url(self.url).place
        if error.code in _DENIED:
            remedy = how_to_give_a_password(self.option_file)
            if address.tls.mode == "disabled" and not address.socket:
                remedy += "; if it takes encrypted connections only, add ?ssl-mode=required to stack.server"
            return HostError(f"{place} does not let {address.user} in: {error}; {remedy}")
        if error.code not in _AWAY:
            return HostError(f"the server at {place} can't be talked to: {error}")
        return TrialError(f"the server at {place} does not answer: {error}")

    @contextmanager
    def session(self, patience_seconds: float = 0.0) -> Iterator[Session]:
        """A session for as long as the context lasts. Raises ``TrialError`` for what is refused in it."""
        session = self.connected(patience_seconds)
        try:
            yield session
        except ServerError as error:
            raise TrialError(f"the server at {server_url(self.url).place}: {error}") from None
        finally:
            session.close()
