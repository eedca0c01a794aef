"""A server of dbdyno's own: what it is started with, and how."""

import hashlib
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import IO, Literal, get_args

from dbdyno.errors import DbdynoError, TrialError, UserError
from dbdyno.model.quantity import SIZE_LIMIT_BYTES, is_off
from dbdyno.model.similar import did_you_mean
from dbdyno.mysql.settings import CLUSTER_SETTINGS, Setting, setting_bytes, setting_mistake, text_mistake
from dbdyno.servers.contract import (
    Address,
    ClusterTerms,
    Listening,
    Membership,
    ReplicaMode,
    ReplicaTerms,
    Replicating,
    Settings,
)
from dbdyno.servers.mysql import server
from dbdyno.servers.mysql.built_in import built_in_settings
from dbdyno.servers.mysql.encryption import encryption_mistakes, give_key
from dbdyno.servers.mysql.galera import GaleraCluster, cluster_mistake, cluster_options
from dbdyno.servers.mysql.replication import MysqlReplication, is_copied, replication_mistake, replication_options
from dbdyno.servers.mysql.server import MysqlServer, cause_in
from dbdyno.servers.mysql.setting_outcomes import refusal
from dbdyno.servers.sources.installation import Installation, initializes
from dbdyno.servers.user import answer, own_folder, unprivileged
from dbdyno.store.parts import write_synced
from dbdyno.study.mistakes import shown
from dbdyno.system.child import child
from dbdyno.system.state import make_state_folder, state_folder

# The command line of a server of our own: private data, private socket, TCP only where a study asks for it.


def server_command(  # noqa: PLR0913, PLR0917  (what a server is started with)
    installation: Installation,
    data: Path,
    socket: Path,
    log: Path,
    settings: Mapping[str, Setting],
    engine: str,
    listening: Listening | None = None,
    places: Mapping[str, Path] | None = None,
) -> list[str]:
    """The server's command line; ``places`` are the folders of what does not lie with the data."""
    places = places or {}
    # Ours come last, where they win. A server that starts removes what it takes for its own old temporary tables, so
    # none may share the folder; and temporary tables belong on the device that is measured.
    temporary = places.get("tmpdir", data)
    ours = [f"--datadir={data}", f"--socket={socket}", f"--tmpdir={temporary}", f"--pid-file={data}/server.pid"]
    ours += _place_options(data, places)
    ours += [f"--log-error={log}", "--skip-name-resolve", *_closing_options(installation)]
    ours += _network(settings, listening)
    key = give_key(installation, settings, socket.parent, data)
    options = [*_loading(installation, engine), *key.options, *setting_options(settings), *ours]
    return installation.command(*options, daemon=key.daemon, plugins=key.plugins)


# What of a server may lie on another disk than the data -> the variable that names its folder, or its files.
PLACES = {
    "innodb_log": "innodb_log_group_home_dir",
    "binlog": "log_bin",
    "undo": "innodb_undo_directory",
    "doublewrite": "innodb_doublewrite_dir",
    "tmpdir": "tmpdir",
}
_BINLOG_NAME = "binlog"
_SHOWN_BY = PLACES | {"binlog": "log_bin_basename"}
_DOUBLEWRITE_FILES_SINCE = (8, 0, 20)  # of MySQL
_UNDO_DIRECTORY_SINCE, _UNDO_TABLESPACES_SINCE = (
    {"mariadb": (10, 0), "mysql": (5, 6)},
    {"mariadb": (11,), "mysql": (8,)},
)


def _place_options(data: Path, places: Mapping[str, Path]) -> list[str]:
    """Where parts lie that the server names by a variable. A server keeps some of these names in its files.

    So they are relative to the data: the folders of another trial have other names, and stand to each other alike.
    """
    names = {purpose: os.path.relpath(folder, data) for purpose, folder in places.items() if purpose != "tmpdir"}
    if "binlog" in names:
        names["binlog"] += f"/{_BINLOG_NAME}"
    return [f"--{PLACES[purpose].replace('_', '-')}={name}" for purpose, name in names.items()]


def place_mistakes(
    installation: Installation, settings: Mapping[str, Setting], places: Collection[str]
) -> dict[str, str]:
    """Why what a study places can't lie on a disk of its own, by the fields of ``[server.place]``."""
    checks = {"binlog": _no_binlog, "undo": _no_undo, "doublewrite": _no_doublewrite}
    reasons = {purpose: checks[purpose](installation, settings) for purpose in checks if purpose in places}
    return {purpose: f"{reason}; leave it out" for purpose, reason in reasons.items() if reason}


