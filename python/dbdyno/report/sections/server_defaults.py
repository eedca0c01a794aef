"""Settings that two servers differ in though the study did not set them, beside the verdict that they are part of."""

from collections.abc import Sequence
from typing import Any

from dbdyno.analysis.server_defaults import ABSENT, ServerDefaults, Setting
from dbdyno.model.wording import count
from dbdyno.report.document import Abridged, Block, Details, Paragraph, Section, Table
from dbdyno.report.source import Source

NAMED_MAX = 4  # settings in a line
VALUE_MAX = 24  # characters in a line
NOTE = "The study sets none of these, so they are part of what was compared. What matters to storage comes first."


def section(source: Source) -> Section:
    """Return what differs between the servers of the planned comparisons."""
    return defaults_section(source.analysis.server_defaults)


def defaults_section(found: Sequence[ServerDefaults]) -> Section:
    """Return a line for each pair of servers, and on a page a folded table of all."""
    full = tuple(block for one in found for block in (Paragraph(line(one, more=""), "soft"), _folded(one)))
    short = tuple(Paragraph(line(one, more=" on the page (--html FILE)"), "soft") for one in found)
    return Section(
        "server-defaults", "", (Abridged(full, short),), data={"server_defaults": _json(found)}, opening=True
    )


def line(one: ServerDefaults, more: str) -> str:
    """Return ``"Defaults differ, mysql-5.6 -> mysql-5.7: sync_binlog 0 -> 1, 23 more on the page."``."""
    shown = [setting for setting in one.differing if setting.matters][:NAMED_MAX] or one.differing[:NAMED_MAX]
    left = len(one.differing) - len(shown) + len(one.only_before) + len(one.only_after)
    parts = [_brief(setting) for setting in shown] + ([f"{left} more{more}"] if left else [])
    sides = one.before if one.before == one.after else f"{one.before} -> {one.after}"
    return f"Defaults differ, {sides}: {', '.join(parts)}."


def _brief(setting: Setting) -> str:
    return f"{setting.name} {_cut(setting.before)} -> {_cut(setting.after)}"


def _cut(value: str) -> str:
    if not value:
        return '""'
    return value if len(value) <= VALUE_MAX else f"{value[:VALUE_MAX]}…"


def _folded(one: ServerDefaults) -> Block:
    rows = tuple((setting.name, setting.before or '""', setting.after or '""') for setting in one.differing)
    sides = (f"{one.before} (before)", f"{one.after} (after)") if one.before == one.after else (one.before, one.after)
    table = Table("Settings that differ though the study did not set them", ("setting", *sides), rows, "settings")
    alone = [
        Paragraph(f"Only {name} has {count(len(names), 'further setting')}: {', '.join(names)}.", "soft")
        for name, names in zip(sides, (one.only_before, one.only_after), strict=True)
        if names
    ]
    blocks: tuple[Block, ...] = (Paragraph(NOTE, "soft"), *([table] if rows else []), *alone)
    return Details(f"Defaults that differ between {one.before} and {one.after}", blocks, len(rows))


def _json(found: Sequence[ServerDefaults]) -> list[dict[str, Any]]:
    return [
        {
            "before": one.before,
            "after": one.after,
            "differing": [
                {
                    "name": setting.name,
                    "before": None if setting.before == ABSENT else setting.before,
                    "after": None if setting.after == ABSENT else setting.after,
                    "matters": setting.matters,
                }
                for setting in one.differing
            ],
            "only_before": one.only_before,
            "only_after": one.only_after,
        }
        for one in found
    ]
