"""An estimate: a value that never travels without its uncertainty."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """A value, its interval, and how many independent observations carry it.

    An interval that the data cannot give is ``-inf`` to ``inf``; a value that they cannot give is NaN.
    """

    value: float
    low: float
    high: float
    n: int

    @classmethod
    def unknown(cls, n: int = 0) -> "Estimate":
        """Return the estimate of which nothing can be said."""
        return cls(math.nan, -math.inf, math.inf, n)

    def inverse(self) -> "Estimate":
        """Return the same of the other side, where this is a relative difference: +100 % becomes -50 %."""
        value, high, low = (1 / (1 + end) - 1 if end > -1 else math.inf for end in (self.value, self.low, self.high))
        return Estimate(value, low, high if math.isfinite(self.low) else math.inf, self.n) if self.known else self

    @property
    def known(self) -> bool:
        """Whether there is a value at all."""
        return math.isfinite(self.value)

    @property
    def bounded(self) -> bool:
        """Whether both ends of the interval are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)
