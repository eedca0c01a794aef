"""A server product found on this host: the distribution's, or an unpacked tree."""

import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dbdyno.errors import UserError
from dbdyno.servers.user import unprivileged

# Where distributions and vendors' tarballs put the server.
_DAEMONS = ("bin/mariadbd", "sbin/mariadbd", "bin/mysqld", "sbin/mysqld", "usr/sbin/mariadbd", "usr/bin/mariadbd")
_INSTALLERS = ("bin/mariadb-install-db", "scripts/mariadb-install-db", "usr/bin/mariadb-install-db")
_VERSION = re.compile(r"Ver ([0-9]+(?:\.[0-9]+)+[\w.+~-]*)")


@dataclass(frozen=True)
class Installation:
    """A MariaDB that can be started."""

    name: str  # as the study says it
    basedir: Path
    daemon: Path
    installer: Path
    version: str  # 10.11.19-MariaDB

    @property
    def identity(self) -> str:
        """Names this build: data prepared by another is not its own."""
        return f"{self.daemon} {self.version}"


@cache
def find_server(name: str) -> Installation:
    """The server that a study names: ``mariadb`` or a folder. Raises ``UserError`` with what was looked for."""
    if name == "mariadb":
        basedir = Path("/usr")
        remedy = "install it without starting a service: apt-get install mariadb-server-core"
    elif name.startswith("/"):
        basedir = Path(name)
        remedy = "name the folder of an unpacked MariaDB, the one that holds bin/"
    else:
        raise UserError(f'stack.server: {name!r} is unknown; known are "mariadb" and the folder of an unpacked tree')
    daemon = _first(basedir, _DAEMONS)
    installer = _first(basedir, _INSTALLERS)
    if daemon is None or installer is None:
        lacking = "no mariadbd" if daemon is None else "no mariadb-install-db"
        raise UserError(f"stack.server: {name!r}: {lacking} under {basedir}; {remedy}")
    if (basedir / "usr") in daemon.parents:
        basedir = basedir / "usr"
    return Installation(name, basedir, daemon, installer, _version(daemon))


def _first(basedir: Path, places: tuple[str, ...]) -> Path | None:
    return next((basedir / place for place in places if (basedir / place).is_file()), None)


def _version(daemon: Path) -> str:
    try:
        done = subprocess.run(
            unprivileged([str(daemon), "--no-defaults", "--version"]),  # never as root: a study may name any folder
            capture_output=True,
            text=True,
            errors="replace",
            timeout=20,
            check=False,
            cwd="/",
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"stack.server: {daemon} does not run: {error}") from None
    match = _VERSION.search(done.stdout)
    if match is None or "MariaDB" not in done.stdout:
        said = (done.stdout + done.stderr).strip()[:200]
        raise UserError(f"stack.server: {daemon} does not tell a MariaDB version; it said: {said!r}")
    return match[1]
