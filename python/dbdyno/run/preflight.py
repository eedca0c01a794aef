"""What a plan needs of the host, and which of it is not there."""

import os
import platform
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from dbdyno import __version__
from dbdyno.errors import DbdynoError, HostError, UserError
from dbdyno.filesystems import KINDS as FILESYSTEMS
from dbdyno.filesystems import OPENZFS
from dbdyno.host.processor import (
    is_guest,
    kernel_facts,
    means_here,
    memory_facts,
    numa_facts,
    processor_facts,
    virtualisation_facts,
)
from dbdyno.host.storage import disk_facts, disks_under
from dbdyno.model.similar import did_you_mean
from dbdyno.model.wording import count
from dbdyno.mysql.my_cnf import Options
from dbdyno.mysql.settings import INNODB
from dbdyno.mysql.table_options import parse_table_options
from dbdyno.plan.plan import Plan, erased_devices, make_plan
from dbdyno.run.profile import perf_need
from dbdyno.servers.contract import SettingOutcome
from dbdyno.servers.sources.installation import find_server
from dbdyno.stack import capabilities
from dbdyno.stack.capabilities import Capability
from dbdyno.stack.capabilities import filesystem as filesystem_capability
from dbdyno.stack.emptiness import identify
from dbdyno.stack.kinds.catalogue import KINDS
from dbdyno.stack.short_start import (
    IMAGE_BYTES,
    MkfsOptions,
    MountOptions,
    Say,
    Starting,
    StartRequest,
    fio_complaint,
    mkfs_outcome,
    mount_outcome,
)
from dbdyno.stack.tools import tool_path
from dbdyno.store.records import TABLE_OPTIONS
from dbdyno.study.document import Setting
from dbdyno.study.fio_job import included, render_job
from dbdyno.study.scale import line_of_field, line_without, place_in, toml_value
from dbdyno.study.schema import DISKS, TrialSpec
from dbdyno.study.study import Study
from dbdyno.study.workloads import DumpSection, FioSection, OwnTables, SbtestTables
from dbdyno.system.files import read_text
from dbdyno.workload.beside import program_of
from dbdyno.workload.kinds import workload_of

_Tried = TypeVar("_Tried", bound=MkfsOptions | MountOptions)

# What programs of this host take of a plan, and of an option file: settings, options of mkfs and mount, fio's jobs.


ENGINE = INNODB  # of a study that ``new`` writes
# Distinct sets of settings each of which is tried. Of more, as many as it takes for each level to be in one.
ALL_MAX = 12
TRIED_MAX = 64  # of any: each costs a start
IN_MEMORY = ("emulated", "memory")  # kinds of stack whose disk takes memory of the host
ROUNDS_MAX = 12  # in which settings of an option file are changed or left out: what is left is tried once more


_WITHOUT_HOST = "without the settings of [host], which only a trial makes, it is not granted"


@dataclass(frozen=True)
class _Set:
    """What a server would be started with, and a treatment that does."""

    request: StartRequest
    spec: TrialSpec


def check_settings(plan: Plan, say: Say) -> Iterator[Capability]:
    """What becomes of each setting that a server does not take as it is written; no server is started for none."""
    sets = _sets_of(plan)
    if left := len(sets[TRIED_MAX:]):
        yield _untried("servers", f"{count(left, 'set')} of {len(sets)} were left out, as each costs a start")
    sets = sets[:TRIED_MAX]
    with Starting() as starting:
        for number, settings_set in enumerate(sets, 1):
            try:
                outcomes = starting.try_settings(settings_set.request, _counted(say, number, len(sets)))
            except (DbdynoError, OSError) as error:
                yield _untried(settings_set.request.server, str(error))
                return
            for setting in outcomes:
                if setting.how == "not granted" and any(spec.host.settings for spec in plan.specs.values()):
                    why = f"{_WITHOUT_HOST} ({setting.said})"
                    yield _capability(plan, settings_set, replace(setting, how="not tried", said=why))
                elif setting.how != "as asked":
                    yield _capability(plan, settings_set, setting)


def _counted(say: Say, number: int, of: int) -> Say:
    return (lambda text: say(f"{text} ({number} of {of} sets of settings)")) if of > 1 else say


def _untried(server: str, why: str) -> Capability:
    outcome = SettingOutcome("settings", server, "not tried", said=why)
    return Capability(f"settings of {server}", ok=True, detail=f"not tried here: {why}", needed=False, outcome=outcome)


