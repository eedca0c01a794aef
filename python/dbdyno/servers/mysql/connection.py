"""The control connection: every connection of Python's to a server goes through ``connect``.

A server may be anybody's, broken, or meant to do harm. So each login and each reply has a bound in bytes and in seconds
over all of it, however the bytes come; the password goes only where no third party can listen; no
file of this host is sent; and whatever is wrong with what came is a ``ServerError``.
"""

import re
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import pymysql
from pymysql._auth import scramble_caching_sha2
from pymysql.constants import CLIENT, CR

from dbdyno.errors import HostError
from dbdyno.model.printable import short
from dbdyno.servers.contract import Address, Holdings, ServerError, Thing, Tls

# How the control connection proves who it is, by the authentication plugins of MySQL and MariaDB.
#
# The load generator has the same rules (``crates/dbdyno-load/src/protocol/auth.rs``): the password itself goes only
# where no third party can listen, and what is not known is refused.


_FAST_DONE, _WANTS_PASSWORD = 3, 4  # what caching_sha2_password says
_CLEAR = (
    "the account wants the password in clear text, which only a unix socket or TLS with a verified server may carry: "
    "see ssl-mode=verify_ca"
)
_OPEN = (
    "the server wants the password itself, which must not travel over TCP in the clear: use ssl-mode=required, or a "
    "unix socket"
)
_OLD = "the account uses mysql_old_password, which is not safe"
_KNOWN = "use mysql_native_password, caching_sha2_password or sha256_password"


class Login(Protocol):
    """What a plugin needs of the connection that logs in."""

    password: bytes

    @property
    def is_sealed(self) -> bool:
        """Whether none but the other end can listen, whoever that is."""

    @property
    def is_private(self) -> bool:
        """Whether none but the server can listen."""

    def exchange(self, answer: bytes | None) -> Any:  # noqa: ANN401  (pymysql's packet)
        """Send an answer, if there is one; the server's next packet."""


class Plugin(Protocol):
    """What answers a server's packets within a login, as pymysql calls it."""

    def authenticate(self, packet: Any) -> Any:  # noqa: ANN401  (pymysql's packet, which has no type)
        """Answer a packet; return the next one. Raises ``ServerError``."""


def plugin_of(name: bytes, connection: Login) -> Plugin | None:
    """What serves a plugin; ``None`` for the one that is pymysql's own."""
    if name in {b"", b"mysql_native_password"}:
        return None
    if name == b"caching_sha2_password":
        return _CachingSha2(connection)
    if name == b"sha256_password":
        return _Password(connection, _OPEN, allowed=connection.is_sealed)
    if name == b"mysql_clear_password":
        return _Password(connection, _CLEAR, allowed=connection.is_private)
    if name == b"mysql_old_password":
        return _Refused(_OLD)
    shown = short(name.decode(errors="replace"))
    return _Refused(f"the account uses the authentication plugin {shown}, which is not supported: {_KNOWN}")


class _Refused:
    """A plugin that is not served."""

    def __init__(self, why: str) -> None:
        self._why = why

    def authenticate(self, packet: Any) -> Any:  # noqa: ANN401
        """Never."""
        raise _refusal(self._why)


class _Password:
    """A plugin that takes the password itself."""

    def __init__(self, connection: Login, why_not: str, *, allowed: bool) -> None:
        self._connection, self._why_not, self._allowed = connection, why_not, allowed

    def authenticate(self, packet: Any) -> Any:  # noqa: ANN401
        """The password, where it may go."""
        if not self._allowed and self._connection.password:
            raise _refusal(self._why_not)
        return self._connection.exchange(self._connection.password + b"\0")


class _CachingSha2:
    """``caching_sha2_password``: a proof over the server's nonce, or the password where it is not cached."""

    def __init__(self, connection: Login) -> None:
        self._connection = connection

    def authenticate(self, packet: Any) -> Any:  # noqa: ANN401
        """The proof, or the password where it may go; a server's RSA key could be anyone's."""
        connection = self._connection
        if packet.is_auth_switch_request():
            nonce = packet.read_all().removesuffix(b"\0")
            return connection.exchange(scramble_caching_sha2(connection.password, nonce))
        packet.advance(1)
        step = packet.read_uint8()
        if step == _FAST_DONE:
            return connection.exchange(None)
        if step != _WANTS_PASSWORD:
            raise _refusal("the server sent an unknown packet")
        if not connection.is_sealed and connection.password:
            raise _refusal(_OPEN)
        return connection.exchange(connection.password + b"\0")


def _refusal(why: str) -> ServerError:
    return ServerError(f"cannot log in: {why}", CR.CR_AUTH_PLUGIN_ERR)


