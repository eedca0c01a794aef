"""A study as it was read, every mistake in it found: factors, treatments, and the sections of one treatment."""

import os
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path, PurePath
from typing import Any

from dbdyno.study.drives import with_drive_files
from dbdyno.study.levels import LEVELS, NamedLevel
from dbdyno.study.schema import (
    BOOTED_KERNEL,
    CrashSection,
    DesignSection,
    FailIfSection,
    FleetSection,
    ReportedSection,
    StudyCost,
    StudySection,
    TrialSpec,
)
from dbdyno.study.units import level_label

BESIDE = "beside"  # the loads beside the judged one, by name; a study file has them as [[workload.beside]]
_PRIVATE = {("server", "option_file"), ("workload", "file"), ("workload", "job"), ("workload", "setup")}


@dataclass(frozen=True)
class VariedField:
    """A field that the study gives as a list, or named levels of several fields each."""

    name: str  # the field's name; with its section where two sections vary the same field
    path: tuple[str, ...]  # where it stands: ("stack", "device"); of named levels ("levels",)
    levels: tuple[Any, ...]  # values of the field, or ``NamedLevel``
    groups: dict[str, str] | None = None  # of the loads of a suite: level -> its group
    after: dict[str, str] | None = None  # of the loads of a suite: level -> the load on whose tables it goes on

    def labels(self) -> list[str]:
        """Levels as they are shown and as a baseline names them."""
        return [level_label(level) for level in self.levels]

    @property
    def starts_hosts_anew(self) -> bool:
        """Whether a level of it is a kernel, which a host under test has to be started anew for."""
        return any(BOOTED_KERNEL in self.fields(level) for level in self.levels)

    @property
    def section(self) -> str:
        """The section of what varies; "levels" where fields of several sections do."""
        if self.path[0] == BESIDE:
            return "workload"
        fields = (path for level in self.levels for path in self.fields(level))
        sections = {"workload" if path[0] == BESIDE else ".".join(path[:-1]) for path in fields}
        return sections.pop() if len(sections) == 1 else LEVELS

    def fields(self, level: Any) -> dict[tuple[str, ...], Any]:  # noqa: ANN401 - whatever TOML can hold
        """What a level gives, by where it stands in one treatment."""
        return level.fields if isinstance(level, NamedLevel) else {self.path: level}

    def places(self, level: Any) -> dict[tuple[str, ...], tuple[str | int, ...]]:  # noqa: ANN401
        """Of each field that a level gives, where the file says it."""
        if isinstance(level, NamedLevel):
            return dict(level.places)
        return {self.path: (*self.path, self.levels.index(level))}

    def gives(self) -> dict[str, dict[str, str]]:
        """What each named level gives, field -> label; of a file only its name: where it lies is private."""
        return {
            level.name: {
                ".".join(path): PurePath(value).name if _is_private(path) else level_label(value)
                for path, value in level.fields.items()
            }
            for level in self.levels
            if isinstance(level, NamedLevel)
        }


def _is_private(path: tuple[str, ...]) -> bool:
    return path in _PRIVATE or (path[0] == BESIDE and ("workload", path[-1]) in _PRIVATE)


