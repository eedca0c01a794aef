"""How the control connection proves who it is, by the authentication plugins of MySQL and MariaDB.

The load generator has the same rules (``crates/dbdyno-load/src/protocol/auth.rs``): the password itself goes only where
no third party can listen, and what is not known is refused.
"""

from typing import Any, Protocol

from pymysql._auth import scramble_caching_sha2
from pymysql.constants import CR

from dbdyno.model.printable import short
from dbdyno.servers.contract import ServerError

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

    def asked(self, answer: bytes | None) -> Any:  # noqa: ANN401  (pymysql's packet)
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
        return self._connection.asked(self._connection.password + b"\0")


class _CachingSha2:
    """``caching_sha2_password``: a proof over the server's nonce, or the password where it is not cached."""

    def __init__(self, connection: Login) -> None:
        self._connection = connection

    def authenticate(self, packet: Any) -> Any:  # noqa: ANN401
        """The proof, or the password where it may go; a server's RSA key could be anyone's."""
        connection = self._connection
        if packet.is_auth_switch_request():
            nonce = packet.read_all().removesuffix(b"\0")
            return connection.asked(scramble_caching_sha2(connection.password, nonce))
        packet.advance(1)
        step = packet.read_uint8()
        if step == _FAST_DONE:
            return connection.asked(None)
        if step != _WANTS_PASSWORD:
            raise _refusal("the server sent an unknown packet")
        if not connection.is_sealed and connection.password:
            raise _refusal(_OPEN)
        return connection.asked(connection.password + b"\0")


def _refusal(why: str) -> ServerError:
    return ServerError(f"cannot log in: {why}", CR.CR_AUTH_PLUGIN_ERR)
