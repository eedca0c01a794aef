"""From a study file to a ``Study``; every mistake in the file is found here, before anything is touched."""

import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from dbdyno import _native
from dbdyno.errors import UserError
from dbdyno.store.records import METRICS
from dbdyno.study.cost import Cost
from dbdyno.study.cost_rules import broken_cost_rules, names_of, read_cost
from dbdyno.study.drives import resolved_drive
from dbdyno.study.ending_rules import broken_ending_rules
from dbdyno.study.labels import level_label
from dbdyno.study.mistakes import Mistake, did_you_mean, explain, line_of, mistakes_of, shown
from dbdyno.study.reported import ReportedSection
from dbdyno.study.reported_rules import misplaced
from dbdyno.study.rules import broken_rules
from dbdyno.study.scale import in_scale, scale_mistakes, scaled
from dbdyno.study.schema import FACTOR_SECTIONS, DesignSection, StudySection, TrialSpec

BODY = ("stack", "queue", "filesystem", "server", "workload", "probes")  # what a treatment consists of
TOP_LEVEL = ("version", "study", *BODY, "design", "scale", "reported", "cost")

Path_ = tuple[str | int, ...]
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class Factor:
    """A field that the study gives as a list."""

    name: str  # the field's name; with its section where two sections vary the same field
    path: tuple[str, ...]  # where it stands: ("stack", "device")
    levels: tuple[Any, ...]

    def labels(self) -> list[str]:
        """Levels as they are shown and as a baseline names them."""
        return [level_label(level) for level in self.levels]


@dataclass(frozen=True)
class Study:
    """A study file, checked: nothing in it can still be wrong but for what this host can do."""

    path: Path
    text: str
    raw: dict[str, Any]
    about: StudySection
    design: DesignSection
    factors: tuple[Factor, ...]
    scale: str = ""  # of the file's scales; empty: as the file stands
    reported: tuple[ReportedSection, ...] = ()
    cost: Cost | None = None

    def combinations(self) -> Iterator[tuple[dict[str, str], TrialSpec]]:
        """Each treatment's levels (factor -> label) with its whole specification, in the order of the file."""
        for levels in product(*(factor.levels for factor in self.factors)):
            labels = {factor.name: level_label(level) for factor, level in zip(self.factors, levels, strict=True)}
            body = _resolved(_with_levels(self.raw, self.factors, levels), self.path.parent)
            yield labels, TrialSpec.model_validate(body)

    def at(self, labels: dict[str, str]) -> "Study":
        """The study of one treatment alone: every factor fixed at the level of that label."""
        levels = tuple(f.levels[f.labels().index(labels[f.name])] for f in self.factors)
        body = _resolved(_with_levels(self.raw, self.factors, levels), self.path.parent)
        design = self.design.model_copy(update={"baseline": {}, "hard_to_change": []})
        return replace(self, raw=body, factors=(), design=design)


