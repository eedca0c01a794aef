"""Where in its file a study says what one of its treatments has."""

import json
import re
import tomllib
from typing import Any

from dbdyno._native import toml_lines
from dbdyno.study.mistakes import Mistake, place_of
from dbdyno.study.scale import in_scale
from dbdyno.study.schema import TrialSpec
from dbdyno.study.study import Study


def place_in(study: Study, spec: TrialSpec, path: tuple[str, ...]) -> str:
    """File, line and field, ``study.toml:7: stack.engine``; of a factor the line of the treatment's level."""
    where: tuple[str | int, ...] = path
    for factor in study.factors:
        levels = [level for level in factor.levels if path in factor.fields(level)]
        if levels:
            level = next(
                (candidate for candidate in levels if factor.fields(candidate)[path] == _value(spec, path)), levels[0]
            )
            where = factor.places(level)[path]
    mistake = Mistake(where, "")
    if study.scale:
        mistake = in_scale(mistake, tomllib.loads(study.text), study.scale)
    return place_of(study.path, toml_lines(study.text), mistake)


def line_without(study: Study, spec: TrialSpec, path: tuple[str, ...]) -> str:
    """The line to write for a field without the level that a treatment has; empty where the field is no list of them.

    A single level that is left stands alone: it is no factor.
    """
    for factor in study.factors:
        if factor.path == path and len(factor.levels) > 1:
            left = [level for level in factor.levels if level != _value(spec, path)]
            return line_of_field(path[-1], left[0] if len(left) == 1 else left)
    return ""


def line_of_field(name: str, value: Any) -> str:  # noqa: ANN401 - whatever the field holds
    """A line of TOML."""
    key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)
    return f"{key} = {toml_value(value)}"


def toml_value(value: Any) -> str:  # noqa: ANN401 - whatever the field holds
    """A value as TOML writes it, on one line."""
    return json.dumps(value, ensure_ascii=False)


def _value(spec: TrialSpec, path: tuple[str, ...]) -> Any:  # noqa: ANN401 - whatever the field holds
    value: Any = spec
    for part in path:
        value = value[part] if isinstance(value, dict) else getattr(value, part)
    return value
