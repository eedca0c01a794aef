"""From a study file to a ``Study``; every mistake in the file is found here, before anything is touched."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path, PurePath
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from dbdyno.errors import UserError
from dbdyno.model.design import TREATMENTS_MAX
from dbdyno.model.metrics import METRICS
from dbdyno.model.printable import one_line
from dbdyno.model.similar import did_you_mean, nearest_word
from dbdyno.study.beside import BACKUPS
from dbdyno.study.document import read_document
from dbdyno.study.drives import OF_HOST
from dbdyno.study.fio_rules import job_notes
from dbdyno.study.levels import LEVELS, LevelsSection, named_levels, tables_of
from dbdyno.study.mistakes import Mistake, explain, line_of, mistakes_of, shown
from dbdyno.study.reported import misplaced
from dbdyno.study.rules import broken_crash_design_rules, broken_rules
from dbdyno.study.scale import in_scale, scale_mistakes, scaled
from dbdyno.study.schema import (
    BETWEEN,
    BOOTED_KERNEL,
    CACHE_DISK,
    CACHES,
    DISKS,
    CostSection,
    DesignSection,
    DeviceCostSection,
    FailIfSection,
    FleetSection,
    ReportedSection,
    StudyCost,
    StudySection,
    TrialSpec,
    factor_sections,
    fleet_mistakes,
)
from dbdyno.study.simulated_loads import unsure_name
from dbdyno.study.study import BESIDE, Study, VariedField, resolved_body, with_disk, with_levels
from dbdyno.study.suite import SUITE, Suite, SuiteSection, compared_within_loads, read_suite, step_mistakes
from dbdyno.study.units import level_label
from dbdyno.system.files import read_text

# ``[cost]`` read and held against the study: each device must be one of its own, and no treatment has two prices.


Path_ = tuple[str | int, ...]
Read = Callable[[Any, object, Path_], Any]  # a section class, its table, where that stands -> the section, or None


def read_cost(raw: object, read: Read) -> StudyCost | None:
    """The section: what is no table is common to all devices, what is one is a device."""
    if not isinstance(raw, dict):
        return None
    common = {name: value for name, value in raw.items() if not isinstance(value, dict)}
    tables = {name: value for name, value in raw.items() if isinstance(value, dict)}
    devices = {name: read(DeviceCostSection, table, ("cost", name)) for name, table in tables.items()}
    section = read(CostSection, common, ("cost",))
    return None if section is None or None in devices.values() else StudyCost(section, devices)


def names_of(labels: Mapping[str, str], device: str) -> set[str]:
    """By which names a treatment's device may be called: any of its levels, or the device that all have."""
    return {*labels.values(), device, PurePath(device).name}


def broken_cost_rules(cost: StudyCost | None, treatments: Sequence[set[str]]) -> Iterator[Mistake]:
    """Every device that is none of the study's, and what can't be; ``treatments`` holds each one's names."""
    if cost is None:
        return
    known = sorted(set().union(*treatments))
    if not cost.devices:
        yield Mistake(("cost",), 'names no device; give each a section of its own, such as [cost."hdd-7200"]')
    for name, device in cost.devices.items():
        if name not in known:
            text = f"is not a device or level of this study; known are {', '.join(known)}{did_you_mean(name, known)}"
            yield Mistake(("cost", name), text)
        if (device.data_drives or 1) > device.drives:
            text = f"is {device.data_drives}, more than its {device.drives} drives"
            yield Mistake(("cost", name, "data_drives"), text)
        if device.power_watts_idle is not None and device.power_watts is None:
            yield Mistake(("cost", name, "power_watts_idle"), "needs power_watts beside it")
    names = list(cost.devices)
    for place, name in enumerate(names):
        for other in names[:place]:
            if any({name, other} <= treatment for treatment in treatments):
                text = f"and {shown(other)} are both levels of one treatment, which can have one price only"
                yield Mistake(("cost", name), text)


# What can't be combined in ``[design]`` about when measuring stops.