@dataclass(frozen=True)
class Study:
    """A study file, checked: nothing in it can still be wrong but for what this host can do."""

    path: Path
    text: str
    raw: dict[str, Any]
    about: StudySection
    design: DesignSection
    factors: tuple[VariedField, ...]
    scale: str = ""  # of the file's scales; empty: as the file stands
    reported: tuple[ReportedSection, ...] = ()
    cost: StudyCost | None = None
    fail_if: FailIfSection | None = None
    fleet: FleetSection | None = None  # the hosts that it is run on, where it names any
    notes: tuple[str, ...] = ()  # on how the file is written; it means the same without them

    @property
    def crash(self) -> CrashSection | None:
        """What is cut, in a study of crash safety."""
        return CrashSection.model_validate(self.raw["crash"]) if "crash" in self.raw else None

    def combinations(self) -> Iterator[tuple[dict[str, str], TrialSpec]]:
        """Each treatment's levels (factor -> label) with its whole specification, in the order of the file."""
        for levels in product(*(factor.levels for factor in self.factors)):
            labels = {factor.name: level_label(level) for factor, level in zip(self.factors, levels, strict=True)}
            body = resolved_body(with_levels(self.raw, self.factors, levels), self.path.parent)
            yield labels, TrialSpec.model_validate(body)

    def on_host(self, host: str) -> "Study":
        """The study as one of the hosts under test runs it: on its own disk, where each has one."""
        disk = self.fleet.disk.get(host) if self.fleet else None
        return replace(self, raw=with_disk(self.raw, disk.device, disk.serial)) if disk else self

    def at(self, labels: dict[str, str]) -> "Study":
        """The study of one treatment alone: every factor fixed at the level of that label."""
        levels = tuple(f.levels[f.labels().index(labels[f.name])] for f in self.factors)
        body = resolved_body(with_levels(self.raw, self.factors, levels), self.path.parent)
        design = self.design.model_copy(update={"baseline": {}, "hard_to_change": []})
        return replace(self, raw=body, factors=(), design=design, fail_if=None)


def with_disk(body: dict[str, Any], device: str, serial: str | None) -> dict[str, Any]:
    """The body on this real disk."""
    fields = {name: value for name, value in body["stack"].items() if name not in {"device", "serial"}}
    return {**body, "stack": {**fields, "device": device, **({"serial": serial} if serial is not None else {})}}


def with_levels(body: dict[str, Any], factors: tuple[VariedField, ...], levels: tuple[Any, ...]) -> dict[str, Any]:
    """The body with each factor's list replaced by one of its levels; a named level overrules what the body has."""
    spec = {name: copied(section) for name, section in body.items() if name != LEVELS}
    for factor, level in zip(factors, levels, strict=True):
        for path, value in factor.fields(level).items():
            table: Any = spec
            for part in path[:-1]:
                table = table.setdefault(part, {}) if isinstance(table, dict) else {}
            if isinstance(table, dict):  # else it is the section's mistake
                table[path[-1]] = value
    return spec


def copied(table: Any) -> Any:  # noqa: ANN401 - whatever TOML can hold
    """A table whose own tables are new; all else in it is shared."""
    return {name: copied(value) for name, value in table.items()} if isinstance(table, dict) else table


def resolved_body(body: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The body with the user's own files as absolute paths: they are relative to the study file."""
    return with_files(body, lambda path: os.path.realpath(folder / path))


def with_files(body: dict[str, Any], script: Callable[[str], str]) -> dict[str, Any]:
    """The body with other paths for the user's own files, each made of its own."""

    def command(words: str) -> str:
        program, *rest = shlex.split(words)
        return shlex.join([script(program), *rest]) if "/" in program else words

    def drive(name: str) -> str:
        return with_drive_files(name, script)

    def resolved(value: object, resolve: Callable[[str], str]) -> object:
        if isinstance(value, list):
            return [resolved(level, resolve) for level in value]
        return resolve(value) if isinstance(value, str) else value

    new_body = dict(body)
    for section, name, resolve in (
        ("stack", "device", drive),
        ("workload", "file", script),
        ("workload", "job", script),
        ("workload", "setup", script),
        ("workload", "command", command),
        ("server", "option_file", script),
    ):
        if name in new_body.get(section, {}):
            new_body[section] = {**new_body[section], name: resolved(new_body[section][name], resolve)}
    if BESIDE in new_body:
        files = {"file": script, "setup": script, "command": command}
        new_body[BESIDE] = {
            name: {field: resolved(value, files[field]) if field in files else value for field, value in load.items()}
            for name, load in new_body[BESIDE].items()
        }
    if disks := new_body.get("stack", {}).get("disks"):
        named = {
            disk: {**fields, **({"device": resolved(fields["device"], drive)} if "device" in fields else {})}
            for disk, fields in disks.items()
        }
        new_body["stack"] = {**new_body["stack"], "disks": named}
    return new_body
