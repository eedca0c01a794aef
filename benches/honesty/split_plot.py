"""Split-plot studies under whole-plot noise: our effects of factors, beside an analysis that counts trials.

Each block holds two whole plots (levels of a factor that is hard to change), each of them four trials (two factors of
two levels). All trials of a whole plot share an error of its own, on top of the reference noise.
"""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy import stats

from benches.honesty.designs import MARGIN
from benches.honesty.noise import SD, reference
from benches.honesty.row import Row
from benches.honesty.verdicts import limit
from dbdyno.analysis.factors import Contrast, difference, effect_of, weights
from dbdyno.analysis.looks import Looks
from dbdyno.analysis.verdict.evidence import Evidence, Relation, evidence, relations
from dbdyno.model.design import ALPHA, Treatment

Floats = npt.NDArray[np.float64]

LEVELS = {"device": "AB", "scheduler": "ab", "clients": "12"}  # the first is hard to change
TREATMENTS = [
    Treatment(f"t{n}", dict(zip(LEVELS, levels, strict=True))) for n, levels in enumerate(product(*LEVELS.values()))
]
PLOTS, TRIALS = 2, 4  # whole plots in a block, trials in each
BLOCKS = (8, 10, 12)
TRUTH = {"device": 2.0, "scheduler": 0.05, "clients": 0.1, "device x scheduler": 0.08}  # log ratios
FALSE_MOST = 6.0


def rows(replicates: int, seed: int) -> list[Row]:
    """Return every row about split-plot studies."""
    rng = np.random.default_rng(seed)
    return [*_false_positives(rng, replicates), *_coverage(rng, replicates)]


def contrasts() -> dict[str, Contrast]:
    """Return the three main effects, and the interactions inside whole plots and across them."""
    main = {name: effect_of(TREATMENTS, name, levels[1], levels[0]) for name, levels in LEVELS.items()}
    return main | {
        "device x scheduler": _interaction("device", "scheduler"),
        "scheduler x clients": _interaction("scheduler", "clients"),
    }


def _interaction(factor: str, other: str) -> Contrast:
    below, above = LEVELS[factor]
    at = [effect_of(TREATMENTS, factor, above, below, {other: level}) for level in LEVELS[other]]
    return difference(at[1], at[0])


def simulated(rng: np.random.Generator, replicates: int, blocks: int) -> Floats:
    """Return ln(metric) of identical treatments, by treatment: shape (replicates, blocks, treatments).

    Whole plots stand in random order in a block, trials in random order in a whole plot, noise in the order they ran.
    """
    shape = (replicates, blocks, PLOTS, TRIALS)
    noise = reference(rng, replicates, blocks * PLOTS * TRIALS).reshape(shape)
    noise += rng.normal(0, SD, (replicates, blocks, PLOTS, 1))
    inside = np.argsort(rng.random(shape), axis=-1)
    plots = np.argsort(rng.random((replicates, blocks, PLOTS, 1)), axis=-2)
    mixed = np.take_along_axis(np.take_along_axis(noise, inside, axis=-1), plots, axis=-2)
    return mixed.reshape(replicates, blocks, PLOTS * TRIALS)


def with_effects(values: Floats) -> Floats:
    """Return the values with the true effects added."""
    added = []
    for treatment in TREATMENTS:
        up = {name: treatment.levels[name] == levels[1] for name, levels in LEVELS.items()}
        both = up["device"] and up["scheduler"]
        added.append(sum(TRUTH[name] for name in LEVELS if up[name]) + TRUTH["device x scheduler"] * both)
    return values + np.array(added)


def true_value(contrast: Contrast) -> float:
    """Return what a contrast comes to without noise."""
    return float(with_effects(np.zeros(len(TREATMENTS))) @ weights(contrast, TREATMENTS))


def judged(values: Floats, contrast: Contrast) -> Evidence:
    """Return the product's evidence: one value of the contrast from each block."""
    return evidence(values @ weights(contrast, TREATMENTS), Looks.single(values.shape[1]), MARGIN)


def _different(family: Sequence[Evidence]) -> float:
    """Return how often any of a family is called different after Holm."""
    fields = Evidence.__dataclass_fields__
    found = relations(Evidence(*(np.stack([getattr(one, name) for one in family], axis=-1) for name in fields)), MARGIN)
    return float(np.mean(np.any((found == Relation.HIGHER) | (found == Relation.LOWER), axis=-1)))


def _naive(values: Floats, factor: str) -> tuple[float, float]:
    """Return how often two analyses that count trials are wrong: Welch's t, and t of each combination's differences."""
    below, above = (_at(values, factor, level) for level in LEVELS[factor])
    flat = (len(values), -1)
    welch = stats.ttest_ind(above.reshape(flat), below.reshape(flat), axis=1, equal_var=False).pvalue
    paired = stats.ttest_1samp((above - below).reshape(flat), 0.0, axis=1).pvalue
    return float(np.mean(welch <= ALPHA)), float(np.mean(paired <= ALPHA))


def _at(values: Floats, factor: str, level: str) -> Floats:
    return values[..., [treatment.levels[factor] == level for treatment in TREATMENTS]]


def _false_positives(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    for blocks in BLOCKS:
        values = simulated(rng, replicates, blocks)
        welch, paired = _naive(values, "device")
        group = f"split-plot A/A, {blocks} blocks"
        yield Row(group, "trials as repetitions, Welch: device", 100 * welch, "%", None, FALSE_MOST, judged=False)
        yield Row(group, "trials as repetitions, paired: device", 100 * paired, "%", None, FALSE_MOST, judged=False)
        found = {name: judged(values, contrast) for name, contrast in contrasts().items()}
        families = {name: [one] for name, one in found.items()}
        families["any main effect, Holm"] = [found[name] for name in LEVELS]
        families["any interaction, Holm"] = [one for name, one in found.items() if name not in LEVELS]
        for name, family in families.items():
            yield Row(group, f"dbdyno: {name}", 100 * _different(family), "%", None, FALSE_MOST)


def _coverage(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    for blocks in BLOCKS:
        values = with_effects(simulated(rng, replicates, blocks))
        for name, contrast in contrasts().items():
            found, truth = judged(values, contrast), true_value(contrast)
            share = 100 * float(np.mean((found.low <= truth) & (truth <= found.high)))
            yield Row("split-plot coverage", f"{name}, {blocks} blocks", share, "%", 93, limit(0.97, replicates))
