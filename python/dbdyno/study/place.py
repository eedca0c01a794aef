"""Where in its file a study says what one of its treatments has."""

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
        held = [level for level in factor.levels if path in factor.fields(level)]
        if held:
            level = next((one for one in held if factor.fields(one)[path] == _value(spec, path)), held[0])
            where = factor.places(level)[path]
    mistake = Mistake(where, "")
    if study.scale:
        mistake = in_scale(mistake, tomllib.loads(study.text), study.scale)
    return place_of(study.path, toml_lines(study.text), mistake)


def _value(spec: TrialSpec, path: tuple[str, ...]) -> Any:  # noqa: ANN401 - whatever the field holds
    value: Any = spec
    for part in path:
        value = value[part] if isinstance(value, dict) else getattr(value, part)
    return value