def load_study(path: Path, scale: str = "") -> Study:
    """Read and check a study file at all its scales; return it at ``scale``, or as it stands.

    Raises:
        UserError: It names file, line and field of every mistake, or the scales that there are.

    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UserError(f"{path}: can't be read: {reason}") from None
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: not valid TOML: {error}") from None
    except RecursionError:
        raise UserError(f"{path}: not valid TOML: it is nested too deep") from None
    try:
        lines = _native.toml_lines(text)
    except ValueError as error:  # what tomllib lets pass, such as a number that TOML has no room for
        place, *_, reason = str(error).strip().splitlines()
        raise UserError(f"{path}: not valid TOML: {reason} ({place})") from None
    try:
        studies = _at_every_scale(path, text, raw)
    except _Mistakes as found:
        in_order = sorted(found.mistakes, key=lambda mistake: line_of(lines, mistake) or 0)
        said = dict.fromkeys(explain(path, lines, mistake) for mistake in in_order)
        raise UserError("\n".join(said)) from None
    if scale not in studies:
        names = [name for name in studies if name]
        known = ", ".join(names) or "none"
        raise UserError(f"{path}: has no scale {shown(scale)}; it has {known}{did_you_mean(scale, names)}")
    return studies[scale]


def _at_every_scale(path: Path, text: str, raw: dict[str, Any]) -> dict[str, Study]:
    """The study as it stands, by the name "", and at each of its scales."""
    found: list[Mistake] = []
    studies = {"": _checked(path, text, raw)}
    for name in raw.get("scale", {}):
        try:
            studies[name] = replace(_checked(path, text, scaled(raw, name)), scale=name)
        except _Mistakes as mistakes:
            found += [in_scale(mistake, raw, name) for mistake in mistakes.mistakes]
    found = found or [*misplaced(list(studies.values())), *_misplaced_costs(list(studies.values()))]
    if found:
        raise _Mistakes(found)
    return studies


class _Mistakes(Exception):  # noqa: N818  (carries them, is not one)
    def __init__(self, mistakes: list[Mistake]) -> None:
        super().__init__()
        self.mistakes = mistakes


def _checked(path: Path, text: str, raw: dict[str, Any]) -> Study:
    found = [*_top_level_mistakes(raw), *scale_mistakes(raw)]
    about = _section(StudySection, raw.get("study", {}), ("study",), found)
    design = _section(DesignSection, raw.get("design", {}), ("design",), found)
    body: dict[str, Any] = {name: section for name, section in raw.items() if name in BODY}
    factors = tuple(_factors(body, found))
    reported = tuple(_reported(raw.get("reported", []), found))
    cost = read_cost(raw.get("cost"), lambda model, table, place: _section(model, table, place, found))
    if all(isinstance(section, dict) for section in body.values()):
        found += _level_mistakes(body, factors)
    if found or about is None or design is None:
        raise _Mistakes(list(_said_once(found)))
    found += _combination_mistakes(body, factors, path.parent)
    found += _baseline_mistakes(design, factors)
    found += _whole_plot_mistakes(design, factors)
    found += _compared_mistakes(design, factors)
    found += _screened_mistakes(design)
    found += broken_ending_rules(design)
    if found:
        raise _Mistakes(found)
    raw = _resolved(body, path.parent)
    return Study(
        path=path, text=text, raw=raw, about=about, design=design, factors=factors, reported=reported, cost=cost
    )


def _misplaced_costs(studies: list[Study]) -> Iterator[Mistake]:
    """What of ``[cost]`` fits the study at none of its scales."""
    named = [names_of(labels, spec.stack.device) for study in studies for labels, spec in study.combinations()]
    yield from broken_cost_rules(studies[0].cost, named)
    if studies[0].cost and any(spec.stack.devices > 1 for study in studies for _, spec in study.combinations()):
        yield Mistake(("cost",), "counts one disk; leave it out, or give stack.devices = 1")


def _reported(tables: object, found: list[Mistake]) -> Iterator[ReportedSection]:
    for place, table in enumerate(tables if isinstance(tables, list) else ()):
        section = _section(ReportedSection, table, ("reported", place), found)
        if section is not None:
            yield section


def _section(model: type[Model], raw: object, path: Path_, found: list[Mistake]) -> Model | None:
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        found += mistakes_of(error, model, path)
        return None


def _said_once(found: list[Mistake]) -> Iterator[Mistake]:
    """The mistakes without those that follow from an earlier one: at the same place, or inside it."""
    said: set[Path_] = set()
    for mistake in found:
        if not any(mistake.path[:length] in said for length in range(1, len(mistake.path) + 1)):
            said.add(mistake.path)
            yield mistake


def _top_level_mistakes(raw: dict[str, Any]) -> Iterator[Mistake]:
    for name, value in raw.items():
        if name not in TOP_LEVEL:
            yield Mistake((name,), f"is unknown; known are {', '.join(TOP_LEVEL)}{did_you_mean(name, TOP_LEVEL)}")
        elif name == "reported":
            if not isinstance(value, list):
                yield Mistake((name,), "must be written as [[reported]]: there may be several")
        elif name != "version" and not isinstance(value, dict):
            yield Mistake((name,), f"is {shown(value)} but must be a section: [{name}]")
    if type(raw.get("version")) is not int or raw["version"] != 1:  # true and 1.0 are equal to 1 too
        given = f"is {shown(raw['version'])}" if "version" in raw else "is missing"
        yield Mistake(("version",), f"{given}; this dbdyno reads version = 1")
    for name in ("study", "stack", "workload"):
        if name not in raw:
            yield Mistake((name,), f"is missing; a study needs [{name}]")


def _factors(body: dict[str, Any], found: list[Mistake]) -> Iterator[Factor]:
    varied: list[tuple[tuple[str, ...], list[Any]]] = []
    for section in (one for name in body for one in FACTOR_SECTIONS if one.split(".")[0] == name):
        path = tuple(section.split("."))
        table: Any = body
        for part in path:
            table = table.get(part, {}) if isinstance(table, dict) else {}
        if isinstance(table, dict):
            varied += [((*path, name), value) for name, value in table.items() if isinstance(value, list)]
    names = [path[-1] for path, _ in varied]
    for path, levels in varied:
        if path == ("workload", "kind"):
            text = "can't be a factor: it decides which fields the section has; write a study for each kind"
            found.append(Mistake(path, text))
            continue
        if not levels:
            found.append(Mistake(path, "is an empty list; give its levels, or one value without brackets"))
            continue
        if any(isinstance(level, list | dict) for level in levels):
            found.append(Mistake(path, "must be a list of plain values, one per level"))
            continue
        labels = [level_label(level) for level in levels]
        for index, label in enumerate(labels):
            if label in labels[:index]:
                found.append(Mistake((*path, index), f"gives the level {label!r} twice"))
        name = path[-1] if names.count(path[-1]) == 1 else ".".join(path)
        yield Factor(name=name, path=path, levels=tuple(levels))


def _with_levels(body: dict[str, Any], factors: tuple[Factor, ...], levels: tuple[Any, ...]) -> dict[str, Any]:
    """The body with each factor's list replaced by one of its levels."""
    spec = {name: dict(section) for name, section in body.items()}
    for outer, inner in (("server", "settings"), ("queue", "iosched")):
        if isinstance(spec.get(outer, {}).get(inner), dict):
            spec[outer][inner] = dict(spec[outer][inner])
    for factor, level in zip(factors, levels, strict=True):
        table: Any = spec
        for part in factor.path[:-1]:
            table = table[part]
        table[factor.path[-1]] = level
    return spec


