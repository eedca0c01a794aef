"""A server of dbdyno's own: what it is started with, and how."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dbdyno.model.quantity import SIZE_LIMIT_BYTES, size_bytes
from dbdyno.servers.address import Address, Listening
from dbdyno.servers.mysql import process
from dbdyno.servers.mysql.bootstrap import install_data
from dbdyno.servers.mysql.command import options
from dbdyno.servers.mysql.server import MysqlServer
from dbdyno.servers.mysql.settings import misset
from dbdyno.servers.mysql.taken import refusal
from dbdyno.servers.mysql.touches_no_data import DUMP, DUMP_OFF, data_settings
from dbdyno.servers.mysql.variables import variables_of
from dbdyno.servers.sources.installation import Installation
from dbdyno.study.section import Setting

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