def _capability(plan: Plan, settings_set: _Set, setting: SettingOutcome) -> Capability:
    name, field = f"{setting.name} of {settings_set.request.server}", tuple[str, ...]()  # as dbdyno sets it
    if setting.name in settings_set.spec.server.settings:
        field = "server", "settings", setting.name
        name = place_in(plan.study, settings_set.spec, field)
    elif setting.name == TABLE_OPTIONS:
        field = "workload", setting.name
        name = place_in(plan.study, settings_set.spec, field)
        if setting.how == "refused":
            setting = replace(setting, said=f"{setting.asked}: {settings_set.request.server} says: {setting.said}")
    remedy = _remedy(plan, settings_set.spec, field, setting) if field and not setting.holds else ""
    return Capability(name, ok=setting.holds, detail=setting.text, remedy=remedy, field=field, outcome=setting)


def _remedy(plan: Plan, spec: TrialSpec, field: tuple[str, ...], outcome: SettingOutcome) -> str:
    """What to write in place of what is not taken."""
    line, instead = line_without(plan.study, spec, field), ""
    if outcome.how == "adjusted":
        value = _as_setting(outcome.got)
        instead = f"write what it takes, {toml_value(value) if line else line_of_field(outcome.name, value)}, or "
    elif outcome.how == "limited":
        instead = "give less, or allow the user who runs dbdyno more open files (ulimit -n), or "
    return f"{instead}leave this level out, so that the line reads: {line}" if line else f"{instead}leave it out"


def _sets_of(plan: Plan) -> list[_Set]:
    """What is to be tried: each set of settings, or as many as it takes for each level to be in one."""
    sets_by_key: dict[tuple[str, str, tuple[tuple[str, Setting], ...], str], _Set] = {}
    for spec in plan.specs.values():
        options = _options_to_try(spec)
        if not (spec.server.settings or options) or not _can_be_tried(spec):
            continue
        settings = tuple(sorted(spec.server.settings.items()))
        key = spec.stack.server, spec.stack.engine, settings, options
        clients, in_memory = spec.connections, spec.stack.kind in IN_MEMORY
        if key in sets_by_key:
            clients = max(clients, sets_by_key[key].request.clients)
            in_memory = in_memory or sets_by_key[key].request.disk_in_memory
        sets_by_key[key] = _Set(StartRequest(*key[:3], clients, in_memory, options), spec)
    sets = list(sets_by_key.values())
    return sets if len(sets) <= ALL_MAX else _covering(sets)


def _options_to_try(spec: TrialSpec) -> str:
    """The options of the treatment's tables; a PARTITION clause only where the columns are known that it may name."""
    load = spec.workload
    if not isinstance(load, OwnTables):
        return ""
    options = load.table_options
    if isinstance(load, SbtestTables | DumpSection):
        return options
    return options.removesuffix(parse_table_options(options).partitions).strip()


def _can_be_tried(spec: TrialSpec) -> bool:
    """Whether a trial starts a server that there is here, with an engine that it has; else that is said elsewhere."""
    if not KINDS[spec.stack.kind].starts_server(spec):
        return False
    try:
        return not find_server(spec.stack.server).lacks(spec.stack.engine)
    except DbdynoError:
        return False


def _covering(sets: list[_Set]) -> list[_Set]:
    """Of many sets those that bring a value that none before has."""
    kept, seen = [], set[tuple[object, ...]]()
    for settings_set in sets:
        values = {
            (settings_set.request.server, settings_set.request.engine, name, repr(value))
            for name, value in (*settings_set.request.settings, (TABLE_OPTIONS, settings_set.request.table_options))
        }
        if values - seen:
            kept.append(settings_set)
            seen |= values
    return kept


@dataclass(frozen=True)
class _Place:
    """Where a study says how a filesystem of a treatment is made and mounted."""

    spec: TrialSpec
    section: tuple[str, ...]


def _filesystems(plan: Plan) -> Iterator[tuple[_Place, TrialSpec]]:
    """Every filesystem of a plan, as that of the data of a treatment."""
    for spec in plan.specs.values():
        yield _Place(spec, ("filesystem",)), spec
        for name, on in spec.by_disk.items():
            yield _Place(spec, (*DISKS, name)), on


