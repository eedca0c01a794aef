"""A mistake in a study file, and how it is said: file, line, field, what was given, what is allowed."""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dbdyno._native import device_models
from dbdyno.model.printable import printable
from dbdyno.model.quantity import duration_seconds, fraction, size_bytes
from dbdyno.model.similar import did_you_mean
from dbdyno.study.beside import BESIDE_KINDS
from dbdyno.study.document import WorkloadSection
from dbdyno.study.units import format_bytes
from dbdyno.study.workloads import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable

# What the fields that are tables or lists look like.
_EXAMPLES = {
    "baseline": ', such as { device = "hdd-7200" }',
    "compare_factors": ', such as ["scheduler"]',
    "hard_to_change": ', such as ["device"]',
    "secondary_metrics": ', such as ["latency_ms_p99"]',
    "when": ', such as ["uniform"]',
    "survivors": ', such as ["random-4096"]',
}
_PLAIN_TYPES = {"bool", "int", "float", "str"}  # as pydantic names them in the location of a union's error


# Where a field belongs that people look for elsewhere.
FIELDS_OF = {
    **dict.fromkeys(("nr_requests", "read_ahead_kb", "rotational", "wbt_lat_usec"), "queue"),
    **dict.fromkeys(("scheduler", "device", "filesystem", "engine", "memory", "server", "size"), "stack"),
    **dict.fromkeys((name for kind in KINDS.values() for name in kind.model_fields), "workload"),
    **dict.fromkeys(("blocks", "margin", "seed", "settle", "baseline", "metric", "secondary_metrics"), "design"),
    **dict.fromkeys(("compare", "compare_factors", "hard_to_change"), "design"),
    # Not "encryption", "array", "state" and the like: they are good names for a factor of several fields.
    **dict.fromkeys(("chunk", "bitmap", "sync_speed_min", "sync_speed_max", "stripe_cache_size"), "array"),
    **dict.fromkeys(("high_watermark", "low_watermark", "max_age", "cache_mode"), "cache"),
    **dict.fromkeys(("cipher", "key_bits", "workqueues"), "encryption"),
    **dict.fromkeys(("pool_chunk",), "volume"),
    **dict.fromkeys(("mkfs", "mount"), "filesystem"),
    **dict.fromkeys(("awake", "transparent_hugepage", "transparent_hugepage_defrag", "nr_hugepages"), "host"),
    **dict.fromkeys(("swappiness", "vfs_cache_pressure", "dirty_ratio", "dirty_bytes"), "host"),
    **dict.fromkeys(("dirty_background_ratio", "dirty_background_bytes", "dirty_expire_centisecs"), "host"),
    **dict.fromkeys(("dirty_writeback_centisecs", "zone_reclaim_mode", "numa_balancing"), "host"),
    **dict.fromkeys(("io_uring_disabled", "cpu_governor"), "host"),
    **dict.fromkeys(("allocator", "nice", "numa", "ionice"), "server"),
    **dict.fromkeys(("slower", "faster", "unsafe", "undecided"), "fail_if"),
    **dict.fromkeys(("cuts", "cuts_per_run", "when", "survivors", "recovery_limit"), "crash"),
}


@dataclass(frozen=True)
class Mistake:
    """What is wrong with the field at ``path``; a number at its end is a level of a factor."""

    path: tuple[str | int, ...]
    text: str


def shown(value: object) -> str:
    """A value from the file, short and safe to print."""
    text = f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    text = printable(f"[{', '.join(map(shown, value))}]" if isinstance(value, list) else text)
    return text if len(text) <= 60 else text[:57] + "..."  # noqa: PLR2004


def unknown_drive(name: str, *others: str) -> str:
    """What a message says of a plain name that no drive has: the drives, the ``others``, and the nearest; else ""."""
    models = [model["name"] for model in device_models()]
    names = [*models, *filter(str.isalpha, others)]  # what else may be given is no name but a description
    return "" if name in models else f"known are {', '.join([*models, *others])}{did_you_mean(name, names)}"


def line_of(lines: dict[str, int], mistake: Mistake) -> int | None:
    """The line of the field, or of the nearest section around it that the file has.

    The heading of the first of several tables is that of their section; of a later one it is the line of its first
    field.
    """
    parts = [str(part) for part in mistake.path]
    for n in range(len(parts), 0, -1):
        key, is_later = ".".join(parts[:n]), parts[n - 1].isdecimal() and parts[n - 1] != "0"
        inside = (line for name, line in lines.items() if is_later and name.startswith(f"{key}."))
        if (line := lines[key] if key in lines else min(inside, default=None)) is not None:
            return line
    return None


def explain(file: Path, lines: dict[str, int], mistake: Mistake) -> str:
    """One line for a person: ``study.toml:7: stack.scheduler: ...``."""
    return printable(f"{place_of(file, lines, mistake)}: {mistake.text}")


def place_of(file: Path, lines: dict[str, int], mistake: Mistake) -> str:
    """Where a mistake is: ``study.toml:7: stack.scheduler``."""
    line = line_of(lines, mistake)
    field = ".".join(str(part) for part in mistake.path if isinstance(part, str))
    return printable(f"{file}:{line}: {shown(field)[1:-1]}" if line else f"{file}: {shown(field)[1:-1]}")


def mistakes_of(error: ValidationError, model: type[BaseModel], prefix: tuple[str | int, ...]) -> list[Mistake]:
    """Pydantic's errors in our words."""
    mistakes = []
    for detail in error.errors(include_url=False):
        path, section = _place(detail, model)
        mistakes.append(Mistake((*prefix, *path), _words(detail, section, path)))
    # A union of types reports each member's view of the same value: one mistake is enough.
    return list({mistake.path: mistake for mistake in mistakes}.values())


