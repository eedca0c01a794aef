"""Sizes, times and percentages of a study, and how they are said."""

from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from dbdyno.model.quantity import duration_seconds, fraction, size_bytes


def format_bytes(count: float) -> str:
    """Bytes for people: ``4 GiB``, ``1.5 MiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:  # noqa: PLR2004
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"


def format_seconds(seconds: float) -> str:
    """Seconds for people: ``45 s``, ``3 min 05 s``, ``2 h 10 min``."""
    whole = round(seconds)
    if whole < 60:  # noqa: PLR2004
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:  # noqa: PLR2004
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def format_roughly(seconds: float) -> str:
    """Seconds that are only a guess, for people: ``45 s``, ``12 min``, ``2 h 10 min``."""
    return format_seconds(seconds) if seconds < 60 or seconds >= 3600 else f"{round(seconds / 60)} min"  # noqa: PLR2004


Size = Annotated[int, BeforeValidator(size_bytes), WithJsonSchema({"type": "string", "examples": ["4GiB"]})]
Duration = Annotated[float, BeforeValidator(duration_seconds), WithJsonSchema({"type": "string", "examples": ["10s"]})]
Fraction = Annotated[float, BeforeValidator(fraction), WithJsonSchema({"type": "string", "examples": ["3%"]})]