def _level_mistakes(body: dict[str, Any], factors: tuple[Factor, ...]) -> list[Mistake]:
    """Every field and every level, each checked once: all first levels, then the others one at a time."""
    first = tuple(factor.levels[0] for factor in factors)
    found: dict[tuple[Path_, str], Mistake] = {}
    trials = [(first, {factor.path: 0 for factor in factors})]
    for index, factor in enumerate(factors):
        for number, level in enumerate(factor.levels[1:], 1):
            trials.append(((*first[:index], level, *first[index + 1 :]), {factor.path: number}))
    for levels, numbers in trials:
        try:
            TrialSpec.model_validate(_with_levels(body, factors, levels))
        except ValidationError as error:
            for mistake in mistakes_of(error, TrialSpec, ()):
                place = _place(mistake.path, numbers)
                found.setdefault((place, mistake.text), Mistake(place, mistake.text))
    # A level is reported at its own place; the list as a whole is not at fault.
    varied = {factor.path for factor in factors}
    return [mistake for mistake in found.values() if mistake.path not in varied]


def _place(path: Path_, numbers: dict[tuple[str, ...], int]) -> Path_:
    """The path, with the number of the level where it is a factor's."""
    number = next((number for factor, number in numbers.items() if factor == path), None)
    return path if number is None else (*path, number)


