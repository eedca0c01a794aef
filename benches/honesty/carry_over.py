"""Trials that slow the next one: how often that makes a wrong word, how often it is seen, and what the guard costs.

A treatment makes whatever runs after it slower; nothing else differs unless a row says so. Rows "as measured" are what
the log ratios alone would say. Judged by the product's own fit, doubts and words, many studies at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benches.honesty.designs import MARGIN, rules_of
from benches.honesty.noise import NOISES, Floats, Noise, independent, reference
from benches.honesty.row import Row
from benches.honesty.verdicts import limit
from dbdyno.analysis.statistics.multiplicity import holm
from dbdyno.analysis.verdict.carry_over import CLEAR, UNKNOWN, Ran, difference_of, fit, taken_out
from dbdyno.analysis.verdict.doubts import both
from dbdyno.analysis.verdict.evidence import Evidence, Relation, Rule, evidence, relations
from dbdyno.model.design import ALPHA

MOST = 2000  # studies of a kind
LEFT = (0.03, 0.05)  # on the log scale: what the next trial is slower by
WRONG_MOST = 20.0  # percent, of two treatments; as measured it is 20 to 85
EFFECT = float(np.log1p(0.05))
BLOCKS = (10, 20, 40)
SEEN_LEAST = {10: 25.0, 20: 60.0, 40: 90.0}  # percent, of 5 %


@dataclass(frozen=True)
class Told:
    """What many studies say: words and whether carry-over was seen, shape (replicates, comparisons); blocks used."""

    found: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
    seen: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    covers: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]  # the truth, with carry-over taken out whether clear or not
    blocks: np.ndarray[tuple[int, ...], np.dtype[np.int64]]

    @property
    def different(self) -> float:
        """Percent of studies in which any comparison was called faster or slower."""
        return 100 * float(np.mean(np.any((self.found == Relation.HIGHER) | (self.found == Relation.LOWER), axis=1)))


def trials(  # noqa: PLR0913, PLR0917  (what a study is made of)
    rng: np.random.Generator, noise: Noise, replicates: int, levels: int, left: float, effect: float
) -> Ran:
    """Return studies of 40 blocks in random order, the second treatment leaving ``left`` for the next trial."""
    shape = (replicates, max(BLOCKS), levels)
    order = np.argsort(rng.random(shape), axis=-1)
    ran = order.reshape(replicates, -1)
    before = np.full_like(ran, UNKNOWN)
    before[:, 1:] = ran[:, :-1]
    logs = noise(rng, replicates, ran.shape[1]) + effect * (ran > 0) - left * (before == 1)
    return Ran(logs.reshape(shape), order, before.reshape(shape), levels)


def settled(rng: np.random.Generator, noise: Noise, replicates: int, effect: float) -> Ran:
    """Return studies of two treatments by ``settle = "trial"``: every second trial counts, all come after the first.

    What any trial leaves is thereby in all of them, or in none: it need not be added.
    """
    shape = (replicates, max(BLOCKS), 2)
    order = np.argsort(rng.random(shape), axis=-1)
    logs = noise(rng, replicates, 2 * shape[1] * shape[2])[:, 1::2].reshape(shape) + effect * (order > 0)
    return Ran(logs, order, np.zeros_like(order), 2)


def judged(ran: Ran, rules: dict[int, Rule], *, as_measured: bool = False, truth: float = 0.0) -> Told:
    """Return what each study says where it stops: at the first look at which nothing is undecided.

    ``as_measured`` carry-over is not looked for: none is seen, and no interval has it taken out.
    """
    live, shape = np.arange(len(ran.logs)), (len(ran.logs), ran.treatments - 1)
    found, blocks = np.zeros(shape, dtype=np.int64), np.zeros(len(live), dtype=np.int64)
    seen, covers = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
    for n, rule in rules.items():
        part = Ran(ran.logs[live, :n], ran.treatment[live, :n], ran.before[live, :n], ran.treatments)
        measured = evidence(_ratios(part), rule, MARGIN)
        blocks[live] = n
        if as_measured:
            found[live] = relations(measured, MARGIN)
        else:
            fitted = fit(part)
            each = [
                taken_out(part, fitted, difference_of(ran.treatments, 0, level)) for level in range(1, ran.treatments)
            ]
            p = holm(np.stack([one.p for one in each], axis=1))
            corrected, widened = (
                evidence(np.stack([getattr(one, name) for one in each], axis=1), rule, MARGIN)
                for name in ("corrected", "widened")
            )
            found[live], seen[live] = _words(measured, corrected, widened, p), p <= ALPHA
            covers[live] = (widened.low <= truth) & (truth <= widened.high)
        live = live[np.any(found[live] == Relation.UNDECIDED, axis=1)]
        if not len(live):
            break
    return Told(found, seen, covers, blocks)


def _ratios(ran: Ran) -> Floats:
    of = [np.where(ran.treatment == one, ran.logs, 0.0).sum(axis=-1) for one in range(ran.treatments)]
    return np.stack([one - of[0] for one in of[1:]], axis=1)


def _words(
    measured: Evidence, corrected: Evidence, widened: Evidence, p: Floats
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    clear = p <= CLEAR
    family = _where(clear, widened, measured)
    words = relations(family, MARGIN)
    doubted = both(family, corrected)
    for place in range(p.shape[1]):
        mine = np.zeros(p.shape, dtype=np.bool_)
        mine[:, place] = ~clear[:, place]
        again = relations(_where(mine, doubted, family), MARGIN)[:, place]
        words[:, place] = np.where(again == words[:, place], words[:, place], Relation.UNDECIDED)
    return words


def _where(which: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], one: Evidence, other: Evidence) -> Evidence:
    names = Evidence.__dataclass_fields__
    return Evidence(**{name: np.where(which, getattr(one, name), getattr(other, name)) for name in names})


def rows(replicates: int, seed: int) -> list[Row]:
    """Return every row about carry-over."""
    rng, studies = np.random.default_rng(seed), min(replicates, MOST)
    return [*_wrong(rng, studies), *_seen(rng, studies), *_cost(rng, studies), *_gained(rng, studies)]


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
                    most = WRONG_MOST if left and levels == 2 else max(none, 6.0)  # noqa: PLR2004
                    yield Row(group, what, judged(ran, rules).different, "%", None, most)


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
                yield Row("carry-over", what, seen, "%", least, None if left else max(6.0, limit(ALPHA, studies)))
                covered = 100 * float(np.mean(told.covers))
                yield Row("carry-over taken out: coverage", what, covered, "%", 92, None)


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
