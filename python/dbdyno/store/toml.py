"""Values as TOML holds them."""

from typing import Any, TypeVar

T = TypeVar("T")


def without_none(value: T) -> T:
    """Leave out, at any depth, every key whose value is not given: TOML has no null."""
    kept: Any = value
    if isinstance(value, dict):
        kept = {key: without_none(item) for key, item in value.items() if item is not None}
    elif isinstance(value, list):
        kept = [without_none(item) for item in value]
    return kept  # type: ignore[no-any-return]
