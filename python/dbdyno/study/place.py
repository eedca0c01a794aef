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
    factor = next((factor for factor in study.factors if factor.path == path), None)
    if factor is not None:
        level: Any = spec
        for part in path:
            level = level[part] if isinstance(level, dict) else getattr(level, part)
        where = (*path, factor.levels.index(level))
    mistake = Mistake(where, "")
    if study.scale:
        mistake = in_scale(mistake, tomllib.loads(study.text), study.scale)
    return place_of(study.path, toml_lines(study.text), mistake)
