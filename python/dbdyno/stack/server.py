"""The server: started on the data below, its version and settings read back, its error log kept."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymysql

from dbdyno.errors import TrialError
from dbdyno.servers import process
from dbdyno.servers.address import Address
from dbdyno.servers.bootstrap import install_data
from dbdyno.servers.command import options
from dbdyno.servers.installation import Installation
from dbdyno.servers.user import own_folder, read_log, unprivileged
from dbdyno.stack.layer import Endpoint, Stand
from dbdyno.stack.memory import killed_for_memory
from dbdyno.stack.placement import Placement
from dbdyno.stack.undo import TOKEN_VARIABLE, EndProcesses
from dbdyno.state import new_token
from dbdyno.study.section import Setting
from dbdyno.study.units import size_bytes

DATA = "mysql"  # its folder, on whatever is below
PREPARED_MAX = 1_048_576  # as many as any server takes

# What decides how a load fares and is worth showing although the study does not set it.
SHOWN = ("version", "version_comment", "version_compile_machine", "version_source_revision", "innodb_version",
         "innodb_buffer_pool_size", "innodb_flush_log_at_trx_commit",
         "innodb_flush_method", "innodb_log_file_size", "innodb_doublewrite", "innodb_io_capacity", "sync_binlog",
         "log_bin", "key_buffer_size", "query_cache_type", "default_storage_engine", "max_connections")  # fmt: skip


@dataclass(frozen=True)
class Server:
    """A server of our own on the folder below."""

    installation: Installation
    settings: Mapping[str, Setting]
    engine: str
    clients: int
    install: bool  # create the system tables first
    log: Path  # kept with the trial
    placement: Placement = field(default_factory=Placement)
    name: str = "server"

    @contextmanager
    def raised(self, below: Stand) -> Iterator[Stand]:
        """The server, answering on its socket."""
        assert below.directory is not None  # noqa: S101  (a filesystem or ``here`` is always below)
        token, data = new_token(), below.directory / DATA
        home = below.scratch / "server"
        environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", TOKEN_VARIABLE: token}
        settings = {**self._defaults(), **self.settings}
        with below.journal.undoing(EndProcesses(token, "the database server")):
            own_folder(home)
            error_log = home / "error.log"
            if self.install:
                install_data(self.installation, data, environment, below.scratch / "install.log", settings)
            socket = home / "server.sock"
            argv = options(self.installation, data, socket, error_log, settings, self.engine)
            running = self._start(argv, below, environment)
            endpoint = Endpoint(Address("root", socket), running, error_log, below.cgroup)
            try:
                observed = self._observed(endpoint, settings, data) | self.placement.observed(running.pid)
                yield below.raised(self.name, observed, endpoint=endpoint)
            finally:
                process.stop(running)
                self._keep_log(error_log)

    def _defaults(self) -> dict[str, Setting]:
        return {
            "default_storage_engine": self.engine,
            "max_connections": max(151, self.clients + 20),
            "max_prepared_stmt_count": PREPARED_MAX,  # every client prepares its own
        }

    def _start(self, argv: list[str], below: Stand, environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            self.placement.around(unprivileged(argv, below.cgroup)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(environment),
            cwd="/",
            start_new_session=True,
        )

    def _observed(self, endpoint: Endpoint, settings: Mapping[str, Setting], data: Path) -> dict[str, Any]:
        running, error_log = endpoint.process, endpoint.error_log
        assert running is not None and error_log is not None  # noqa: S101, PT018  (this layer started it)
        wanted = {*SHOWN, *settings, "datadir"}
        try:
            process.await_ready(running, endpoint.socket, error_log)
            with process.connect(endpoint.socket) as connection, connection.cursor() as cursor:
                cursor.execute("SHOW GLOBAL VARIABLES")
                variables = {name: value for name, value in cursor.fetchall() if name in wanted}
                engines = engines_of(cursor)
        except (pymysql.Error, TrialError) as error:
            raise TrialError(how_it_ended(endpoint) or f"the server does not tell its settings: {error}") from None
        if Path(variables.pop("datadir")) != data:
            raise TrialError(f"the server works on other data than {data}")
        if not variables.get("version", "").startswith(self.installation.version.partition("-")[0]):
            told = variables.get("version", "none")
            raise TrialError(f"the server tells version {told}, its program {self.installation.version}")
        if self.engine.lower() not in map(str.lower, engines):
            raise TrialError(f"stack.engine: the server has no engine {self.engine}; it has {', '.join(engines)}")
        check_settings(settings, variables)
        return {name: variables[name] for name in sorted(variables)} | {"engines": ", ".join(engines)}

    def _keep_log(self, error_log: Path) -> None:
        content = read_log(error_log)
        if content is not None and self.log.parent.is_dir():
            self.log.write_bytes(content)


def engines_of(cursor: pymysql.cursors.Cursor) -> list[str]:
    """The engines that a server offers. Raises ``pymysql.Error``."""
    cursor.execute("SHOW ENGINES")
    return sorted(str(row[0]) for row in cursor.fetchall() if row[1] in {"YES", "DEFAULT"})


def check_settings(asked: Mapping[str, Setting], variables: Mapping[str, str]) -> None:
    """Raises ``TrialError`` where a setting does not read back from the server's variables as it was asked for."""
    for name, value in asked.items():
        if name not in variables:
            raise TrialError(f"server.settings.{name}: the server shows no such variable, so it can't be read back")
        if not same_setting(value, variables[name]):
            raise TrialError(f"server.settings.{name}: asked for {value}, the server took {variables[name]}")


def how_it_ended(endpoint: Endpoint) -> str:
    """Why a server of dbdyno's own is gone, in one sentence; empty while it runs."""
    code = endpoint.process.poll() if endpoint.process else None
    if code is None or endpoint.error_log is None:
        return ""
    if endpoint.cgroup and killed_for_memory(endpoint.cgroup):
        return "the kernel killed the server for going beyond stack.memory; give it more, or smaller caches"
    return f"the server ended ({process.exit_words(code)}): {process.cause_in(endpoint.error_log)}"


def same_setting(asked: Setting, observed: str) -> bool:
    """Whether a variable reads back as what was asked, over its spellings (``256M`` = 268435456, ``true`` = ON = 1)."""

    def plain(value: Setting) -> str | float:
        text = ("on" if value else "off") if isinstance(value, bool) else str(value).strip().lower()
        try:
            return float(text)
        except ValueError:
            pass
        try:
            return float(size_bytes(text))
        except ValueError:
            return {"1": "on", "0": "off", "true": "on", "false": "off", "yes": "on", "no": "off"}.get(text, text)

    left, right = plain(asked), plain(observed)
    switch: dict[str | float, str] = {1.0: "on", 0.0: "off"}
    return left == right or switch.get(left, left) == switch.get(right, right)
