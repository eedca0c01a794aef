"""The lines of an undo log: JSON objects, each with a checksum of its own.

A line also names the undos that are open after it, so that a damaged line before it leaves no doubt about what has been
undone. Logs of earlier versions have neither; they are read as they are.
"""

import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dbdyno.system.sealed_line import SEAL
from dbdyno.system.sealed_line import sealed as with_seal

Fields = dict[str, Any]

_STARTS = (b'{"owner"', b'{"undo"', b'{"done"')
_START = re.compile(rb'\{"(?:owner|undo|done)"')


@dataclass(frozen=True)
class Lines:
    """What could be read of an undo log."""

    entries: list[Fields]  # in the order of the file
    damaged: list[int]  # numbers of the lines that are not as they were written, from 1
    sealed: bool  # whether its lines have checksums


def line_of(fields: Fields, *, sealed: bool = True) -> bytes:
    """One line, with its line end."""
    return with_seal(fields) if sealed else json.dumps(fields).encode() + b"\n"


def lines_of(content: bytes) -> Lines:
    """Read an undo log: every entry that is whole, also where damage has joined or split lines.

    A last line without its end was cut off by a kill: its change had not been made, so it is no damage.
    """
    *lines, rest = content.split(b"\n")
    sealed = any(_sealed_in(line) for line in (*lines, rest))
    read = _sealed_in if sealed else _plain_in
    entries, damaged = [], []
    for number, line in enumerate((*lines, rest), 1):
        found = list(read(line))
        entries += [fields for fields, _ in found]
        whole = len(found) == 1 and found[0][1] == line
        torn = number > len(lines) and any(line.startswith(start) or start.startswith(line) for start in _STARTS)
        if not whole and not (torn and not found):
            damaged.append(number)
    return Lines(entries, damaged, sealed)


def _sealed_in(line: bytes) -> list[tuple[Fields, bytes]]:
    """Every entry in a line that its checksum proves whole, with its bytes."""
    found = []
    for end in SEAL.finditer(line):
        for start in _START.finditer(line, 0, end.start()):
            if zlib.crc32(line[start.start() : end.start()]) == int(end[1], 16):
                written = line[start.start() : end.end()]
                fields = json.loads(written)
                del fields["sum"]
                found.append((fields, written))
                break
    return found


def _plain_in(line: bytes) -> Iterator[tuple[Fields, bytes]]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return
    if isinstance(fields, dict) and (
        {"done"} == fields.keys() or "owner" in fields or {"undo", "kind"} <= fields.keys()
    ):
        yield fields, line