def _place(detail: ErrorDetails, model: type[BaseModel]) -> tuple[tuple[str | int, ...], type[BaseModel]]:
    """Where a mistake is, without what only pydantic knows of it, and the section that the field stands in."""
    loc, path = list(detail["loc"]), []
    while loc:
        part = loc.pop(0)
        if _is_pydantics(part) and not (detail["type"] == "extra_forbidden" and not loc):
            continue
        path.append(part)
        inside = _sections_in(model, part)
        if _is_by_name(model, part) and loc:
            path.append(loc.pop(0))
        if len(inside) > 1 and loc:  # pydantic says next by which kind it took the section
            model = inside[str(loc.pop(0))]
        elif len(inside) == 1 and loc:
            (model,) = inside.values()
    if detail["type"] in {"union_tag_invalid", "union_tag_not_found"}:
        path.append("kind")
    return tuple(path), model


def _sections_in(model: type[BaseModel], field: str | int) -> dict[str, type[BaseModel]]:
    """The sections that a field may hold, by their kind; none where it is a plain value."""
    annotation = model.model_fields[str(field)].annotation if str(field) in model.model_fields else None
    if get_origin(annotation) is dict:  # of sections by their names
        _, annotation = get_args(annotation)
        annotation = get_args(annotation)[0] if hasattr(annotation, "__metadata__") else annotation
    members = get_args(annotation) or (annotation,)
    sections = [member for member in members if isinstance(member, type) and issubclass(member, BaseModel)]
    return {section.named() if issubclass(section, WorkloadSection) else "": section for section in sections}


def _is_by_name(model: type[BaseModel], field: str | int) -> bool:
    """Whether a field holds sections by their names."""
    annotation = model.model_fields[str(field)].annotation if str(field) in model.model_fields else None
    return get_origin(annotation) is dict and bool(_sections_in(model, field))


def _is_pydantics(part: str | int) -> bool:
    """Whether a part of a location names a type or a validator rather than a field."""
    return isinstance(part, str) and (part in _PLAIN_TYPES or "[" in part)


def _words(detail: ErrorDetails, section: type[BaseModel], path: tuple[str | int, ...]) -> str:
    kind, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    kinds: Iterable[str] = BESIDE_KINDS if path[0] == "beside" else KINDS
    if kind in {"missing", "union_tag_not_found"}:
        return "is missing" if kind == "missing" else f"is missing; allowed are {', '.join(kinds)}"
    if kind == "extra_forbidden":
        known = [field.alias or name for name, field in section.model_fields.items()]
        return f"is unknown here; known are {', '.join(known)}{_belongs(path, known)}"
    if kind in {"literal_error", "union_tag_invalid"}:
        allowed = [str(value) for value in get_args(_annotation(section, path))] or [context.get("expected", "")]
        if kind == "union_tag_invalid":
            value, allowed = value["kind"], list(kinds)
        return f"is {shown(value)}; allowed are {', '.join(allowed)}{did_you_mean(str(value), allowed)}"
    if kind == "value_error":
        reason = str(context["error"])
        return f"is {shown(value)}, which {reason}"
    limits = {"greater_than_equal": ("ge", "at least"), "less_than_equal": ("le", "at most")}
    limits |= {"greater_than": ("gt", "more than"), "less_than": ("lt", "less than")}
    limits |= {"multiple_of": ("multiple_of", "a multiple of")}
    if kind in limits:
        key, words = limits[kind]
        return f"is {shown(value)}; it must be {words} {_limit(value, context[key])}"
    type_words = {"string_type": "text in quotes", "int_type": "a whole number", "bool_type": "true or false"}
    type_words |= {"model_type": "a section", "dict_type": "a section", "list_type": "a list"}
    type_words |= {"float_type": "a number", "finite_number": "a number"}
    union = detail["loc"][-1] in _PLAIN_TYPES  # the value fits none of its members
    words = "text in quotes, a number, true or false" if union else type_words.get(kind, detail["msg"])
    example = _EXAMPLES.get(str(path[-1]), "")
    return f"is {shown(value)} but must be {words}{example}"


def _belongs(path: tuple[str | int, ...], known: list[str]) -> str:
    """Where an unknown field may have been meant to stand, or what it may have been meant to be."""
    name = str(path[-1])
    if path == ("host", "settings"):
        return ". The settings of the host stand in [host] itself, such as swappiness = [1, 60]"
    elsewhere = "" if path[0] == "beside" else FIELDS_OF.get(name, "")
    if elsewhere != "workload" or path[0] != "workload":
        return f". It belongs in [{elsewhere}]" if elsewhere else did_you_mean(name, known)
    kinds = [kind for kind, section in KINDS.items() if name in section.model_fields]
    return f". It is for kind {', '.join(kinds)}"


def _limit(value: object, limit: float) -> str:
    """A limit in the unit of what was given: pydantic sees bytes, seconds and fractions."""
    for read, write in ((size_bytes, format_bytes), (duration_seconds, _seconds), (fraction, _percent)):
        with contextlib.suppress(ValueError):
            read(value)
            return write(limit)
    return str(int(limit) if float(limit).is_integer() else limit)


def _seconds(seconds: float) -> str:
    return f"{seconds:g} s"


def _percent(part: float) -> str:
    return f"{part:.0%}"


def _annotation(section: type[BaseModel], path: tuple[str | int, ...]) -> object:
    name = next((part for part in reversed(path) if isinstance(part, str)), "")  # an item's list says what it may be
    field = section.model_fields.get(name)
    if field is None:
        return None
    members = [arg for arg in get_args(field.annotation) if get_args(arg)]
    return members[0] if members else field.annotation
