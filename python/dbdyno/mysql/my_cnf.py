"""An option file of MySQL or MariaDB (``my.cnf``): what of it a study can give to a server, and what is left out.

What their lines say is decided in Rust, for the load generator's login as well (``dbdyno_common::option_file``).
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno._native import option_lines
from dbdyno.errors import UserError
from dbdyno.model.printable import SECRET_NAME, short
from dbdyno.model.quantity import SWITCHES
from dbdyno.mysql.settings import TEXTS, Setting, setting_mistake, text_mistake
from dbdyno.system.files import MIB, read_regular

GROUPS = ("mysqld", "server", "mariadb", "mariadbd", "client-server", "galera")  # that MariaDB of any version reads
MYSQL_GROUPS = ("mysqld", "server")
DEPTH_MAX, FILES_MAX = 10, 100  # of files that include each other; the first is the servers' own limit
_OF_A_VERSION = re.compile(r"(?:mysqld|mariadb|mariadbd|server)-[0-9]+\.[0-9]+")
_OF_SEVERAL = re.compile(r"(?:mysqld|mariadbd)[0-9]+")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")
_SIZE = re.compile(r"[0-9]+(?:\.[0-9]+)?[KMGTPE]?", re.IGNORECASE)
# Variables whose own name begins so: "skip-networking" is one, "skip-log-bin" is log_bin = OFF.
_SKIPS = {"skip_external_locking", "skip_grant_tables", "skip_name_resolve", "skip_networking", "skip_show_database",
          "skip_slave_start", "skip_replica_start", "skip_bind_address", "skip_mysqlx"}  # fmt: skip
# Flags, of which each line sets those that it names and leaves the others as the lines before have them.
FLAGS = {"optimizer_switch", "optimizer_trace", "optimizer_trace_features"}
_NO_PART = {
    "port": "where clients find the server does not change what is measured",
    "server_id": "is for replication, which a study does not have",
}
_FAMILIES = {
    ("master_", "slave_", "replica_", "replicate_", "relay_", "report_", "rpl_", "group_replication_", "gtid_"):
        "is for replication, which a study does not have",
    ("wsrep_",): "is for a cluster; a study has one by [server.cluster]",
    ("maximum_",): "limits what sessions may set, which no study needs",
}  # fmt: skip


@dataclass(frozen=True)
class LeftOut:
    """An option that the study does not have, and why; never its value, which may be secret."""

    name: str
    place: str  # file and line
    reason: str

    def __str__(self) -> str:
        return f"{self.place} {self.name}: {self.reason}"


@dataclass
class Options:
    """What option files say, in their order; of an option given twice the last counts, as with the server."""

    settings: dict[str, Setting] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)  # of each setting
    left_out: list[LeftOut] = field(default_factory=list)
    changed: dict[str, LeftOut] = field(default_factory=dict)  # settings that are other than written, and why

    def change(self, name: str, value: Setting, reason: str) -> None:
        """Give a setting the value that the server makes of the written one."""
        self.settings[name] = value
        self.changed[name] = LeftOut(name, self.places[name], reason)

    def leave_out(self, name: str, reason: str) -> None:
        """Take a setting out again."""
        del self.settings[name]
        self.changed.pop(name, None)
        self.left_out.append(LeftOut(name, self.places.pop(name), reason))


def server_groups(version: str, suffix: str = "") -> tuple[str, ...]:
    """Return the groups that a server reads, by its version text: ``10.11.6-MariaDB`` or ``8.4.2``; all if it is empty.

    ``suffix`` is that of ``--defaults-group-suffix``.
    """
    release = re.match(r"[0-9]+\.[0-9]+", version)
    names = GROUPS if not version or "mariadb" in version.lower() else MYSQL_GROUPS
    own = [f"{name}-{release[0]}" for name in names if release and name not in {"galera", "client-server"}]
    groups = (*names, *own)
    return (*groups, *(f"{group}{suffix}".lower() for group in groups if suffix))


def read_options(path: Path, groups: tuple[str, ...] = GROUPS) -> Options:
    """What an option file gives a server, with the files that it includes. Raises ``UserError``: it can't be read."""
    try:
        text = _text(path)
    except OSError as error:
        raise UserError(f"--from {path}: can't be read: {error.strerror}") from None
    options = Options()
    for name, value, place in _Reading(options, groups).lines(path, text):
        _take(options, name, value, place)
    return options


def _text(path: Path) -> str:
    return read_regular(path, MIB).decode(errors="replace")


