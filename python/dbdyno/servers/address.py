"""Where a server listens and how one logs in, for the control connection and for the load generator alike."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Mode = Literal["disabled", "preferred", "required", "verify_ca", "verify_identity"]


@dataclass(frozen=True)
class Tls:
    """How a connection is encrypted, in the words of MySQL's own clients; files are paths."""

    mode: Mode = "disabled"
    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    def flags(self) -> list[str]:
        """The load generator's flags."""
        files = {"ssl-ca": self.ca, "ssl-cert": self.cert, "ssl-key": self.key}
        return [f"--ssl-mode={self.mode}", *(f"--{name}={value}" for name, value in files.items() if value)]


@dataclass(frozen=True)
class Listening:
    """Where a server of dbdyno's own listens for other hosts, beside its socket."""

    host: str  # one of this machine's own addresses
    port: int


@dataclass(frozen=True)
class Address:
    """A server as a client reaches it: by its socket, or by host and port. The password is in no text of it."""

    user: str
    socket: Path | None = None
    host: str = "localhost"
    port: int = 3306
    tls: Tls = Tls()
    password: str = field(default="", repr=False)

    @property
    def is_private(self) -> bool:
        """Whether no third party can listen: a unix socket, or TLS with a server that is verified."""
        return self.socket is not None or self.tls.mode.startswith("verify")

    def flags(self) -> list[str]:
        """The load generator's flags; the password goes by ``environment``."""
        where = [f"--socket={self.socket}"] if self.socket else [f"--host={self.host}", f"--port={self.port}"]
        where += [] if self.socket else ["--protocol=tcp"]
        return ["--no-defaults", *where, f"--user={self.user}", *self.tls.flags()]

    def environment(self) -> dict[str, str]:
        """Where MySQL's own clients and the load generator look for a password."""
        return {"MYSQL_PWD": self.password} if self.password else {}
