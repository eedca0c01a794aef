"""Dataclasses to and from documents, which are what JSON and TOML hold: one type is written and read.

Nothing is converted on the way: a value of another type than its field's is refused.
"""

import json
import types
from contextlib import suppress
from dataclasses import MISSING, asdict, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

_WHOLE_MAX = 2**63
_KINDS: dict[Any, tuple[tuple[type, ...], str]] = {
    str: ((str,), "text"),
    bool: ((bool,), "true or false"),
    int: ((int,), "whole number"),
    float: ((int, float), "number"),
}  # of a field -> what it may be, and what that is called


def document_of(value: Any) -> dict[str, Any]:  # noqa: ANN401  (any dataclass)
    """A dataclass as a document; TOML has no null, so what is not given is left out."""
    found: dict[str, Any] = _without_none(asdict(value))
    return found


def value_of(kind: type[T], document: object, name: str = "") -> T:
    """The dataclass of this kind that a document holds; ``name`` is the document's, for what is said of it.

    Raises:
        ValueError: A field is missing, unknown, or of another type than it should be.

    """
    if not isinstance(document, dict):
        raise ValueError(f"{name or 'it'} is no table")  # noqa: TRY004 - the file is at fault
    known = _fields(kind)  # type: ignore[arg-type]
    for one in document:
        if one not in known:
            raise ValueError(f"{_below(name, one)} is unknown")
    for one, (_, needed) in known.items():
        if needed and one not in document:
            raise ValueError(f"{_below(name, one)} is missing")
    return kind(**{one: _typed(known[one][0], value, _below(name, one)) for one, value in document.items()})


def json_object(content: bytes) -> dict[str, Any]:
    """The JSON object that a file holds. Raises ``ValueError`` that says in plain words why it is none."""
    if not content.strip():
        raise ValueError("it is empty")
    try:
        found = json.loads(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise ValueError("it is no UTF-8 text") from None
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not valid JSON from line {error.lineno}, column {error.colno} on") from None
    except ValueError:  # of Python itself: a whole number of more digits than it takes
        raise ValueError("it holds a number of too many digits") from None
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - the file is at fault
    return found


def _below(name: str, field: str) -> str:
    return f"{name}.{field}" if name else field


@cache
def _fields(kind: type) -> dict[str, tuple[Any, bool]]:
    """Field -> its type, and whether it must be given."""
    hints = get_type_hints(kind)
    return {
        one.name: (hints[one.name], one.default is MISSING and one.default_factory is MISSING) for one in fields(kind)
    }


def _typed(kind: Any, value: object, name: str) -> Any:  # noqa: ANN401  (what the kind says)
    """The value, with dataclasses made where the kind has them. Raises ``ValueError``."""
    origin, inner = get_origin(kind), get_args(kind)
    found: Any = value
    if is_dataclass(kind):
        found = value if isinstance(value, kind) else value_of(kind, value, name)  # type: ignore[arg-type]
    elif origin in {Union, types.UnionType}:
        found = _one_of(inner, value, name)
    elif origin is Literal:
        _check(isinstance(value, str) and value in inner, name, f"one of {', '.join(map(repr, inner))}")
    elif origin is list:
        _check(isinstance(value, list), name, "list")
        found = [_typed(inner[0], item, f"{name}[{place}]") for place, item in enumerate(found)]
    elif origin is dict:
        _check(isinstance(value, dict), name, "table")
        if inner[1] is not Any:
            found = {key: _typed(inner[1], item, _below(name, key)) for key, item in found.items()}
    elif kind is not Any:
        allowed, called = _KINDS[kind]
        fits = not isinstance(value, int) or abs(value) <= _WHOLE_MAX
        _check(isinstance(value, allowed) and isinstance(value, bool) == (kind is bool) and fits, name, called)
    return found


def _one_of(kinds: tuple[Any, ...], value: object, name: str) -> Any:  # noqa: ANN401
    *others, last = (kind for kind in kinds if kind is not types.NoneType)
    for kind in others:
        with suppress(ValueError):
            return _typed(kind, value, name)
    return None if value is None and types.NoneType in kinds else _typed(last, value, name)


def _check(is_right: bool, name: str, called: str) -> None:  # noqa: FBT001
    if not is_right:
        raise ValueError(f"{name} is no {called}")


def _without_none(value: Any) -> Any:  # noqa: ANN401  (whatever a document can hold)
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_none(item) for item in value]
    return value
