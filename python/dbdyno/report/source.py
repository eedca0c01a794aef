"""What the sections of a run's report are built from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.safety.judge import CrashSafety
from dbdyno.store.records import Run

Series = Mapping[str, Mapping[str, Mapping[str, npt.NDArray[Any]]]]  # trial id -> series -> column -> samples


@dataclass(frozen=True)
class Beside:
    """What another run, of crash safety, showed of the same treatments; ``safety`` has this run's ids."""

    run: Run
    safety: CrashSafety


@dataclass(frozen=True)
class Source:
    """A run, what was made of it, and its series: their column ``t_s`` is seconds from the start of measuring.

    Only charts over time need series; trials without them are left out there.
    """

    run: Run
    analysis: Analysis
    series: Series = field(default_factory=dict)
    beside: Beside | None = None

    @property
    def safety(self) -> CrashSafety | None:
        """What cuts showed, of this run or of the one beside it; None where there were none."""
        return self.beside.safety if self.beside else self.analysis.safety
