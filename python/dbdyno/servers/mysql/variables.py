"""The variables that a server can be started with, by its own help: known before it is started.

A server takes an option for the one variable whose name begins so (``base`` for ``basedir``), and with a prefix such as
``skip-`` or ``loose-``. Only a whole name says which variable is meant.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from dbdyno.errors import DbdynoError, UserError
from dbdyno.servers.ask import answer
from dbdyno.servers.sources.installation import Installation
from dbdyno.store.synced import write_synced
from dbdyno.system.state import make_state_folder, state_folder

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
    kept = state_folder() / "variables" / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"
    found = _kept(kept)
    if found is None:
        found = in_help(_help(installation, module))
        if not found:
            said = f"stack.server: {installation.daemon} does not list its variables by --verbose --help"
            raise UserError(f"{said}; name another server")
        _keep(kept, found)
    return found


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
    found = {}
    for name, value, first, others in _OPTION.findall(options):
        found[name.replace("-", "_")] = _variable(value, " ".join(f"{first} {others}".split()))
    return found


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


def _kept(file: Path) -> dict[str, Variable] | None:
    """What an earlier look has kept, unless others could have written it."""
    try:
        if not state_folder().is_dir():
            return None
        make_state_folder()
        content = json.loads(file.read_text(encoding="utf-8"))
        found = {name: Variable(kind, tuple(choices)) for name, (kind, choices) in content.items()}
    except (OSError, ValueError, TypeError, AttributeError, DbdynoError):
        return None
    return found if found and all(one.kind in get_args(Kind) for one in found.values()) else None


def _keep(file: Path, found: Mapping[str, Variable]) -> None:
    """Keep what was found, if there is a state folder: looking at a study makes none."""
    with suppress(OSError, DbdynoError):
        if state_folder().is_dir():
            make_state_folder()
            file.parent.mkdir(exist_ok=True)
            write_synced(file, json.dumps({name: [v.kind, v.choices] for name, v in found.items()}).encode())
