"""A field of the study file in words: its type, its limits, its default, and the docstring below it in the schema."""

import ast
import functools
import inspect
import json
import textwrap
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import AfterValidator, BeforeValidator
from pydantic.fields import FieldInfo

from dbdyno.model.metrics import METRICS
from dbdyno.model.quantity import duration_seconds, fraction, size_bytes
from dbdyno.study import document, schema, workloads
from dbdyno.study.document import FileSection
from dbdyno.study.units import format_bytes, warm_up


def _check_of(annotated: object) -> Callable[..., Any]:
    """The function that checks a type's text."""
    return next(note.func for note in get_args(annotated) if isinstance(note, AfterValidator))


# What a type that checks its text takes, in words; the function that checks it -> words.
CHECKED: dict[Callable[..., Any], str] = {
    document._one_line: "a line",  # noqa: SLF001  (its words stand here, its rule there)
    _check_of(document.Identifier): "name of letters, digits, `_`",
    schema._cpu_list: 'processors, such as `"0-3,8"`',  # noqa: SLF001
    _check_of(schema.IoClass): '`"none"`, `"idle"`, `"best-effort:0"` to `":7"`, `"realtime:0"` to `":7"`',
    schema._settle: 'time, `"trial"`',  # noqa: SLF001
    schema._awake: 'true, false, `"auto"`',  # noqa: SLF001
    warm_up: 'time, `"steady"`',
    workloads._error_codes: "text",  # noqa: SLF001
}
BOUNDS = ("ge", "gt", "le", "lt")


def own_fields(model: type[FileSection]) -> dict[str, FieldInfo]:
    """The fields that this class says itself, not those it has from another."""
    names = [name for name in inspect.get_annotations(model) if name in model.model_fields]
    return {name: model.model_fields[name] for name in names}


@functools.cache
def docstrings(model: type[FileSection]) -> Mapping[str, str]:
    """Field -> the docstring that stands below it in its class, on one line."""
    found = {}
    lines = [
        line
        for part in ast.parse(inspect.getsource(model)).body
        if isinstance(part, ast.ClassDef)
        for line in part.body
    ]
    for line, below in pairwise(lines):
        match line, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = " ".join(text.split())
    return found


def item(model: type[FileSection], name: str, field: FieldInfo) -> str:
    """A field in a list. Raises ``KeyError`` for a field without a docstring."""
    if name not in docstrings(model):
        raise KeyError(f"{model.__module__}.{model.__name__}.{name} has no docstring below it")
    default, kind = default_words(field), type_words(field)
    said_by_default = kind == PLAIN[bool] and default in {"true", "false"}
    parts = ["" if kind in TEXTS or said_by_default else kind]
    parts += ["" if default == "-" else default if default == "required" else f"default {default}"]
    brackets = "; ".join(part for part in parts if part)
    return filled(f"- `{field.alias or name}`{brackets and f' ({brackets})'}: {docstrings(model)[name]}")