def broken_design_rules(design: DesignSection) -> Iterator[Mistake]:
    """Every rule that this section breaks."""
    if design.blocks is not None:
        for name in ("until", "max_blocks"):
            if getattr(design, name) is not None:
                text = "can't be given with blocks, which fixes their number; leave out one of the two"
                yield Mistake(("design", name), text)
    if design.until == "precise" and design.half_width is None:
        yield Mistake(("design", "half_width"), 'is missing; until = "precise" needs it, such as "2%"')
    if design.until != "precise" and design.half_width is not None:
        yield Mistake(("design", "half_width"), 'is for until = "precise"; add that, or leave half_width out')


# What of ``[fail_if]`` no verdict of the study could ever meet.


def broken_fail_if_rules(
    fail_if: FailIfSection, design: DesignSection, *, crash: bool, compares: bool
) -> Iterator[Mistake]:
    """Every threshold that can't be judged, and a section without any."""
    sizes = {name: size for name in ("slower", "faster") if (size := getattr(fail_if, name)) is not None}
    if not sizes and not fail_if.unsafe:
        yield Mistake(("fail_if",), 'has no threshold; give slower = "5%", faster or unsafe = true')
    if fail_if.unsafe and not crash:
        text = "needs power cuts; add [crash], or leave it out"
        yield Mistake(("fail_if", "unsafe"), text)
    for name, size in sizes.items():
        if crash:
            text = (
                "is about speed, [crash] about what is lost; give unsafe = true, or a study of its own without [crash]"
            )
        elif not compares:
            text = "needs a comparison; give a field as a list"
        elif size < design.margin:
            margin = f"the margin of {100 * design.margin:g} %"
            text = (
                f"is less than {margin}, below which a difference counts as none; give {100 * design.margin:g}% or more"
            )
        else:
            continue
        yield Mistake(("fail_if", name), text)


# ``[hosts.disk.NAME]``: the real disk of each host under test, in the place of one that ``[stack]`` names for all.


_PLACES = (("stack", "device"), ("stack", "serial"))


def without_disk(fleet: FleetSection | None, body: dict[str, Any], mistakes: list[Mistake]) -> dict[str, Any]:
    """The body of a study, whose stack stands on the disk of each host where ``[hosts.disk]`` names them."""
    stack = body.get("stack")
    if fleet is None or not fleet.disk or not isinstance(stack, dict):
        return body
    for _, field in _PLACES:
        if field in stack:
            text = "can't be given with [hosts.disk], which says it for each host; leave out one of the two"
            mistakes.append(Mistake(("stack", field), text))
    return with_disk(body, OF_HOST, None)


def on_some_disk(fleet: FleetSection | None, body: dict[str, Any]) -> dict[str, Any]:
    """The body as it can be checked by the rules for real disks, which take this name; without such disks as it is."""
    return with_disk(body, "/dev/disk/by-id/of-each-host", None) if fleet and fleet.disk else body


def disk_mistakes(fleet: FleetSection, factors: tuple[VariedField, ...], kinds: set[str]) -> Iterator[Mistake]:
    """Every rule that ``[hosts.disk]`` breaks, and a study on real disks that lacks it."""
    hosts = fleet.under_test
    if not fleet.disk:
        if "real" in kinds and len(hosts) > 1:
            text = f"is the disk of one host, and {len(hosts)} are under test; leave it out, and give each its own, "
            yield Mistake(("stack", "device"), text + f"as in [hosts.disk.{hosts[0]}]")
        return
    for host in fleet.disk.keys() - set(hosts):
        text = f"is not under test; those are {', '.join(hosts)}{did_you_mean(host, hosts)}"
        yield Mistake(("hosts", "disk", host), text)
    if lacking := [host for host in hosts if host not in fleet.disk]:
        yield Mistake(("hosts", "disk"), f"names no disk for {', '.join(lacking)}; every host under test has one")
    for host, disk in fleet.disk.items():
        if text := unsure_name(disk.device, disk.serial):
            yield Mistake(("hosts", "disk", host, "device"), f"{text} beside it, as serial")
    yield from _varied(factors)


