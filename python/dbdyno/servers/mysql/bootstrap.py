"""System tables in an empty folder: by the server itself, or from the SQL that comes along with it.

The install scripts that come along with some do the same, but they need a server that runs where it was built to be,
and they put this host's name into the data.
"""

import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from dbdyno.errors import TrialError
from dbdyno.servers.mysql.command import setting_options
from dbdyno.servers.mysql.process import cause_in
from dbdyno.servers.mysql.touches_no_data import DUMP, DUMP_OFF
from dbdyno.servers.sources.installation import Installation, initializes
from dbdyno.servers.user import own_folder, unprivileged
from dbdyno.study.section import Setting
from dbdyno.system.child import child

INSTALL_SECONDS = 180.0


def install_data(
    installation: Installation,
    data: Path,
    environment: Mapping[str, str],
    log: Path,
    settings: Mapping[str, Setting],
) -> None:
    """Create the system tables in an empty folder. Raises ``TrialError`` with the installer's words."""
    own_folder(data)
    # Page size, log size and the like are settled when the data is created.
    settled = {name: value for name, value in settings.items() if name.startswith(("innodb_", "aria_"))}
    given = [f"--datadir={data}", f"--tmpdir={data}", *setting_options(settled)]
    given += [] if DUMP in settings else [DUMP_OFF]
    if initializes(installation):
        _run(installation.command("--initialize-insecure", "--secure-file-priv=NULL", *given), environment, log)
    else:
        (data / "mysql").mkdir()  # before 5.7 and 10.0 the bootstrap makes no schema
        own_folder(data / "mysql")
        big = ["--max-allowed-packet=8M", "--net-buffer-length=16K"]  # long statements, said at once
        with _statements(installation) as statements:
            _run(installation.command("--bootstrap", *given, *big), environment, log, statements)


@contextmanager
def _statements(installation: Installation) -> Iterator[IO[bytes]]:
    """The SQL of the system tables."""
    with tempfile.TemporaryFile() as file:
        file.write(b"use mysql;\n")
        if installation.product == "mariadb":
            file.write(b"SET @auth_root_socket=NULL;\n")  # root logs in without a password, by whatever system user
        for path in installation.system_tables():
            # A grant for this host's name would put it into the data.
            kept = (line for line in path.read_bytes().splitlines(keepends=True) if b"@current_hostname" not in line)
            file.writelines(kept)
        if installation.product == "mysql" or installation.release < (10, 4):
            # The nameless account would take the logins of every user who may come from anywhere.
            file.write(b"DELETE FROM user WHERE User = '';\nDELETE FROM db;\n")
        file.seek(0)
        yield file


def _run(argv: list[str], environment: Mapping[str, str], log: Path, stdin: IO[bytes] | None = None) -> None:
    with log.open("ab") as out:
        given = child(
            unprivileged(argv), env=environment, stdin=stdin or subprocess.DEVNULL, stdout=out, stderr=out, cwd="/"
        )
        with suppress(subprocess.TimeoutExpired), given as process:
            process.wait(INSTALL_SECONDS)
    if process.returncode != 0:
        what = next(word for word in argv if "mysqld" in word or "mariadb" in word)
        raise TrialError(f"{Path(what).name} failed to make the system tables: {cause_in(log)}")
