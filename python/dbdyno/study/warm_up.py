"""How long the same load runs before measuring: a time, or until its rate no longer drifts."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, WithJsonSchema

from dbdyno.model.quantity import duration_seconds

STEADY = "steady"
SHORTEST_STEADY_SECONDS = 6.0  # dbdyno-load's rule needs so many


def warm_up(value: object) -> float | Literal["steady"]:
    """Seconds, or ``"steady"``. Raises ``ValueError``."""
    if value == STEADY:
        return "steady"
    try:
        return duration_seconds(value)
    except ValueError as error:
        raise ValueError(f'{error}; or "{STEADY}"') from None


WarmUp = Annotated[
    float | Literal["steady"],
    BeforeValidator(warm_up),
    WithJsonSchema({"type": "string", "examples": ["500ms", STEADY]}),
]