def _varied(factors: tuple[VariedField, ...]) -> Iterator[Mistake]:
    """Named levels that give what each host has of its own."""
    places = (factor.places(level) for factor in factors for level in factor.levels)
    text = "can't be given where [hosts.disk] names a disk for each host"
    yield from (Mistake(fields[path], text) for fields in places for path in _PLACES if path in fields)


# ``[[workload.beside]]``: taken out of ``[workload]``, and by name, so that what varies in it has a path of names.


LOADS_BESIDE_MAX = 8


def lift_beside(raw: dict[str, Any], mistakes: list[Mistake]) -> dict[str, Any]:
    """The study's tables with the loads beside the judged one as a section of their own, name -> table."""
    workload = raw.get("workload")
    if not isinstance(workload, dict) or BESIDE not in workload:
        return raw
    lifted = {**raw, "workload": {name: value for name, value in workload.items() if name != BESIDE}}
    tables, place = workload[BESIDE], ("workload", BESIDE)
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        mistakes.append(Mistake(place, "must be written as [[workload.beside]]: there may be several"))
        return lifted
    if len(tables) > LOADS_BESIDE_MAX:
        mistakes.append(Mistake(place, f"are {len(tables)} loads; at most {LOADS_BESIDE_MAX} can be run beside one"))
    by_name: dict[str, Any] = {}
    fields = {field for section in raw.values() if isinstance(section, dict) for field in section}
    for number, table in enumerate(tables):
        name = table.get("name")
        if text := _name_mistake(name, by_name, fields):
            mistakes.append(Mistake((*place, number, "name"), text))
        else:
            by_name[name] = table
    return {**lifted, BESIDE: by_name}


def _name_mistake(name: object, others: Iterable[str], fields: Iterable[str]) -> str:
    """What is wrong with the name of a load beside; empty if nothing is. A factor may go by it, as by a field's."""
    if not isinstance(name, str):
        what = "is missing" if name is None else f"is {shown(name)} but must be text in quotes"
        return f'{what}; give the load a name for reports, such as "backup"'
    if name in others:
        return f"is {shown(name)} a second time; give each load beside a name of its own"
    return f"is {shown(name)}, the name of a field of this study; give the load another" if name in fields else ""


def _in_file(mistake: Mistake, raw: dict[str, Any]) -> Mistake:
    """The mistake where the file has it: a load beside stands in a list."""
    if mistake.path[:1] != (BESIDE,) or BESIDE not in raw.get("workload", {}):
        return mistake
    names = [table.get("name") for table in raw["workload"][BESIDE]]
    inside = mistake.path[1:]
    place = (names.index(inside[0]), *inside[1:]) if inside else ()
    return Mistake(("workload", BESIDE, *place), mistake.text)


# What a treatment consists of.
BODY = ("stack", "queue", *BETWEEN, "filesystem", "server", "host", "workload", "probes", "crash")
TOP_LEVEL = ("version", "study", SUITE, "hosts", *BODY, LEVELS, "design", "fail_if", "scale", "reported", "cost")

KERNEL = ("stack", "kernel")
CLIENTS_FROM = ("workload", "clients_from")  # a list that is one value, and no factor

Model = TypeVar("Model", bound=BaseModel)


def load_study(path: Path, scale: str = "") -> Study:
    """Read and check a study file at all its scales; return it at ``scale``, or as it stands.

    Raises:
        UserError: It names file, line and field of every mistake, or the scales that there are.

    """
    text, raw, lines = read_document(path)
    if raw.keys() <= {"version"}:
        holds = "has no section but its version" if raw else "is empty"
        needs = "a study needs [study], [stack] and [workload]"
        raise UserError(f"{path}: {holds}; {needs}: write them, or have dbdyno new write a study to start from")
    try:
        studies = _at_every_scale(path, text, raw)
    except _Mistakes as error:
        in_order = sorted(error.mistakes, key=lambda mistake: line_of(lines, mistake) or 0)
        messages = dict.fromkeys(explain(path, lines, mistake) for mistake in in_order)
        raise UserError("\n".join(messages)) from None
    if scale not in studies:
        names = [name for name in studies if name]
        known = ", ".join(names) or "none"
        raise UserError(f"{path}: has no scale {shown(scale)}; it has {known}{did_you_mean(scale, names)}")
    return replace(studies[scale], notes=tuple(_notes_on_jobs(raw, path.parent)))


