"""A server of dbdyno's own: what it is started with, and how."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dbdyno.servers.address import Listening
from dbdyno.servers.mysql import process
from dbdyno.servers.mysql.bootstrap import install_data
from dbdyno.servers.mysql.command import options, refused_settings
from dbdyno.servers.mysql.server import MysqlServer
from dbdyno.servers.mysql.settings import misset
from dbdyno.servers.mysql.touches_no_data import DUMP, DUMP_OFF, data_settings
from dbdyno.servers.sources.installation import Installation
from dbdyno.study.section import Setting

# MariaDB's doublewrite buffer lies in ibdata1. What RocksDB writes, it never overwrites.
_PAGES = ("ibdata*", "undo*", "#ib_*.dblwr", "*/*.ibd", "*/*.MA[ID]", "*/*.MY[ID]")
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

    def refused(self) -> dict[str, str]:
        """What the server itself says against them."""
        return refused_settings(self.installation, self.asked, self.engine) if self.asked else {}

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
    at = MysqlServer
