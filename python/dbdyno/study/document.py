"""A study file as TOML: read within bounds, before anything in it is looked at."""

import re
import tomllib
from pathlib import Path
from typing import Any

from dbdyno._native import toml_lines
from dbdyno.errors import UserError
from dbdyno.store.documents import toml_document
from dbdyno.system.files import near_file, read_text

MAX_DEPTH = 16  # of tables and lists in each other; a study needs 6
MAX_ENTRIES = 1000  # of one table or list
_DIGITS = re.compile(r"[0-9][0-9_]{99,}")


def read_document(path: Path) -> tuple[str, dict[str, Any], dict[str, int]]:
    """The text of a study file, what it says, and the line of every key. Raises ``UserError``."""
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        meant = near_file(path) if isinstance(error, FileNotFoundError) else ""
        raise UserError(f"{path}: can't be read: {reason}{meant}") from None
    try:
        raw = toml_document(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: not valid TOML: {error}") from None
    except RecursionError:
        raise UserError(f"{path}: not valid TOML: it is nested too deep") from None
    except ValueError:  # of Python itself: a whole number of more digits than it takes
        number = _DIGITS.search(text)
        line = text.count("\n", 0, number.start()) + 1 if number else 1
        raise UserError(f"{path}:{line}: a number of {len(number[0]) if number else 'too many'} digits") from None
    for name, value in raw.items():
        if depth_of(value) >= MAX_DEPTH:
            raise UserError(f"{path}: {name[:60]!r} is nested too deep; at most {MAX_DEPTH} levels are read")
    try:
        lines = toml_lines(text)
    except ValueError as error:  # what tomllib lets pass, such as a number that TOML has no room for
        place, *_, reason = str(error).strip().splitlines()
        raise UserError(f"{path}: not valid TOML: {reason} ({place})") from None
    for where, entries in _collections(raw, ()):
        if len(entries) > MAX_ENTRIES:
            line = next((lines[key] for n in range(len(where), 0, -1) if (key := ".".join(where[:n])) in lines), 1)
            field = ".".join(where) or "the file"
            raise UserError(f"{path}:{line}: {field[:60]}: has {len(entries)} entries; at most {MAX_ENTRIES} are read")
    return text, raw, lines


def depth_of(value: object) -> int:
    """How deep tables and lists stand in each other; counted without recursion, and no further than need be."""
    depth, level = 0, [value]
    while depth < MAX_DEPTH and (level := [member for member in level if isinstance(member, dict | list)]):
        level = [
            member
            for collection in level
            for member in (collection.values() if isinstance(collection, dict) else collection)
        ]
        depth += 1
    return depth


def _collections(value: object, where: tuple[str, ...]) -> "list[tuple[tuple[str, ...], dict[str, Any] | list[Any]]]":
    if not isinstance(value, dict | list):
        return []
    items = value.items() if isinstance(value, dict) else ((str(place), member) for place, member in enumerate(value))
    return [
        (where, value),
        *(collection for name, member in items for collection in _collections(member, (*where, name))),
    ]