def check_filesystems(plan: Plan) -> Iterator[Capability]:
    """What this host has against making and mounting the plan's filesystems as it says; none is asked for defaults."""
    yield from _refusals(plan, "mkfs", _mkfs_options, mkfs_outcome)
    yield from _refusals(plan, "mount", _mount_options, mount_outcome)


def _mkfs_options(spec: TrialSpec) -> MkfsOptions | None:
    name, stack, options = spec.stack.filesystem, spec.stack, spec.filesystem.mkfs
    if not name or not options or (name == OPENZFS.name and KINDS[stack.kind].IN_GUEST):  # whose own tools say so
        return None
    return MkfsOptions(name, options, stack.size, stack.filesystem_devices)


def _mount_options(spec: TrialSpec) -> MountOptions | None:
    name, stack, options = spec.stack.filesystem, spec.stack, spec.filesystem.mount
    in_guest = KINDS[stack.kind].IN_GUEST  # whose own kernel says so
    if not name or options in {"", "defaults"} or not FILESYSTEMS[name].mountable or in_guest:
        return None
    size = min(stack.size or IMAGE_BYTES, IMAGE_BYTES)  # a size is mkfs's to judge; a large one takes writes
    return MountOptions(name, options, spec.filesystem.mkfs, size, stack.filesystem_devices)


def _refusals(
    plan: Plan,
    verb: str,
    options_of: Callable[[TrialSpec], _Tried | None],
    outcome_of: Callable[[_Tried], SettingOutcome],
) -> Iterator[Capability]:
    places_by_options: dict[_Tried, _Place] = {}
    for place, on in _filesystems(plan):
        if KINDS[on.stack.kind].ON_HOST and (options := options_of(on)):
            places_by_options.setdefault(options, place)
    for options, place in places_by_options.items():
        name = options.filesystem
        try:
            outcome = outcome_of(options)
        except (DbdynoError, OSError) as error:
            if filesystem_capability(name).ok:  # else that says why
                detail = f"{options.options} was not tried here: {error}"
                yield Capability(f"{verb} of {name}", ok=True, detail=detail, needed=False)
            continue
        if not outcome.holds:
            speaker = FILESYSTEMS[name].command[0] if verb == "mkfs" else f"a mount of {name}"
            outcome = replace(outcome, said=f"{options.options}: {speaker} says: {outcome.said}")
            spec, field = place.spec, (*place.section, verb)
            where, remedy = place_in(plan.study, spec, field), _remedy(plan, spec, field, outcome)
            yield Capability(where, ok=False, detail=outcome.text, remedy=remedy, field=field, outcome=outcome)


def check_jobs(plan: Plan) -> Iterator[Capability]:
    """What fio of this host has against the plan's job files: one may be of another version of it."""
    jobs = {spec.workload.job: spec for spec in plan.specs.values() if isinstance(spec.workload, FioSection)}
    for job, spec in jobs.items():
        if not job or not KINDS[spec.stack.kind].ON_HOST or tool_path("fio") is None:
            continue
        path, field = Path(job), ("workload", "job")
        text = read_text(path)
        try:
            complaint = fio_complaint(render_job(text, {}, path.parent))
        except (DbdynoError, OSError) as error:
            yield Capability("fio's jobs", ok=True, detail=f"{path.name} was not tried here: {error}", needed=False)
            continue
        if complaint:
            word = re.search(r"(?:failed parsing |Bad option <)(\w+)", complaint)
            lines = (line for line in included(text, path.parent) if word and line.word == word[1])
            place = next((f"{line.where}: " for line in lines), "")
            where = place_in(plan.study, spec, field)
            detail, remedy = f"{path.name}: {place}fio says: {complaint}", "fix that line, or leave it out"
            yield Capability(where, ok=False, detail=detail, remedy=remedy, field=field)


def version_of(server: str) -> str:
    """Return the version text of a server of this host; empty where it is not on it."""
    try:
        return find_server(server).version
    except DbdynoError:
        return ""


def fit_settings(server: str, options: Options, say: Say) -> str:
    """Leave in ``options`` what the server takes, as it takes it; returns why that could not be tried, if so."""
    with Starting() as starting:
        for _ in range(ROUNDS_MAX):
            if not options.settings:
                return ""
            try:
                outcomes = starting.try_settings(
                    StartRequest(server, ENGINE, tuple(sorted(options.settings.items()))), say
                )
            except (DbdynoError, OSError) as error:
                return str(error)
            if not _mend(options, [outcome for outcome in outcomes if outcome.name in options.settings]):
                return ""
    raise UserError(f"{server} takes different settings at each try; give it fewer, or write the study by hand")