def _no_binlog(installation: Installation, settings: Mapping[str, Setting]) -> str:
    built_in = built_in_settings(installation.product, installation.release)["log_bin"]
    if is_off(str(settings.get("log_bin", built_in))):
        return "the server writes no binary log; give log_bin = true in [server.settings], or else"
    return ""


def _no_undo(installation: Installation, settings: Mapping[str, Setting]) -> str:
    product, release, title = installation.product, installation.release, _series(installation)
    if release < _UNDO_DIRECTORY_SINCE[product]:
        return f"{title} has no undo tablespaces of their own"
    has_own = release >= _UNDO_TABLESPACES_SINCE[product]
    if is_off(str(settings.get("innodb_undo_tablespaces", 2 if has_own else 0))):
        text = f"{title} keeps undo records in the system tablespace, with the data, unless told otherwise; give "
        return text + "innodb_undo_tablespaces = 2 in [server.settings], or else"
    return ""


def _no_doublewrite(installation: Installation, settings: Mapping[str, Setting]) -> str:
    if installation.product != "mysql" or installation.release < _DOUBLEWRITE_FILES_SINCE:
        text = f"{_series(installation)} keeps its doublewrite buffer in the system tablespace, with the data; "
        return text + "MySQL from 8.0.20 on has files of their own for it"
    if is_off(str(settings.get("innodb_doublewrite", "ON"))):
        return "innodb_doublewrite is off, so there are no such files"
    return ""


def _network(settings: Mapping[str, Setting], listening: Listening | None) -> list[str]:
    """Where it can be reached but by its socket."""
    if listening:
        return [f"--bind-address={listening.host}", f"--port={listening.port}"]
    return ["--bind-address=127.0.0.1" if "port" in settings else "--skip-networking"]


def setting_options(settings: Mapping[str, Setting]) -> list[str]:
    """Settings as options."""
    return [_option(name, value) for name, value in settings.items()]


def _option(name: str, value: Setting) -> str:
    if name == "log_bin" and isinstance(value, bool):  # as an option it takes a name, and OFF would be one
        return "--log-bin=binlog" if value else "--skip-log-bin"
    shown = ("ON" if value else "OFF") if isinstance(value, bool) else str(value)
    return f"--{name.replace('_', '-')}={shown}"


def _loading(installation: Installation, engine: str) -> list[str]:
    """The module of an engine that is one; first, so that the server knows the module's settings."""
    module = installation.module_of(engine)
    return [f"--plugin-load-add={module}"] if module else []


def _closing_options(installation: Installation) -> list[str]:
    """Doors that only some servers have, shut: MySQL's second protocol, and files read or written for a client."""
    if installation.product == "mysql" and installation.release >= (8,):
        return ["--mysqlx=OFF", "--secure-file-priv=NULL"]
    return []


# The variables that a server can be started with, by its own help: known before it is started.
#
# A server takes an option for the one variable whose name begins so (``base`` for ``basedir``), and with a prefix such
# as ``skip-`` or ``loose-``. Only a whole name says which variable is meant.


FORMAT = 1  # of what is kept
HELP_BYTES_MAX = 8 * 1024**2  # some twenty times the longest
HELP_SECONDS = 60.0

Kind = Literal["switch", "number", "choice", "set", "plugin", "text"]

# An option's line, and the lines of its description, which stand further to the right.
_OPTION = re.compile(r"^  (?:-\S, )?--([\w-]+)(\[?=(?:name|#)\]?)?(?: (.*))?\n((?: {10,}\S.*\n)*)", re.MULTILINE)
_TABLE = "\nVariables (--variable-name=value)"  # where values follow
_VALUES = re.compile(r"(One of|Any combination of): (.*?)(?:\. |\.?$)")
_OF_A_PLUGIN = re.compile(r"\bFORCE_PLUS_PERMANENT\b")


@dataclass(frozen=True)
class Variable:
    """What a server says of one of its variables."""

    kind: Kind
    choices: tuple[str, ...] = ()  # of "choice" and "set"; MySQL does not list them, and calls both text