def _notes_on_jobs(raw: dict[str, Any], folder: Path) -> Iterator[str]:
    """What the job files of fio that a study names say in vain, or otherwise than fio alone takes it."""
    workload = raw.get("workload", {})
    if workload.get("kind") != "fio" or "job" not in workload:
        return
    for job in workload["job"] if isinstance(workload["job"], list) else [workload["job"]]:
        file = folder / job
        for note in job_notes(read_text(file), file.parent):
            yield f"{job}: {note}"


def _at_every_scale(path: Path, text: str, raw: dict[str, Any]) -> dict[str, Study]:
    """The study as it stands, by the name "", and at each of its scales."""
    mistakes: list[Mistake] = []
    studies = {"": _check(path, text, raw)}
    for name in raw.get("scale", {}):
        try:
            studies[name] = replace(_check(path, text, scaled(raw, name)), scale=name)
        except _Mistakes as error:
            mistakes += [in_scale(mistake, raw, name) for mistake in error.mistakes]
    mistakes = mistakes or [*misplaced(list(studies.values())), *_misplaced_costs(list(studies.values()))]
    if mistakes:
        raise _Mistakes(mistakes)
    return studies


class _Mistakes(Exception):  # noqa: N818  (carries them, is not one)
    def __init__(self, mistakes: list[Mistake]) -> None:
        super().__init__()
        self.mistakes = mistakes


def _check(path: Path, text: str, raw: dict[str, Any]) -> Study:
    mistakes = [*_top_level_mistakes(raw), *scale_mistakes(raw)]
    suite = _suite(raw, path.parent, mistakes)
    try:
        return _check_lifted(path, text, raw, suite, mistakes)
    except _Mistakes as error:
        found = [suite.in_load(mistake, path) if suite else mistake for mistake in error.mistakes]
        raise _Mistakes([_in_file(mistake, raw) for mistake in found]) from None


def _check_lifted(path: Path, text: str, raw: dict[str, Any], suite: Suite | None, mistakes: list[Mistake]) -> Study:
    raw = suite.applied(raw) if suite else raw
    raw = lift_beside({name: section for name, section in raw.items() if name != BESIDE}, mistakes)
    about = _section(StudySection, raw.get("study", {}), ("study",), mistakes)
    design = _section(DesignSection, raw.get("design", {}), ("design",), mistakes)
    fleet, booted = _of_hosts(raw, mistakes)
    of_treatments = {*BODY, BESIDE, *booted}
    body: dict[str, Any] = {name: section for name, section in (raw | booted).items() if name in of_treatments}
    body = without_disk(fleet, body, mistakes)
    factors = _all_factors(raw, body, suite, mistakes)
    if suite and design is not None:
        design = compared_within_loads(design, factors, mistakes)
    if too_many := _too_many_treatments(factors):
        raise _Mistakes([too_many])
    reported = tuple(_reported_sections(raw.get("reported", []), mistakes))
    cost = read_cost(raw.get("cost"), lambda model, table, place: _section(model, table, place, mistakes))
    fail_if = _section(FailIfSection, raw["fail_if"], ("fail_if",), mistakes) if "fail_if" in raw else None
    if all(isinstance(section, dict) for section in body.values()):
        mistakes += _level_mistakes(body, factors)
    if mistakes or about is None or design is None:
        raise _Mistakes(list(_without_followers(mistakes, raw)))
    about = about if about.title else about.model_copy(update={"title": one_line(path.stem)})
    mistakes += _combination_mistakes(on_some_disk(fleet, body), factors, path.parent)
    mistakes += _unused_disks(body, factors)
    mistakes += _simulated_mistakes(design, body, factors)
    mistakes += _baseline_mistakes(design, factors)
    mistakes += _whole_plot_mistakes(design, factors)
    mistakes += _compared_mistakes(design, factors)
    mistakes += _secondary_mistakes(design)
    if suite and suite.after:
        mistakes += step_mistakes(design, _specs(body, factors), has_hosts=fleet is not None)
    if fleet is not None:
        kinds = {spec.stack.kind for spec in _specs(body, factors)}
        mistakes += fleet_mistakes(fleet, [factor.name for factor in factors], body, kinds)
        mistakes += disk_mistakes(fleet, factors, kinds)
        if "real" in kinds and body["stack"].get("disks"):
            text = "can't be given with [hosts] on real disks; leave it out, or have the data on an emulated drive, too"
            mistakes.append(Mistake(DISKS, text))
        mistakes += _boot_mistakes(design, body, factors)
    mistakes += broken_crash_design_rules(design) if "crash" in body else broken_design_rules(design)
    if fail_if is not None:
        mistakes += broken_fail_if_rules(fail_if, design, crash="crash" in body, compares=bool(factors))
    if mistakes:
        raise _Mistakes(mistakes)
    resolved = resolved_body(body, path.parent) | _resolved_levels(factors, path.parent)
    return Study(
        path=path, text=text, raw=resolved, about=about, design=design, factors=factors, reported=reported, cost=cost,
        fail_if=fail_if, fleet=fleet,
    )  # fmt: skip