def settings_not_taken(study: Study, say: Say) -> list[SettingOutcome]:
    """What servers of this host do not take of a study's settings, and what could not be tried."""
    outcomes = [
        capability.outcome for capability in check_settings(make_plan(study, seed=0), say) if capability.outcome
    ]
    return [outcome for outcome in outcomes if not outcome.holds or outcome.how == "not tried"]


def _mend(options: Options, outcomes: list[SettingOutcome]) -> bool:
    """Change or leave out what is not taken as it is written; whether anything was."""
    wrong = [outcome for outcome in outcomes if not outcome.holds or outcome.how == "not tried"]
    limited = [outcome for outcome in wrong if outcome.how == "limited"]
    # They share one limit: the others may fit without the largest.
    largest = max(limited, key=lambda outcome: _number(outcome.asked), default=None)
    for outcome in wrong:
        if outcome.how == "adjusted" and outcome.name not in options.changed:
            options.change(outcome.name, _as_setting(outcome.got), outcome.text)
        elif outcome.how != "limited" or outcome is largest:
            options.leave_out(outcome.name, outcome.said if outcome.how == "not tried" else outcome.text)
    return bool(wrong)


def _number(value: Setting) -> float:
    try:
        return float(value)
    except ValueError:
        return 0.0


def _as_setting(shown: str) -> Setting:
    """What a server shows, as a study writes it."""
    if shown in {"ON", "OFF"}:
        return shown == "ON"
    shown = re.sub(r"\.0+$", "", shown)
    return int(shown) if shown.isdecimal() and len(shown) <= len(str(2**63)) - 1 else shown


def unmet_needs(plan: Plan, erase: frozenset[str] = frozenset(), say: Say = lambda _: None) -> list[Capability]:
    """What stands in the way of running a plan here, each with its remedy; empty if nothing does."""
    return [need for need in needs_of(plan, erase, say) if not need.ok]


def needs_of(plan: Plan, erase: frozenset[str] = frozenset(), say: Say = lambda _: None) -> list[Capability]:
    """What a plan needs here; of each what there is, or the remedy. ``say`` is told what takes a moment."""
    needs: dict[str, Capability] = {need.name: need for need in _unknown_serials(plan, erase)}
    for spec in plan.specs.values():
        for need in _needs(spec, erase):
            if need.field and not need.ok:
                placed = replace(need, name=place_in(plan.study, spec, need.field))
                needs[placed.said] = placed
            else:
                needs[need.name] = need if need.name not in needs or not need.ok else needs[need.name]
    if plan.profile:
        needs["perf"] = perf_need()
    for need in (*check_jobs(plan), *check_filesystems(plan), *check_settings(plan, say)):
        needs[need.said] = need
    return list(needs.values())


def with_host_decided(plan: Plan) -> Plan:
    """The plan with each `host.awake = "auto"` decided for this host: yes on a virtual machine that allows it."""
    if all(spec.host.awake != "auto" for spec in plan.specs.values()):
        return plan
    able = is_guest() and bool(means_here(frozenset(os.sched_getaffinity(0))).by)
    decided = {
        id_: spec.model_copy(
            update={"host": spec.host.model_copy(update={"awake": able and not spec.stack.is_in_machine})}
        )
        if spec.host.awake == "auto"
        else spec
        for id_, spec in plan.specs.items()
    }
    return replace(plan, specs=decided)


def _unknown_serials(plan: Plan, erase: frozenset[str]) -> Iterator[Capability]:
    """Serials to be erased that no disk of the study has."""
    if not erase:
        return
    devices = erased_devices(plan)
    serials = []
    for device in devices:
        with suppress(HostError):  # said of the device itself
            serials.append(identify(Path(device)).serial)
    for serial in sorted(erase.difference(serials)):
        name, leave_out = f"--erase {serial!r}", "leave it out"
        if not devices:
            yield Capability(name, ok=False, detail="this study erases no real device", remedy=leave_out)
        elif len(serials) == len(devices):
            detail = f"no disk of this study has that serial; it has {', '.join(map(repr, serials))}"
            remedy = did_you_mean(serial, serials).removeprefix(". ")
            yield Capability(name, ok=False, detail=detail, remedy=remedy or leave_out)


