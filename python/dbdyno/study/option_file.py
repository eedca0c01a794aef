"""An option file of MySQL or MariaDB (``my.cnf``): what of it a study can give to a server, and what is left out.

The files look like INI and are none, so Python's configparser does not read them: ``!include``, escapes, a # after a
value, groups that are begun twice, names without a value. "Using Option Files" in MySQL's manual has the rules.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno.errors import UserError
from dbdyno.model.printable import short
from dbdyno.study.section import Setting
from dbdyno.study.server_settings import TEXTS, setting_mistake, text_mistake
from dbdyno.system.regular_file import MIB, read_regular

GROUPS = {"mysqld", "server", "mariadb", "mariadbd"}  # that a server of any version reads
DEPTH_MAX, FILES_MAX = 10, 100  # of files that include each other; the first is the servers' own limit
_OF_A_VERSION = re.compile(r"(?:mysqld|mariadb|mariadbd|server)-[0-9.]+")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")
_SIZE = re.compile(r"[0-9]+(?:\.[0-9]+)?[KMGTPE]?", re.IGNORECASE)
_SWITCHES = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "s": " "}
_SECRET = re.compile(r"pass|pwd|secret|token|credential|private|(?:^|_)keys?(?:$|_file|_id)|auth")
# Variables whose own name begins so: "skip-networking" is one, "skip-log-bin" is log_bin = OFF.
_SKIPS = {"skip_external_locking", "skip_grant_tables", "skip_name_resolve", "skip_networking", "skip_show_database",
          "skip_slave_start", "skip_replica_start", "skip_bind_address", "skip_mysqlx"}  # fmt: skip
# Flags, of which each line sets those that it names and leaves the others as the lines before have them.
ADDED_UP = {"optimizer_switch", "optimizer_trace", "optimizer_trace_features"}
_NO_PART = {
    "port": "where clients find the server changes nothing of what is measured",
    "server_id": "is for replication, which a study has none of",
}
_REPLICATION = ("master_", "slave_", "replica_", "replicate_", "relay_", "report_", "rpl_", "group_replication_",
                "gtid_")  # fmt: skip


@dataclass(frozen=True)
class LeftOut:
    """An option that the study does not have, and why; never its value, which may be secret."""

    name: str
    place: str  # file and line
    reason: str


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


def read_options(path: Path) -> Options:
    """What an option file gives a server, with the files that it includes. Raises ``UserError``: it can't be read."""
    try:
        text = _text(path)
    except OSError as error:
        raise UserError(f"--from {path}: can't be read: {error.strerror}") from None
    found = Options()
    for name, value, place in _Reading(found).lines(path, text):
        _take(found, name, value, place)
    return found


def _text(path: Path) -> str:
    return read_regular(path, MIB).decode("utf-8-sig", errors="replace")


@dataclass
class _Reading:
    """The files that have been read so far."""

    found: Options
    seen: list[str] = field(default_factory=list)

    def lines(self, path: Path, text: str, depth: int = 1) -> Iterator[tuple[str, str | None, str]]:
        """Name, value and place of each option in a server's groups; of an option without a value ``None``."""
        self.seen.append(os.path.realpath(path))
        group = ""
        for number, line in enumerate(text.splitlines(), 1):
            words, place = _without_comment(line).strip(), f"{path.name}:{number}"
            if words.startswith("!"):
                yield from self._included(words, path, place, depth)
            elif words.startswith("["):
                group = words[1:].partition("]")[0].strip().lower()
                if _OF_A_VERSION.fullmatch(group):
                    self.found.left_out.append(LeftOut(f"[{group}]", place, "is for servers of one version only"))
            elif words and group in GROUPS:
                name, equals, value = words.partition("=")
                yield name.strip(), _unquoted(value.strip()) if equals else None, place

    def _included(self, words: str, path: Path, place: str, depth: int) -> Iterator[tuple[str, str | None, str]]:
        directive, _, named = words.partition(" ")
        target = path.parent / named.strip()
        try:
            if directive == "!include":
                files = [target]
            elif directive == "!includedir":
                files = sorted(one for one in target.iterdir() if one.suffix == ".cnf")
            else:
                self.found.left_out.append(LeftOut(short(directive), place, "is neither !include nor !includedir"))
                return
            for file in files:
                if os.path.realpath(file) in self.seen or depth >= DEPTH_MAX or len(self.seen) >= FILES_MAX:
                    reason = f"is read once, {DEPTH_MAX} deep at most, and {FILES_MAX} files in all"
                    self.found.left_out.append(LeftOut(f"{directive} {short(file.name)}", place, reason))
                else:
                    yield from self.lines(file, _text(file), depth + 1)
        except (OSError, ValueError) as error:  # a name with a NUL is a ValueError
            reason = f"can't be read: {getattr(error, 'strerror', None) or error}"
            self.found.left_out.append(LeftOut(f"{directive} {short(target.name)}", place, reason))


def _without_comment(line: str) -> str:
    """The line up to a # outside of quotes; a line that begins with a ; is a comment, too."""
    if line.lstrip().startswith(";"):
        return ""
    quote = ""
    escaped = False
    for place, char in enumerate(line):
        if char in "'\"" and not escaped and quote in {"", char}:
            quote = "" if quote else char
        elif char == "#" and not quote:
            return line[:place]
        escaped = bool(quote) and char == "\\" and not escaped
    return line


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    return re.sub(r"\\([ntrbs\"'\\])", lambda found: _ESCAPES.get(found[1], found[1]), value)


def _take(found: Options, given: str, value: str | None, place: str) -> None:
    """Take one option, or say why not."""
    name, setting = _setting(given, value)
    if not _NAME.fullmatch(name):
        word = re.match(r"[\w-]*", given)  # what follows may be a secret that lacks its =
        found.left_out.append(LeftOut(short(word[0] if word else ""), place, "is no variable's name"))
        return
    if name in found.settings:
        before = found.settings.pop(name)
        if name in ADDED_UP and isinstance(before, str) and isinstance(setting, str):
            setting = f"{before},{setting}"
    if name == "log_bin" and not isinstance(setting, bool):
        setting = True  # a name or a path; dbdyno names its own
    if reason := _why_not(name, setting):
        found.left_out.append(LeftOut(name, place, reason))
    else:
        found.settings[name], found.places[name] = setting, place


def _setting(given: str, value: str | None) -> tuple[str, Setting]:
    """The variable that an option sets, and to what, as a study has it."""
    name = given.lower().replace("-", "_").removeprefix("loose_")
    setting = True if value is None else _plain(value)
    for prefix, switched in (("skip_", False), ("disable_", False), ("enable_", True)):
        if name.startswith(prefix) and name not in _SKIPS:
            return name.removeprefix(prefix), switched if setting else not switched  # "skip-x = 0" is x
    return name, setting


def _plain(value: str) -> Setting:
    if value.lower() in _SWITCHES:
        return _SWITCHES[value.lower()]
    return int(value) if _NUMBER.fullmatch(value) else value


def _why_not(name: str, value: Setting) -> str:  # noqa: PLR0911  (a reason each)
    """Why a study can't have a setting; empty if it can. No reason holds the value."""
    if _SECRET.search(name):
        return "may be a secret, or the name of one; it is not copied"
    if name in _NO_PART:
        return _NO_PART[name]
    if name.startswith(_REPLICATION):
        return "is for replication, which a study has none of"
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
