"""Plain values for programs; an unknown figure is not finite yet."""

from typing import Any

from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.analysis.two_runs import Change
from dbdyno.analysis.verdict.finding import Finding


def fields(one: object, names: str) -> dict[str, Any]:
    """Return attributes under their own names."""
    return {name: getattr(one, name) for name in names.split()}


def effect_values(effect: Estimate, name: str = "effect") -> dict[str, float]:
    """Return an estimate and the ends of its interval; a difference is a fraction, .03 for +3 %."""
    return {name: effect.value, "low": effect.low, "high": effect.high}


def p_values(one: Finding | Change) -> dict[str, float]:
    """Return the p of a comparison: over its family, by itself, and of equivalence."""
    return {"p": one.p_adjusted, "p_unadjusted": one.p, "p_equivalence": one.p_equivalence}
