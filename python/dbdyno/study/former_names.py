"""Fields that the version before called otherwise: taken for one version, with a note that gives the new name."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

_DESIGN = {"disturbed": "interference", "screened": "secondary_metrics"}
_CLAIM = {"level": "treatment"}


def rename_former(path: Path, raw: dict[str, Any], lines: dict[str, int]) -> tuple[str, ...]:
    """Put today's names into ``raw`` and ``lines``; a note on each former one, at the first place that has it.

    Where a table has both, the former one stays and is refused as unknown.
    """
    notes: dict[str, str] = {}
    for place, table, names in _tables(raw):
        for former, now in names.items():
            if former in table and now not in table:
                table[now] = table.pop(former)
                old = f"{place}.{former}"
                lines |= {key.replace(old, f"{place}.{now}", 1): lines[key] for key in lines if _inside(key, old)}
                where = f"{path}:{lines[old]}" if old in lines else str(path)
                note = f"{where}: {former} is called {now} now; the former name is taken in this version only"
                notes.setdefault(former, note)
    return tuple(notes.values())


def _tables(raw: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], dict[str, str]]]:
    """Place, content and former names of each table that has some; what is no table is left to the checks."""
    scales = raw.get("scale")
    for place, held in (("", raw), *((f"scale.{name}.", one) for name, one in _items(scales))):
        if isinstance(held, dict) and isinstance(held.get("design"), dict):
            yield f"{place}design", held["design"], _DESIGN
    for number, table in _items(raw.get("reported")):
        for claim, held in _items(table.get("claims") if isinstance(table, dict) else None):
            if isinstance(held, dict):
                yield f"reported.{number}.claims.{claim}", held, _CLAIM


def _items(held: object) -> list[tuple[Any, Any]]:
    return list(held.items()) if isinstance(held, dict) else list(enumerate(held)) if isinstance(held, list) else []


def _inside(key: str, outer: str) -> bool:
    return key == outer or key.startswith(f"{outer}.")
