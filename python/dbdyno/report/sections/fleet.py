"""Hosts: what holds on hosts like these, what is fixed to hosts, and how much they differ."""

from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.fleet import FleetFindings
from dbdyno.model.metrics import part_of
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
from dbdyno.report.source import Source
from dbdyno.store.records import Run

COLUMNS_MAX = 4  # comparisons beside each other; JSON has all
ONE_VOTE = (
    "The verdicts hold on these hosts, from all blocks. On hosts like these each host has one vote, however many blocks"
    " it ran: what helps on one machine may not on the next, and blocks of one host say nothing of that."
)


def section(source: Source) -> Section:
    """Return the section for a study on several hosts; it is empty for a study on one."""
    analysis = source.analysis
    fleet = analysis.fleet
    shown = _shown(source.run, fleet, analysis) if fleet else ()
    return Section("hosts", "Hosts", shown, data={"hosts": fleet_json(source.run, fleet, analysis)})


def _shown(run: Run, fleet: FleetFindings, analysis: Analysis) -> tuple[Block, ...]:
    shown: list[Block] = [*bullets([*host_lines(fleet), *data_lines(run)]), *disk_table(run), *apart_table(run)]
    if fleet.like_these:
        ordered = [fleet.of(comparison.verdict) for comparison in by_interest(analysis.verdicts, analysis)]
        items = (
            Item(like_these_sentence(like_these, analysis), tuple(filter(None, [spread_text(like_these)])))
            for like_these in ordered
        )
        shown += [Paragraph(ONE_VOTE), List(tuple(items), "verdicts"), by_host_table(fleet, analysis)]
    levels = tuple(Item(level_sentence(difference, analysis)) for difference in (*fleet.levels, *fleet.effects))
    shown += [List(levels, "verdicts", "What is fixed to hosts")] if levels else []
    return (*shown, *(noise_blocks(fleet.noise) if fleet.noise else ()))


def host_lines(fleet: FleetFindings) -> list[str]:
    """Return how many blocks of each host count."""
    with_blocks = [f"{host} ({count(blocks, 'block')})" for host, blocks in fleet.blocks.items() if blocks]
    without = [host for host, blocks in fleet.blocks.items() if not blocks]
    lines = [f"Hosts under test: {listed(with_blocks)}."] if with_blocks else []
    return [*lines, f"No usable block on {listed(without)}."] if without else lines


def disks_of(run: Run) -> dict[str, dict[str, Any]]:
    """Return the real disk of each host: the name that the study gives it, and what was read back of it in trials."""
    disks = run.design.fleet.disks if run.design.fleet else {}
    read = {trial.host: part_of(trial.observed, "device") for trial in reversed(run.trials)}
    known = {host: read.get(host, {}) for host in disks}
    return {
        host: {"device": disk.device, **{name: known[host].get(name) for name in ("model", "serial", "size_bytes")}}
        for host, disk in disks.items()
    }


def disk_table(run: Run) -> tuple[Table, ...]:
    """Return the disks as a table; nothing where the study names no disks."""
    rows = tuple(
        (
            host,
            disk["device"],
            *(str(disk[name] or UNOBSERVED) for name in ("model", "serial")),
            _size(disk["size_bytes"]),
        )
        for host, disk in disks_of(run).items()
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


def by_host_table(fleet: FleetFindings, analysis: Analysis) -> Table:
    """Return each host's effect, of the first comparisons."""
    columns = by_interest(analysis.verdicts, analysis)[:COLUMNS_MAX]
    values = [
        {host_effect.host: host_effect.value for host_effect in fleet.of(comparison.verdict).hosts}
        for comparison in columns
    ]
    headings = ("host", "blocks", *(comparison.name for comparison in columns))
    rows = tuple(
        (host, str(blocks), *(percent(effects[host]) if host in effects else "-" for effects in values))
        for host, blocks in fleet.blocks.items()
    )
    return Table(f"{analysis.metric.heading} on each host", headings, rows)


def fleet_json(run: Run, fleet: FleetFindings | None, analysis: Analysis) -> dict[str, Any] | None:
    """Return what the section shows as values; None for a study on one host."""
    if fleet is None:
        return None
    return {
        "blocks": fleet.blocks,
        "data_sha256": data_of(run),
        "disks": disks_of(run),
        "like_these": [like_these_json(like_these, analysis) for like_these in fleet.like_these],
        "levels": [level_json(difference, analysis) for difference in fleet.levels],
        "effects_by_level": [level_json(difference, analysis) for difference in fleet.effects],
        "noise": noise_json(fleet.noise) if fleet.noise else None,
    }
