"""Trials that slow the next one: how often that makes a wrong word, how often it is seen, and what the guard costs.

A treatment makes whatever runs after it slower; nothing else differs unless a row says so. Rows "as measured" are what
the log ratios alone would say. Judged by the product's own fit, doubts and words, many studies at once.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from benches.honesty.designs import MARGIN, rules_of
from benches.honesty.families import at_levels
from benches.honesty.noise import NOISES, Floats, Noise, independent, reference
from benches.honesty.row import Row
from benches.honesty.verdicts import limit
from dbdyno.analysis.statistics import holm
from dbdyno.analysis.verdict.evidence import Evidence, Relation, Rule, evidence, relations
from dbdyno.analysis.verdict.figures import ASKED, LIKELY, MANY_TREATMENTS, UNKNOWN, TrialOrder, fit, taken_out
from dbdyno.analysis.verdict.finding import both
from dbdyno.model.design import ALPHA

MOST = 2000  # studies of a kind
LEFT = (0.03, 0.05)  # on the log scale: what the next trial is slower by
WRONG_MOST = 0.12  # of two treatments; as measured it is 8 to 85 %
SEEN_MOST = 0.06  # carry-over where there is none: the spread of a robust fit is a little too small
# What the second leaves for the next trial, the one after it, and so on.
FARTHER = {
    "5 % for the trial after next": (0.0, 0.05),
    "3 % for the next and the one after": (0.03, 0.03),
    "5 %, decaying by .7": tuple(0.05 * 0.7**lag for lag in range(8)),
}
NOT_SEEN = {"3 % for the next and the one after", "5 %, decaying by .7"}  # exceptions that METHODOLOGY.md names
EFFECT = float(np.log1p(0.05))
BLOCKS = (10, 20, 40)
COVERED_LEAST = 89.0  # percent, by the interval shown where trials leave something; METHODOLOGY.md says so
SEEN_LEAST = {10: 25.0, 20: 60.0, 40: 90.0}  # percent, of 5 %


@dataclass(frozen=True)
class Told:
    """What many studies say: words and whether carry-over was seen, shape (replicates, comparisons); blocks used."""

    found: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
    seen: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    covers: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]  # the truth, by the interval that is shown
    blocks: np.ndarray[tuple[int, ...], np.dtype[np.int64]]

    @property
    def different(self) -> float:
        """Percent of studies in which any comparison was called faster or slower."""
        return 100 * float(np.mean(np.any((self.found == Relation.HIGHER) | (self.found == Relation.LOWER), axis=1)))

    @property
    def covered(self) -> float:
        """Percent of the intervals shown that hold the truth."""
        return 100 * float(np.mean(self.covers))


def trials(  # noqa: PLR0913, PLR0917  (what a study is made of)
    rng: np.random.Generator,
    noise: Noise,
    replicates: int,
    levels: int,
    left: float | Sequence[float],
    effect: float,
) -> TrialOrder:
    """Return studies of 40 blocks in random order, the second treatment leaving ``left`` for the next trial.

    Of several, the first is left for the next trial, the second for the one after it, and so on.
    """
    shape = (replicates, max(BLOCKS), levels)
    order = np.argsort(rng.random(shape), axis=-1)
    ran = order.reshape(replicates, -1)
    before = np.full_like(ran, UNKNOWN)
    before[:, 1:] = ran[:, :-1]
    logs = noise(rng, replicates, ran.shape[1]) + effect * (ran > 0)
    for lag, size in enumerate((left,) if isinstance(left, float) else left, 1):
        logs[:, lag:] -= size * (ran[:, :-lag] == 1)
    return TrialOrder(logs.reshape(shape), order, before.reshape(shape), levels)


def settled(rng: np.random.Generator, noise: Noise, replicates: int, effect: float) -> TrialOrder:
    """Return studies of two treatments by ``settle = "trial"``: every second trial counts, all come after the first.

    What any trial leaves is thereby in all of them, or in none: it need not be added.
    """
    shape = (replicates, max(BLOCKS), 2)
    order = np.argsort(rng.random(shape), axis=-1)
    logs = noise(rng, replicates, 2 * shape[1] * shape[2])[:, 1::2].reshape(shape) + effect * (order > 0)
    return TrialOrder(logs, order, np.zeros_like(order), 2)


def difference_of(treatments: int, baseline: int, level: int) -> Floats:
    """Return the weights of a level less its baseline, shape (treatments,)."""
    weights = np.zeros(treatments)
    weights[level], weights[baseline] = 1.0, -1.0
    return weights


def against_first(treatments: int) -> Floats:
    """Return the contrasts of each other treatment with the first, shape (comparisons, treatments)."""
    return np.stack([difference_of(treatments, 0, level) for level in range(1, treatments)])


def every_two(treatments: int) -> Floats:
    """Return the contrasts of every two treatments: what letters are made from."""
    return np.stack([difference_of(treatments, *pair) for pair in combinations(range(treatments), 2)])


def judged(
    ran: TrialOrder,
    rules: dict[int, Rule],
    *,
    contrasts: Floats | None = None,
    as_measured: bool = False,
    truth: float = 0.0,
) -> Told:
    """Return what each study says where it stops: at the first look at which nothing is undecided.

    ``as_measured`` carry-over is not looked for: none is seen, and no interval has it taken out.
    """
    weights = against_first(ran.treatments) if contrasts is None else contrasts
    live, shape = np.arange(len(ran.logs)), (len(ran.logs), len(weights))
    found, blocks = np.zeros(shape, dtype=np.int64), np.zeros(len(live), dtype=np.int64)
    seen, covers = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
    for n, rule in rules.items():
        part = TrialOrder(ran.logs[live, :n], ran.treatment[live, :n], ran.before[live, :n], ran.treatments)
        measured = np.stack([_sums(part, one) for one in weights], axis=1)
        each = [measured]
        if not as_measured:
            fitted = fit(part)
            taken = [taken_out(part, fitted, one) for one in weights]
            p = holm(np.stack([one.p for one in taken], axis=1))
            likely, asked = p <= LIKELY, (p < ASKED) | (ran.treatments < MANY_TREATMENTS)
            corrected, widened = (
                np.stack([getattr(one, name) for one in taken], axis=1) for name in ("corrected", "widened")
            )
            each.append(np.where(likely[..., None], widened, np.where(asked[..., None], corrected, measured)))
            seen[live] = p <= ALPHA
        shown = _evidence(each, rule)
        blocks[live], found[live] = n, relations(shown, MARGIN)
        covers[live] = (shown.low <= truth) & (truth <= shown.high)
        live = live[np.any(found[live] == Relation.UNDECIDED, axis=1)]
        if not len(live):
            break
    return Told(found, seen, covers, blocks)


def _sums(ran: TrialOrder, weights: Floats) -> Floats:
    return np.asarray(np.where(weights[ran.treatment] == 0, 0.0, weights[ran.treatment] * ran.logs).sum(axis=-1))


def _evidence(each: Sequence[Floats], rule: Rule) -> Evidence:
    """Return what holds for all of several log ratios, with intervals at the level of each comparison by Holm."""
    return at_levels(lambda alpha: functools.reduce(both, (evidence(d, rule, MARGIN, alpha) for d in each)))


def rows(replicates: int, seed: int) -> list[Row]:
    """Return every row about carry-over."""
    rng, studies = np.random.default_rng(seed), min(replicates, MOST)
    return [
        *_wrong(rng, studies),
        *_farther(rng, studies),
        *_beside(rng, studies),
        *_seen(rng, studies),
        *_cost(rng, studies),
        *_gained(rng, studies),
    ]


def _designs() -> dict[str, dict[int, Rule]]:
    return {
        "fixed 10": rules_of("blocks", 10),
        "fixed 20": rules_of("blocks", 20),
        "sequential": rules_of("decided", 40),
    }


def _wrong(rng: np.random.Generator, studies: int) -> Iterator[Row]:
    none = limit(0.05, studies)
    for noise_name, noise in NOISES.items():
        for levels in (2, 4) if noise is reference else (2,):
            for left in (0.0, *LEFT) if noise in {reference, independent} else (0.0, LEFT[-1]):
                ran = trials(rng, noise, studies, levels, left, 0.0)
                for design, rules in _designs().items():
                    what = f"{design}, {levels} levels, {noise_name}"
                    group = f"A/A, {100 * left:g} % left for the next"
                    before = judged(ran, rules, as_measured=True).different
                    yield Row(group, f"{what}, as measured", before, "%", None, None)
                    most = limit(WRONG_MOST, studies) if left and levels == 2 else max(none, 6.0)  # noqa: PLR2004
                    yield Row(group, what, judged(ran, rules).different, "%", None, most)


def _farther(rng: np.random.Generator, studies: int) -> Iterator[Row]:
    """What is left for later trials than the next, which the model does not look at."""
    for name, left in FARTHER.items():
        for levels in (2, 4):
            ran = trials(rng, reference, studies, levels, left, 0.0)
            for blocks in (10, 20):
                rules = rules_of("blocks", blocks)
                what = f"{name}, {levels} levels, {blocks} blocks"
                alone = judged(ran, rules, as_measured=True)
                told = judged(ran, rules)
                judges = name not in NOT_SEEN
                yield Row("A/A, left for later trials", f"{what}, as measured", alone.different, "%", None, None)
                yield Row(
                    "A/A, left for later trials",
                    what,
                    told.different,
                    "%",
                    None,
                    limit(WRONG_MOST, studies),
                    judged=judges,
                )
                yield Row(
                    "left for later trials: coverage", what, told.covered, "%", COVERED_LEAST, None, judged=judges
                )


def _beside(rng: np.random.Generator, studies: int) -> Iterator[Row]:
    """Letters, interactions and rankings: other contrasts of the same trials, of which nothing truly differs."""
    interaction = np.array([[1.0, -1.0, -1.0, 1.0]])
    score = np.array([[-0.5, -0.5, 0.5, 0.5]])
    cases = {
        **{f"letters of {levels}": (levels, every_two(levels)) for levels in (2, 3, 4)},
        "interaction of 2 x 2": (4, interaction),
        "main effect of 2 x 2, score of 2 stacks": (4, score),
    }
    for name, (levels, contrasts) in cases.items():
        ran = trials(rng, reference, studies, levels, LEFT[-1], 0.0)
        for blocks in (10, 20):
            rules = rules_of("blocks", blocks)
            alone = judged(ran, rules, contrasts=contrasts, as_measured=True).different
            told = judged(ran, rules, contrasts=contrasts)
            group = f"A/A, {100 * LEFT[-1]:g} % left for the next"
            yield Row(group, f"{name}, {blocks} blocks, as measured", alone, "%", None, None)
            yield Row(group, f"{name}, {blocks} blocks", told.different, "%", None, limit(WRONG_MOST, studies))


def _seen(rng: np.random.Generator, studies: int) -> Iterator[Row]:
    for noise in (reference, independent):
        name = next(key for key, value in NOISES.items() if value is noise)
        for left in (0.0, *LEFT):
            ran = trials(rng, noise, studies, 2, left, 0.0)
            for blocks in BLOCKS:
                told = judged(ran, rules_of("blocks", blocks))
                seen = 100 * float(np.mean(told.seen))
                what = f"{100 * left:g} % seen, {blocks} blocks, {name}"
                least = SEEN_LEAST[blocks] if left == max(LEFT) else None
                yield Row("carry-over", what, seen, "%", least, None if left else limit(SEEN_MOST, studies))
                yield Row("carry-over: coverage", what, told.covered, "%", COVERED_LEAST, None)


def _cost(rng: np.random.Generator, studies: int) -> Iterator[Row]:
    """What is lost where there is no carry-over."""
    for effect, finding, name in (
        (EFFECT, Relation.HIGHER, "+5 % found"),
        (0.0, Relation.EQUIVALENT, "A/A equivalent"),
    ):
        for levels in (2, 4):
            ran = trials(rng, reference, studies, levels, 0.0, effect)
            for design, rules in _designs().items():
                what = f"{name}, {design}, {levels} levels"
                for told, how in ((judged(ran, rules, as_measured=True), ", as measured"), (judged(ran, rules), "")):
                    share = 100 * float(np.mean(told.found[:, 0] == finding))
                    yield Row("no carry-over", f"{what}{how}", share, "%", None, None)
                    if design == "sequential":
                        runs = levels * float(np.mean(told.blocks))
                        yield Row("no carry-over", f"runs: {what}{how}", runs, "", None, None)


def _gained(rng: np.random.Generator, studies: int) -> Iterator[Row]:
    """What ``settle = "trial"`` gains where the second leaves 5 %: it takes the time of twice as many blocks."""
    left = LEFT[-1]
    for noise, name in ((reference, "reference"), (independent, "iid")):
        for effect, what in ((0.0, "A/A: different"), (EFFECT, "+5 % found")):
            guarded, alone = trials(rng, noise, studies, 2, left, effect), settled(rng, noise, studies, effect)
            for blocks in (10, 20):
                twice = judged(guarded, rules_of("blocks", 2 * blocks))
                told = judged(alone, rules_of("blocks", blocks), as_measured=True)
                for one, how in ((twice, f"{2 * blocks} blocks"), (told, f"settle, {blocks} blocks")):
                    share = 100 * float(np.mean(one.found[:, 0] == Relation.HIGHER)) if effect else one.different
                    most = None if effect or one is twice else limit(ALPHA, studies)
                    yield Row("settle", f"{what}, {how}, {name}", share, "%", None, most)