def _combination_mistakes(body: dict[str, Any], factors: tuple[Factor, ...], folder: Path) -> list[Mistake]:
    found: dict[tuple[Path_, str], Mistake] = {}
    for levels in product(*(factor.levels for factor in factors)):
        spec = TrialSpec.model_validate(_with_levels(body, factors, levels))
        numbers = {f.path: f.levels.index(level) for f, level in zip(factors, levels, strict=True)}
        for mistake in broken_rules(spec, folder):
            place = _place(mistake.path, numbers)
            found.setdefault((place, mistake.text), Mistake(place, mistake.text))
    return list(found.values())


def _baseline_mistakes(design: DesignSection, factors: tuple[Factor, ...]) -> Iterator[Mistake]:
    by_name = {factor.name: factor for factor in factors}
    for name, level in design.baseline.items():
        if name not in by_name:
            yield Mistake(("design", "baseline", name), _no_factor(name, by_name))
        elif level_label(level) not in by_name[name].labels():
            labels = by_name[name].labels()
            text = f"is {shown(level)}, not a level of {name}; levels are {', '.join(labels)}"
            yield Mistake(("design", "baseline", name), text + did_you_mean(level_label(level), labels))


def _whole_plot_mistakes(design: DesignSection, factors: tuple[Factor, ...]) -> Iterator[Mistake]:
    names, hard = [factor.name for factor in factors], design.hard_to_change
    for index, name in enumerate(hard):
        if name not in names:
            yield Mistake(("design", "hard_to_change", index), f"{shown(name)} {_no_factor(name, names)}")
    if hard and set(hard) <= set(names) and all(f.name in hard for f in factors if len(f.levels) > 1):
        text = f"names {', '.join(hard)}, which leaves no factor to vary inside a whole plot; leave one out"
        yield Mistake(("design", "hard_to_change"), text)


def _compared_mistakes(design: DesignSection, factors: tuple[Factor, ...]) -> Iterator[Mistake]:
    names = [factor.name for factor in factors]
    for index, name in enumerate(design.compare_factors):
        if name not in names:
            yield Mistake(("design", "compare_factors", index), f"{shown(name)} {_no_factor(name, names)}")
    if design.compare_factors and design.compare != "one-factor":
        yield Mistake(("design", "compare_factors"), 'is for compare = "one-factor"')


def _screened_mistakes(design: DesignSection) -> Iterator[Mistake]:
    for index, name in enumerate(design.screened or []):
        if name not in METRICS:
            known = f"known are {', '.join(METRICS)}{did_you_mean(name, METRICS)}"
            yield Mistake(("design", "screened", index), f"{shown(name)} is no metric; {known}")
        elif name in (design.screened or [])[:index]:
            yield Mistake(("design", "screened", index), f"names {shown(name)} twice")


def _no_factor(name: str, known: Iterable[str]) -> str:
    factors = ", ".join(known) or "none: no field is given as a list"
    return f"is not a factor of this study; factors are {factors}{did_you_mean(name, known)}"


def _resolved(body: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The body with the user's own files as absolute paths: they are relative to the study file."""

    def script(path: str) -> str:
        return str((folder / path).resolve())

    def command(words: str) -> str:
        program, *rest = shlex.split(words)
        return shlex.join([script(program), *rest]) if "/" in program else words

    def drive(name: str) -> str:
        return resolved_drive(name, folder)

    def resolved(given: object, resolve: Callable[[str], str]) -> object:
        if isinstance(given, list):
            return [resolved(level, resolve) for level in given]
        return resolve(given) if isinstance(given, str) else given

    found = dict(body)
    for section, name, resolve in (
        ("stack", "device", drive),
        ("workload", "file", script),
        ("workload", "job", script),
        ("workload", "command", command),
        ("server", "option_file", script),
    ):
        if name in found.get(section, {}):
            found[section] = {**found[section], name: resolved(found[section][name], resolve)}
    return found
