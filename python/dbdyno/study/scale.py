"""``[scale.NAME]``, whose sections overrule the study's; and where a file says what a treatment has."""

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from dbdyno._native import toml_lines
from dbdyno.model.similar import did_you_mean
from dbdyno.study.mistakes import Mistake, place_of, shown
from dbdyno.study.schema import BETWEEN, TrialSpec
from dbdyno.study.study import Study
from dbdyno.study.workloads import KINDS

SECTIONS = ("stack", "queue", *BETWEEN, "filesystem", "server", "host", "workload", "design", "crash")
# Sections of their own inside a section.
_INNER = {"server": ("settings", "place", "replica", "cluster"), "queue": ("iosched",), "stack": ("disks",)}
_ENDING = ("blocks", "until", "max_blocks")  # the first of them excludes the others


def scale_mistakes(raw: dict[str, Any]) -> Iterator[Mistake]:
    """What is wrong with the shape of ``[scale]``; what its fields hold is checked as part of the scaled study."""
    scales = raw.get("scale", {})
    for name, sections in scales.items() if isinstance(scales, dict) else ():
        if not isinstance(sections, dict):
            text = f"is {shown(sections)} but must hold sections, such as [scale.{name}.workload]"
            yield Mistake(("scale", name), text)
            continue
        for section, fields in sections.items():
            if section not in SECTIONS:
                known = f"a scale may overrule {', '.join(SECTIONS)}{did_you_mean(section, SECTIONS)}"
                yield Mistake(("scale", name, section), f"is unknown here; {known}")
            elif not isinstance(fields, dict):
                yield Mistake(("scale", name, section), f"is {shown(fields)} but must be a section")


def scaled(raw: dict[str, Any], name: str) -> dict[str, Any]:
    """The study's tables at a scale. A bound of the load, or of the number of blocks, takes the place of the other."""
    made = dict(raw)
    for section, fields in raw["scale"][name].items():
        table = made.get(section, {})
        made[section] = _overrule(section, table, fields) if isinstance(table, dict) else table
    return made


def _overrule(section: str, table: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    kept = {
        key: value
        for key, value in table.items()
        if key not in _fields_to_replace(section, {**table, **fields}, fields)
    }
    both = [inner for inner in _INNER.get(section, ()) if inner in kept and inner in fields]
    merged = {inner: _merged(kept[inner], fields[inner]) for inner in both}
    return {**kept, **fields, **merged}


def _merged(table: Any, fields: Any) -> Any:  # noqa: ANN401 - whatever TOML can hold
    """A table with fields overruled, and so the tables in it; what is no table is overruled whole."""
    if not isinstance(table, dict) or not isinstance(fields, dict):
        return fields
    return table | {name: _merged(table.get(name), value) for name, value in fields.items()}


def _fields_to_replace(section: str, whole: dict[str, Any], fields: dict[str, Any]) -> set[str]:
    """The study's fields that can't stand beside what the scale gives."""
    if section == "design":
        return set(_ENDING[1:]) if "blocks" in fields else {"blocks"} if set(_ENDING) & set(fields) else set()
    if section == "workload":
        kind = whole.get("kind")
        amount = KINDS[kind].AMOUNT if isinstance(kind, str) and kind in KINDS else ""
        return {amount} if "duration" in fields else {"duration"} if amount in fields else set()
    return set()


def in_scale(mistake: Mistake, raw: dict[str, Any], name: str) -> Mistake:
    """The mistake at the place where the scale gives the field; one in a field of the study's own as it is."""
    part_of_scale: Any = raw["scale"][name]
    for part in mistake.path:
        if not isinstance(part_of_scale, dict):
            break  # what is left of the path is a level of a factor
        if part not in part_of_scale:
            return mistake
        part_of_scale = part_of_scale[part]
    return mistake if isinstance(part_of_scale, dict) else Mistake(("scale", name, *mistake.path), mistake.text)


# Where in its file a study says what one of its treatments has.


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