def variables_of(installation: Installation, engine: str) -> Mapping[str, Variable]:
    """All by their names, an engine's module's among them. Raises ``UserError`` where the server does not list them."""
    return _variables(installation, installation.module_of(engine))


@cache
def _variables(installation: Installation, module: str | None) -> Mapping[str, Variable]:
    key = f"{FORMAT} {installation.identity} {installation.basedir} {module}"
    cache_file = state_folder() / "variables" / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"
    variables = _read_cached(cache_file)
    if variables is None:
        variables = in_help(_help(installation, module))
        if not variables:
            complaint = f"stack.server: {installation.daemon} does not list its variables by --verbose --help"
            raise UserError(f"{complaint}; name another server")
        _write_cached(cache_file, variables)
    return variables


def _help(installation: Installation, module: str | None) -> str:
    loading = [f"--plugin-load-add={module}"] if module else []
    # Of a folder that there is, an old server would take note, and write a file to it.
    argv = installation.command(*loading, "--verbose", "--help", "--datadir=/nonexistent")
    return answer(argv, "stdout", HELP_SECONDS, HELP_BYTES_MAX).decode(errors="replace")


def in_help(text: str) -> dict[str, Variable]:
    """The variables in what ``--verbose --help`` printed; empty where it is none."""
    options, table, _ = text.partition(_TABLE)
    if not table:
        return {}
    variables = {}
    for name, value, first, others in _OPTION.findall(options):
        variables[name.replace("-", "_")] = _variable(value, " ".join(f"{first} {others}".split()))
    return variables


def _variable(value: str, description: str) -> Variable:
    if not value:
        return Variable("switch")
    if "#" in value:
        return Variable("number")
    if _OF_A_PLUGIN.search(description):
        return Variable("plugin")
    listed = _VALUES.search(description)
    if not listed:
        return Variable("text")
    words = [word.removeprefix("or ") for word in listed[2].replace("ALL to set all combinations", "ALL").split(", ")]
    return Variable("choice" if listed[1] == "One of" else "set", tuple(words))


def _read_cached(file: Path) -> dict[str, Variable] | None:
    """What an earlier look has kept, unless others could have written it."""
    try:
        if not state_folder().is_dir():
            return None
        make_state_folder()
        content = json.loads(file.read_text(encoding="utf-8"))
        variables = {name: Variable(kind, tuple(choices)) for name, (kind, choices) in content.items()}
    except (OSError, ValueError, TypeError, AttributeError, DbdynoError):
        return None
    return variables if variables and all(variable.kind in get_args(Kind) for variable in variables.values()) else None


def _write_cached(file: Path, variables: Mapping[str, Variable]) -> None:
    """Cache the variables if there is a state folder; looking at a study creates none."""
    with suppress(OSError, DbdynoError):
        if state_folder().is_dir():
            make_state_folder()
            file.parent.mkdir(exist_ok=True)
            write_synced(file, json.dumps({name: [v.kind, v.choices] for name, v in variables.items()}).encode())


# A study's settings beside the variables that the very server says it has: whole names, and values of their kind.


_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?[kKmMgGtTpPeE]?")
_NEAR = 0.8  # of hundreds of names some are somewhat like any other
_SWITCH = {"on", "off", "true", "false", "yes", "no", "0", "1"}


def misset(installation: Installation, engine: str, settings: Mapping[str, Setting]) -> dict[str, str]:
    """What is wrong with each setting, by its name. Raises ``UserError`` where the server does not list what it has."""
    if not settings:
        return {}
    known = variables_of(installation, engine)
    mistakes = {name: _mistake(installation, known, name, value) for name, value in settings.items()}
    return {name: text for name, text in mistakes.items() if text}


def _series(installation: Installation) -> str:
    """Product and series: ``"MariaDB 10.11"``."""
    return ".".join(installation.title.split(".")[:2])


def _mistake(installation: Installation, known: Mapping[str, Variable], name: str, value: Setting) -> str | None:
    if (refused := setting_mistake(name, value)) is not None:
        return refused
    if name not in known:
        near = get_close_matches(name, known, n=1, cutoff=_NEAR)
        meant = did_you_mean(name, [candidate for candidate in near if setting_mistake(candidate, 1) is None])
        return f"is not a {_series(installation)} server variable{meant}"
    if name == "log_bin":
        return None  # as an option a name, but what a study gives is true or false
    return _unfit(known[name], name, value)


