"""Hosts: what holds on hosts like these, what is fixed to hosts, and how much they differ."""

from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.fleet import FleetFindings
from dbdyno.model.wording import count, drive_bytes, listed, percent
from dbdyno.report.comparison import OF_A_MOMENT
from dbdyno.report.document import Block, Item, List, Paragraph, Section, Table, bullets
from dbdyno.report.fleet import (
    data_lines,
    data_of,
    level_json,
    level_sentence,
    like_these_json,
    like_these_sentence,
    noise_blocks,
    noise_json,
    spread_text,
)
from dbdyno.report.sections.about import UNOBSERVED, flattened
from dbdyno.report.sentences import by_interest
from dbdyno.report.source import Source, part
from dbdyno.store.records import Run

COLUMNS_MAX = 4  # comparisons beside each other; JSON has all
ONE_VOTE = (
    "The verdicts hold on these hosts, from all blocks. On hosts like these each host has one vote, however many blocks"
    " it ran: what helps on one machine may not on the next, and blocks of one host say nothing of that."
)


def section(source: Source) -> Section:
    """Return it for a study on several hosts; empty of one."""
    analysis = source.analysis
    found = analysis.fleet
    shown = _shown(source.run, found, analysis) if found else ()
    return Section("hosts", "Hosts", shown, data={"hosts": fleet_json(source.run, found, analysis)})


def _shown(run: Run, found: FleetFindings, analysis: Analysis) -> tuple[Block, ...]:
    shown: list[Block] = [*bullets([*host_lines(found), *data_lines(run)]), *disk_table(run), *apart_table(run)]
    if found.like_these:
        ordered = [found.of(one.verdict) for one in by_interest(analysis.verdicts, analysis)]
        items = (Item(like_these_sentence(one, analysis), tuple(filter(None, [spread_text(one)]))) for one in ordered)
        shown += [Paragraph(ONE_VOTE), List(tuple(items), "verdicts"), by_host_table(found, analysis)]
    levels = tuple(Item(level_sentence(one, analysis)) for one in (*found.levels, *found.effects))
    shown += [List(levels, "verdicts", "What is fixed to hosts")] if levels else []
    return (*shown, *(noise_blocks(found.noise) if found.noise else ()))


def host_lines(found: FleetFindings) -> list[str]:
    """Return how many blocks of each host count."""
    with_blocks = [f"{host} ({count(blocks, 'block')})" for host, blocks in found.blocks.items() if blocks]
    without = [host for host, blocks in found.blocks.items() if not blocks]
    lines = [f"Hosts under test: {listed(with_blocks)}."] if with_blocks else []
    return [*lines, f"No usable block on {listed(without)}."] if without else lines


def disks_of(run: Run) -> dict[str, dict[str, Any]]:
    """Return the real disk of each host: the name that the study gives it, and what was read back of it in trials."""
    disks = run.design.fleet.disks if run.design.fleet else {}
    read = {trial.host: part(trial.observed, "device") for trial in reversed(run.trials)}
    known = {host: read.get(host, {}) for host in disks}
    return {
        host: {"device": disk.device, **{name: known[host].get(name) for name in ("model", "serial", "size_bytes")}}
        for host, disk in disks.items()
    }


def disk_table(run: Run) -> tuple[Table, ...]:
    """Return the same as a table; nothing where the study names no disks."""
    rows = tuple(
        (host, one["device"], *(str(one[name] or UNOBSERVED) for name in ("model", "serial")), _size(one["size_bytes"]))
        for host, one in disks_of(run).items()
    )
    return (Table("The disk of each host", ("host", "disk", "model", "serial", "size"), rows),) if rows else ()


def _size(size_bytes: object) -> str:
    return drive_bytes(size_bytes) if isinstance(size_bytes, int) else UNOBSERVED


def apart_table(run: Run) -> tuple[Table, ...]:
    """Return the facts in which the hosts differ, all of which are in what is said of hosts; nothing where none do."""
    facts = {host: flattened(of) for host, of in run.hosts.items()}
    names = dict.fromkeys(name for of in facts.values() for name in of if name.rpartition(".")[2] not in OF_A_MOMENT)
    apart = [name for name in names if len({of.get(name) for of in facts.values()}) > 1]
    rows = tuple((name, *(of.get(name, UNOBSERVED) for of in facts.values())) for name in apart)
    return (Table("In what the hosts differ", ("fact", *facts), rows, "settings"),) if rows else ()


def by_host_table(found: FleetFindings, analysis: Analysis) -> Table:
    """Return each host's effect, of the first comparisons."""
    columns = by_interest(analysis.verdicts, analysis)[:COLUMNS_MAX]
    values = [{each.host: each.value for each in found.of(one.verdict).hosts} for one in columns]
    headings = ("host", "blocks", *(one.name for one in columns))
    rows = tuple(
        (host, str(blocks), *(percent(one[host]) if host in one else "-" for one in values))
        for host, blocks in found.blocks.items()
    )
    return Table(f"{analysis.metric.heading} on each host", headings, rows)


def fleet_json(run: Run, found: FleetFindings | None, analysis: Analysis) -> dict[str, Any] | None:
    """Return all of it for programs; null of a study on one host."""
    if found is None:
        return None
    return {
        "blocks": found.blocks,
        "data_sha256": data_of(run),
        "disks": disks_of(run),
        "like_these": [like_these_json(one, analysis) for one in found.like_these],
        "levels": [level_json(one, analysis) for one in found.levels],
        "effects_by_level": [level_json(one, analysis) for one in found.effects],
        "noise": noise_json(found.noise) if found.noise else None,
    }
