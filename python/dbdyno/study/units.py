"""Values of a study file: sizes, times, percentages, processors, warm-ups, servers, and how a level is called."""

import re
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Literal, TypeVar

from pydantic import BeforeValidator, WithJsonSchema

from dbdyno.model.quantity import QuantityError, duration_seconds, fraction, size_bytes

# Sizes, times and percentages of a study, and how they are said.


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


T = TypeVar("T")


def in_file(read: Callable[[object], T]) -> Callable[[object], T]:
    """Return a reader of a file's values, whose message has the quotes that TOML wants around an amount."""

    @wraps(read)  # so that documents find what it reads
    def read_in_file(value: object) -> T:
        try:
            return read(value)
        except QuantityError as error:
            text = f'{error.problem}; {error.remedy} in quotes, such as "{error.example}"'
            raise ValueError(text) from None

    return read_in_file


Size = Annotated[int, BeforeValidator(in_file(size_bytes)), WithJsonSchema({"type": "string", "examples": ["4GiB"]})]
Duration = Annotated[
    float, BeforeValidator(in_file(duration_seconds)), WithJsonSchema({"type": "string", "examples": ["10s"]})
]
Fraction = Annotated[float, BeforeValidator(in_file(fraction)), WithJsonSchema({"type": "string", "examples": ["3%"]})]


# Sets of processors, as the kernel and taskset write them: ``0-3,8``.


def cpu_numbers(text: str) -> frozenset[int]:
    """The processors of a list. Raises ``ValueError``."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not re.fullmatch(r"[0-9]{1,5}(-[0-9]{1,5})?", part):
            raise ValueError("is not a list of processors")
        if int(last or first) < int(first):
            raise ValueError(f"holds the range {part}, which ends before it begins")
        numbers |= set(range(int(first), int(last or first) + 1))
    return frozenset(numbers)


def cpu_list(numbers: frozenset[int] | set[int]) -> str:
    """The list of a set, as short as it can be."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)


# How a level is called.


def level_label(level: object) -> str:
    """A level as text: TOML's own spelling for booleans, plain text for the rest."""
    return str(level).lower() if isinstance(level, bool) else str(level)


# How long the same load runs before measuring: a time, or until its rate no longer drifts.


STEADY = "steady"
SHORTEST_STEADY_SECONDS = 6.0  # dbdyno-load's rule needs so many


def warm_up(value: object) -> float | Literal["steady"]:
    """Seconds, or ``"steady"``. Raises ``ValueError``."""
    if value == STEADY:
        return "steady"
    try:
        return in_file(duration_seconds)(value)
    except ValueError as error:
        raise ValueError(f'{error}; or "{STEADY}"') from None


WarmUp = Annotated[
    float | Literal["steady"],
    BeforeValidator(warm_up),
    WithJsonSchema({"type": "string", "examples": ["500ms", STEADY]}),
]
