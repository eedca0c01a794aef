"""Crash safety: whether bounds hold, and differences are none, where cuts of one run resemble each other.

Each run has a chance of its own that a cut of it loses something (beta), so that cuts of a run are correlated by
``rho``; what the control loses is correlated as much.
"""

from collections.abc import Iterator

import numpy as np

from benches.honesty.row import Row
from benches.honesty.verdicts import limit
from dbdyno.analysis.safety import Correlation, Seen, analysed, fisher, p_by_runs, share
from dbdyno.analysis.statistics import holm
from dbdyno.model.design import ALPHA

SIZES = ((30, 10), (60, 5), (34, 3), (10, 10), (6, 10))  # runs, and cuts of each
RATES = (0.002, 0.005, 0.01, 0.02, 0.05)
OTHER_RATES = (*RATES, 0.2, 0.5, 0.9)
RHOS = (0.0, 0.05, 0.1, 0.2, 0.4, 1.0)
TREATMENTS = 4  # of which three are compared with the first
SHARE = 4  # one of so many replicates: a condition is dear, and there are many
MORE = (0.02, 0.05, 0.10)  # a treatment's rate, beside one that loses nothing


def rows(replicates: int, seed: int) -> list[Row]:
    """Return every row about crash safety."""
    rng = np.random.default_rng(seed)
    n = max(100, replicates // SHARE)
    return [*_bounds(rng, n), *_other_control(rng, n), *_differences(rng, n), *_found(rng, n)]


def _bounds(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    least = 100 - limit(ALPHA, replicates)
    for runs, cuts in SIZES:
        for rho in RHOS:
            covered = {rate: np.zeros(2) for rate in RATES}
            for _ in range(replicates):
                related = control(rng, runs, cuts, rho)
                for rate in RATES:
                    found = share(drawn(rng, runs, cuts, rate, rho), related)
                    covered[rate] += np.array([found.at_most, found.if_independent]) >= rate
            worst = 100 * np.min(list(covered.values()), axis=0) / replicates
            what = f"{runs} runs of {cuts} cuts, rho {rho:g}"
            yield Row("crash: bound holds", what, float(worst[0]), "%", least, None)
            yield Row("crash: if independent", what, float(worst[1]), "%", least, None, judged=False)


def _other_control(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    """The treatment's losses are correlated, those of the control are not: nothing of the bound may rest on these."""
    least = 100 - limit(ALPHA, replicates)
    for runs, cuts in SIZES:
        for rho in RHOS[1:]:
            held, inside = dict.fromkeys(OTHER_RATES, 0), dict.fromkeys(OTHER_RATES, 0)
            for _ in range(replicates):
                related = control(rng, runs, cuts, 0.0)
                for rate in OTHER_RATES:
                    found = share(drawn(rng, runs, cuts, rate, rho), related)
                    held[rate] += found.at_most >= rate
                    inside[rate] += found.low <= rate <= found.high
            what = f"{runs} runs of {cuts} cuts, rho {rho:g} and 0"
            for name, shares in (("crash: of another control", held), ("crash: interval, another control", inside)):
                yield Row(name, what, 100 * min(shares.values()) / replicates, "%", least, None)


def _differences(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    """Equal treatments: how often any of three comparisons is called different."""
    for runs, cuts in SIZES:
        for rho in RHOS:
            for rate in (0.02, 0.3):
                wrong = np.zeros(2)
                for _ in range(replicates):
                    each = [drawn(rng, runs, cuts, rate, rho) for _ in range(TREATMENTS)]
                    by_runs = [p_by_runs(one, each[0]) for one in each[1:]]
                    by_cuts = [fisher(*_sum(one), *_sum(each[0])) for one in each[1:]]
                    wrong += [bool(np.any(holm(p) <= ALPHA)) for p in (by_runs, by_cuts)]
                what = f"{runs} runs of {cuts}, rho {rho:g}, rate {100 * rate:g} %"
                shares = 100 * wrong / replicates
                most = limit(ALPHA, replicates)
                yield Row("crash: falsely different", what, float(shares[0]), "%", None, most)
                yield Row("crash: Fisher over cuts", what, float(shares[1]), "%", None, most, judged=False)


def _found(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    """How often a treatment that loses is told from one that loses nothing: shown, not judged."""
    for runs, cuts in SIZES:
        nothing = [(0, cuts)] * runs
        for rate in MORE:
            p = [p_by_runs(drawn(rng, runs, cuts, rate, 0.1), nothing) for _ in range(replicates)]
            found = 100 * float(np.mean(np.array(p) <= ALPHA))
            what = f"{runs} runs of {cuts}, rho 0.1, {100 * rate:g} % and 0 %"
            yield Row("crash: difference found", what, found, "%", None, None)


def drawn(rng: np.random.Generator, runs: int, cuts: int, rate: float, rho: float) -> Seen:
    """Return in how many cuts of each run something was lost: beta-binomial, correlated by ``rho`` inside runs."""
    if rho >= 1:
        seen = cuts * (rng.random(runs) < rate)
    elif rho > 0:
        spread = (1 - rho) / rho
        seen = rng.binomial(cuts, rng.beta(rate * spread, (1 - rate) * spread, runs))
    else:
        seen = rng.binomial(cuts, rate, runs)
    return [(int(one), cuts) for one in seen]


def control(rng: np.random.Generator, runs: int, cuts: int, rho: float) -> Correlation:
    """Return what a control shows whose losses are correlated as much: normal amounts, as ranks."""
    values = np.sqrt(rho) * rng.normal(size=(runs, 1)) + np.sqrt(1 - rho) * rng.normal(size=(runs, cuts))
    ranks = np.argsort(np.argsort(values, axis=None)).reshape(values.shape) / values.size
    return analysed(list(ranks))


def _sum(seen: Seen) -> tuple[int, int]:
    return sum(one for one, _ in seen), sum(of for _, of in seen)
