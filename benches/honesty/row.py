"""One line of the benchmark: what was measured and what it must be."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A figure with its limits; one that is only shown has no limits or is not ``judged``."""

    group: str
    name: str
    measured: float
    unit: str
    low: float | None
    high: float | None
    judged: bool = True

    @property
    def met(self) -> bool | None:
        """Whether the figure is within its limits; None where it is only shown."""
        if not self.judged or (self.low is None and self.high is None):
            return None
        return (self.low is None or self.measured >= self.low) and (self.high is None or self.measured <= self.high)