def _unfit(variable: Variable, name: str, value: Setting) -> str | None:
    """Why a value is none of a variable's kind; ``None`` if it is one."""
    text = ("ON" if value else "OFF") if isinstance(value, bool) else str(value)
    if variable.kind == "plugin":
        return "is set by dbdyno: it decides what the server loads"
    if variable.kind == "text":
        return text_mistake(name, text)
    if variable.kind == "number" and not _NUMBER.fullmatch(text):
        return f'is {shown(value)}; give a number, or a size such as "256M"'
    if variable.kind == "switch" and text.lower() not in _SWITCH:
        return f"is {shown(value)}; give true or false"
    words = [text] if variable.kind == "choice" else list(filter(None, text.split(",")))
    for word in words if variable.choices else ():
        if not word.isdigit() and word.lower() not in map(str.lower, variable.choices):
            return f"is {shown(value)}; allowed are {', '.join(variable.choices)}{did_you_mean(word, variable.choices)}"
    return None


# The settings that touch no data: treatments that differ in these alone start from the same prepared bytes.
#
# Each decides only when and how bytes reach the disk, or how connections and threads are served; none what is in the
# files after a clean shutdown, nor how a statement is carried out (a script that prepares its own data might then get
# its rows in another order). What is not listed counts as touching data. Sources: the manuals' pages of InnoDB's and
# the server's variables, MySQL 5.5 to 9 and MariaDB 10.5 to 11.8.


_BOTH = frozenset({
    "back_log",
    "binlog_cache_size",
    "connect_timeout",
    "innodb_adaptive_flushing",
    "innodb_adaptive_flushing_lwm",
    "innodb_adaptive_hash_index",
    "innodb_buffer_pool_chunk_size",
    "innodb_buffer_pool_size",
    "innodb_deadlock_detect",
    "innodb_flush_log_at_timeout",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_flush_neighbors",
    "innodb_flush_sync",
    "innodb_flushing_avg_loops",
    "innodb_io_capacity",
    "innodb_io_capacity_max",
    "innodb_lock_wait_timeout",
    "innodb_log_buffer_size",
    "innodb_lru_scan_depth",
    "innodb_max_dirty_pages_pct",
    "innodb_max_dirty_pages_pct_lwm",
    "innodb_old_blocks_pct",
    "innodb_old_blocks_time",
    "innodb_random_read_ahead",
    "innodb_read_ahead_threshold",
    "innodb_read_io_threads",
    "innodb_spin_wait_delay",
    "innodb_sync_spin_loops",
    "innodb_use_native_aio",
    "interactive_timeout",
    "key_buffer_size",
    "lock_wait_timeout",
    "max_connections",
    "max_prepared_stmt_count",
    "net_read_timeout",
    "net_write_timeout",
    "open_files_limit",
    "sync_binlog",
    "table_definition_cache",
    "table_open_cache",
    "table_open_cache_instances",
    "thread_cache_size",
    "thread_stack",
    "wait_timeout",
})  # fmt: skip
# In MySQL 8.0 the number and the size of the doublewrite buffer's files follow innodb_buffer_pool_instances and
# innodb_write_io_threads; MariaDB has it in the system tablespace, of one size.
_MARIADB = frozenset({
    "aria_pagecache_buffer_size",
    "binlog_commit_wait_count",
    "binlog_commit_wait_usec",
    "innodb_buffer_pool_instances",
    "innodb_write_io_threads",
    "query_cache_limit",
    "query_cache_size",
    "query_cache_type",
    "thread_handling",
    "thread_pool_idle_timeout",
    "thread_pool_max_threads",
    "thread_pool_oversubscribe",
    "thread_pool_size",
    "thread_pool_stall_limit",
})  # fmt: skip
_MYSQL = frozenset({
    "binlog_group_commit_sync_delay",
    "binlog_group_commit_sync_no_delay_count",
    "innodb_log_spin_cpu_abs_lwm",
    "innodb_log_spin_cpu_pct_hwm",
    "innodb_log_wait_for_flush_spin_hwm",
    "innodb_log_writer_threads",
})  # fmt: skip
TOUCH_NO_DATA: Mapping[str, frozenset[str]] = {
    "mariadb": _BOTH | _MARIADB | CLUSTER_SETTINGS,
    "mysql": _BOTH | _MYSQL,
}

