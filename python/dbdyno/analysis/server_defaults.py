"""What two servers differ in beside what a study sets: their variables, those that matter to storage first."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dbdyno.analysis.stand_ins import in_common_words
from dbdyno.model.design import Treatment
from dbdyno.mysql.settings import BINARY_LOG, BINARY_LOG_SETTINGS, CONCERNS, MATTERING, Concern, plain_value
from dbdyno.store.records import Run, Trial

ABSENT = "absent"
_RANK = {name: place for place, name in enumerate(MATTERING)}


@dataclass(frozen=True)
class Setting:
    """One variable on both sides; ``ABSENT`` where a server does not have it."""

    name: str
    before: str
    after: str

    @property
    def matters(self) -> bool:
        """Whether it is known to matter to storage."""
        return self.name in _RANK

    @property
    def concern(self) -> Concern | None:
        """What it decides that no two servers may differ in unnoticed; ``None`` of all other settings."""
        return CONCERNS.get(self.name)


@dataclass(frozen=True)
class ServerDefaults:
    """What two servers differ in though the study did not set it."""

    before: str  # what the sides are called; of two runs they may have one name
    after: str
    differing: list[Setting]  # on both sides, or known to matter; those that matter first
    only_before: list[str]  # names of further variables that one server alone has
    only_after: list[str]
    pairs: tuple[tuple[str, str], ...] = ()  # treatments that have these servers, as ids: (before, after)
    both_log: bool = False  # whether either writes a binary log, with any of these treatments

    @property
    def durability_and_logging(self) -> list[Setting]:
        """What differs in durability or logging, and takes effect: of the binary log only where both write one."""
        by_name = {setting.name: setting for setting in self.differing if ABSENT not in {setting.before, setting.after}}
        names = (name for name in CONCERNS if self.both_log or name not in BINARY_LOG_SETTINGS)
        return [by_name[name] for name in names if name in by_name]


def server_defaults(run: Run) -> list[ServerDefaults]:
    """Return one for each pair of servers that a planned comparison has; none where each has the same server."""
    treatments = {treatment.id: treatment for treatment in run.design.treatments}
    defaults_by_names: dict[tuple[str, str], ServerDefaults] = {}
    for pair in run.design.comparisons:
        sides = treatments[pair.baseline], treatments[pair.level]
        old, new = (_trials_of(run, side) for side in sides)
        names = _names(sides, (old, new))
        if names[0] != names[1]:
            _add(defaults_by_names, compared_settings(*names, _variables(old), _variables(new), set_by(run)), sides)
    return list(defaults_by_names.values())


def defaults_of_two_runs(
    before: Run, after: Run, matched: Sequence[tuple[Treatment, Treatment]]
) -> list[ServerDefaults]:
    """Return one for each pair of servers that two runs measured the same treatments with, where they differ."""
    defaults_by_names: dict[tuple[str, str], ServerDefaults] = {}
    for sides in matched:
        first, second = _trials_of(before, sides[0]), _trials_of(after, sides[1])
        names, set_by_study = (_version(first), _version(second)), set_by(before) | set_by(after)
        variables = in_common_words(before, after, _variables(first), _variables(second))
        _add(defaults_by_names, compared_settings(*names, *variables, set_by_study), sides)
    return list(defaults_by_names.values())


def _add(
    defaults_by_names: dict[tuple[str, str], ServerDefaults],
    defaults: ServerDefaults | None,
    sides: tuple[Treatment, Treatment],
) -> None:
    """Add what two treatments differ in, under the names of their servers; the first that have them stand for all."""
    if defaults is None:
        return
    names = defaults.before, defaults.after
    same = defaults_by_names.get(names, defaults)
    pairs, both_log = (*same.pairs, (sides[0].id, sides[1].id)), same.both_log or defaults.both_log
    defaults_by_names[names] = replace(same, pairs=pairs, both_log=both_log)


def set_by(run: Run) -> set[str]:
    """Return the names of the variables that the study sets, in whichever way."""
    of_levels = (name for factor in run.design.factors for fields in (factor.gives or {}).values() for name in fields)
    names = {
        *run.study.get("server", {}).get("settings", {}),
        *(factor.name for factor in run.design.factors),
        *of_levels,
    }
    return {name.rpartition(".")[2].replace("-", "_") for name in names}


def _trials_of(run: Run, treatment: Treatment) -> list[Trial]:
    return [trial for trial in run.trials if trial.treatment == treatment.id]


def _names(sides: Sequence[Treatment], trials: Sequence[Sequence[Trial]]) -> tuple[str, str]:
    """Return the servers by their levels, where these differ, otherwise by their versions."""
    levels = [side.levels.get("server", "") for side in sides]
    versions = [_version(of_side) for of_side in trials]
    before, after = levels if levels[0] != levels[1] else versions
    return before, after


def _version(trials: Iterable[Trial]) -> str:
    return next(
        (str(trial.observed["server"].get("version", "")) for trial in trials if "server" in trial.observed), ""
    )


def _variables(trials: Iterable[Trial]) -> Mapping[str, str]:
    return next((trial.server_variables for trial in trials if trial.server_variables), {})


def compared_settings(
    before: str, after: str, old: Mapping[str, str], new: Mapping[str, str], set_by_study: Iterable[str]
) -> ServerDefaults | None:
    """Return what differs of two servers' settings but those in ``set_by_study``, which a study sets.

    ``before`` and ``after`` are what they are called, ``old`` and ``new`` their settings by name. None where the
    settings of a side are not known, or nothing differs.
    """
    set_by_study = set(set_by_study)
    if not old or not new:
        return None
    names = sorted(old.keys() & new.keys() | (old.keys() | new.keys()) & _RANK.keys(), key=_place)
    settings = (
        Setting(name, old.get(name, ABSENT), new.get(name, ABSENT)) for name in names if name not in set_by_study
    )
    differing = [
        setting
        for setting in settings
        if plain_value(setting.name, setting.before) != plain_value(setting.name, setting.after)
    ]
    only_before, only_after = (
        sorted(own.keys() - other.keys() - _RANK.keys() - set_by_study) for own, other in ((old, new), (new, old))
    )
    if not (differing or only_before or only_after):
        return None
    both_log = all(plain_value(BINARY_LOG, variables.get(BINARY_LOG, "")) == "on" for variables in (old, new))
    return ServerDefaults(before, after, differing, only_before, only_after, both_log=both_log)


def _place(name: str) -> tuple[int, str]:
    return _RANK.get(name, len(_RANK)), name
