"""From paired differences to one of five words, and the reason in one plain sentence.

How a word is chosen, in this order:

1. *not comparable*: fewer than 2 usable blocks, or a treatment that failed again and again and was dropped.
2. *faster* / *slower*: the exact signed-rank p, allowing for the looks and Holm-adjusted over the study's comparisons,
   is <= .05 and the interval excludes 0; which of the two words follows from whether more of the metric is better.
   Except that where the interval also lies wholly inside the margin and the equivalence test holds, the word is
   *equivalent* and the reason says that the difference is real but smaller than the margin: nobody should buy a disk
   for it.
3. *equivalent*: both one-sided tests against the margin hold at 5 %, allowing for the looks and Holm-adjusted, and the
   interval is known.
4. *undecided*: anything else.

Two families, each corrected by Holm on its own: the differences (guarding against a wrong *faster* or *slower* anywhere
in the study) and the equivalences (guarding against a wrong *equivalent*). Either mistake happens in at most 5 % of
studies. They are kept apart because they answer different questions: of any one comparison at most one of the two null
hypotheses, "no difference" and "at least the margin", can be true.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dbdyno.analysis.effect import log_margin, relative
from dbdyno.analysis.estimate import Estimate
from dbdyno.analysis.evidence import AlwaysValid, Finding, Rule, best_p, evidence_of_each, findings, relative_estimate
from dbdyno.analysis.metrics import Metric
from dbdyno.analysis.min_blocks import ALPHA, MIN_BLOCKS, blocks_needed
from dbdyno.analysis.multiplicity import holm
from dbdyno.analysis.sample_size import blocks_to_resolve
from dbdyno.analysis.sequential import Looks, nominal_level
from dbdyno.analysis.signed_rank import coverage
from dbdyno.analysis.wording import count, margin_text, p_value, percent

Word = Literal["faster", "slower", "equivalent", "undecided", "not comparable"]

MIN_USABLE_BLOCKS = 2
MORE_BLOCKS_MAX = 40
MANY_BLOCKS = 1000  # no study has more


@dataclass(frozen=True)
class Verdict:
    """A comparison, what was estimated, and the word drawn from it. Differences are relative: .03 for +3 %."""

    metric: str
    baseline: str  # label
    level: str  # label
    baseline_id: str
    level_id: str
    effect: Estimate
    p: float  # exact signed-rank, as if this were the only look and the only comparison
    p_adjusted: float  # allowing for the looks, Holm over the study's differences
    verdict: Word
    blocks: int
    reason: str
    coverage: float  # of the interval at this look alone: .95 of a fixed design, more where there were looks before
    p_equivalence: float  # two one-sided tests, allowing for the looks, Holm over the study's equivalences
    by_block: tuple[tuple[int, float], ...]  # (block, relative difference)
    blocks_needed: int | None  # in all, about, to resolve the margin; None where it can't be told
    lost: bool = False  # no further block can change it: a treatment was dropped, or has a 0


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
class _Judged:
    """What the word of one comparison rests on: its own figures and those adjusted over the family."""

    d: np.ndarray[tuple[int], np.dtype[np.float64]]
    effect: Estimate
    p: float
    p_adjusted: float
    p_best: float  # the smallest adjusted p these blocks could have reached, the other comparisons as they are
    p_equivalence: float
    coverage: float
    finding: Finding
    needed: int | None
    fewest: int | None  # blocks with which a difference could be shown under this run's looks; None: too many to seek
    margin: float
    comparisons: int

    @property
    def excludes_zero(self) -> bool:
        return self.effect.low > 0 or self.effect.high < 0

    @property
    def inside_margin(self) -> bool:
        bound = log_margin(self.margin)
        return relative(-bound) < self.effect.low and self.effect.high < relative(bound)


def judge(
    pairs: list[Paired], metric: Metric, margin: float, rule: Callable[[int], Rule] = Looks.single
) -> list[Verdict]:
    """Return one verdict per planned comparison, in the order given; all of them are one family.

    ``rule`` tells, of a number of usable blocks, how often the data were looked at; without it, once.
    """
    tested = [pair for pair in pairs if _obstacle(pair) == ""]
    judged = dict(zip(map(_key, tested), _judged(tested, margin, rule), strict=True))
    return [_verdict(pair, metric, judged.get(_key(pair))) for pair in pairs]


def _key(pair: Paired) -> tuple[str, str]:
    return pair.baseline_id, pair.level_id


def _judged(pairs: list[Paired], margin: float, rule: Callable[[int], Rule]) -> list[_Judged]:
    if not pairs:
        return []
    rules = [rule(len(pair.d)) for pair in pairs]
    family = evidence_of_each([pair.d for pair in pairs], rule, margin)
    best = [best_p(len(pair.d), one) for pair, one in zip(pairs, rules, strict=True)]
    p_adjusted, p_equivalence = holm(family.p), holm(family.p_equivalence)
    words = findings(family, margin)
    return [
        _Judged(
            d=pair.d,
            effect=relative_estimate(float(family.value[i]), float(family.low[i]), float(family.high[i]), len(pair.d)),
            p=float(family.p_now[i]),
            p_adjusted=float(p_adjusted[i]),
            p_best=float(holm([*family.p[:i], best[i], *family.p[i + 1 :]])[i]),
            p_equivalence=float(p_equivalence[i]),
            coverage=_coverage(len(pair.d), rules[i]),
            finding=Finding(words[i]),
            # Fewer blocks say too little about the spread to plan from.
            needed=blocks_to_resolve(pair.d, margin, len(pairs)) if len(pair.d) >= MIN_BLOCKS else None,
            fewest=_fewest(len(pair.d), len(pairs), rule) if best[i] * len(pairs) > ALPHA else None,
            margin=margin,
            comparisons=len(pairs),
        )
        for i, pair in enumerate(pairs)
    ]


def _fewest(n: int, comparisons: int, rule: Callable[[int], Rule]) -> int | None:
    """Return with how many blocks, ``n`` or more, the smallest p there can be passes Holm over the comparisons."""
    start = max(n, blocks_needed(comparisons))
    more = range(start, start + MORE_BLOCKS_MAX)
    return next((blocks for blocks in more if best_p(blocks, rule(blocks)) * comparisons <= ALPHA), None)


def _coverage(n: int, rule: Rule) -> float:
    return 1 - ALPHA if isinstance(rule, AlwaysValid) else coverage(n, nominal_level(rule, ALPHA))


def _obstacle(pair: Paired) -> str:
    if pair.obstacle:
        return pair.obstacle
    if len(pair.log_ratios) < MIN_USABLE_BLOCKS:
        return f"{count(len(pair.log_ratios), 'usable block')}, at least {MIN_USABLE_BLOCKS} are needed"
    return ""


def _verdict(pair: Paired, metric: Metric, judged: _Judged | None) -> Verdict:
    word, reason = _word(judged, metric) if judged else ("not comparable", _obstacle(pair))
    return Verdict(
        metric=metric.name,
        baseline=pair.baseline,
        level=pair.level,
        baseline_id=pair.baseline_id,
        level_id=pair.level_id,
        effect=judged.effect if judged else Estimate.unknown(len(pair.log_ratios)),
        p=judged.p if judged else math.nan,
        p_adjusted=judged.p_adjusted if judged else math.nan,
        verdict=word,
        blocks=len(pair.log_ratios),
        reason=reason,
        coverage=judged.coverage if judged else math.nan,
        p_equivalence=judged.p_equivalence if judged else math.nan,
        by_block=tuple((block, relative(d)) for block, d in sorted(pair.log_ratios.items())),
        blocks_needed=judged.needed if judged else None,
        lost=bool(pair.obstacle),
    )


def _word(judged: _Judged, metric: Metric) -> tuple[Word, str]:
    margin = margin_text(judged.margin)
    match judged.finding:
        case Finding.HIGHER | Finding.LOWER:
            better = (judged.finding == Finding.HIGHER) == metric.more_is_better
            word: Word = "faster" if better else "slower"
            return word, _reason_different(judged, word)
        case Finding.EQUIVALENT if judged.excludes_zero and judged.p_adjusted <= ALPHA:
            real = f"the difference is real ({p_value(judged.p_adjusted)}) but smaller than the margin of {margin}"
            return "equivalent", f"{real}{_apart(judged)}"
        case Finding.EQUIVALENT:
            p = f"{p_value(judged.p_equivalence)} over {count(judged.comparisons, 'comparison')}"
            return "equivalent", f"a difference as large as the margin of {margin} is ruled out ({p}){_apart(judged)}"
        case Finding.UNDECIDED:
            return "undecided", _reason_undecided(judged)


def _apart(judged: _Judged) -> str:
    """Return that the blocks' mean is beyond the margin where it is: a few are far off, and mostly to one side."""
    mean, bound = float(np.mean(judged.d)), log_margin(judged.margin)
    if abs(mean) < bound:
        return ""
    far = int((np.sign(mean) * judged.d > bound).sum())
    return f"; that is the usual block, but with {far} of {len(judged.d)} far off the mean is {percent(relative(mean))}"


