"""``[levels.NAME]``: several fields as one level, which has a name; the levels together are one factor."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator

from dbdyno.model.similar import did_you_mean
from dbdyno.model.wording import listed
from dbdyno.study.document import FileSection, WorkloadSection, matching
from dbdyno.study.mistakes import FIELDS_OF, Mistake, shown
from dbdyno.study.rules import TUNABLES
from dbdyno.study.schema import (
    BOOTED_KERNEL,
    DISKS,
    FACTOR_SECTIONS,
    ArraySection,
    CacheSection,
    EncryptionSection,
    FilesystemSection,
    HostSection,
    QueueSection,
    ServerSection,
    StackSection,
    VolumeSection,
)
from dbdyno.study.simulated_loads import all_tunables
from dbdyno.study.workloads import KINDS

LEVELS = "levels"
SETTINGS = ("server", "settings")
NAME_CHARACTERS_MAX = 60
_NEAR = 0.85  # of a field's name: a server has hundreds of variables, and some are somewhat like any word
_INNER = {
    ".".join(SETTINGS),
    "server.place",
    "server.replica",
    "server.replica.settings",
    "server.cluster",
    "queue.iosched",
    "hosts.boot",
}

Path_ = tuple[str, ...]


def _no_field(name: str) -> str:
    if name in FIELDS_OF:
        raise ValueError("is the name of a field; give the factor another")
    return name


class LevelsSection(FileSection):
    """``[levels]``: levels of several fields each, which together are one factor; ``[levels.NAME]`` is one of them."""

    factor: Annotated[
        str,
        matching(r"[A-Za-z][A-Za-z0-9_-]*", "is not a plain name: letters, digits, - and _"),
        AfterValidator(_no_field),
    ] = "configuration"
    """What the factor is called. All else here is a [level](study-file.md#levelsname-several-fields-as-one-level)."""


@dataclass(frozen=True)
class NamedLevel:
    """One level: what it gives, and where in the file."""

    name: str
    fields: dict[Path_, Any]  # ("server", "settings", "innodb_io_capacity") -> its value
    places: dict[Path_, Path_]  # the same -> where the file says it

    def __str__(self) -> str:
        """Return what the level is called."""
        return self.name

    def as_body(self) -> dict[str, Any]:
        """Return the sections that it gives, as a study has them."""
        body: dict[str, Any] = {}
        for path, value in self.fields.items():
            table = body
            for part in path[:-1]:
                table = table.setdefault(part, {})
            table[path[-1]] = value
        return body


def named_levels(
    raw: dict[str, Any], varied: dict[Path_, str], mistakes: list[Mistake], *, is_suite: bool = False
) -> tuple[NamedLevel, ...]:
    """The levels of ``[levels]``; none where there is no such section, or where it is wrong: see ``mistakes``.

    ``varied`` are the fields that are factors of their own, with their names. Loads of a suite may give the same: they
    differ in what comes before or runs beside.
    """
    section = raw.get(LEVELS)
    if not isinstance(section, dict):
        return ()
    load = raw.get("workload", {})
    kind = KINDS.get(str(load.get("kind")), WorkloadSection) if isinstance(load, dict) else WorkloadSection
    before = len(mistakes)
    tables = tables_of(section)
    levels = [_level(name, table, kind, mistakes) for name, table in tables.items()]
    if len(levels) < (1 if is_suite else 2):
        count = f"has one level, {shown(levels[0].name)}" if levels else "has no level"
        mistakes.append(Mistake((LEVELS,), f"{count}; give two or more, such as [levels.ours] and [levels.vendor]"))
    for place, level in enumerate(levels):
        mistakes += _as_a_factor_too(level, varied)
        if is_suite:
            continue
        if twin := next((level_before for level_before in levels[:place] if level_before.fields == level.fields), None):
            mistakes.append(Mistake((LEVELS, level.name), f"gives the same as [levels.{twin.name}]"))
    return tuple(levels) if len(mistakes) == before else ()


def tables_of(section: dict[str, Any]) -> dict[str, Any]:
    """Return what of the section is a level: all but a text ``factor``."""
    return {name: table for name, table in section.items() if name != "factor" or isinstance(table, dict)}


def _as_a_factor_too(level: NamedLevel, varied: dict[Path_, str]) -> Iterator[Mistake]:
    for path, place in level.places.items():
        if path in varied:
            text = f"is a factor of its own in [{'.'.join(path[:-1])}]; give its values there, or one in each level"
            yield Mistake(place, text)


def _level(name: str, table: object, kind: type[WorkloadSection], mistakes: list[Mistake]) -> NamedLevel:
    level, path = NamedLevel(name, {}, {}), (LEVELS, name)
    if not name.strip() or not name.isprintable() or "/" in name or len(name) > NAME_CHARACTERS_MAX:
        text = (
            f"is not the name of a level: give at most {NAME_CHARACTERS_MAX} characters in one line, none of them a /"
        )
        mistakes.append(Mistake(path, text))
    if not isinstance(table, dict):
        text = f"is {shown(table)} but must be a level: a table of fields, [levels.{name}]"
        mistakes.append(Mistake(path, text))
        return level
    for field, value in table.items():
        if isinstance(value, dict):
            _section((field,), value, level, mistakes)
        else:
            homes = _homes(field, kind)
            if len(homes) == 1:
                _take((*homes[0].split("."), field), (*path, field), value, level, mistakes)
            else:
                mistakes.append(Mistake((*path, field), _why_not_plain(name, field, homes)))
    return level


def _section(path: Path_, table: dict[str, Any], level: NamedLevel, mistakes: list[Mistake]) -> None:
    """Take the fields of a section inside a level."""
    here = (LEVELS, level.name, *path)
    if ".".join(path) not in FACTOR_SECTIONS and path != BOOTED_KERNEL[:1] and path[:2] != DISKS:
        known = ", ".join(FACTOR_SECTIONS)
        text = (
            f"is not a section that a level may give; those are {known}{did_you_mean('.'.join(path), FACTOR_SECTIONS)}"
        )
        mistakes.append(Mistake(here, text))
        return
    for field, value in table.items():
        inner = (*path, field)
        if isinstance(value, dict) and (
            ".".join(inner) in _INNER or (inner[:2] == DISKS and len(inner) <= len(DISKS) + 1)
        ):
            _section((*path, field), value, level, mistakes)
        else:
            _take((*path, field), (*here, field), value, level, mistakes)


def _take(path: Path_, place: Path_, value: object, level: NamedLevel, mistakes: list[Mistake]) -> None:
    if isinstance(value, list | dict):
        shape = "a list" if isinstance(value, list) else "a table"
        text = f"is {shape}; a level gives each field one value. What varies in every level is a factor of its own: "
        mistakes.append(Mistake(place, f"{text}give it as a list in [{'.'.join(path[:-1])}]"))
    elif path == ("workload", "kind"):
        mistakes.append(Mistake(place, "can't vary: it decides which fields there are; write a study for each kind"))
    elif path in level.fields:
        mistakes.append(Mistake(place, f"is given twice in this level, as {'.'.join(path)}"))
    else:
        level.fields[path], level.places[path] = value, place


def _homes(field: str, kind: type[WorkloadSection]) -> list[str]:
    """Return the sections that have a field of this name; what none has is a server variable, but for a slip."""
    sections = {
        "stack": StackSection.model_fields,
        "queue": QueueSection.model_fields,
        "queue.iosched": {tunable for tunables in TUNABLES.values() for tunable in tunables} | all_tunables(),
        "array": ArraySection.model_fields,
        "cache": CacheSection.model_fields,
        "encryption": EncryptionSection.model_fields,
        "volume": VolumeSection.model_fields,
        "filesystem": FilesystemSection.model_fields,
        "server": ServerSection.model_fields,
        "host": HostSection.model_fields,
        "workload": kind.model_fields,
    }
    homes = [section for section, fields in sections.items() if field in fields]
    if homes or FIELDS_OF.get(field) == "design":
        return homes
    known = {name for fields in sections.values() for name in fields}
    return [] if difflib.get_close_matches(field, known, n=1, cutoff=_NEAR) else [".".join(SETTINGS)]


def _why_not_plain(level: str, field: str, homes: list[str]) -> str:
    if homes:
        places = listed([f"[levels.{level}.{home}]" for home in homes])
        return f"is a field of several sections; say which by giving it in one of {places}"
    if field in FIELDS_OF:
        return f"is a field of [{FIELDS_OF[field]}], which a level can't give"
    variable = f"a server variable of this name belongs in [levels.{level}.server.settings]"
    return f"is not a field of a study; {variable}{did_you_mean(field, FIELDS_OF)}"
