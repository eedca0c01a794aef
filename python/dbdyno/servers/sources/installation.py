"""A server product found on this host: the distribution's, one that was provisioned, or an unpacked tree."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

from dbdyno.errors import UserError
from dbdyno.model.similar import did_you_mean
from dbdyno.mysql.settings import NOT_SERVED, OF_ARCHIVE
from dbdyno.servers.user import answer
from dbdyno.system.state import state_folder

# Where distributions and vendors' tarballs put the server and what it needs.
_DAEMONS = ("bin/mariadbd", "sbin/mariadbd", "bin/mysqld", "sbin/mysqld", "usr/sbin/mariadbd", "usr/bin/mariadbd",
            "usr/sbin/mysqld", "usr/bin/mysqld", "libexec/mysqld")  # fmt: skip
_PREFIXES = ("mariadb", "mysql")  # of the files with SQL
_SHARES = ("share", "share/mysql", "share/mariadb")
_PLUGINS = ("lib/plugin", "lib/mysql/plugin", "lib64/mysql/plugin", "lib64/plugin", "lib/mariadb/plugin")
_LOADERS = ("usr/lib64/ld-linux-x86-64.so.2", "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
            "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2")  # fmt: skip
_HOST_LOADER = Path("/lib64/ld-linux-x86-64.so.2")
_VERSION_BYTES_MAX = 65536
_VERSION = re.compile(r"Ver ([0-9]+(?:\.[0-9]+)+[\w.+~-]*)")

# Engines that are modules of their own and touch nothing but the server's own data.
_MODULES = ("rocksdb", "archive", "blackhole")
_BUILT_IN = {
    "mariadb": ("innodb", "myisam", "aria", "memory", "csv", "mrg_myisam"),
    "mysql": ("innodb", "myisam", "memory", "csv", "mrg_myisam", "archive", "blackhole"),
}
ENGINES = frozenset({*_MODULES, *_BUILT_IN["mariadb"], *_BUILT_IN["mysql"]})


@dataclass(frozen=True)
class Installation:
    """A MariaDB or MySQL that can be started."""

    name: str  # as the study says it
    basedir: Path
    daemon: Path
    version: str  # 10.11.19-MariaDB
    product: Literal["mariadb", "mysql"]
    runner: tuple[str, ...] = field(default=(), compare=False)  # what the daemon is run by

    @property
    def identity(self) -> str:
        """Names this build: data prepared by another is not its own, not even by another of the same version."""
        status, path = self.daemon.stat(), self.daemon
        if path.is_relative_to(state_folder()):  # which each host may have elsewhere
            path = path.relative_to(state_folder())
        return f"{path} {self.version} {status.st_size} {status.st_mtime_ns}"

    @property
    def title(self) -> str:
        """Product and version for people."""
        return f"{'MariaDB' if self.product == 'mariadb' else 'MySQL'} {self.version.partition('-')[0]}"

    @cached_property
    def release(self) -> tuple[int, ...]:
        """The version as numbers: (10, 11, 19)."""
        return tuple(int(part) for part in re.match(r"[\d.]+", self.version)[0].strip(".").split("."))  # type: ignore[index]

    @cached_property
    def share(self) -> Path | None:
        """The folder of the messages and of the system tables' SQL."""
        return _first(self.basedir, _SHARES, "english/errmsg.sys")

    def system_tables(self) -> list[Path]:
        """The SQL that makes and fills the system tables, in order."""
        names = ("system_tables", "performance_tables", "system_tables_data")
        files = ((self.share or self.basedir) / f"{prefix}_{name}.sql" for name in names for prefix in _PREFIXES)
        return [file for file in files if file.is_file()]

    @cached_property
    def plugins(self) -> Path | None:
        """The folder of the modules."""
        triplets = (f"lib/{folder.name}/{place.removeprefix('lib/')}" for folder in self.basedir.glob("lib/*-linux-gnu")
                    for place in _PLUGINS if place.startswith("lib/"))  # fmt: skip
        return _first(self.basedir, (*_PLUGINS, *triplets))

    def command(self, *options: str, daemon: Path | None = None, plugins: Path | None = None) -> list[str]:
        """The daemon's command line; option files of the host never come in.

        ``daemon`` is another path of it, and ``plugins`` another folder with its modules.
        """
        program, plugins = str(daemon or self.daemon), plugins or self.plugins
        places = [f"--basedir={self.basedir}"]
        if self.basedir == Path("/usr"):  # where it was built to be
            own_plugins = [f"--plugin-dir={plugins}"] if plugins != self.plugins else []
            return [program, "--no-defaults", *options, *places, *own_plugins]
        if self.share:
            places += [f"--lc-messages-dir={self.share}", f"--character-sets-dir={self.share / 'charsets'}"]
        if plugins:
            places.append(f"--plugin-dir={plugins}")
        return [*self.runner, program, "--no-defaults", *options, *places]

    def module_of(self, engine: str) -> str | None:
        """The module that brings an engine, if it is one and is there."""
        module = f"ha_{engine.lower()}.so"
        known = engine.lower() in _MODULES and self.plugins is not None
        return module if known and self.plugins and (self.plugins / module).is_file() else None

    def lacks(self, engine: str) -> str:
        """What can be said against an engine before the server is asked; empty if nothing."""
        engines = self.engines()
        if engine.lower() in engines:
            return ""
        known = f"it has {', '.join(engines)}{did_you_mean(engine.lower(), engines)}"
        return f"{self.title} ({self.name}) has no engine {engine}; {known}"

    def engines(self) -> list[str]:
        """Engines that it has built in, or as a module that may be loaded."""
        built_in = _BUILT_IN[self.product]
        return [*built_in, *(module for module in _MODULES if module not in built_in and self.module_of(module))]