# A server that is shut down writes down which pages its buffer pool holds, and the next one reads them: with this, data
# would depend on the pool. So it is off while data are prepared, unless a study sets it: then all its settings count.
DUMP = "innodb_buffer_pool_dump_at_shutdown"
DUMP_OFF = f"--loose-{DUMP.replace('_', '-')}=OFF"  # MySQL 5.5 has none


def data_settings(product: str, settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """Return those of a study's settings on which prepared data may depend."""
    if DUMP in settings:
        return dict(settings)
    return {name: value for name, value in settings.items() if name not in TOUCH_NO_DATA[product]}


# System tables in an empty folder: by the server itself, or from the SQL that comes along with it.
#
# The install scripts that come along with some do the same, but they need a server that runs where it was built to be,
# and they put this host's name into the data.


INSTALL_SECONDS = 180.0


def install_data(  # noqa: PLR0913, PLR0917  (what a server is installed with)
    installation: Installation,
    data: Path,
    environment: Mapping[str, str],
    log: Path,
    settings: Mapping[str, Setting],
    places: Mapping[str, Path] | None = None,
) -> None:
    """Create the system tables in an empty folder. Raises ``TrialError`` with the installer's words."""
    own_folder(data)
    # Page size, log size and the like are settled when the data is created.
    settled = {name: value for name, value in settings.items() if name.startswith(("innodb_", "aria_"))}
    key = give_key(installation, settled, log.parent, data)
    options = [*key.options, f"--datadir={data}", f"--tmpdir={data}", *setting_options(settled)]
    options += [] if DUMP in settings else [DUMP_OFF]
    of_tables = {purpose: folder for purpose, folder in (places or {}).items() if PLACES[purpose].startswith("innodb_")}
    options += _place_options(data, of_tables)
    if initializes(installation):
        options = ["--initialize-insecure", "--secure-file-priv=NULL", *options]
        _run(installation.command(*options, daemon=key.daemon, plugins=key.plugins), environment, log)
    else:
        (data / "mysql").mkdir()  # before 5.7 and 10.0 the bootstrap makes no schema
        own_folder(data / "mysql")
        big = ["--max-allowed-packet=8M", "--net-buffer-length=16K"]  # long statements, said at once
        with _statements(installation) as statements:
            _run(installation.command("--bootstrap", *options, *big), environment, log, statements)


@contextmanager
def _statements(installation: Installation) -> Iterator[IO[bytes]]:
    """The SQL of the system tables."""
    with tempfile.TemporaryFile() as file:
        file.write(b"use mysql;\n")
        if installation.product == "mariadb":
            file.write(b"SET @auth_root_socket=NULL;\n")  # root logs in without a password, by whatever system user
        for path in installation.system_tables():
            # A grant for this host's name would put it into the data.
            lines = (line for line in path.read_bytes().splitlines(keepends=True) if b"@current_hostname" not in line)
            file.writelines(lines)
        if installation.product == "mysql" or installation.release < (10, 4):
            # The nameless account would take the logins of every user who may come from anywhere.
            file.write(b"DELETE FROM user WHERE User = '';\nDELETE FROM db;\n")
        file.seek(0)
        yield file


def _run(argv: list[str], environment: Mapping[str, str], log: Path, stdin: IO[bytes] | None = None) -> None:
    with log.open("ab") as out:
        installer = child(
            unprivileged(argv), env=environment, stdin=stdin or subprocess.DEVNULL, stdout=out, stderr=out, cwd="/"
        )
        with suppress(subprocess.TimeoutExpired), installer as process:
            process.wait(INSTALL_SECONDS)
    if process.returncode != 0:
        program = next(word for word in argv if "mysqld" in word or "mariadb" in word)
        raise TrialError(f"{Path(program).name} failed to make the system tables: {cause_in(log)}")


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
    study_settings: Mapping[str, Setting]
    clients: int

    @property
    def settings(self) -> dict[str, Setting]:
        """All that it is started with."""
        return {
            "default_storage_engine": self.engine,
            "max_connections": max(151, self.clients + 20),
            "max_prepared_stmt_count": PREPARED_MAX,  # every client prepares its own
            **self.study_settings,
        }

    @property
    def data_settings(self) -> dict[str, Setting]:
        """Those that the study asks for and that may touch data."""
        return data_settings(self.installation.product, self.study_settings)

    def mistakes(self) -> dict[str, str]:
        """What is wrong with the study's settings, by their names. Raises ``UserError``."""
        unknown = misset(self.installation, self.engine, self.study_settings)
        return encryption_mistakes(self.installation, self.study_settings) | unknown

    def amounts(self) -> tuple[dict[str, int], dict[str, int]]:
        """Bytes of memory and of files that it takes at once, by their settings."""
        files = self.study_settings.get("innodb_log_files_in_group", 1)
        factors = {"innodb_log_file_size": files if isinstance(files, int) else 1}
        return (
            {name: _bytes(value) for name, value in self.study_settings.items() if name in _MEMORY},
            {
                name: _bytes(value) * factors.get(name, 1)
                for name, value in self.study_settings.items()
                if name in _FILES
            },
        )

    def refusal(self, log: str) -> tuple[str, str]:
        """Which setting a server that would not start names in its logs, and its sentence."""
        return refusal(log, self.settings)

    def place_mistakes(self, places: Collection[str]) -> dict[str, str]:
        """Why parts of it can't lie on a disk of their own."""
        return place_mistakes(self.installation, self.study_settings, places)

    @staticmethod
    def places_of(readback: Settings) -> dict[str, Path]:
        """The folder of each part, as far as the server has a variable for it."""
        shown = {purpose: readback.variables.get(variable, "") for purpose, variable in _SHOWN_BY.items()}
        paths = {
            purpose: Path(os.path.normpath(readback.data_folder / path)) for purpose, path in shown.items() if path
        }
        return paths | ({"binlog": paths["binlog"].parent} if "binlog" in paths else {})

    def install(
        self, data: Path, environment: Mapping[str, str], log: Path, places: Mapping[str, Path] | None = None
    ) -> None:
        """Make the system tables. Raises ``TrialError``."""
        install_data(self.installation, data, environment, log, self.settings, places)

    def command(  # noqa: PLR0913  (what a server is started with)
        self,
        data: Path,
        socket: Path,
        log: Path,
        *,
        preparing: bool = False,
        listening: Listening | None = None,
        places: Mapping[str, Path] | None = None,
        replicating: Replicating | None = None,
        membership: Membership | None = None,
    ) -> list[str]:
        """The command line that starts it; ``preparing`` data, it does not write down what its buffer pool holds."""
        argv = server_command(self.installation, data, socket, log, self.settings, self.engine, listening, places)
        argv += replication_options(self.installation, replicating) if replicating else []
        argv += cluster_options(self.installation, membership) if membership else []
        return [*argv, *([DUMP_OFF] if preparing and DUMP not in self.study_settings else [])]

    def replication_mistake(self, mode: ReplicaMode) -> str:
        """Why it can't be a source or a replica."""
        return replication_mistake(self.installation, mode)

    def cluster_mistake(self) -> str:
        """Why it can't be a node of a cluster on this host. Raises ``UserError``."""
        if mistake := cluster_mistake(self.installation):
            return mistake
        if "wsrep_on" not in variables_of(self.installation, self.engine):
            return f"{self.installation.title} ({self.installation.name}) was built without it"
        return ""

    is_copied = staticmethod(is_copied)

    def replication(self, source: Address, replica: Address, terms: ReplicaTerms) -> MysqlReplication:
        """It as a source, and a replica of the same build."""
        return MysqlReplication(self.installation, source, replica, terms)

    @staticmethod
    def cluster(nodes: Sequence[Address], terms: ClusterTerms) -> GaleraCluster:
        """Nodes of a cluster of the same build."""
        return GaleraCluster(tuple(nodes), terms)

    def page_files(self, data: Path) -> list[Path]:
        """Tablespaces, doublewrite files, and what MyISAM and Aria keep of a table."""
        return sorted(path for pattern in _PAGES for path in data.glob(pattern) if path.is_file())

    await_ready = staticmethod(server.await_ready)
    stop = staticmethod(server.stop)

    def at(self, address: Address) -> MysqlServer:
        """It, once it answers."""
        known = variables_of(self.installation, self.engine) if self.study_settings else {}
        return MysqlServer(address, {name: known[name].choices for name in self.settings if name in known})


def _bytes(value: Setting) -> int:
    """Bytes of a number or a size; 0 of what is neither."""
    try:
        return setting_bytes(value)
    except ValueError:
        return SIZE_LIMIT_BYTES if _BEYOND.fullmatch(str(value)) else 0
