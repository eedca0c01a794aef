"""The rules by which comparisons are usually decided, beside ours, in the order in which runs are usually made.

Ten runs of each of two arms, on the reference noise. The table has the shape of the one published with the procedures.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import stats

from benches.honesty.noise import Floats, in_order, reference
from benches.honesty.row import Row
from dbdyno.analysis.looks import Looks
from dbdyno.analysis.verdict.evidence import evidence

RUNS = 10
WORTH_TELLING = 0.02
Rule = Callable[[Floats, Floats], npt.NDArray[np.bool_]]  # two arms of ln(metric), (replicates, runs) -> different?


def _means(a: Floats, b: Floats) -> npt.NDArray[np.bool_]:
    return np.asarray(np.abs(np.exp(b).mean(axis=1) / np.exp(a).mean(axis=1) - 1) > WORTH_TELLING)


def _best(a: Floats, b: Floats) -> npt.NDArray[np.bool_]:
    return np.asarray(np.abs(np.exp(b.max(axis=1) - a.max(axis=1)) - 1) > WORTH_TELLING)


def _welch(a: Floats, b: Floats) -> npt.NDArray[np.bool_]:
    return np.asarray(stats.ttest_ind(a, b, axis=1, equal_var=False).pvalue <= 0.05)  # noqa: PLR2004


def _mann_whitney(a: Floats, b: Floats) -> npt.NDArray[np.bool_]:
    return np.asarray(stats.mannwhitneyu(a, b, axis=1, method="asymptotic").pvalue <= 0.05)  # noqa: PLR2004


def _sign_flip(a: Floats, b: Floats) -> npt.NDArray[np.bool_]:
    signs = 1 - 2 * ((np.arange(2**RUNS)[:, None] >> np.arange(RUNS)) & 1)
    d = b - a
    sums = np.abs(d @ signs.T)
    return np.asarray((sums >= np.abs(d.sum(axis=1))[:, None] - 1e-12).mean(axis=1) <= 0.05)  # noqa: PLR2004


def _ours(a: Floats, b: Floats) -> npt.NDArray[np.bool_]:
    found = evidence(b - a, Looks.single(RUNS), 0.03)
    return np.asarray((found.low > 0) | (found.high < 0))


RULES: dict[str, Rule] = {
    "means differ > 2 % (how blog posts decide)": _means,
    "best of 10 differs > 2 %": _best,
    "Welch": _welch,
    "Mann-Whitney": _mann_whitney,
    "sign-flip in blocks": _sign_flip,
    "dbdyno: signed rank in blocks": _ours,
}


def orders(rng: np.random.Generator, replicates: int) -> dict[str, npt.NDArray[np.int64]]:
    """Return which arm each of the twenty runs belongs to, (replicates, runs), by how the order was made."""
    arms = np.tile(np.repeat([0, 1], RUNS), (replicates, 1))
    pairs = rng.permuted(np.tile([0, 1], (replicates * RUNS, 1)), axis=1)
    return {
        "fixed AA..BB": arms,
        "shuffled": rng.permuted(arms, axis=1),
        "randomised blocks": pairs.reshape(replicates, 2 * RUNS),
    }


def rows(replicates: int, seed: int) -> list[Row]:
    """Return false positives and detections of +5 % of every rule in every order; only ours in blocks is judged."""
    rng = np.random.default_rng(seed)
    found = []
    for order, arm in orders(rng, replicates).items():
        arms = in_order(reference(rng, replicates, 2 * RUNS), arm)
        a, b = arms[:, 0], arms[:, 1]
        for name, rule in RULES.items():
            judged = rule is _ours and order == "randomised blocks"
            most = 100 * (0.05 + 2 * (0.05 * 0.95 / replicates) ** 0.5)
            wrong, right = 100 * rule(a, b).mean(), 100 * rule(a, b + np.log1p(0.05)).mean()
            found.append(Row(f"A/A, {order}", name, float(wrong), "%", None, most if judged else None, judged))
            found.append(Row(f"+5 %, {order}", name, float(right), "%", 80 if judged else None, None, judged))
    return found


def table(found: list[Row]) -> str:
    """Return the rows as the table of rules by orders: A/A false positives / detection of +5 %, percent."""
    by = {(row.group, row.name): row.measured for row in found}
    names = ("fixed AA..BB", "shuffled", "randomised blocks")
    lines = [f"{'A/A false positives / +5 % detected, %':45}" + "".join(f"{name:>20}" for name in names)]
    for rule in RULES:
        cells = (f"{by[f'A/A, {name}', rule]:.1f} / {by[f'+5 %, {name}', rule]:.1f}" for name in names)
        lines.append(f"{rule:45}" + "".join(f"{cell:>20}" for cell in cells))
    return "\n".join(lines)
