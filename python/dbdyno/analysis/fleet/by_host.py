"""The usable blocks of each host, and their figures."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.statistics.arrays import Floats
from dbdyno.model.design import Fleet
from dbdyno.model.metrics import value_of


@dataclass(frozen=True)
class OfHost:
    """A figure of one host: of a comparison its relative difference (.03 for 3 %), else a metric."""

    host: str
    blocks: int  # that carry it
    value: float


@dataclass(frozen=True)
class OnHosts:
    """A fleet, and which of its hosts each usable block ran on."""

    fleet: Fleet
    of_block: Mapping[int, str]

    @classmethod
    def of(cls, fleet: Fleet, blocks: UsableBlocks) -> "OnHosts":
        """Return it of a run; all trials of an attempt ran on one host."""
        return cls(fleet, {block: next(iter(row.values())).host for block, row in blocks.trials.items() if row})

    def by_host(self, values: Mapping[int, float]) -> dict[str, Floats]:
        """Return host -> its values, shape (blocks,), in the order of the fleet; a host without any is left out."""
        found: dict[str, list[float]] = {host: [] for host in self.fleet.hosts}
        for block, value in values.items():
            if (host := self.of_block.get(block, "")) in found:
                found[host].append(value)
        return {host: np.asarray(each) for host, each in found.items() if each}


def block_levels(blocks: UsableBlocks, treatments: list[str], metric: str) -> dict[int, float]:
    """Return block -> mean ln(metric) over these treatments, of blocks in which all of them have a figure above 0."""
    found = {}
    for block, row in blocks.trials.items():
        values = [value_of(row[id_].metrics, metric) for id_ in treatments if id_ in row]
        if len(values) == len(treatments) and values and all(np.isfinite(one) and one > 0 for one in values):
            found[block] = float(np.mean(np.log(values)))
    return found
