"""What a run folder holds that may be missing or malformed in an old one."""

import math
from collections.abc import Mapping
from typing import Any


def part(mapping: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a mapping inside another; an empty one where the folder has none."""
    found = mapping.get(name)
    return found if isinstance(found, Mapping) else {}


def figure(mapping: object, name: str) -> float | None:
    """Return a number that is 0 or more; None where there is none."""
    value: Any = mapping.get(name) if isinstance(mapping, Mapping) else None
    return float(value) if isinstance(value, int | float) and math.isfinite(value) and value >= 0 else None