def filled(item: str) -> str:
    """An item of a list in lines of 120 columns."""
    return textwrap.fill(item, 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _unwrapped(annotation: object) -> tuple[Any, tuple[Any, ...]]:
    """The plain type and all that is annotated to it, None left out of a union."""
    if get_origin(annotation) is Annotated:
        plain, *notes = get_args(annotation)
        base, more = _unwrapped(plain)
        return base, (*more, *notes)
    if get_origin(annotation) in {Union, UnionType}:
        rest = [one for one in get_args(annotation) if one is not NoneType]
        bases = {_unwrapped(one)[0] for one in rest}
        if bases == {int, float}:
            return float, ()
        if len(rest) == 1:
            return _unwrapped(rest[0])
    return annotation, ()


def _flat(notes: tuple[Any, ...]) -> Iterator[Any]:
    for note in notes:
        if isinstance(note, FieldInfo):
            yield from note.metadata
        else:
            yield note


def _notes(field: FieldInfo) -> tuple[Any, dict[str, float], list[Callable[..., Any]]]:
    base, inside = _unwrapped(field.annotation)
    notes = [*_flat(inside), *_flat(tuple(field.metadata))]
    bounds = {bound: getattr(note, bound) for note in notes for bound in BOUNDS if hasattr(note, bound)}
    checks = [inspect.unwrap(note.func) for note in notes if isinstance(note, BeforeValidator | AfterValidator)]
    return base, bounds, checks


# A text with a unit: the function that reads it -> what it is called, and a value as a study writes it.
UNITS: dict[Callable[..., Any], tuple[str, Callable[[float], str]]] = {
    size_bytes: ("size", lambda value: f"{value:.0f} B" if value % 1024 else format_bytes(value)),
    duration_seconds: ("time", lambda value: f"{value * 1000:g} ms" if 0 < value < 1 else f"{value:g} s"),
    fraction: ("percentage", lambda value: f"{100 * value:g} %"),
}
PLAIN: dict[object, str] = {bool: "true, false", str: "text"}
TEXTS = {"text", "a line"}  # what a field takes unless its brackets say otherwise


def type_words(field: FieldInfo) -> str:
    """What a field takes, with its limits. Raises ``TypeError`` for a type that has no words yet."""
    base, bounds, checks = _notes(field)
    said = [CHECKED[check] for check in checks if check in CHECKED]
    measured = [UNITS[check] for check in checks if check in UNITS]
    if said or base in PLAIN:
        return said[0] if said else PLAIN[base]
    if measured:
        return _limited(*measured[0], {bound: value for bound, value in bounds.items() if (bound, value) != ("ge", 0)})
    if base in {int, float}:
        return _limited("" if base is int else "number", _number, bounds)
    if get_origin(base) is Literal:
        return _choice(get_args(base))
    return _container(base)


def _choice(values: tuple[Any, ...]) -> str:
    if set(values) >= set(METRICS):
        return ", ".join(["a [metric](#metrics)", *(f'`"{value}"`' for value in values if value not in METRICS)])
    return ", ".join(f'`"{value}"`' if isinstance(value, str) else f"`{value}`" for value in values)


def _container(base: object) -> str:
    if inspect.isclass(base) and issubclass(base, FileSection):
        return "section"
    if get_origin(base) is dict:
        inner = get_args(base)[1]
        if inspect.isclass(inner) and issubclass(inner, FileSection):
            return "a section each"
        return "section of `name = number`" if _unwrapped(get_args(base)[1])[0] is int else "section of `name = value`"
    if get_origin(base) is list:
        items = get_args(base)[0]
        if get_origin(items) is Literal:
            return f"list of {_choice(get_args(items))}"
        return "list of tables" if inspect.isclass(items) and issubclass(items, FileSection) else "list of names"
    raise TypeError(f"no words for the type {base!r}; give it some in {__file__}")


def _number(value: float) -> str:
    """Return it as people write it: what is just below a large power of 2 as that."""
    power = int(value + 1).bit_length() - 1
    large = value >= 2**20 and value == 2**power - 1
    return f"2^{power} - 1" if large else f"{value:g}" if value < 1e6 else f"{int(value)}"  # noqa: PLR2004


def _limited(what: str, shown: Callable[[float], str], bounds: Mapping[str, float]) -> str:
    """``what`` with its limits: "4 to 2048", "size, at least 64 MiB", "percentage, above 0 %, below 100 %"."""
    if not what and "lt" in bounds:
        bounds = {"ge": bounds["ge"], "le": bounds["lt"] - 1}
    if "ge" in bounds and "le" in bounds:
        limits = f"{shown(bounds['ge'])} to {shown(bounds['le'])}"
    elif "ge" in bounds and not what:
        limits = f"{shown(bounds['ge'])} or more"
    else:
        words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
        limits = ", ".join(f"{words[bound]} {shown(bounds[bound])}" for bound in BOUNDS if bound in bounds)
    return ", ".join(part for part in (what, limits) if part) or "number"


def default_words(field: FieldInfo) -> str:
    """What holds where the field is left out, in the words of a study file; "-" if its meaning says it."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None or value in ("", {}, []) or isinstance(value, FileSection):
        return "-"
    if warm_up in _notes(field)[2] and isinstance(value, float):
        return f'`"{UNITS[duration_seconds][1](value).replace(" ", "")}"`'
    measured = [shown for check in _notes(field)[2] if check in UNITS for _, shown in [UNITS[check]]]
    if measured:
        return f'`"{measured[0](value).replace(" ", "")}"`'
    if isinstance(value, list):
        return f"`{json.dumps(value)}`"
    return (
        f'`"{value}"`' if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else f"{value}".lower()
    )
