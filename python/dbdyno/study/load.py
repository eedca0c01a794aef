"""From a study file to a ``Study``; every mistake in the file is found here, before anything is touched."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from dbdyno.errors import UserError
from dbdyno.model.design import TREATMENTS_MAX
from dbdyno.model.metrics import METRICS
from dbdyno.study.cost_rules import broken_cost_rules, names_of, read_cost
from dbdyno.study.crash_rules import broken_crash_design_rules
from dbdyno.study.design_rules import broken_design_rules
from dbdyno.study.document import read_document
from dbdyno.study.fio_job import job_notes
from dbdyno.study.fleet_section import FleetSection, fleet_mistakes
from dbdyno.study.former_names import rename_former
from dbdyno.study.host_disks import disk_mistakes, on_some_disk, without_disk
from dbdyno.study.labels import level_label
from dbdyno.study.levels import LEVELS, LevelsSection, named_levels, tables_of
from dbdyno.study.mistakes import Mistake, did_you_mean, explain, line_of, mistakes_of, shown
from dbdyno.study.reported import ReportedSection
from dbdyno.study.reported_rules import misplaced
from dbdyno.study.rules import broken_rules
from dbdyno.study.scale import in_scale, scale_mistakes, scaled
from dbdyno.study.schema import FACTOR_SECTIONS, DesignSection, StudySection, TrialSpec
from dbdyno.study.study import Factor, Study, resolved_body, with_levels
from dbdyno.system.regular_file import read_text

BODY = ("stack", "queue", "filesystem", "server", "host", "workload", "probes", "crash")  # what a treatment consists of
TOP_LEVEL = ("version", "study", "hosts", *BODY, LEVELS, "design", "scale", "reported", "cost")

KERNEL = ("stack", "kernel")
CLIENTS_FROM = ("workload", "clients_from")  # a list that is one value, and no factor

Path_ = tuple[str | int, ...]
Model = TypeVar("Model", bound=BaseModel)


def load_study(path: Path, scale: str = "") -> Study:
    """Read and check a study file at all its scales; return it at ``scale``, or as it stands.

    Raises:
        UserError: It names file, line and field of every mistake, or the scales that there are.

    """
    text, raw, lines = read_document(path)
    notes = rename_former(path, raw, lines)
    try:
        studies = _at_every_scale(path, text, raw)
    except _Mistakes as found:
        in_order = sorted(found.mistakes, key=lambda mistake: line_of(lines, mistake) or 0)
        messages = dict.fromkeys(explain(path, lines, mistake) for mistake in in_order)
        raise UserError("\n".join(messages)) from None
    if scale not in studies:
        names = [name for name in studies if name]
        known = ", ".join(names) or "none"
        raise UserError(f"{path}: has no scale {shown(scale)}; it has {known}{did_you_mean(scale, names)}")
    return replace(studies[scale], notes=(*notes, *_notes_on_jobs(raw, path.parent)))


def _notes_on_jobs(raw: dict[str, Any], folder: Path) -> Iterator[str]:
    """What the job files of fio that a study names say in vain, or otherwise than fio alone takes it."""
    workload = raw["workload"]
    if workload.get("kind") != "fio" or "job" not in workload:
        return
    for job in workload["job"] if isinstance(workload["job"], list) else [workload["job"]]:
        file = folder / job
        for note in job_notes(read_text(file), file.parent):
            yield f"{job}: {note}"


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
    fleet = _section(FleetSection, raw["hosts"], ("hosts",), found) if "hosts" in raw else None
    body: dict[str, Any] = {name: section for name, section in raw.items() if name in BODY}
    body = without_disk(fleet, body, found)
    factors = _all_factors(raw, body, found)
    if too_many := _too_many_treatments(factors):
        raise _Mistakes([too_many])
    reported = tuple(_reported(raw.get("reported", []), found))
    cost = read_cost(raw.get("cost"), lambda model, table, place: _section(model, table, place, found))
    if all(isinstance(section, dict) for section in body.values()):
        found += _level_mistakes(body, factors)
    if found or about is None or design is None:
        raise _Mistakes(list(_without_followers(found)))
    found += _combination_mistakes(on_some_disk(fleet, body), factors, path.parent)
    found += _simulated_mistakes(design, body, factors)
    found += _baseline_mistakes(design, factors)
    found += _whole_plot_mistakes(design, factors)
    found += _compared_mistakes(design, factors)
    found += _secondary_mistakes(design)
    if fleet is not None:
        kinds = {spec.stack.kind for spec in _specs(body, factors)}
        found += fleet_mistakes(fleet, [factor.name for factor in factors], body, kinds)
        found += disk_mistakes(fleet, factors, kinds)
    found += broken_crash_design_rules(design) if "crash" in body else broken_design_rules(design)
    if found:
        raise _Mistakes(found)
    resolved = resolved_body(body, path.parent) | _resolved_levels(factors, path.parent)
    return Study(
        path=path, text=text, raw=resolved, about=about, design=design, factors=factors, reported=reported, cost=cost,
        fleet=fleet,
    )  # fmt: skip


def _all_factors(raw: dict[str, Any], body: dict[str, Any], found: list[Mistake]) -> tuple[Factor, ...]:
    """Every factor in the order of the file; named levels are one of them."""
    factors = list(_factors(body, found))
    levels = named_levels(raw, {factor.path: factor.name for factor in factors}, found)
    if not isinstance(raw.get(LEVELS), dict):
        return tuple(factors)
    tables = tables_of(raw[LEVELS])
    common = {name: value for name, value in raw[LEVELS].items() if name not in tables}
    section = _section(LevelsSection, common, (LEVELS,), found)
    if levels and section is not None:
        order = list(raw)
        place = sum(order.index(factor.path[0]) < order.index(LEVELS) for factor in factors)
        factors.insert(place, Factor(name=section.factor, path=(LEVELS,), levels=levels))
    return tuple(factors)


def _resolved_levels(factors: tuple[Factor, ...], folder: Path) -> dict[str, Any]:
    """What the named levels give, as the body has it: the identity of what is measured depends on it."""
    named = [level for factor in factors if factor.path == (LEVELS,) for level in factor.levels]
    return {LEVELS: {level.name: resolved_body(level.as_body(), folder) for level in named}} if named else {}


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


def _without_followers(found: list[Mistake]) -> Iterator[Mistake]:
    """The mistakes without those that follow from an earlier one: at the same place, or inside it."""
    reported: set[Path_] = set()
    for mistake in found:
        if not any(mistake.path[:length] in reported for length in range(1, len(mistake.path) + 1)):
            reported.add(mistake.path)
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
            each = (((*path, name), value) for name, value in table.items() if isinstance(value, list))
            varied += [(place, value) for place, value in each if place != CLIENTS_FROM]
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
        seen = set[str]()
        for index, label in enumerate(labels):
            if label in seen:
                found.append(Mistake((*path, index), f"gives the level {label!r} twice"))
            seen.add(label)
        name = path[-1] if names.count(path[-1]) == 1 else ".".join(path)
        yield Factor(name=name, path=path, levels=tuple(levels))


def _too_many_treatments(factors: tuple[Factor, ...]) -> Mistake | None:
    """The limit on treatments, said of the factor with most levels: it is kept before each of them is checked."""
    count = math.prod(len(factor.levels) for factor in factors)
    if count <= TREATMENTS_MAX:
        return None
    largest = max(factors, key=lambda factor: len(factor.levels))
    others = " with the other factors" if len(factors) > 1 else ""
    text = (
        f"has {len(largest.levels)} levels, which{others} makes {count} treatments; a study may have {TREATMENTS_MAX}"
    )
    return Mistake(largest.path, text)


def _level_mistakes(body: dict[str, Any], factors: tuple[Factor, ...]) -> list[Mistake]:
    """Every field and every level, each checked once: all first levels, then the others one at a time."""
    first = tuple(factor.levels[0] for factor in factors)
    found: dict[tuple[Path_, str], Mistake] = {}
    trials = [(first, _places(factors, first))]
    for index, factor in enumerate(factors):
        before, after = first[:index], first[index + 1 :]
        trials += [((*before, level, *after), factor.places(level)) for level in factor.levels[1:]]
    for levels, places in trials:
        try:
            TrialSpec.model_validate(with_levels(body, factors, levels))
        except ValidationError as error:
            for mistake in mistakes_of(error, TrialSpec, ()):
                place = _place(mistake.path, places)
                found.setdefault((place, mistake.text), Mistake(place, mistake.text))
    # A level is reported at its own place; the list as a whole is not at fault.
    varied = {factor.path for factor in factors}
    return [mistake for mistake in found.values() if mistake.path not in varied]


def _places(factors: tuple[Factor, ...], levels: tuple[Any, ...]) -> dict[tuple[str, ...], Path_]:
    """Of each field that varies, where the file gives the value that it has at these levels."""
    return {
        field: place
        for factor, level in zip(factors, levels, strict=True)
        for field, place in factor.places(level).items()
    }


def _place(path: Path_, places: dict[tuple[str, ...], Path_]) -> Path_:
    """Where the file says what stands at a path: a factor's level, by its number, or a field of a named level."""
    found = next((place for field, place in places.items() if field == path), None)
    inside = (place for field, place in places.items() if place[0] == LEVELS and field[: len(path)] == path)
    return found or (next(inside, path) if len(path) > 1 else path)


