"""Python's types of the results that programs exchange, made from the JSON Schema that Rust's own types give."""

import json
import re
from keyword import iskeyword
from pathlib import Path
from textwrap import wrap
from typing import Any

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "crates" / "dbdyno-common" / "results.schema.json"
TYPES = ROOT / "python" / "dbdyno" / "model" / "results.py"

_HEAD = '''"""What programs exchange, as `crates/dbdyno-common/src/results.rs` defines it; written by `make results`.

Values are of a JSON document. One that another version of a program wrote may lack a key, so every key may be missing.
"""

from typing import Any, TypedDict

# What a histogram comes to: count, min, mean, max, and percentiles such as p99. The key that holds it ends in its unit.
Summary = dict[str, float | None]
'''
_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_WIDTH = 120


def types() -> str:
    """Return the text of the module."""
    definitions = json.loads(SCHEMA.read_text(encoding="utf-8"))["$defs"]
    ordered: dict[str, None] = {}
    for name in definitions:
        _with_what_it_needs(name, definitions, ordered)
    return "\n\n".join([_HEAD, *(_type_of(name, definitions[name]) for name in ordered if name != "Summary")])


def _with_what_it_needs(name: str, definitions: dict[str, Any], ordered: dict[str, None]) -> None:
    """Put a type after those that it refers to."""
    if name in ordered:
        return
    for needed in re.findall(r'"#/\$defs/(\w+)"', json.dumps(definitions[name])):
        _with_what_it_needs(needed, definitions, ordered)
    ordered[name] = None


def _type_of(name: str, schema: dict[str, Any]) -> str:
    fields = schema["properties"]
    if all(field.isidentifier() and not iskeyword(field) for field in fields):
        lines = [f"class {name}(TypedDict, total=False):", *_said(schema["description"], '"""', '"""'), ""]
        for field, value in fields.items():
            said, line = " ".join(value.get("description", "").split()), f"    {field}: {_words(value)}"
            beside = f"{line}  # {said}" if said else line
            lines += [beside] if len(beside) <= _WIDTH else [*_said(said, "# ", ""), line]
        return "\n".join(lines) + "\n"
    # The columns of iostat are no names of Python's.
    kinds = " | ".join(sorted({_words(value) for value in fields.values()}))
    return f"{name} = dict[str, {kinds}]  # {' '.join(schema['description'].split())}\n"


def _said(text: str, before: str, after: str) -> list[str]:
    """Return a comment or a docstring, indented once."""
    lines = wrap(" ".join(text.split()) + after, _WIDTH - 4 - len(before))
    if before.startswith("#"):
        return [f"    {before}{line}" for line in lines]
    return [f"    {before}{lines[0]}", *(f"    {line}" for line in lines[1:])] if lines else []


def _words(schema: "dict[str, Any] | bool") -> str:
    """Return a schema as a type of Python's."""
    if schema is True or not isinstance(schema, dict):
        return "Any"
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(_words(one) for one in schema["anyOf"])
    kinds = schema.get("type", [])
    each = [_word(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds)]
    return " | ".join(each) or "Any"


def _word(kind: str, schema: dict[str, Any]) -> str:
    if kind == "array":
        return f"list[{_words(schema.get('items', True))}]"
    if kind == "object":
        return f"dict[str, {_words(schema.get('additionalProperties', True))}]"
    return _PLAIN[kind]
