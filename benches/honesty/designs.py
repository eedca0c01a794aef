"""Whole studies at once: log ratios in, findings, blocks used and intervals out, by the product's own analysis."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benches.honesty.families import evidence_of_families
from dbdyno.analysis.statistics import log_margin
from dbdyno.analysis.stopping import Allowance, is_look
from dbdyno.analysis.verdict.evidence import Evidence, Relation, Rule, relations
from dbdyno.model.design import Comparison, Design, Treatment, Until

Floats = npt.NDArray[np.float64]

MARGIN = 0.03


@dataclass(frozen=True)
class Studies:
    """The outcome of many studies: arrays of shape (replicates, comparisons), ``blocks`` of (replicates,)."""

    found: npt.NDArray[np.int64]
    low: Floats
    high: Floats
    value: Floats
    blocks: npt.NDArray[np.int64]

    def differs(self) -> float:
        """Share of studies in which any comparison was called faster or slower."""
        return float(np.mean(np.any((self.found == Relation.HIGHER) | (self.found == Relation.LOWER), axis=1)))

    def says(self, finding: Relation) -> float:
        """Share of studies in which any comparison was called so."""
        return float(np.mean(np.any(self.found == finding, axis=1)))

    def covers(self, truth: float) -> float:
        """Share of intervals that hold the true log ratio."""
        return float(np.mean((self.low <= truth) & (truth <= self.high)))


def fixed(d: Floats, blocks: int) -> Studies:
    """A number of blocks fixed beforehand. ``d`` has shape (replicates, comparisons, blocks or more)."""
    return _stopping(d, rules_of("blocks", blocks), precise=None)


def sequential(d: Floats, blocks: int = 40) -> Studies:
    """``until = "decided"``: the planned looks, until all is decided."""
    return _stopping(d, rules_of("decided", blocks), precise=None)


def precise(d: Floats, half_width: float, blocks: int = 40) -> Studies:
    """``until = "precise"``: the planned looks, until all intervals are narrow enough."""
    return _stopping(d, rules_of("precise", blocks), precise=log_margin(half_width))


def always_valid(d: Floats, blocks: int = 40) -> Studies:
    """``--until-decided``: a look after every block from the sixth on."""
    return _stopping(d, rules_of("open", blocks), precise=None)


def clock(d: Floats, ends_after: npt.NDArray[np.int64], blocks: int = 40) -> Studies:
    """``until = "decided"`` where the time allowed ends each study after blocks of its own number, (replicates,)."""
    parts = [(ends == ends_after, int(ends)) for ends in np.unique(ends_after)]
    found = np.zeros(d.shape[:2], dtype=np.int64)
    low, high, value = (np.empty(d.shape[:2]) for _ in range(3))
    used = np.zeros(len(d), dtype=np.int64)
    for mine, ends in parts:
        rules = {n: rule for n, rule in rules_of("decided", blocks).items() if n < ends}
        last = Allowance(_design("decided", blocks), ended_by_clock=True).rule(ends)
        one = _stopping(d[mine], rules | {ends: last}, precise=None)
        found[mine], low[mine], high[mine], used[mine] = one.found, one.low, one.high, one.blocks
        value[mine] = one.value
    return Studies(found, low, high, value, used)


def extended(d: Floats, first: int, blocks: int = 40) -> Studies:
    """A fixed design whose owner, where it was undecided, goes on with the always-valid sequence."""
    begun, went_on = fixed(d, first), always_valid(d, blocks)
    again = np.any(begun.found == Relation.UNDECIDED, axis=1)
    return Studies(
        np.where(again[:, None], went_on.found, begun.found),
        np.where(again[:, None], went_on.low, begun.low),
        np.where(again[:, None], went_on.high, begun.high),
        np.where(again[:, None], went_on.value, begun.value),
        np.where(again, np.maximum(went_on.blocks, first), begun.blocks),
    )


def lagging(d: Floats, lacking: int, blocks: int = 40) -> Studies:
    """``until = "decided"`` where the first ``lacking`` blocks have no figure of these comparisons.

    The run looks by its blocks, these comparisons are judged by theirs.
    """
    rule = Allowance(_design("decided", blocks)).rule
    looks = [n for n in range(lacking + 2, blocks + 1) if is_look(_design("decided", blocks), n)]
    return _stopping(d, {n - lacking: rule(n - lacking) for n in looks}, precise=None)


def _design(until: Until, blocks: int) -> Design:
    treatments = [Treatment("t1", {}), Treatment("t2", {})]
    return Design(treatments, "t1", [Comparison("t1", "t2")], blocks, MARGIN, "queries_per_second", 1, until)


def rules_of(until: Until, blocks: int) -> dict[int, Rule]:
    """Return after which blocks such a run is looked at, and the rule of each look: those of the product."""
    design = _design(until, blocks)
    looks = [n for n in range(1, blocks + 1) if is_look(design, n) or n == blocks]
    return {n: Allowance(design).rule(n) for n in looks}


def _stopping(d: Floats, rules: dict[int, Rule], *, precise: float | None) -> Studies:
    """Look after each number of blocks in ``rules``; a study that has stopped keeps what it found then."""
    live = np.arange(len(d))
    found = np.zeros(d.shape[:2], dtype=np.int64)
    low, high, value = (np.empty(d.shape[:2]) for _ in range(3))
    used = np.zeros(len(d), dtype=np.int64)
    for n, rule in rules.items():
        seen = evidence_of_families(d[live, :, :n], rule, MARGIN)
        found[live], low[live], high[live], used[live] = relations(seen, MARGIN), seen.low, seen.high, n
        value[live] = seen.value
        live = live[~_done(seen, found[live], precise)]
        if not len(live):
            break
    return Studies(found, low, high, value, used)


def _done(seen: Evidence, found: npt.NDArray[np.int64], precise: float | None) -> npt.NDArray[np.bool_]:
    if precise is None:
        return np.asarray(np.all(found != Relation.UNDECIDED, axis=1))
    return np.asarray(np.all(np.maximum(seen.high - seen.value, seen.value - seen.low) <= precise, axis=1))
