"""How many blocks the margin will likely take: from the noise floor of an A/A run on this host, if there is one."""

import math
import os
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.analysis.planned_looks import likely_blocks
from dbdyno.cli.run_folder import RUNS
from dbdyno.model.design import MIN_BLOCKS, Design
from dbdyno.model.wording import margin_text, percent

if TYPE_CHECKING:
    from dbdyno.store.records import Run

FOLDERS_MAX = 50  # run folders that are looked at, the latest first
EXAMPLES = (0.02, 0.04)  # spreads that are named where this host's is not known


def likely_blocks_text(design: Design, folder: Path = RUNS) -> str:
    """Return one line; empty where the number of blocks is given, or nothing is compared."""
    if design.until != "decided" or not design.comparisons:
        return ""
    margin = design.margin
    if (spread := spread_of_this_host(folder)) is not None:
        said = f"two trials of a block differ by {percent(spread, sign=False)} here (A/A run in {folder})"
        if (blocks := likely_blocks(spread, margin)) is None:
            return f"likely blocks: {said}, too much for a margin of {margin_text(margin)}: make trials longer"
        alike, apart = (min(each, design.blocks) for each in blocks)
        return f"likely blocks: {said}: about {alike} for two that are alike, {apart} where they {_differ(margin)}"
    known = [(one, blocks[0]) for one in EXAMPLES if (blocks := likely_blocks(one, margin))]
    each = [f"{blocks} where two trials of a block differ by {margin_text(one)}" for one, blocks in known]
    return f"likely blocks: about {', '.join(each)}; dbdyno aa measures this host's spread" if each else ""


def _differ(margin: float) -> str:
    return f"differ by {margin_text(math.expm1(2 * math.log1p(margin)))}"


def likely_blocks_json(design: Design, folder: Path = RUNS) -> dict[str, Any] | None:
    """Return the same for programs; None where this host's spread is not known."""
    spread = spread_of_this_host(folder) if design.until == "decided" else None
    if spread is None:
        return None
    blocks = likely_blocks(spread, design.margin)
    return {
        "spread": spread,
        "blocks_where_alike": blocks[0] if blocks else None,
        "blocks_at_two_margins": blocks[1] if blocks else None,
    }


def spread_of_this_host(folder: Path) -> float | None:
    """Return the standard deviation of the log ratio in the latest A/A run of this host; None where there is none."""
    return next(_spreads(folder), None)


def _spreads(folder: Path) -> Iterator[float]:
    """Yield that of each A/A run on a host with this one's processors; computed without numpy, as ``plan`` is quick."""
    from dbdyno.errors import DbdynoError
    from dbdyno.store.header import RUN
    from dbdyno.store.others import Budget, last_resort
    from dbdyno.store.parts import read_part
    from dbdyno.store.run_folder import read_run

    budget = Budget()
    headers = sorted(folder.glob(f"*/{RUN}"), key=lambda path: path.lstat().st_mtime, reverse=True)[:FOLDERS_MAX]
    for header in headers:
        try:
            if b"\n[aa]" not in read_part(header.parent, RUN):
                continue
            with last_resort(header.parent):
                ratios = _log_ratios(read_run(header.parent, budget=budget))
        except (OSError, DbdynoError):
            continue
        if len(ratios) >= MIN_BLOCKS:
            yield statistics.stdev(ratios)


def _log_ratios(run: "Run") -> list[float]:
    """Return the log ratio of the two trials of each block, of a whole A/A run of this host."""
    from dbdyno.analysis.blocks import usable_blocks

    if run.design.aa is None or run.ended != "done" or not _is_this_host(run.host):
        return []
    blocks = usable_blocks(run)
    one, other = (blocks.values(each.id, run.design.metric) for each in run.design.treatments)
    return [math.log(other[at] / one[at]) for at in one.keys() & other.keys() if one[at] > 0 and other[at] > 0]


def _is_this_host(host: dict[str, Any]) -> bool:
    """Return whether a run's host has this one's processors; a host that does not say is another."""
    from dbdyno.host.processor import processor_facts

    cpu = host.get("cpu")
    model = cpu.get("model") if isinstance(cpu, dict) else None
    return bool(model) and (model, host.get("cores")) == (processor_facts().get("model"), os.cpu_count())