def _of_hosts(raw: dict[str, Any], mistakes: list[Mistake]) -> tuple[FleetSection | None, dict[str, Any]]:
    """``[hosts]`` as far as it is the same for all treatments, and what of it a treatment has: the kernel."""
    section = raw.get("hosts")
    if not isinstance(section, dict):
        return None, {}
    boot = {name: value for name, value in section.items() if name == "boot"}
    fields = {name: value for name, value in section.items() if name not in boot}
    return _section(FleetSection, fields, ("hosts",), mistakes), {"hosts": boot} if boot else {}


def _boot_mistakes(design: DesignSection, body: dict[str, Any], factors: tuple[VariedField, ...]) -> Iterator[Mistake]:
    """A kernel that only some treatments have, and what can't be kept where trials differ by kernel."""
    kernels = {spec.booted_kernel for spec in _specs(body, factors)}
    if "" in kernels and len(kernels) > 1:
        text = (
            "is given in some treatments only, and the others would run with whichever was booted last; give it in all"
        )
        places = (factor.places(level) for factor in factors for level in factor.levels)
        yield Mistake(next(fields[BOOTED_KERNEL] for fields in places if BOOTED_KERNEL in fields), text)
    if len(kernels) > 1 and design.settle == "trial":
        text = 'can\'t be "trial" where treatments differ by kernel: the baseline before each would need its own start'
        yield Mistake(("design", "settle"), text)


def _suite(raw: dict[str, Any], folder: Path, mistakes: list[Mistake]) -> Suite | None:
    """The loads of a suite; None without one, or where it is wrong, and then nothing else is looked at."""
    if SUITE not in raw or not isinstance(raw[SUITE], dict):
        return None
    section = _section(SuiteSection, raw[SUITE], (SUITE,), mistakes)
    suite = read_suite(raw, section, folder, mistakes) if section else None
    if suite is None:
        raise _Mistakes(mistakes)
    return suite