LOGIN_SECONDS, REPLY_SECONDS = 10.0, 60.0
LOGIN_BYTES_MAX, REPLY_BYTES_MAX = 64 << 10, 16 << 20  # what is asked for is short
_RECEIVE_BYTES = 64 << 10
_PROTOCOL = 10
_NEEDED = CLIENT.PROTOCOL_41 | CLIENT.SECURE_CONNECTION

Cursor: TypeAlias = pymysql.cursors.Cursor
Row: TypeAlias = tuple[Any, ...]

if TYPE_CHECKING:
    _OfPymysql = pymysql.connections.Connection[Cursor]
else:
    _OfPymysql = pymysql.connections.Connection


def connect(where: Address | Path, login_seconds: float | None = None) -> "Connection":
    """A control connection; over a private socket it is root's. Raises ``ServerError``."""
    address = where if isinstance(where, Address) else Address("root", where)
    return Connection(address, LOGIN_SECONDS if login_seconds is None else login_seconds)


def rows(cursor: Cursor, columns: int) -> list[Row]:
    """The rows of the last statement, of so many columns each. Raises ``ServerError`` where they are others."""
    table = [tuple(row) for row in cursor.fetchall()]
    if any(len(row) != columns for row in table):
        raise _nonsense("rows with another number of columns than were asked for")
    return table


def row(cursor: Cursor, columns: int = 1) -> Row:
    """The first row of the last statement. Raises ``ServerError`` where there is none."""
    table = rows(cursor, columns)
    if not table:
        raise _nonsense("no row where there must be one")
    return table[0]


def _nonsense(breach: str) -> ServerError:
    return ServerError(f"the server broke the protocol: {breach}", CR.CR_MALFORMED_PACKET)


def _connection_loss(reason: str) -> ServerError:
    return ServerError(reason, CR.CR_SERVER_LOST)


def _in_words(error: pymysql.Error) -> ServerError:
    """An error of the client library, in the server's own words."""
    code = next((part for part in error.args if isinstance(part, int)), 0)
    text = " ".join(short(str(part)) for part in error.args if not isinstance(part, int))
    return ServerError(text or type(error).__name__, code)


def login_of(address: Address) -> dict[str, Any]:
    """An address as pymysql takes it. Raises ``OSError`` where a certificate can't be used."""
    place: dict[str, Any] = {"host": address.host, "port": address.port}
    if address.socket:
        place = {"unix_socket": str(address.socket)}
    # Bytes, as pymysql would make Latin-1 of a text, which is not what the server keeps.
    return {**place, "user": address.user, "password": address.password.encode(), **_encryption(address.tls)}


def _encryption(tls: Tls) -> dict[str, Any]:
    if tls.mode == "disabled":
        return {"ssl_disabled": True}
    if tls.mode == "preferred" and not (tls.ca or tls.cert):
        return {}
    context = ssl.create_default_context(cafile=tls.ca)
    context.check_hostname = tls.mode == "verify_identity"
    context.verify_mode = ssl.CERT_REQUIRED if tls.mode.startswith("verify") else ssl.CERT_NONE
    if tls.cert:
        context.load_cert_chain(tls.cert, tls.key)
    return {"ssl": context}