@dataclass
class _Reading:
    """The files that have been read so far."""

    options: Options
    groups: tuple[str, ...]
    seen: list[str] = field(default_factory=list)
    skipped: set[str] = field(default_factory=set)  # groups that were named

    def lines(self, path: Path, text: str, depth: int = 1) -> Iterator[tuple[str, str | None, str]]:
        """Name, value and place of each option in a server's groups; of an option without a value ``None``."""
        self.seen.append(os.path.realpath(path))
        for number, group, line_kind, name, value in option_lines(text):
            place = f"{path.name}:{number}"
            if line_kind in {"include", "includedir"}:
                yield from self._read_include(f"!{line_kind}", path.parent / name, place, depth)
            elif line_kind == "unknown":
                self.options.left_out.append(LeftOut(short(name), place, "is neither !include nor !includedir"))
            elif line_kind == "option" and group in self.groups:
                yield name, value, place
            elif group not in self.groups and group not in self.skipped:
                self.skipped.add(group)
                self.options.left_out.append(LeftOut(f"[{short(group)}]", place, self._why_skipped(group)))

    def _why_skipped(self, group: str) -> str:
        """Why nothing of a group is taken."""
        if not group:
            return "is before the first group, where no server reads it"
        if _OF_A_VERSION.fullmatch(group):
            return "is for servers of one version only"
        if _OF_SEVERAL.fullmatch(group):
            number = group.lstrip("abcdefghijklmnopqrstuvwxyz")
            return f"is for one of several servers; --defaults-group-suffix={number} reads it, too"
        return "is for other programs than the server"

    def _read_include(
        self, directive: str, target: Path, place: str, depth: int
    ) -> Iterator[tuple[str, str | None, str]]:
        try:
            if directive == "!include":
                files = [target]
            else:
                files = sorted(path for path in target.iterdir() if path.suffix == ".cnf")
            for file in files:
                if os.path.realpath(file) in self.seen or depth >= DEPTH_MAX or len(self.seen) >= FILES_MAX:
                    reason = (
                        f"is not read: a file is read once, at most {DEPTH_MAX} deep, and at most {FILES_MAX} in all"
                    )
                    self.options.left_out.append(LeftOut(f"{directive} {short(file.name)}", place, reason))
                else:
                    yield from self.lines(file, _text(file), depth + 1)
        except (OSError, ValueError) as error:  # a name with a NUL is a ValueError
            reason = f"can't be read: {getattr(error, 'strerror', None) or error}"
            self.options.left_out.append(LeftOut(f"{directive} {short(target.name)}", place, reason))


def _take(options: Options, option: str, value: str | None, place: str) -> None:
    """Take one option, or say why not."""
    name, setting = _setting(option, value)
    if not _NAME.fullmatch(name):
        word = re.match(r"[\w-]*", option)  # what follows may be a secret that lacks its =
        options.left_out.append(LeftOut(short(word[0] if word else ""), place, "is not the name of a variable"))
        return
    if name in options.settings:
        before = options.settings.pop(name)
        if name in FLAGS and isinstance(before, str) and isinstance(setting, str):
            setting = f"{before},{setting}"
    if name == "log_bin" and not isinstance(setting, bool):
        setting = True  # a name or a path; dbdyno names its own
    if reason := _why_not(name, setting):
        options.left_out.append(LeftOut(name, place, reason))
    else:
        options.settings[name], options.places[name] = setting, place


def _setting(option: str, value: str | None) -> tuple[str, Setting]:
    """The variable that an option sets, and to what, as a study has it."""
    name = option.lower().replace("-", "_").removeprefix("loose_").removeprefix("autoset_")
    setting = True if value is None else _plain(value)
    for prefix, switched in (("skip_", False), ("disable_", False), ("enable_", True)):
        if name.startswith(prefix) and name not in _SKIPS:
            return name.removeprefix(prefix), switched if setting else not switched  # "skip-x = 0" is x
    return name, setting


def _plain(value: str) -> Setting:
    word = value.lower()
    if word in SWITCHES.keys() | SWITCHES.values() and not word.isdecimal():
        return SWITCHES.get(word, word) == "on"
    return int(value) if _NUMBER.fullmatch(value) else value


def _why_not(name: str, value: Setting) -> str:  # noqa: PLR0911  (a reason each)
    """Why a study can't have a setting; empty if it can. No reason holds the value."""
    if SECRET_NAME.search(name):
        return "may be a secret, or the name of one; it is not copied"
    if name in _NO_PART:
        return _NO_PART[name]
    if reason := next((reason for prefixes, reason in _FAMILIES.items() if name.startswith(prefixes)), ""):
        return reason
    if isinstance(value, str) and not value:
        return "has no value"
    if isinstance(value, str) and ("/" in value or "\\" in value):
        return "names a file or an address"
    if refused := setting_mistake(name, value):
        return refused
    if isinstance(value, str) and not _SIZE.fullmatch(value):
        if name not in TEXTS:
            return "takes text, which could name a file, an address or an account"
        if text_mistake(name, value):
            return "has a value that a study can't give"
    return ""
