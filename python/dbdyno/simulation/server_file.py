"""The load of a server from a TOML file: ``[ingest]`` with ``[cache]``, or ``[commits]``; a list is several values."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbdyno.errors import UserError
from dbdyno.model.quantity import size_bytes
from dbdyno.simulation.points import LOAD, merge
from dbdyno.study.document import read_document
from dbdyno.study.mistakes import Mistake, did_you_mean, explain, place_of

# Table of the file -> where its fields stand in the load of a point; "" for the load itself.
TABLES = {"ingest": {"ingest": "table", "cache": "cache"}, "commits": {"commits": ""}}


@dataclass
class ServerLoad:
    """A load, the fields that have several values, and where in the file each field stands."""

    kind: str
    fields: dict[str, Any]
    factors: dict[str, list[tuple[str, Any]]] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    @property
    def ends(self) -> bool:
        """Whether it ends by itself: an ingest of so many rows."""
        return bool(self.fields.get("table", {}).get("rows"))


def read_server_load(path: Path) -> ServerLoad:
    """Return what the file says. Raises ``UserError`` with file, line and field."""
    _, raw, lines = read_document(path)
    kinds = [kind for kind in TABLES if kind in raw]
    if len(kinds) != 1:
        raise UserError(
            f"{path}: has {' and '.join(kinds) or 'neither [ingest] nor [commits]'}; give one of these tables"
        )
    tables = TABLES[kinds[0]]
    load = ServerLoad(kinds[0], {"kind": kinds[0]}, places={"load": str(path)})

    def refuse(text: str, *where: str) -> UserError:
        return UserError(explain(path, lines, Mistake(where, text)))

    for name, table in raw.items():
        if name not in tables:
            text = f"is no table of this load{did_you_mean(name, tables)}; known are {', '.join(tables)}"
            raise refuse(text, name)
        if not isinstance(table, dict):
            raise refuse(f"must be a table: [{name}]", name)
        for key, given in table.items():
            try:
                levels = [(text, _in(tables[name], key, value)) for text, value in _levels(key, given)]
            except ValueError as error:
                raise refuse(str(error), name, key) from None
            place = place_of(path, lines, Mistake((name, key), ""))
            load.places |= {f"load.{key}": place, f"load.{tables[name]}.{key}": place}
            if isinstance(given, list):
                load.factors[LOAD + key] = levels
            else:
                merge(load.fields, levels[0][1])
    return load


def _in(table: str, key: str, value: object) -> dict[str, Any]:
    return {table: {key: value}} if table else {key: value}


def _levels(key: str, given: object) -> Iterator[tuple[str, object]]:
    values = given if isinstance(given, list) else [given]
    if not values:
        raise ValueError("is an empty list; give a value")
    texts = [str(value) for value in values]
    if len(set(texts)) < len(texts):
        raise ValueError("holds a value twice")
    for text, value in zip(texts, values, strict=True):
        yield text, _value(key, value)


def _value(key: str, value: object) -> object:
    if isinstance(value, str) and key.endswith("_bytes"):
        try:
            return size_bytes(value)
        except ValueError as error:
            raise ValueError(f"is {value[:40]!r}, which {error}") from None
    if not isinstance(value, str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError("must be a number, a text, true or false, or a list of these")
    return value