class Connection(_OfPymysql):
    """One that takes from a server only what it asked for, in time."""

    # pymysql's own, which its stubs leave out.
    protocol_version: int
    server_capabilities: int
    _sock: Any
    _secure: bool
    _force_close: Callable[[], None]
    _read_timeout: float
    _write_timeout: float
    _current_timeout: float

    def __init__(self, address: Address, login_seconds: float) -> None:
        self._login_seconds, self._logging_in = login_seconds, False
        self._seconds, self._until, self._bytes_left = login_seconds, 0.0, 0
        self._unread, self._unread_from = bytearray(), object()
        self.is_private = address.is_private  # none but the server can listen, and it is the one that was meant
        try:
            login = login_of(address)
        except OSError as error:  # a certificate
            raise ServerError(f"TLS: {short(str(error))}") from None
        super().__init__(autocommit=True, connect_timeout=login_seconds, **login)

    @property
    def is_sealed(self) -> bool:
        """Whether none but the other end can listen, whoever that is: a unix socket, or TLS."""
        return bool(self._secure)

    def connect(self, sock: Any = None) -> None:  # noqa: ANN401  (pymysql's)
        """Connect and log in."""
        with self._clean():
            self._allow(self._login_seconds, LOGIN_BYTES_MAX)
            self._logging_in = True
            super().connect(sock)
            self._logging_in = False

    def query(self, sql: str | bytes, unbuffered: bool = False) -> int:  # noqa: FBT001, FBT002  (pymysql's)
        """Run a statement and take its reply."""
        with self._clean():
            return super().query(sql, unbuffered)

    def next_result(self, unbuffered: bool = False) -> int:  # noqa: FBT001, FBT002  (pymysql's)
        """Take the next result of a reply."""
        with self._clean():
            return super().next_result(unbuffered)

    def ping(self, reconnect: Any = False) -> None:  # noqa: ANN401, FBT002  (pymysql's)
        """Ask for a sign of life."""
        with self._clean():
            super().ping(reconnect)

    def escape(self, obj: object, mapping: Any = None) -> str:  # noqa: ANN401  (pymysql's)
        """A value as it stands in a statement."""
        try:
            return super().escape(obj, mapping)
        except pymysql.Error as error:  # not every number is one of SQL
            raise _in_words(error) from None

    def exchange(self, answer: bytes | None) -> Any:  # noqa: ANN401  (pymysql's packet)
        """Within a login, send an answer, if there is one; the server's next packet."""
        if answer is not None:
            self.write_packet(answer)
        next_packet: Any = self._read_packet
        return next_packet()

    def _allow(self, seconds: float, bytes_max: int) -> None:
        """What the server may take for what is asked now."""
        self._seconds, self._until, self._bytes_left = seconds, time.monotonic() + seconds, bytes_max
        self._read_timeout = self._write_timeout = seconds

    def _execute_command(self, command: int, sql: str | bytes) -> None:
        if not self._logging_in:
            self._allow(REPLY_SECONDS, REPLY_BYTES_MAX)
        if self._unread:
            raise _nonsense("bytes after the end of a reply")
        super()._execute_command(command, sql)  # type: ignore[misc]

    def _get_server_information(self) -> None:
        super()._get_server_information()  # type: ignore[misc]
        if self.protocol_version != _PROTOCOL or self.server_capabilities & _NEEDED != _NEEDED:
            raise _nonsense("the greeting is not that of a MySQL or MariaDB server")

    def _get_auth_plugin_handler(self, plugin_name: bytes) -> Plugin | None:
        return plugin_of(plugin_name, self)

    def _read_bytes(self, num_bytes: int) -> bytes:
        """Exactly so many bytes. All that comes from the server passes here, but for TLS's own messages."""
        try:
            self._fill(num_bytes)
        except BaseException:  # what follows would not be understood
            self._force_close()
            raise
        self._bytes_left -= num_bytes
        piece = bytes(self._unread[:num_bytes])
        del self._unread[:num_bytes]
        return piece

    def _fill(self, size: int) -> None:
        """Have so many bytes to take."""
        if size > self._bytes_left:
            raise _nonsense("a reply that is too long")
        if self._unread and self._unread_from is not self._sock:
            raise _nonsense("bytes in front of TLS")  # they would count as if they had come through it
        while len(self._unread) < size:
            try:
                received = self._receive(self._until - time.monotonic())
            except TimeoutError:
                raise _connection_loss(f"no whole answer within {self._seconds:g} s") from None
            except OSError as error:
                raise _connection_loss(f"the connection was lost: {error}") from None
            if not received:
                raise _connection_loss("the server closed the connection")
            self._unread += received

    def _receive(self, left_seconds: float) -> bytes:
        if left_seconds <= 0:
            raise TimeoutError
        # Setting it costs a system call, which a reply that comes at once is spared.
        if left_seconds < 0.9 * self._current_timeout:
            self._sock.settimeout(left_seconds)
            self._current_timeout = self._read_timeout = left_seconds
        self._unread_from = self._sock
        received: bytes = self._sock.recv(_RECEIVE_BYTES)
        return received

    @contextmanager
    def _clean(self) -> Iterator[None]:
        """Damaged packets make pymysql raise all sorts; all become a ``ServerError``."""
        try:
            yield
        except ServerError:
            raise
        except pymysql.Error as error:
            raise _in_words(error) from None
        except Exception as error:
            self._force_close()
            if "LOAD_LOCAL" in str(error):
                raise _nonsense("it asks for a local file") from None
            raise _nonsense(f"{type(error).__name__}: {short(str(error))}") from error


# The database that a study was lent on an external server: marked, and emptied of what dbdyno made.
#
# The mark is a table whose comment holds a token of the run. Nothing is ever dropped in a database without it. The
# load generator knows the mark too, and then leaves the schema itself alone (``names.rs``).


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

    def lock(self) -> None:
        """Keep out other runs until the connection ends. Raises ``HostError`` where one is at it."""
        self.cursor.execute("SELECT GET_LOCK(%s, 3)", (f"dbdyno {self.name}"[:64],))
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
