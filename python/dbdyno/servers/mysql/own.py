"""A server of dbdyno's own: what it is started with, and how."""

import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from dbdyno.errors import TrialError
from dbdyno.model.quantity import SIZE_LIMIT_BYTES, size_bytes
from dbdyno.servers.contract import Address, Listening
from dbdyno.servers.mysql import process
from dbdyno.servers.mysql.command import options, setting_options
from dbdyno.servers.mysql.process import cause_in
from dbdyno.servers.mysql.server import MysqlServer
from dbdyno.servers.mysql.setting_outcomes import refusal
from dbdyno.servers.mysql.settings import misset
from dbdyno.servers.mysql.touches_no_data import DUMP, DUMP_OFF, data_settings
from dbdyno.servers.mysql.variables import variables_of
from dbdyno.servers.sources.installation import Installation, initializes
from dbdyno.servers.user import own_folder, unprivileged
from dbdyno.study.section import Setting
from dbdyno.system.child import child

# System tables in an empty folder: by the server itself, or from the SQL that comes along with it.
#
# The install scripts that come along with some do the same, but they need a server that runs where it was built to be,
# and they put this host's name into the data.


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


# MariaDB's doublewrite buffer lies in ibdata1. What RocksDB writes, it never overwrites.
_PAGES = ("ibdata*", "undo*", "#ib_*.dblwr", "*/*.ibd", "*/*.MA[ID]", "*/*.MY[ID]")
# What is reserved, or written full, when a server starts.
_MEMORY = frozenset({"aria_pagecache_buffer_size", "innodb_buffer_pool_size", "innodb_log_buffer_size",
                     "key_buffer_size", "query_cache_size", "rocksdb_block_cache_size"})  # fmt: skip
_FILES = frozenset({"innodb_log_file_size", "innodb_redo_log_capacity"})
_BEYOND = re.compile(r"[0-9.]+[KMGTPE]", re.IGNORECASE)  # more than any file can hold
PREPARED_MAX = 1_048_576  # as many as any server takes


@dataclass(frozen=True)
class OwnMysql:
    """An installation with the engine, settings and clients of a treatment."""

    installation: Installation
    engine: str
    asked: Mapping[str, Setting]
    clients: int

    @property
    def settings(self) -> dict[str, Setting]:
        """All that it is started with."""
        return {
            "default_storage_engine": self.engine,
            "max_connections": max(151, self.clients + 20),
            "max_prepared_stmt_count": PREPARED_MAX,  # every client prepares its own
            **self.asked,
        }

    @property
    def data_settings(self) -> dict[str, Setting]:
        """Those that the study asks for and that may touch data."""
        return data_settings(self.installation.product, self.asked)

    def mistakes(self) -> dict[str, str]:
        """What is wrong with the study's settings, by their names. Raises ``UserError``."""
        return misset(self.installation, self.engine, self.asked)

    def amounts(self) -> tuple[dict[str, int], dict[str, int]]:
        """Bytes of memory and of files that it takes at once, by their settings."""
        files = self.asked.get("innodb_log_files_in_group", 1)
        each = {"innodb_log_file_size": files if isinstance(files, int) else 1}
        return (
            {name: _bytes(value) for name, value in self.asked.items() if name in _MEMORY},
            {name: _bytes(value) * each.get(name, 1) for name, value in self.asked.items() if name in _FILES},
        )

    def refusal(self, log: str) -> tuple[str, str]:
        """Which setting a server that would not start names in its logs, and its sentence."""
        return refusal(log, self.settings)

    def install(self, data: Path, environment: Mapping[str, str], log: Path) -> None:
        """Make the system tables. Raises ``TrialError``."""
        install_data(self.installation, data, environment, log, self.settings)

    def command(
        self, data: Path, socket: Path, log: Path, *, preparing: bool = False, listening: Listening | None = None
    ) -> list[str]:
        """The command line that starts it; ``preparing`` data, it does not write down what its buffer pool holds."""
        argv = options(self.installation, data, socket, log, self.settings, self.engine, listening)
        return [*argv, *([DUMP_OFF] if preparing and DUMP not in self.asked else [])]

    def page_files(self, data: Path) -> list[Path]:
        """Tablespaces, doublewrite files, and what MyISAM and Aria keep of a table."""
        return sorted(path for pattern in _PAGES for path in data.glob(pattern) if path.is_file())

    await_ready = staticmethod(process.await_ready)
    stop = staticmethod(process.stop)

    def at(self, address: Address) -> MysqlServer:
        """It, once it answers."""
        known = variables_of(self.installation, self.engine) if self.asked else {}
        return MysqlServer(address, {name: known[name].choices for name in self.settings if name in known})


def _bytes(value: Setting) -> int:
    """Bytes of a number or a size; 0 of what is neither."""
    if isinstance(value, str) and not value.isdecimal():
        try:
            return size_bytes(value)
        except ValueError:
            return SIZE_LIMIT_BYTES if _BEYOND.fullmatch(value) else 0
    return int(value)