def _reason_different(judged: _Judged, word: Word) -> str:
    same_sign = int((np.sign(judged.d) == np.sign(judged.effect.value)).sum())
    n = len(judged.d)
    blocks = f"all {n} blocks" if same_sign == n else f"{same_sign} of {n} blocks"
    over = count(judged.comparisons, "comparison")
    return f"{word} in {blocks} ({p_value(judged.p_adjusted)} over {over}), and the interval excludes 0"


def _reason_undecided(judged: _Judged) -> str:
    n, margin = len(judged.d), margin_text(judged.margin)
    over = f"over {count(judged.comparisons, 'comparison')}"
    needed = judged.needed or 0
    if judged.p_best > ALPHA:
        best = f"{count(n, 'block')} can at best reach p = {judged.p_best:.3f} {over}"
        fewest = judged.fewest or n
        in_all = f", and about {needed:,} to resolve {margin}" if needed > fewest and not judged.excludes_zero else ""
        return f"{best}; {fewest} blocks are needed{in_all}" if fewest > n else f"{best}{in_all}"
    if not judged.effect.bounded:
        same = f"all {n} blocks have the same ratio, so there is no spread to judge by"
        return same if np.ptp(judged.d) == 0 else f"{count(n, 'block')} are too few for an interval"
    if judged.p_adjusted <= ALPHA:
        reason = f"{p_value(judged.p_adjusted)} {over}, but the interval includes 0"
    elif judged.excludes_zero:
        reason = f"the interval excludes 0, but {p_value(judged.p_adjusted)} {over} is more than {ALPHA:g}"
    elif judged.inside_margin:
        reason = f"the interval lies inside the margin of {margin}, but not surely enough {over}"
    else:
        reason = f"the interval includes 0 and reaches beyond the margin of {margin}"
    if needed - n > MANY_BLOCKS:
        return f"{reason}; resolving {margin} would take more than {MANY_BLOCKS:,} further blocks, or less noise"
    if needed > n:
        return f"{reason}; about {count(needed - n, 'more block')} to resolve {margin}"
    return f"{reason}; so many blocks resolve {margin} on the average, and this effect is too close to call"