def _combination_mistakes(body: dict[str, Any], factors: tuple[Factor, ...], folder: Path) -> list[Mistake]:
    found: dict[tuple[Path_, str], Mistake] = {}
    for levels in product(*(factor.levels for factor in factors)):
        spec = TrialSpec.model_validate(with_levels(body, factors, levels))
        places = _places(factors, levels)
        for mistake in broken_rules(spec, folder):
            place = _place(mistake.path, places)
            found.setdefault((place, mistake.text), Mistake(place, mistake.text))
    return list(found.values())


def _simulated_mistakes(design: DesignSection, body: dict[str, Any], factors: tuple[Factor, ...]) -> Iterator[Mistake]:
    """Simulated treatments beside others, which have no clock in common, and what makes no sense for simulated ones."""
    simulated = {spec.stack.is_simulated for spec in _specs(body, factors)}
    if len(simulated) > 1:
        text = "is given in some treatments only; give it in all of them, or write a study for those that are measured"
        places = (factor.places(level) for factor in factors for level in factor.levels)
        yield Mistake(next(found[KERNEL] for found in places if KERNEL in found), text)
    elif simulated == {True} and design.settle is not None:
        yield Mistake(("design", "settle"), "has no effect on simulated stacks, which all start anew; leave it out")


def _specs(body: dict[str, Any], factors: tuple[Factor, ...]) -> list[TrialSpec]:
    """Every treatment."""
    combinations = product(*(factor.levels for factor in factors))
    return [TrialSpec.model_validate(with_levels(body, factors, levels)) for levels in combinations]


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


def _secondary_mistakes(design: DesignSection) -> Iterator[Mistake]:
    for index, name in enumerate(design.secondary_metrics or []):
        if name not in METRICS:
            known = f"known are {', '.join(METRICS)}{did_you_mean(name, METRICS)}"
            yield Mistake(("design", "secondary_metrics", index), f"{shown(name)} is no metric; {known}")
        elif name in (design.secondary_metrics or [])[:index]:
            yield Mistake(("design", "secondary_metrics", index), f"names {shown(name)} twice")


def _no_factor(name: str, known: Iterable[str]) -> str:
    factors = ", ".join(known) or "none: no field is given as a list"
    return f"is not a factor of this study; factors are {factors}{did_you_mean(name, known)}"