def _all_factors(
    raw: dict[str, Any], body: dict[str, Any], suite: Suite | None, mistakes: list[Mistake]
) -> tuple[VariedField, ...]:
    """Every factor in the order of the file; named levels are one of them, the loads of a suite the first."""
    factors = list(_factors(body, mistakes))
    varied = {factor.path: factor.name for factor in factors}
    levels = named_levels(raw, varied, mistakes, is_suite=suite is not None)
    if not isinstance(raw.get(LEVELS), dict):
        return tuple(factors)
    if suite:
        return (suite.factor(levels, body["workload"]), *factors) if levels else tuple(factors)
    tables = tables_of(raw[LEVELS])
    common = {name: value for name, value in raw[LEVELS].items() if name not in tables}
    section = _section(LevelsSection, common, (LEVELS,), mistakes)
    if levels and section is not None:
        order = list(raw)
        place = sum(order.index(factor.path[0]) < order.index(LEVELS) for factor in factors)
        factors.insert(place, VariedField(name=section.factor, path=(LEVELS,), levels=levels))
    return tuple(factors)


def _resolved_levels(factors: tuple[VariedField, ...], folder: Path) -> dict[str, Any]:
    """What the named levels give, as the body has it: the identity of what is measured depends on it."""
    levels = [level for factor in factors if factor.path == (LEVELS,) for level in factor.levels]
    return {LEVELS: {level.name: resolved_body(level.as_body(), folder) for level in levels}} if levels else {}


def _misplaced_costs(studies: list[Study]) -> Iterator[Mistake]:
    """What of ``[cost]`` fits the study at none of its scales."""
    treatments = [names_of(labels, spec.stack.device) for study in studies for labels, spec in study.combinations()]
    yield from broken_cost_rules(studies[0].cost, treatments)
    specs = [spec for study in studies for _, spec in study.combinations()] if studies[0].cost else []
    if any(spec.stack.devices > 1 for spec in specs):
        yield Mistake(("cost",), "counts one disk; leave it out, or give stack.devices = 1")
    if any(spec.by_disk for spec in specs):
        yield Mistake(("cost",), "counts the disk of the data alone; leave it out, or [stack.disks]")


def _reported_sections(tables: object, mistakes: list[Mistake]) -> Iterator[ReportedSection]:
    for place, table in enumerate(tables if isinstance(tables, list) else ()):
        section = _section(ReportedSection, table, ("reported", place), mistakes)
        if section is not None:
            yield section


def _section(model: type[Model], raw: object, path: Path_, mistakes: list[Mistake]) -> Model | None:
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        mistakes += mistakes_of(error, model, path)
        return None


def _without_followers(mistakes: list[Mistake], raw: dict[str, Any]) -> Iterator[Mistake]:
    """The mistakes without those that follow from an earlier one: at the same place, or inside it.

    What a section lacks that the file has under a misspelt name is said by the mistake of that name.
    """
    meant = {nearest_word(name, TOP_LEVEL) for name in raw if name not in TOP_LEVEL} - raw.keys()
    reported: set[Path_] = {(name,) for name in meant}
    for mistake in mistakes:
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
        version = f"is {shown(raw['version'])}" if "version" in raw else "is missing"
        yield Mistake(("version",), f"{version}; this dbdyno reads version = 1")
    for name in ("study", "stack", "workload"):
        if name not in raw and not (name == "workload" and SUITE in raw):
            yield Mistake((name,), f"is missing; a study needs [{name}]")


def _kind_as_factor(kinds: list[Any]) -> str:
    """What is said of a list of kinds: of a backup among them, the line that runs it beside the first."""
    text = "can't be a factor: it decides which fields the section has; write a study for each kind, or run one beside "
    backups = [kind for kind in kinds[1:] if kind in BACKUPS]
    if not backups or kinds[0] in BACKUPS:
        return text + "the other by [[workload.beside]]"
    levels = ", ".join(shown(kind) for kind in ("none", *backups))
    line = f'beside = [{{ name = "backup", kind = [{levels}], start = "2s" }}]'
    return f"{text}the other: in [workload] give kind = {shown(kinds[0])} and the line {line}"


