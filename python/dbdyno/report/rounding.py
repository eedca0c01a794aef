"""Figures for programs: rounded, and null where they are unknown."""

import math
from typing import Any

DIGITS = 6  # significant; more would only show the last bits of a sum


def rounded(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """Return a document with its figures rounded; one that is no number is null."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return value
