"""What the sections of a run's report are built from."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.safety import CrashSafety
from dbdyno.analysis.statistics import Estimate
from dbdyno.analysis.two_runs import Change
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.store.profiles import Profile
from dbdyno.store.records import Run

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Series = Mapping[str, Mapping[str, Mapping[str, npt.NDArray[Any]]]]  # trial id -> series -> column -> samples


@dataclass(frozen=True)
class CrashRunBeside:
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
    beside: CrashRunBeside | None = None
    profiles: Mapping[str, Profile] = field(default_factory=dict)  # of treatments, by their ids

    @property
    def safety(self) -> CrashSafety | None:
        """What cuts showed, of this run or of the one beside it; None where there were none."""
        return self.beside.safety if self.beside else self.analysis.safety


# Plain values for programs; an unknown figure is not finite yet.


def fields(record: object, names: str) -> dict[str, Any]:
    """Return attributes under their own names."""
    return {name: getattr(record, name) for name in names.split()}


def finite_fields(record: "DataclassInstance") -> dict[str, Any]:
    """Return all fields of a record; None where a figure is not known."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in asdict(record).items()
    }


def effect_values(effect: Estimate, name: str = "effect") -> dict[str, float]:
    """Return an estimate and the ends of its interval; a difference is a fraction, .03 for +3 %."""
    return {name: effect.value, "low": effect.low, "high": effect.high}


def p_values(comparison: Finding | Change) -> dict[str, float]:
    """Return the p of a comparison: over its family, by itself, and of equivalence."""
    return {"p": comparison.p_adjusted, "p_unadjusted": comparison.p, "p_equivalence": comparison.p_equivalence}


# What a run folder holds that may be missing or malformed in an old one.


def figure(mapping: object, name: str) -> float | None:
    """Return a number that is 0 or more; None where there is none."""
    value: Any = mapping.get(name) if isinstance(mapping, Mapping) else None
    return float(value) if isinstance(value, int | float) and math.isfinite(value) and value >= 0 else None


# The mark of what was simulated: no headline, comparison or ranking of it stands without.


def marked(text: str, run: Run) -> str:
    """Return a heading with the mark, if the run's stacks are simulated."""
    return f"{text} (simulated)" if run.is_simulated else text


def before_and_after(runs: Mapping[str, Run]) -> str:
    """Return which of two runs is simulated, as the beginning of a sentence: ``"Simulated before and after: "``."""
    names = [name for name, run in runs.items() if run.is_simulated]
    others = [name for name in runs if name not in names]
    measured = f", measured {others[0]}" if len(others) == 1 else ""
    return f"Simulated {' and '.join(names)}{measured}: " if names else ""


def among(runs: Sequence[Run]) -> str:
    """Return the mark of what several runs have part in: all of them simulated, or some."""
    simulated = sum(run.is_simulated for run in runs)
    if not simulated:
        return ""
    return " (simulated)" if simulated == len(runs) else f" ({simulated} of {len(runs)} simulated)"
