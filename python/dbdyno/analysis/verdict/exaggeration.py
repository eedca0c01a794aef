"""How much too far out an effect is that was called different: the winner's curse.

Where few studies would find an effect, those that do have met it by chance larger than it is. The factor is that of
studies like this one, were the true effect the one seen: the mean of what those show that call it different, against
what is true (Gelman and Carlin 2014, their type M error). If the true effect is smaller, the factor is larger.
"""

import math
from dataclasses import dataclass

import numpy as np

from dbdyno.analysis.looks import always_valid
from dbdyno.analysis.looks.alpha_spending import nominal_level
from dbdyno.analysis.statistics.arrays import Floats
from dbdyno.analysis.statistics.scipy_special import special
from dbdyno.analysis.verdict.evidence import AlwaysValid, Rule
from dbdyno.model.design import ALPHA

NOTABLE = 1.1


@dataclass(frozen=True)
class Exaggeration:
    """Of studies like this one: the share that calls an effect of this size different, and what those show of it."""

    power: float = math.nan
    factor: float = 1.0

    @property
    def notable(self) -> bool:
        """Whether it is large enough to be said."""
        return self.factor >= NOTABLE


NO_EXAGGERATION = Exaggeration()


def exaggeration(d: Floats, value: float, rule: Rule, comparisons: int) -> Exaggeration:
    """Return that of an estimate from log ratios of shape (n,), called different at this look of its rule.

    ``comparisons`` share the error; the standard error is that of the mean.
    """
    n, alpha = len(d), ALPHA / comparisons
    error = float(np.std(d, ddof=1)) / math.sqrt(n)
    if isinstance(rule, AlwaysValid):
        bound = always_valid.multiplier(n, alpha)
    else:
        bound = -float(special.ndtri(nominal_level(rule, alpha) / 2))
    if not (error > 0 and math.isfinite(bound)):
        return NO_EXAGGERATION
    return of_signal(abs(value) / error, bound)


def of_signal(signal: float, bound: float) -> Exaggeration:
    """Return that of an effect of so many standard errors, called different from ``bound`` standard errors on."""
    above, below = float(special.ndtr(signal - bound)), float(special.ndtr(-signal - bound))
    if not (signal > 0 and above > 0):
        return NO_EXAGGERATION
    beyond = signal * (above - below) + _normal(bound - signal) + _normal(bound + signal)
    return Exaggeration(above + below, beyond / (above + below) / signal)


def _normal(z: float) -> float:
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
