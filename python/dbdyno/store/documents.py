"""Dataclasses to and from documents, which are what JSON and TOML hold: one type is written and read.

Nothing is converted on the way: a value of another type than its field's is refused.
"""

import json
import re
import tomllib
import types
from contextlib import suppress
from dataclasses import MISSING, asdict, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

T = TypeVar("T")

VALUES_MAX = 200_000  # of one document; a trial's has some thousand
DEPTH_MAX = 32  # of lists and tables in each other
_WHOLE_MAX = 2**63
_DIGITS_MAX = 20  # of a whole number: those of a counter of 64 bits
ESCAPES_MAX = 10**6  # of a document's texts
# What is no structure of JSON and TOML: texts on several lines and on one, and comments. Each alternative matches
# whatever follows its first characters, or an attacker could have the same bytes be looked at again and again.
_TEXTS = re.compile(
    rb'"""(?:[^"\\]++|\\.|"(?!""))*+(?:"""|\\?\Z)'
    rb"|'''(?:[^']++|'(?!''))*+(?:'''|\Z)"
    rb'|"(?:[^"\\\n]++|\\.)*+(?:"|\n|\\?\Z)'
    rb"|'[^'\n]*+(?:'|\n|\Z)|#[^\n]*+",
    re.DOTALL,
)
_PART = rb"[A-Za-z0-9_-]++[ \t]*+\.[ \t]*+"
_DEEP_KEY = re.compile(rb"(?<![\w-])(?:%b){%d}" % (_PART, DEPTH_MAX))
_KINDS: dict[Any, tuple[tuple[type, ...], str]] = {
    str: ((str,), "text"),
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
}  # of a field -> what it may be, and what that is called


def document_of(value: Any) -> dict[str, Any]:  # noqa: ANN401  (any dataclass)
    """A dataclass as a document; TOML has no null, so what is not given is left out."""
    document: dict[str, Any] = _without_none(asdict(value))
    return document


def value_of(kind: type[T], document: object, name: str = "") -> T:
    """The dataclass of this kind that a document holds; ``name`` is the document's, for what is said of it.

    Raises:
        ValueError: A field is missing, unknown, or of another type than it should be.

    """
    if not isinstance(document, dict):
        raise ValueError(f"{name or 'it'} is not a table")  # noqa: TRY004 - the file is at fault
    known = _fields(kind)  # type: ignore[arg-type]
    for key in document:
        if key not in known:
            raise ValueError(f"{_below(name, key)} is unknown")
    for key, (_, needed) in known.items():
        if needed and key not in document:
            raise ValueError(f"{_below(name, key)} is missing")
    return kind(**{key: _convert(known[key][0], value, _below(name, key)) for key, value in document.items()})


