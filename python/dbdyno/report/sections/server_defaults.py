"""Settings that two servers differ in though the study did not set them, beside the verdict that they are part of."""

from collections.abc import Collection, Sequence
from typing import Any

from dbdyno.analysis.server_defaults import ABSENT, ServerDefaults, Setting
from dbdyno.model.wording import count, listed
from dbdyno.mysql.settings import CONCERNS, DOES, SYNCS, plain_value
from dbdyno.report.document import Abridged, Block, Details, Paragraph, Section, Table
from dbdyno.report.source import Source

NAMED_MAX = 4  # settings in a line
VALUE_MAX = 24  # characters in a line
CLAUSES_MAX = 2  # in a headline; the line beside the comparisons has more
SERVERS_MAX = 3  # named in a clause
NOTE = "The study sets none of these, so they are part of what was compared. What matters to storage comes first."


def section(source: Source) -> Section:
    """Return what differs between the servers of the planned comparisons."""
    return defaults_section(source.analysis.server_defaults)


def defaults_section(server_pairs: Sequence[ServerDefaults]) -> Section:
    """Return a line for each pair of servers, and on a page a folded table of all."""
    full = tuple(
        block for servers in server_pairs for block in (Paragraph(line(servers, more=""), "soft"), _details(servers))
    )
    short = tuple(Paragraph(line(servers, more=" on the page (--html FILE)"), "soft") for servers in server_pairs)
    return Section(
        "server-defaults", "", (Abridged(full, short),), data={"server_defaults": _json(server_pairs)}, opening=True
    )


def line(servers: ServerDefaults, more: str) -> str:
    """Return ``"Defaults differ, mysql-5.6 -> mysql-5.7: sync_binlog 0 -> 1, 23 more on the page."``."""
    shown = [setting for setting in servers.differing if setting.matters][:NAMED_MAX] or servers.differing[:NAMED_MAX]
    left = len(servers.differing) - len(shown) + len(servers.only_before) + len(servers.only_after)
    parts = [_brief(setting) for setting in shown] + ([f"{left} more{more}"] if left else [])
    if servers.before == servers.after:
        return f"Settings{_of_which(servers)} differ between the runs: {', '.join(parts)}."
    return f"Defaults differ, {servers.before} -> {servers.after}: {', '.join(parts)}."


def _of_which(servers: ServerDefaults) -> str:
    """Return which version both sides have, where that is known."""
    return f" of {servers.before}" if servers.before else ""


def headline_defaults(server_pairs: Sequence[ServerDefaults], pairs: Collection[tuple[str, str]]) -> str:
    """Return what in durability or logging was compared though the study does not set it; empty where nothing.

    ``pairs`` are the comparisons that a headline speaks of, as ids of baseline and level. ``"mysql-9 writes a binary
    log and mariadb-11.8 does not: not set by the study, so part of what was compared."``
    """
    clauses = defaults_clauses([servers for servers in server_pairs if set(servers.pairs) & set(pairs)])
    if not clauses:
        return ""
    left = len(clauses) - CLAUSES_MAX
    shown = "; ".join([*clauses[:CLAUSES_MAX], *([f"{left} more differences like that"] if left > 0 else [])])
    return f"{shown}: not set by the study, so part of what was compared."


def defaults_clauses(server_pairs: Sequence[ServerDefaults]) -> list[str]:
    """Return a clause for each setting in durability or logging that servers differ in, what matters most first.

    Servers that differ from a baseline in the same way share one: ``"mysql-8.0 and mysql-9 write a binary log and
    mysql-5.6 does not"``.
    """
    levels: dict[tuple[str, Setting], list[str]] = {}  # baseline and setting -> servers against it
    for servers in server_pairs:
        for setting in servers.durability_and_logging:
            levels.setdefault((servers.before, setting), []).append(servers.after or "the server after")
    order = list(CONCERNS)
    by_setting = sorted(levels.items(), key=lambda item: order.index(item[0][1].name))
    return [_clause(setting, baseline, labels) for (baseline, setting), labels in by_setting]


def _clause(setting: Setting, baseline: str, servers: Sequence[str]) -> str:
    """Return what servers on either side do, those first that do more."""
    sides = [([baseline or "the server before"], setting.before), (servers, setting.after)]
    (first, value), (second, less) = sorted(sides, key=lambda side: plain_value(setting.name, side[1]) == "off")
    start, does = f"{_names(first)} {_verb(_doing(setting.name, value), first)}", _doing(setting.name, less)
    without = setting.name in DOES and plain_value(setting.name, less) == "off"
    return f"{start} and {_names(second)} {_not(second) if without else _verb(does, second)}"


def _names(servers: Sequence[str]) -> str:
    return listed(list(dict.fromkeys(servers)), SERVERS_MAX)


def _doing(name: str, value: str) -> str:
    """Return what one server does by a value of a setting."""
    plain = plain_value(name, value)
    if plain == "on" and name in DOES:
        return DOES[name]
    return SYNCS.get((name, plain), f"has {name} {_cut(value)}")


def _verb(does: str, names: Sequence[str]) -> str:
    """Return ``"writes a binary log"`` of one server, ``"write a binary log"`` of several."""
    verb, _, rest = does.partition(" ")
    plural = "have" if verb == "has" else verb.removesuffix("s")
    return f"{verb if len(names) == 1 else plural} {rest}"


def _not(names: Sequence[str]) -> str:
    return "does not" if len(names) == 1 else "do not"


def _brief(setting: Setting) -> str:
    return f"{setting.name} {_cut(setting.before)} -> {_cut(setting.after)}"


def _cut(value: str) -> str:
    if not value:
        return '""'
    return value if len(value) <= VALUE_MAX else f"{value[:VALUE_MAX]}…"


def _details(servers: ServerDefaults) -> Block:
    rows = tuple((setting.name, setting.before or '""', setting.after or '""') for setting in servers.differing)
    same = servers.before == servers.after
    sides = ("before", "after") if same else (servers.before, servers.after)
    table = Table("Settings that differ though the study did not set them", ("setting", *sides), rows, "settings")
    names_of_sides = ("the server before", "the server after") if same else sides
    alone = [
        Paragraph(f"Only {name} has {count(len(names), 'further setting')}: {', '.join(names)}.", "soft")
        for name, names in zip(names_of_sides, (servers.only_before, servers.only_after), strict=True)
        if names
    ]
    blocks: tuple[Block, ...] = (Paragraph(NOTE, "soft"), *([table] if rows else []), *alone)
    of = f"Settings{_of_which(servers)} that differ between the runs"
    title = of if same else f"Defaults that differ between {servers.before} and {servers.after}"
    return Details(title, blocks, len(rows))


def _json(server_pairs: Sequence[ServerDefaults]) -> list[dict[str, Any]]:
    return [
        {
            "before": servers.before,
            "after": servers.after,
            "differing": [
                {
                    "name": setting.name,
                    "before": None if setting.before == ABSENT else setting.before,
                    "after": None if setting.after == ABSENT else setting.after,
                    "matters": setting.matters,
                    "concern": setting.concern,
                }
                for setting in servers.differing
            ],
            "only_before": servers.only_before,
            "only_after": servers.only_after,
            "treatments": [{"before": before, "after": after} for before, after in servers.pairs],
        }
        for servers in server_pairs
    ]
