"""The layer of an external server: variables are set and read back, nothing is restarted."""

import os
import socket as socketlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dbdyno.errors import HostError, TrialError
from dbdyno.model.printable import short
from dbdyno.mysql.server_url import server_url
from dbdyno.mysql.settings import Setting
from dbdyno.servers.contract import ExternalServer as External
from dbdyno.servers.contract import Holdings, Server, ServerError, Session, Settings
from dbdyno.servers.products import DAEMONS, external_server
from dbdyno.stack.layer import Endpoint, Image, StackContext
from dbdyno.stack.layers.server import check_outcomes, shown_settings
from dbdyno.stack.undo.external_server import DropAccount, DropExternalTables, SetGlobal
from dbdyno.stack.undo_log import Journal
from dbdyno.system.locks import listener_pid
from dbdyno.system.state import new_token


@dataclass(frozen=True)
class ExternalServerLayer:
    """A server that dbdyno neither starts nor stops; or that of a machine which is thrown away after the trial."""

    url: str
    option_file: str | None
    settings: Mapping[str, Setting]
    engine: str
    in_machine: bool = False  # so that nothing is put back: after a kill, its address may be another server's
    name: str = "server"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The server with the study's settings, which are put back afterwards."""
        external = external_server(self.url, self.option_file)
        address = external.address
        with ExitStack() as putting_back:
            with external.session() as session:
                for name, value in self.settings.items():
                    before = session.variable(name)
                    undo = SetGlobal(self.url, self.option_file, name, before)
                    if not self.in_machine:
                        putting_back.enter_context(below.journal.undoing(undo))
                    session.set_variable(name, session.as_set(value, before))
                observed = self._observe(external.server, session.settings())
            pid = process_behind(address.socket) if address.socket else None
            observed |= {"local": is_local(self.url), "process": "unknown" if pid is None else "found"}
            if self.in_machine:
                observed |= {"process": "in a machine"}
            observed |= {"started_by": "its machine" if self.in_machine else "others"}
            endpoint = replace(_endpoint(external, pid), in_machine=self.in_machine)
            yield below.raised(self.name, observed, endpoint=endpoint)

    def _observe(self, server: Server, readback: Settings) -> dict[str, Any]:
        check_outcomes(server.setting_outcomes(self.settings, readback, ""))  # its error log is its owner's
        shown = shown_settings(readback, {*self.settings, "hostname"})
        return {**shown, "tls": readback.tls}


def _endpoint(external: External, pid: int | None) -> Endpoint:
    """Other hosts reach it as this one does, but by a socket."""
    address = external.address
    return Endpoint(external.server, address, found_pid=pid, remote=None if address.socket else address)


def is_local(url: str) -> bool:
    """Whether the server's address is one of this host's: then both ends have the same. Sends nothing."""
    parts = server_url(url)
    if parts.socket:
        return True
    try:
        for family, _, _, _, place in socketlib.getaddrinfo(parts.host, parts.port, type=socketlib.SOCK_STREAM):
            with socketlib.socket(family, socketlib.SOCK_DGRAM) as end:
                end.connect(place)
                if end.getsockname()[0] == end.getpeername()[0]:
                    return True
    except OSError:
        return False
    return False


def process_behind(socket: Path) -> int | None:
    """The process that listens on a socket, if it is a server that we may watch.

    The kernel knows who called listen(2); that may be a proxy, or a process of another container.
    """
    try:
        pid = listener_pid(str(socket))
        name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
        Path(f"/proc/{pid}/io").read_bytes()  # others' counters are not for everybody
    except OSError:
        return None
    return pid if name in DAEMONS and pid != os.getpid() else None


# The data of a study on an external server: loaded into the database that it was lent, and gone at the end.
#
# No image can be put back there. So the data is loaded anew for each trial whose load writes, and kept for those that
# follow where the load only reads.


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
                self._open_session()
                with self._dropping:
                    yield self
            finally:
                if self._session:
                    self._session.close()

    def fill(self, key: str, prepare: Callable[[], None], *, keep: bool) -> None:
        """Have the data of a key there, loaded now or, where it was to be kept, before. Raises ``TrialError``."""
        session = self._open_session()
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
                user, host = self._open_session().account(self._token)
            except ServerError as error:
                raise TrialError(f"no account for the script: {error}") from None
            undo = DropAccount(self._url, self._option_file, user, host)
            self._dropping.enter_context(self._journal.undoing(undo))
            self._account = f"{user}@{host}"
        return self._account

    def _open_session(self) -> Session:
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
        holdings = database.holdings()
        if holdings.others:
            raise HostError(not_ours(self._database, holdings))
        database.mark(self._token)


def not_ours(database: str, holdings: Holdings) -> str:
    """Why a database can't be used."""
    kind, name = short(holdings.others[0].kind.lower().replace("base ", "")), short(holdings.others[0].name)
    others = f" and {len(holdings.others) - 1} more" if len(holdings.others) > 1 else ""
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
