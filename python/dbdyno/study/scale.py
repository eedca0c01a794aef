"""``[scale.NAME]``: the same question at another size; its sections overrule those of the study, field by field."""

from collections.abc import Iterator
from typing import Any

from dbdyno.study.mistakes import Mistake, did_you_mean, shown
from dbdyno.study.workloads import KINDS

SECTIONS = ("stack", "queue", "filesystem", "server", "workload", "design", "crash")
_INNER = {"server": "settings", "queue": "iosched"}  # sections of their own inside a section
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
    inner = _INNER.get(section, "")
    if isinstance(kept.get(inner), dict) and isinstance(fields.get(inner), dict):
        fields = {**fields, inner: {**kept[inner], **fields[inner]}}
    return {**kept, **fields}


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
