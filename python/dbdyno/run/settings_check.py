"""What programs of this host take of a plan, and of an option file: servers its settings, mkfs its options."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from dbdyno.errors import DbdynoError, UserError
from dbdyno.filesystems.catalogue import KINDS as FILESYSTEMS
from dbdyno.model.wording import count
from dbdyno.plan.plan import Plan
from dbdyno.servers.contract import SettingOutcome
from dbdyno.servers.sources.installation import find_server
from dbdyno.stack.capabilities import Capability
from dbdyno.stack.capabilities import filesystem as filesystem_capability
from dbdyno.stack.kinds.catalogue import KINDS
from dbdyno.stack.short_start import Asked, MkfsOptions, Say, Starting, mkfs_complaint
from dbdyno.study.option_file import Options
from dbdyno.study.place import place_in
from dbdyno.study.schema import TrialSpec
from dbdyno.study.section import Setting

ENGINE = "innodb"  # of a study that ``new`` writes
# Distinct sets of settings each of which is tried. Of more, as many as it takes for each level to be in one.
ALL_MAX = 12
TRIED_MAX = 64  # of any: each costs a start
ROUNDS_MAX = 12  # in which settings of an option file are changed or left out: what is left is tried once more
_REMEDIES = {
    "adjusted": "give a value that it takes",
    "limited": "give less, or let whoever runs dbdyno open more files (ulimit -n)",
    "unknown": "leave it out",
}


@dataclass(frozen=True)
class _Set:
    """What a server would be started with, and a treatment that does."""

    asked: Asked
    spec: TrialSpec


def check_settings(plan: Plan, say: Say) -> Iterator[Capability]:
    """What becomes of each setting that a server does not take as it is written; no server is started for none."""
    sets = _sets_of(plan)
    if left := len(sets[TRIED_MAX:]):
        yield _untried("servers", f"{count(left, 'set')} of {len(sets)} were left out, as each costs a start")
    sets = sets[:TRIED_MAX]
    with Starting() as starting:
        for number, one in enumerate(sets, 1):
            try:
                outcomes = starting.try_settings(one.asked, _counted(say, number, len(sets)))
            except (DbdynoError, OSError) as error:
                yield _untried(one.asked.server, str(error))
                return
            for setting in outcomes:
                if setting.how != "as asked":
                    yield _capability(plan, one, setting)


def _counted(say: Say, number: int, of: int) -> Say:
    return (lambda text: say(f"{text} ({number} of {of} sets of settings)")) if of > 1 else say


def _untried(server: str, why: str) -> Capability:
    outcome = SettingOutcome("settings", server, "not tried", said=why)
    return Capability(f"settings of {server}", ok=True, detail=f"not tried here: {why}", needed=False, outcome=outcome)


def _capability(plan: Plan, one: _Set, setting: SettingOutcome) -> Capability:
    name, field = f"{setting.name} of {one.asked.server}", tuple[str, ...]()  # as dbdyno sets it
    if setting.name in one.spec.server.settings:
        field = "server", "settings", setting.name
        name = place_in(plan.study, one.spec, field)
    remedy = _REMEDIES.get(setting.how, "")
    return Capability(name, ok=setting.holds, detail=setting.text, remedy=remedy, field=field, outcome=setting)


def _sets_of(plan: Plan) -> list[_Set]:
    """What is to be tried: each set of settings, or as many as it takes for each level to be in one."""
    found: dict[tuple[str, str, tuple[tuple[str, Setting], ...]], _Set] = {}
    for spec in plan.specs.values():
        if not spec.server.settings or not _can_be_tried(spec):
            continue
        settings = tuple(sorted(spec.server.settings.items()))
        key = spec.stack.server, spec.stack.engine, settings
        clients = max(spec.workload.connections, found[key].asked.clients if key in found else 0)
        found[key] = _Set(Asked(*key, clients), spec)
    sets = list(found.values())
    return sets if len(sets) <= ALL_MAX else _covering(sets)


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
    for one in sets:
        values = {(one.asked.server, one.asked.engine, name, repr(value)) for name, value in one.asked.settings}
        if values - seen:
            kept.append(one)
            seen |= values
    return kept


def check_mkfs_options(plan: Plan) -> Iterator[Capability]:
    """What programs of this host have against making the plan's filesystems as it says; none is asked for defaults."""
    asked: dict[MkfsOptions, TrialSpec] = {}
    for spec in plan.specs.values():
        name, stack = spec.stack.filesystem, spec.stack
        if name and spec.filesystem.mkfs and KINDS[stack.kind].ON_HOST:
            asked.setdefault(MkfsOptions(name, spec.filesystem.mkfs, stack.size, stack.devices), spec)
    for options, spec in asked.items():
        try:
            said = mkfs_complaint(options)
        except (DbdynoError, OSError) as error:
            if filesystem_capability(options.filesystem).ok:  # else that says why
                detail = f"{options.options} was not tried here: {error}"
                yield Capability(f"mkfs of {options.filesystem}", ok=True, detail=detail, needed=False)
            continue
        if said:
            field = ("filesystem", "mkfs")
            where = place_in(plan.study, spec, field)
            program = FILESYSTEMS[options.filesystem].command[0]
            yield Capability(where, ok=False, detail=f"{options.options}: {program} says: {said}", field=field)


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
                outcomes = starting.try_settings(Asked(server, ENGINE, tuple(sorted(options.settings.items()))), say)
            except (DbdynoError, OSError) as error:
                return str(error)
            if not _mend(options, [one for one in outcomes if one.name in options.settings]):
                return ""
    raise UserError(f"{server} takes other settings with each try; give it fewer of them, or write the study by hand")


def _mend(options: Options, outcomes: list[SettingOutcome]) -> bool:
    """Change or leave out what is not taken as it is written; whether anything was."""
    wrong = [one for one in outcomes if not one.holds or one.how == "not tried"]
    limited = [one for one in wrong if one.how == "limited"]
    # They share one limit: the others may fit without the largest.
    largest = max(limited, key=lambda one: _number(one.asked), default=None)
    for one in wrong:
        if one.how == "adjusted" and one.name not in options.changed:
            options.change(one.name, _as_setting(one.got), one.text)
        elif one.how != "limited" or one is largest:
            options.leave_out(one.name, one.said if one.how == "not tried" else one.text)
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