def _factors(body: dict[str, Any], mistakes: list[Mistake]) -> Iterator[VariedField]:
    varied: list[tuple[tuple[str, ...], list[Any]]] = []
    loads_beside = [f"{BESIDE}.{name}" for name in body.get(BESIDE, {})]
    sections = (*factor_sections(body), *loads_beside)
    for section in (place for name in body for place in sections if place.split(".")[0] == name):
        path = tuple(section.split("."))
        table: Any = body
        for part in path:
            table = table.get(part, {}) if isinstance(table, dict) else {}
        if isinstance(table, dict):
            lists = (((*path, name), value) for name, value in table.items() if isinstance(value, list))
            varied += [(place, value) for place, value in lists if place != CLIENTS_FROM]
    names = [path[-1] for path, _ in varied if path[0] != BESIDE]
    for path, levels in varied:
        if path == ("workload", "kind"):
            mistakes.append(Mistake(path, _kind_as_factor(levels)))
            continue
        if not levels:
            mistakes.append(Mistake(path, "is an empty list; give its levels, or one value without brackets"))
            continue
        if any(isinstance(level, list | dict) for level in levels):
            mistakes.append(Mistake(path, "must be a list of plain values, one per level"))
            continue
        labels = [level_label(level) for level in levels]
        labels_before = set[str]()
        for index, label in enumerate(labels):
            if label in labels_before:
                mistakes.append(Mistake((*path, index), f"gives the level {label!r} twice"))
            labels_before.add(label)
        yield VariedField(name=_factor_name(path, names), path=path, levels=tuple(levels))


def _factor_name(path: tuple[str, ...], names: Sequence[str]) -> str:
    """What a factor is called; ``names`` are those of all fields that vary. A load beside goes by its own name."""
    if path[0] == BESIDE:
        return path[1] if path[-1] == "kind" else ".".join(path[1:])
    return path[-1] if names.count(path[-1]) == 1 else ".".join(path)


def _too_many_treatments(factors: tuple[VariedField, ...]) -> Mistake | None:
    """The limit on treatments, said of the factor with most levels: it is kept before each of them is checked."""
    count = math.prod(len(factor.levels) for factor in factors)
    if count <= TREATMENTS_MAX:
        return None
    largest = max(factors, key=lambda factor: len(factor.levels))
    clause = " with the other factors" if len(factors) > 1 else ""
    text = (
        f"has {len(largest.levels)} levels, which{clause} makes {count} treatments; a study may have {TREATMENTS_MAX}"
    )
    return Mistake(largest.path, text)


def _level_mistakes(body: dict[str, Any], factors: tuple[VariedField, ...]) -> list[Mistake]:
    """Every field and every level, each checked once: all first levels, then the others one at a time."""
    first = tuple(factor.levels[0] for factor in factors)
    mistakes: dict[tuple[Path_, str], Mistake] = {}
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
                mistakes.setdefault((place, mistake.text), Mistake(place, mistake.text))
    # A level is reported at its own place; the list as a whole is not at fault.
    varied = {factor.path for factor in factors}
    return [mistake for mistake in mistakes.values() if mistake.path not in varied]


def _places(factors: tuple[VariedField, ...], levels: tuple[Any, ...]) -> dict[tuple[str, ...], Path_]:
    """Of each field that varies, where the file gives the value that it has at these levels."""
    return {
        field: place
        for factor, level in zip(factors, levels, strict=True)
        for field, place in factor.places(level).items()
    }


def _place(path: Path_, places: dict[tuple[str, ...], Path_]) -> Path_:
    """Where the file says what stands at a path: a factor's level, by its number, or a field of a named level."""
    level_place = next((place for field, place in places.items() if field == path), None)
    inside = (place for field, place in places.items() if place[0] == LEVELS and field[: len(path)] == path)
    return level_place or (next(inside, path) if len(path) > 1 else path)


def _combination_mistakes(body: dict[str, Any], factors: tuple[VariedField, ...], folder: Path) -> list[Mistake]:
    mistakes: dict[tuple[Path_, str], Mistake] = {}
    for levels in product(*(factor.levels for factor in factors)):
        spec = TrialSpec.model_validate(with_levels(body, factors, levels))
        places = _places(factors, levels)
        for mistake in broken_rules(spec, folder):
            place = _place(mistake.path, places)
            mistakes.setdefault((place, mistake.text), Mistake(place, mistake.text))
    return list(mistakes.values())


