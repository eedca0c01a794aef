"""From paired differences to one of five words, and the reason in one plain sentence.

How a word is chosen, in this order:

1. *not comparable*: fewer than 2 usable blocks, or a treatment that failed again and again and was dropped.
2. *faster* / *slower*: the exact sign-flip p, Holm-adjusted over the study's comparisons, is <= .05 and the exact 95 %
   interval excludes 0; which of the two words follows from whether more of the metric is better. Except that where
   the interval also lies wholly inside the margin and the equivalence test holds, the word is *equivalent* and the
   reason says that the difference is real but smaller than the margin: nobody should buy a disk for it.
3. *equivalent*: the 90 % interval lies inside the margin at the Holm-adjusted 5 % and there are at least as many blocks
   as a 95 % interval needs, so that no "equivalent" is shown beside an unknown interval.
4. *undecided*: anything else.

Two families, each corrected by Holm on its own: the differences (guarding against a wrong *faster* or *slower* anywhere
in the study) and the equivalences (guarding against a wrong *equivalent*). Either mistake happens in at most 5 % of
studies. They are kept apart because they answer different questions: of any one comparison at most one of the two null
hypotheses, "no difference" and "at least the margin", can be true.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dbdyno.analysis.effect import relative, relative_effect, signed_rank_interval
from dbdyno.analysis.equivalence import log_margin, tost_interval, tost_p
from dbdyno.analysis.estimate import Estimate
from dbdyno.analysis.metrics import Metric
from dbdyno.analysis.min_blocks import ALPHA, MIN_BLOCKS, blocks_needed, smallest_p
from dbdyno.analysis.multiplicity import holm
from dbdyno.analysis.permutation import sign_flip_p
from dbdyno.analysis.sample_size import blocks_to_resolve
from dbdyno.analysis.wording import count, margin_text, p_value, percent_range

Word = Literal["faster", "slower", "equivalent", "undecided", "not comparable"]

CONFIDENCE = 0.95
MIN_USABLE_BLOCKS = 2


@dataclass(frozen=True)
class Verdict:
    """A comparison, what was estimated, and the word drawn from it. Differences are relative: .03 for +3 %."""

    metric: str
    baseline: str  # label
    level: str  # label
    baseline_id: str
    level_id: str
    effect: Estimate
    p: float  # exact sign-flip, unadjusted
    p_adjusted: float  # Holm over the study's differences
    verdict: Word
    blocks: int
    reason: str
    coverage: float  # what the exact interval really covers, >= .95; 1 where it is unbounded
    p_equivalence: float  # TOST, Holm over the study's equivalences
    by_block: tuple[tuple[int, float], ...]  # (block, relative difference)


@dataclass(frozen=True)
class Paired:
    """A planned comparison and its log ratios by block; ``obstacle`` says why it cannot be judged, if so."""

    baseline: str
    level: str
    baseline_id: str
    level_id: str
    log_ratios: dict[int, float]
    obstacle: str = ""

    @property
    def d(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """The log ratios alone, shape (blocks,)."""
        return np.fromiter(self.log_ratios.values(), dtype=np.float64, count=len(self.log_ratios))


@dataclass(frozen=True)
class _Evidence:
    """What the words of one comparison rest on."""

    d: np.ndarray[tuple[int], np.dtype[np.float64]]
    effect: Estimate
    p: float
    p_adjusted: float
    p_best: float  # the smallest Holm-adjusted p these blocks could have reached, the other comparisons as they are
    p_equivalence: float
    margin: float
    comparisons: int

    @property
    def different(self) -> bool:
        return self.p_adjusted <= ALPHA and (self.effect.low > 0 or self.effect.high < 0)

    @property
    def equivalent(self) -> bool:
        return self.p_equivalence <= ALPHA and self.effect.bounded

    @property
    def interval_inside_margin(self) -> bool:
        bound = log_margin(self.margin)
        return relative(-bound) < self.effect.low and self.effect.high < relative(bound)


def judge(pairs: list[Paired], metric: Metric, margin: float) -> list[Verdict]:
    """Return one verdict per planned comparison, in the order given; all of them are one family."""
    tested = [pair for pair in pairs if _obstacle(pair) == ""]
    p = [sign_flip_p(pair.d) for pair in tested]
    p_adjusted, p_equivalence = holm(p), holm([tost_p(pair.d, margin) for pair in tested])
    evidence = {
        (pair.baseline_id, pair.level_id): _Evidence(
            d=pair.d,
            effect=relative_effect(pair.d, CONFIDENCE),
            p=p[i],
            p_adjusted=p_adjusted[i],
            p_best=holm([*p[:i], smallest_p(len(pair.d)), *p[i + 1 :]])[i],
            p_equivalence=p_equivalence[i],
            margin=margin,
            comparisons=len(tested),
        )
        for i, pair in enumerate(tested)
    }
    return [_verdict(pair, metric, evidence.get((pair.baseline_id, pair.level_id))) for pair in pairs]


def _obstacle(pair: Paired) -> str:
    if pair.obstacle:
        return pair.obstacle
    if len(pair.log_ratios) < MIN_USABLE_BLOCKS:
        return f"{count(len(pair.log_ratios), 'usable block')}, at least {MIN_USABLE_BLOCKS} are needed"
    return ""


def _verdict(pair: Paired, metric: Metric, evidence: _Evidence | None) -> Verdict:
    word, reason = _word(evidence, metric) if evidence else ("not comparable", _obstacle(pair))
    return Verdict(
        metric=metric.name,
        baseline=pair.baseline,
        level=pair.level,
        baseline_id=pair.baseline_id,
        level_id=pair.level_id,
        effect=evidence.effect if evidence else Estimate.unknown(len(pair.log_ratios)),
        p=evidence.p if evidence else math.nan,
        p_adjusted=evidence.p_adjusted if evidence else math.nan,
        verdict=word,
        blocks=len(pair.log_ratios),
        reason=reason,
        coverage=signed_rank_interval(pair.d, CONFIDENCE).coverage if evidence else math.nan,
        p_equivalence=evidence.p_equivalence if evidence else math.nan,
        by_block=tuple((block, relative(d)) for block, d in sorted(pair.log_ratios.items())),
    )


def _word(evidence: _Evidence, metric: Metric) -> tuple[Word, str]:
    margin = margin_text(evidence.margin)
    if evidence.different:
        if evidence.equivalent and evidence.interval_inside_margin:
            reason = f"the difference is real ({p_value(evidence.p_adjusted)}) but smaller than the margin of {margin}"
            return "equivalent", reason
        better = (evidence.effect.value > 0) == metric.more_is_better
        word: Word = "faster" if better else "slower"
        return word, _reason_different(evidence, word)
    if evidence.equivalent:
        interval = tost_interval(evidence.d)
        inside = percent_range(relative(interval.low), relative(interval.high))
        return "equivalent", f"the 90 % interval, {inside}, lies inside the margin of {margin}"
    return "undecided", _reason_undecided(evidence)


def _reason_different(evidence: _Evidence, word: Word) -> str:
    same_sign = int((np.sign(evidence.d) == np.sign(evidence.effect.value)).sum())
    n = len(evidence.d)
    blocks = f"all {n} blocks" if same_sign == n else f"{same_sign} of {n} blocks"
    over = count(evidence.comparisons, "comparison")
    return f"{word} in {blocks} ({p_value(evidence.p_adjusted)} over {over}), and the interval excludes 0"


def _reason_undecided(evidence: _Evidence) -> str:
    n, margin = len(evidence.d), margin_text(evidence.margin)
    over = f"over {count(evidence.comparisons, 'comparison')}"
    pilot = n >= MIN_BLOCKS  # fewer say too little about the spread to plan from
    needed = (blocks_to_resolve(evidence.d, evidence.margin, evidence.comparisons) if pilot else None) or 0
    excludes_zero = evidence.effect.low > 0 or evidence.effect.high < 0
    if evidence.p_best > ALPHA:
        fewest = blocks_needed(evidence.comparisons)
        best = f"{count(n, 'block')} can at best reach p = {evidence.p_best:.3f} {over}"
        in_all = f", and about {needed:,} to resolve {margin}" if needed > fewest and not excludes_zero else ""
        return f"{best}; {fewest} blocks are needed{in_all}"
    if evidence.p_adjusted <= ALPHA:
        reason = f"{p_value(evidence.p_adjusted)} {over}, but the interval includes 0"
    elif excludes_zero:
        reason = f"the interval excludes 0, but {p_value(evidence.p_adjusted)} {over} is more than {ALPHA:g}"
    elif evidence.interval_inside_margin:
        reason = f"the interval lies inside the margin of {margin}, but not surely enough {over}"
    else:
        reason = f"the interval includes 0 and reaches beyond the margin of {margin}"
    if needed > n:
        return f"{reason}; about {count(needed - n, 'more block')} to resolve {margin}"
    return f"{reason}; so many blocks resolve {margin} on the average, and this effect is too close to call"
