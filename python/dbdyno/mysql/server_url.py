"""An external server, as ``stack.server`` names it: ``mysql://user@host:port/database?ssl-mode=required``."""

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from dbdyno.model.similar import did_you_mean

SCHEMES = ("mysql", "mariadb")
TLS_MODES = ("disabled", "preferred", "required", "verify_ca", "verify_identity")
TLS_FILES = ("ssl-ca", "ssl-cert", "ssl-key")
PARAMETERS = ("socket", "ssl-mode", *TLS_FILES)
SYSTEM = ("mysql", "information_schema", "performance_schema", "sys")
PORT, PORT_MAX = 3306, 65535
CLIENT_PASSWORD_VARIABLE = "MYSQL_PWD"  # noqa: S105  (its name)
PASSWORD_VARIABLE = "DBDYNO_PASSWORD"  # noqa: S105  (its name)
EXAMPLE = "mysql://user@host:3306/database"


@dataclass(frozen=True)
class ServerUrl:
    """Its parts. There is no password in it: a study is stored with its run."""

    user: str
    database: str
    host: str = "localhost"
    port: int = PORT
    socket: str | None = None  # instead of host and port
    ssl_mode: str | None = None  # None: preferred over TCP, disabled over a socket
    ssl_ca: str | None = None
    ssl_cert: str | None = None
    ssl_key: str | None = None

    @property
    def place(self) -> str:
        """The server without user and database, for a sentence."""
        return self.socket or f"{self.host}:{self.port}"


def is_url(server: str) -> bool:
    """Whether ``stack.server`` names an external server."""
    return "://" in server


def server_url(text: str) -> ServerUrl:
    """Read a URL. Raises ``ValueError`` with what is wrong, which never holds a password."""
    try:
        parts = urlsplit(text)
    except ValueError:  # its message may hold all of it
        raise ValueError(f"is not a URL; write {EXAMPLE}") from None
    if parts.scheme not in SCHEMES:
        raise ValueError(f"begins with {parts.scheme}://; an external server is named as {EXAMPLE}")
    login, at, _ = text.partition("://")[2].partition("@")
    if at and ":" in login:  # by hand, as it may hold what ends a URL's login, and no other message may show it
        raise ValueError(
            "holds a password, which would be stored with the run: take it out, and give it in the environment "
            f"variable {PASSWORD_VARIABLE} or in a file named by server.option_file"
        )
    parameters = _parameters(parts.query)
    user, database = unquote(parts.username or ""), unquote(parts.path.removeprefix("/"))
    if not user:
        raise ValueError(f"names no user; write {EXAMPLE}")
    if parts.fragment or not re.fullmatch(r"[^/\x00-\x1f`'\"\\]{1,64}", database):
        raise ValueError(f"names no database, in which dbdyno makes its tables; write {EXAMPLE}")
    if database.lower() in SYSTEM:
        raise ValueError(f"names the database {database}, which is the server's own; make an empty one for dbdyno")
    return _whole(user, database, parts.hostname, _port(parts.netloc), parameters)


def _whole(user: str, database: str, host: str | None, port: int | None, parameters: dict[str, str]) -> ServerUrl:
    socket = parameters.pop("socket", None)
    if socket and (host or port):
        raise ValueError("names a host and a socket; give one of them")
    if not socket and not host:
        raise ValueError(f"names no host; write {EXAMPLE}, or mysql://user@/database?socket=/run/mysqld/mysqld.sock")
    for name in ("socket", *TLS_FILES):
        value = socket if name == "socket" else parameters.get(name)
        if value is not None and not Path(value).is_absolute():
            raise ValueError(f"gives {name} the path {value!r}; give an absolute one")
    mode = parameters.get("ssl-mode")
    if mode is not None and mode not in TLS_MODES:
        raise ValueError(f"has ssl-mode={mode}; allowed are {', '.join(TLS_MODES)}{did_you_mean(mode, TLS_MODES)}")
    if (mode or "").startswith("verify") and "ssl-ca" not in parameters:
        raise ValueError(f"has ssl-mode={mode} without ssl-ca, the file of the authority's certificate; give it too")
    files = {name.replace("-", "_"): parameters.get(name) for name in TLS_FILES}
    return ServerUrl(user, database, host or "localhost", port or PORT, socket, ssl_mode=mode, **files)


def _port(netloc: str) -> int | None:
    place = netloc.rpartition("@")[2]
    text = place.rpartition("]")[2].partition(":")[2] if "]" in place else place.partition(":")[2]
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= PORT_MAX:
        raise ValueError(f"has the port {text!r}; give a number from 1 to {PORT_MAX}")
    return int(text)


def _parameters(query: str) -> dict[str, str]:
    parameters: dict[str, str] = {}
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        raise ValueError(f"ends in ?{query}, which is not name=value&name=value") from None
    for name, value in pairs:
        if name not in PARAMETERS or name in parameters or not value or not value.isprintable():
            meant = "" if name in PARAMETERS else did_you_mean(name, PARAMETERS)
            known = f"known are {', '.join(PARAMETERS)}{meant}"
            raise ValueError(f"has the parameter {name!r}, unknown, empty or given twice; {known}")
        parameters[name] = value
    return parameters