def _simulated_mistakes(
    design: DesignSection, body: dict[str, Any], factors: tuple[VariedField, ...]
) -> Iterator[Mistake]:
    """Simulated treatments beside others, which have no clock in common, and what makes no sense for simulated ones."""
    simulated = {spec.stack.is_simulated for spec in _specs(body, factors)}
    if len(simulated) > 1:
        text = "is simulated in some treatments only; simulate all of them or none, as the others have no virtual time"
        places = (factor.places(level) for factor in factors for level in factor.levels)
        yield Mistake(next(fields[KERNEL] for fields in places if KERNEL in fields), text)
    elif simulated == {True} and design.settle is not None:
        yield Mistake(("design", "settle"), "has no effect on simulated stacks, which all start anew; leave it out")


def _unused_disks(body: dict[str, Any], factors: tuple[VariedField, ...]) -> Iterator[Mistake]:
    """Named disks on which no treatment puts anything."""
    specs, own = _specs(body, factors), body["stack"].get("disks", {})
    for name in dict.fromkeys(name for spec in specs for name in spec.stack.disks):
        if all(name not in spec.by_disk for spec in specs):
            text = f"is a disk on which nothing lies; give [server.place], such as innodb_log = {shown(name)}"
            text += f", or stack.cache = {shown(CACHES[0])}" if name == CACHE_DISK else ""
            path = (*DISKS, name)
            yield Mistake(path if name in own else _of_level(path, factors), text)


def _of_level(section: tuple[str, ...], factors: tuple[VariedField, ...]) -> Path_:
    """Where a named level gives a section that the study itself does not have."""
    size = len(section)
    given = (factor.places(level).items() for factor in factors for level in factor.levels)
    places = (place[: size - len(field)] for fields in given for field, place in fields if field[:size] == section)
    return next(places, section)


def _specs(body: dict[str, Any], factors: tuple[VariedField, ...]) -> list[TrialSpec]:
    """Every treatment."""
    combinations = product(*(factor.levels for factor in factors))
    return [TrialSpec.model_validate(with_levels(body, factors, levels)) for levels in combinations]


def _baseline_mistakes(design: DesignSection, factors: tuple[VariedField, ...]) -> Iterator[Mistake]:
    by_name = {factor.name: factor for factor in factors}
    for name, level in design.baseline.items():
        if name not in by_name:
            yield Mistake(("design", "baseline", name), _no_factor(name, by_name))
        elif level_label(level) not in by_name[name].labels():
            labels = by_name[name].labels()
            text = f"is {shown(level)}, not a level of {name}; levels are {', '.join(labels)}"
            yield Mistake(("design", "baseline", name), text + did_you_mean(level_label(level), labels))


def _whole_plot_mistakes(design: DesignSection, factors: tuple[VariedField, ...]) -> Iterator[Mistake]:
    names, hard = [factor.name for factor in factors], design.hard_to_change
    for index, name in enumerate(hard):
        if name not in names:
            yield Mistake(("design", "hard_to_change", index), f"{shown(name)} {_no_factor(name, names)}")
    if hard and set(hard) <= set(names) and all(f.name in hard for f in factors if len(f.levels) > 1):
        text = f"names {', '.join(hard)}, which leaves no factor to vary inside a whole plot; leave one out"
        yield Mistake(("design", "hard_to_change"), text)


def _compared_mistakes(design: DesignSection, factors: tuple[VariedField, ...]) -> Iterator[Mistake]:
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
            yield Mistake(("design", "secondary_metrics", index), f"{shown(name)} is not a metric; {known}")
        elif name in (design.secondary_metrics or [])[:index]:
            yield Mistake(("design", "secondary_metrics", index), f"names {shown(name)} twice")


def _no_factor(name: str, known: Iterable[str]) -> str:
    factors = ", ".join(known) or "none: no field is given as a list"
    return f"is not a factor of this study; factors are {factors}{did_you_mean(name, known)}"