def _needs(spec: TrialSpec, erase: frozenset[str]) -> list[Capability]:
    if not KINDS[spec.stack.kind].ON_HOST:
        return []
    programs, load, kind = capabilities.own_programs(), workload_of(spec), KINDS[spec.stack.kind]
    needs = [programs, *kind.needs_of_server(spec)]
    tool = capabilities.tool(load.tool.names, load.tool.package) if load.tool else programs
    needs.append(tool)
    needs += [
        capabilities.tool(program.names, program.package)
        for section in spec.loads_beside.values()
        if (program := program_of(section))
    ]
    if tool.ok:
        refusal, name = load.refused(), f"load of {load.tool.name}" if load.tool else "load generator"
        needs.append(Capability(name, ok=not refusal, detail=refusal, remedy="fix [workload]"))
    placed = capabilities.placement(spec.server, in_guest=True) if kind.IN_GUEST else _process_needs(spec)
    return [*needs, *kind.needs_of_ground(spec, erase), *placed]


def _process_needs(spec: TrialSpec) -> Iterator[Capability]:
    """What memory, processors and I/O class of the server and the client need."""
    stack = spec.stack
    for name, cpus in (("server_cpus", stack.server_cpus), ("client_cpus", stack.client_cpus)):
        if cpus:
            yield capabilities.processors(name, cpus)
    if (spec.server.ionice or "").startswith("realtime"):
        yield capabilities.root()
    yield from capabilities.placement(spec.server)
    if stack.memory:
        yield capabilities.memory_cgroup()
    if spec.host.awake is True:
        yield capabilities.awake()
    yield from capabilities.host_settings(spec.host, limited=bool(stack.memory))


# What a run was made with and on: versions and host facts, kept with it. Nothing secret, no host name.


def versions(plan: Plan) -> dict[str, str]:
    """Versions of dbdyno, Python, the kernel, and each server and each tool of the plan."""
    specs = plan.specs.values()
    served = {spec.stack.server: spec for spec in specs if spec.has_server}  # one is asked once
    servers = {name: KINDS[spec.stack.kind].server_version(spec) for name, spec in served.items()}
    tools = [tool for spec in specs if (tool := workload_of(spec).tool)]
    tools += [tool for spec in specs for section in spec.loads_beside.values() if (tool := program_of(section))]
    return {
        "dbdyno": __version__,
        "python": platform.python_version(),
        "kernel": platform.release(),
        **{f"server {name}": version for name, version in servers.items()},
        **{tool.name: tool.version() for tool in dict.fromkeys(tools)},
    }


def host_facts(plan: Plan) -> dict[str, Any]:
    """The machine as the run found it, as far as results may depend on it; what can't be known is ``"unknown"``."""
    return {**this_machine(), "disks": _disks(plan)}


def this_machine() -> dict[str, Any]:
    """The same, but for the disks of a study."""
    processor = processor_facts()
    return {
        "architecture": platform.machine(),
        "distribution": _distribution(),
        "cores": os.cpu_count(),
        "load_average_1min": os.getloadavg()[0],
        "kernel": kernel_facts(),
        "cpu": processor,
        "memory": memory_facts(),
        "numa": numa_facts(),
        "virtualisation": virtualisation_facts(cpu_flags=processor["flags"]),
    }


def _disks(plan: Plan) -> dict[str, Any]:
    """The disks that the data stand on: those the study names, and the one below the state folder."""
    places = {place for spec in plan.specs.values() for place in KINDS[spec.stack.kind].places(spec)}
    return {name: disk_facts(name) for name in sorted({name for place in places for name in disks_under(place)})}


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    except OSError:
        return "unknown"


# ``run --keep-traces``: which plans allow it.


WITHOUT = {
    "here": "a folder",
    "memory": "memory",
    "image": "a machine of its own",
    "external": "an external server",
    "simulated": "a simulation",
}


def keeping_traces(plan: Plan) -> Plan:
    """The plan with its block traces kept. Raises ``UserError`` where a treatment has no block device, or two."""
    for treatment in plan.design.tried:
        stack = plan.specs[treatment.id].stack
        if stack.kind in WITHOUT:
            raise UserError(
                f"--keep-traces: {treatment.label} stands on {WITHOUT[stack.kind]}, not on a block device of its own; "
                'leave it out, or give the study a device, such as device = "ssd-sata"'
            )
        if stack.devices > 1:
            raise UserError(f"--keep-traces: {treatment.label} stands on {stack.devices} devices; one can be traced")
    return replace(plan, keep_traces=True)
