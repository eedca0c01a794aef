"""Which treatment loses more often, does damage more often, or loses more: the planned comparisons of a crash study.

All tests of a study are one family, whose p are Holm's. One that could show nothing, as neither side has what it
counts, is no member of it (Tarone 1990): that depends on both sides' sum alone.
"""

import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dbdyno.analysis.looks.alpha_spending import Looks
from dbdyno.analysis.safety.by_runs import fisher, p_by_runs
from dbdyno.analysis.safety.tally import is_damage
from dbdyno.analysis.statistics.effect import log_ratios
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.analysis.statistics.multiplicity import holm
from dbdyno.analysis.verdict.evidence import evidence, relative_estimate
from dbdyno.model.cut import Cut
from dbdyno.model.design import ALPHA, Comparison

Asked = Literal["loss", "damage", "amount"]  # how often anything is lost; how often worse; how many ms, where both lose
Found = Literal["more", "less", "no difference shown"]
BOTH_LOSE = 0.5  # of the cuts of either side, for amounts to be compared
ByBlock = Mapping[str, Mapping[int, list[Cut]]]  # treatment id -> block -> the cuts of its run


@dataclass(frozen=True)
class Difference:
    """One question about two treatments: whether the level loses more or less than the baseline."""

    level_id: str
    baseline_id: str
    asked: Asked
    found: Found
    p: float  # Holm's, over the family
    p_unadjusted: float  # by runs; of amounts by blocks
    p_if_independent: float | None  # Fisher's over cuts; None of amounts
    level: tuple[int, int]  # in how many cuts it was seen, of how many
    baseline: tuple[int, int]
    ratio: Estimate | None  # of amounts: the relative difference of the ms lost, with its interval


def differences(comparisons: list[Comparison], by_block: ByBlock) -> list[Difference]:
    """Return what the planned comparisons show; those between treatments without cuts are left out."""
    compared = [one for one in comparisons if by_block.get(one.level) and by_block.get(one.baseline)]
    raw = [found for one in compared for found in _of_pair(one, by_block)]
    adjusted = holm([one.p_unadjusted for one in raw]) if raw else ()
    return [_judged(one, float(p)) for one, p in zip(raw, adjusted, strict=True)]


def _of_pair(pair: Comparison, by_block: ByBlock) -> Iterator[Difference]:
    sides = by_block[pair.level], by_block[pair.baseline]
    conditions: dict[Asked, Callable[[Cut], bool]] = {"loss": lambda cut: cut.is_loss, "damage": is_damage}
    for asked, condition in conditions.items():
        each = [[(sum(map(condition, cuts)), len(cuts)) for cuts in side.values()] for side in sides]
        level, baseline = ((sum(seen for seen, _ in side), sum(of for _, of in side)) for side in each)
        if level[0] + baseline[0]:
            p = p_by_runs(*each)
            yield Difference(pair.level, pair.baseline, asked, "no difference shown", p, p, fisher(*level, *baseline),
                             level, baseline, None)  # fmt: skip
    losing = [[cut for cuts in side.values() for cut in cuts] for side in sides]
    counts = [(sum(cut.lost_ms is not None for cut in side), len(side)) for side in losing]
    if all(seen >= BOTH_LOSE * of for seen, of in counts):
        ratios = log_ratios(*(_typical(side) for side in sides))
        if len(ratios) > 1:
            found = evidence(np.array(list(ratios.values())), Looks.single(len(ratios)), margin=1.0)
            ratio = relative_estimate(float(found.value), float(found.low), float(found.high), len(ratios))
            yield Difference(pair.level, pair.baseline, "amount", "no difference shown", float(found.p), float(found.p),
                             None, counts[0], counts[1], ratio)  # fmt: skip


def _typical(side: Mapping[int, list[Cut]]) -> dict[int, float]:
    """Return block -> median of the ms lost in the run's cuts that lost any."""
    lost = {block: [cut.lost_ms for cut in cuts if cut.lost_ms is not None] for block, cuts in side.items()}
    return {block: statistics.median(values) for block, values in lost.items() if values}


def _judged(one: Difference, p: float) -> Difference:
    found: Found = "no difference shown"
    if p <= ALPHA:
        if one.ratio is not None:
            found = "more" if one.ratio.value > 0 else "less"
        else:
            more = one.level[0] * one.baseline[1] > one.baseline[0] * one.level[1]
            found = "more" if more else "less"
    return Difference(**{**vars(one), "p": p, "found": found})