def json_object(content: bytes, escapes_max: int = ESCAPES_MAX, values_max: int = VALUES_MAX) -> dict[str, Any]:
    """The JSON object that a file holds. Raises ``ValueError`` that says in plain words why it is none.

    ``escapes_max`` bounds the backslashes in its texts: one whose texts are files has one for each of their lines.
    ``values_max`` bounds its values, each of which takes some hundred bytes.
    """
    if not content.strip():
        raise ValueError("it is empty")
    see_that_it_is_moderate(content, values_max, escapes_max)
    try:
        document = json.loads(content.decode("utf-8"), parse_int=_whole)
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not valid JSON from line {error.lineno}, column {error.colno} on") from None
    except ValueError:  # of Python itself: a whole number of more digits than it takes
        raise ValueError("it holds a number of too many digits") from None
    if not isinstance(document, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - the file is at fault
    see_that_it_is_flat(document)
    return document


def values_most(content: bytes) -> int:
    """Return at most how many values JSON or TOML holds: each follows one of these signs."""
    return sum(map(content.count, (b",", b"[", b"{", b"=", b":")))


def see_that_it_is_moderate(content: bytes, values_max: int, escapes_max: int = ESCAPES_MAX) -> int:
    """Return at most how many values JSON or TOML holds, before it is parsed: each takes a hundred times its bytes.

    Raises ``ValueError`` where these are too many.
    """
    values = values_most(_TEXTS.sub(b"", content) if len(content) > values_max else content)
    if values > values_max or content.count(b"\\") > escapes_max:
        raise ValueError(f"it holds more than {values_max} values")
    return values


def toml_document(text: str) -> dict[str, Any]:
    """What a text in TOML says. Raises ``ValueError``, such as ``tomllib.TOMLDecodeError``, or ``RecursionError``.

    A key of many parts takes the square of its length, and each part takes a table.
    """
    # Dots in texts and comments part no key; a quoted part of a key is one part.
    bare = _TEXTS.sub(lambda quoted: b"_" + b"\n" * quoted[0].count(b"\n"), text.encode(errors="replace"))
    if deep_key := _DEEP_KEY.search(bare):
        line = bare.count(b"\n", 0, deep_key.start()) + 1
        raise tomllib.TOMLDecodeError(f"it is nested too deep: a key of more than {DEPTH_MAX} parts (at line {line})")
    if bare.count(b".") > VALUES_MAX:
        raise tomllib.TOMLDecodeError(f"its keys may have more than {VALUES_MAX} parts")
    return tomllib.loads(text)


def see_that_it_is_flat(document: object) -> None:
    """Raise ``ValueError`` where a document is nested too deep, or a whole number in it is larger than any counter."""
    level = [document]
    for _ in range(DEPTH_MAX):
        below: list[object] = []
        for member in level:
            below += member.values() if isinstance(member, dict) else member if isinstance(member, list) else ()
            if isinstance(member, int) and abs(member) >= 10**_DIGITS_MAX:
                raise ValueError("it holds a number of too many digits")
        level = below
        if not level:
            return
    raise ValueError("it is nested too deep")


def _whole(digits: str) -> int:
    """A whole number. Raises ``ValueError`` where it has more digits than any counter."""
    if len(digits) > _DIGITS_MAX + 1:
        raise ValueError("too many digits")
    return int(digits)


def _below(name: str, field: str) -> str:
    return f"{name}.{field}" if name else field


@cache
def _fields(kind: type) -> dict[str, tuple[Any, bool]]:
    """Field -> its type, and whether it must be given."""
    hints = get_type_hints(kind)
    return {
        field.name: (hints[field.name], field.default is MISSING and field.default_factory is MISSING)
        for field in fields(kind)
    }


def _convert(kind: Any, value: object, name: str) -> Any:  # noqa: ANN401  (what the kind says)
    """The value, with dataclasses made where the kind has them. Raises ``ValueError``."""
    origin, inner = get_origin(kind), get_args(kind)
    converted: Any = value
    if is_dataclass(kind):
        converted = value if isinstance(value, kind) else value_of(kind, value, name)  # type: ignore[arg-type]
    elif origin in {Union, types.UnionType}:
        converted = _one_of(inner, value, name)
    elif origin is Literal:
        _check(isinstance(value, str) and value in inner, name, f"one of {', '.join(map(repr, inner))}")
    elif origin is list:
        _check(isinstance(value, list), name, "a list")
        converted = [_convert(inner[0], member, f"{name}[{place}]") for place, member in enumerate(converted)]
    elif is_typeddict(kind):
        converted = _of_known_shape(kind, value, name)
    elif origin is dict:
        _check(isinstance(value, dict), name, "a table")
        if inner[1] is not Any:
            converted = {key: _convert(inner[1], member, _below(name, key)) for key, member in converted.items()}
    elif kind is not Any:
        allowed, called = _KINDS[kind]
        fits = not isinstance(value, int) or abs(value) <= _WHOLE_MAX
        _check(isinstance(value, allowed) and isinstance(value, bool) == (kind is bool) and fits, name, called)
    return converted


def _of_known_shape(kind: Any, value: object, name: str) -> dict[str, Any]:  # noqa: ANN401
    """A table whose tables and lists are those that the type has; it may lack any, and have others beside.

    Its own figures and texts are not judged: another program or version may have meant something else by their names,
    and who uses a figure takes what is none for unknown.
    """
    if not isinstance(value, dict):
        raise ValueError(f"{name} is not a table")  # noqa: TRY004 - the file is at fault
    hints = get_type_hints(kind)
    shaped = {key: member for key, member in value.items() if key in hints and _has_shape(hints[key])}
    return {**value, **{key: _convert(hints[key], member, _below(name, key)) for key, member in shaped.items()}}


def _has_shape(kind: Any) -> bool:  # noqa: ANN401
    return is_typeddict(kind) or get_origin(kind) in {dict, list} or any(map(_has_shape, get_args(kind)))


def _one_of(kinds: tuple[Any, ...], value: object, name: str) -> Any:  # noqa: ANN401
    *first_kinds, last = (kind for kind in kinds if kind is not types.NoneType)
    for kind in first_kinds:
        with suppress(ValueError):
            return _convert(kind, value, name)
    return None if value is None and types.NoneType in kinds else _convert(last, value, name)


def _check(is_right: bool, name: str, called: str) -> None:  # noqa: FBT001
    if not is_right:
        raise ValueError(f"{name} is not {called}")


def _without_none(value: Any) -> Any:  # noqa: ANN401  (whatever a document can hold)
    if isinstance(value, dict):
        return {key: _without_none(member) for key, member in value.items() if member is not None}
    if isinstance(value, list):
        return [_without_none(member) for member in value]
    return value