class NoServerError(UserError):
    """A server that a study names is not on this host."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"stack.server: {reason}; {remedy}")
        self.reason, self.remedy = reason, remedy


def find_server(name: str) -> Installation:
    """The server that a study names. Raises ``NoServerError`` with what was looked for."""
    if name.startswith("/"):
        return find_in_tree(name, Path(name))
    if name == "mariadb":
        remedy = "install it without starting a service: apt-get install mariadb-server-core"
        return find_in_tree(name, Path("/usr"), remedy)
    servers = state_folder() / "servers"
    tree = _newest_of_series(servers, name) if name in NOT_SERVED else servers / name
    if "/" in name or not (tree / "server.json").is_file():
        from_archive = name in NOT_SERVED or OF_ARCHIVE.fullmatch(name)
        what = "URL|FILE --sha256 HEX, with the vendor's archive" if from_archive else name
        raise NoServerError(f"{name} is not on this host", f"get it: dbdyno servers add {what}")
    return find_in_tree(name, tree)


def _newest_of_series(servers: Path, series: str) -> Path:
    """Where the newest release of ``percona-8.4`` lies that was added; a folder that is not there if none was."""
    added = (record.parent for record in servers.glob(f"{series}.*/server.json"))
    releases = (tree for tree in added if OF_ARCHIVE.fullmatch(tree.name))
    return max(releases, key=lambda tree: int(tree.name.rpartition(".")[2]), default=servers / series)


@cache
def find_in_tree(name: str, tree: Path, remedy: str = "") -> Installation:
    """The server in a folder. Raises ``NoServerError``."""
    remedy = remedy or "name the folder of an unpacked MariaDB or MySQL, the one that holds bin/"
    daemon = _first(tree, _DAEMONS)
    if daemon is None:
        raise NoServerError(f"{name!r}: no mariadbd or mysqld under {tree}", remedy)
    basedir = tree / "usr" if (tree / "usr") in daemon.parents else tree
    runner = _runner(tree)
    product, version = _product_and_version(daemon, runner)
    installation = Installation(name, basedir, daemon, version, product, runner)
    if not initializes(installation) and not any(installation.system_tables()):
        raise NoServerError(f"{name!r}: no SQL of the system tables under {basedir}/share", remedy)
    return installation


def initializes(installation: Installation) -> bool:
    """Whether the server makes its system tables itself (MySQL since 5.7.6)."""
    return installation.product == "mysql" and installation.release >= (5, 7, 6)


def _first(basedir: Path, places: Iterable[str], holds: str = "") -> Path | None:
    return next((basedir / place for place in places if (basedir / place / holds).exists()), None)


def _runner(tree: Path) -> tuple[str, ...]:
    """What runs a daemon whose libraries came along: its own loader, or a search path for the host's."""
    if loading := loader_of(tree):
        return loading
    return ("/usr/bin/env", f"LD_LIBRARY_PATH={tree / 'lib'}") if any(tree.glob("lib/libaio.so*")) else ()


def loader_of(tree: Path) -> tuple[str, ...]:
    """What runs a program of a tree by the loader and the libraries in it; empty where the loader is the host's."""
    loader = _first(tree, _LOADERS)
    if loader is None or (_HOST_LOADER.exists() and loader.samefile(_HOST_LOADER)):
        return ()
    folders = [tree / place for place in ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "usr/lib")]
    return str(loader), "--library-path", ":".join(str(folder) for folder in folders if folder.is_dir())


def _product_and_version(daemon: Path, runner: tuple[str, ...]) -> tuple[Literal["mariadb", "mysql"], str]:
    try:
        output = answer([*runner, str(daemon), "--no-defaults", "--version"], "both", 20.0, _VERSION_BYTES_MAX)
    except OSError as error:
        raise UserError(f"stack.server: {daemon} does not run: {error}") from None
    reported = output.decode(errors="replace")
    match = _VERSION.search(reported)
    if match is not None and "MariaDB" in reported:
        return "mariadb", match[1]
    if match is not None and "mysqld" in reported[: match.start()]:
        return "mysql", match[1]
    shown = reported.strip()[:200]
    raise UserError(f"stack.server: {daemon} does not report a MariaDB or MySQL version; it said: {shown!r}")
