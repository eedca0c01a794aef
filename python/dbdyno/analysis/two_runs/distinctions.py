"""What distinguishes a treatment of one run from the same treatment of another: settings, versions, what was read back.

A treatment that nothing distinguishes did not change, so what its figures did between the runs is the host's doing: it
is a control. Facts of the host are left out on purpose: where they alone differ, it is the host that differs.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from dbdyno.analysis.server_defaults import defaults_of_two_runs
from dbdyno.model.treatment import Treatment
from dbdyno.store.records import Run

_SERVER = "server "  # begins the name of a server's version; behind it stands what a study calls the server
_OF_BEGINNING = {"data", "page_cache"}  # layers that say where a trial's data came from, which is no setting
_LEVELS = "levels"  # the section that has named levels, of which each treatment has one


def distinctions(before: Run, after: Run, pair: tuple[Treatment, Treatment]) -> tuple[str, ...]:
    """Return the names of all that is known to differ between two runs for one treatment, in order of the alphabet.

    That are settings of the study and what was read back, ``"server.settings.sync_binlog"``, variables of the server
    that matter to storage, and versions, ``"version kernel"``; of a server's version only where the treatment has it.
    """
    old, new = pair
    set_to = settings_of(before, old), settings_of(after, new)
    seen = _read_back(before, old), _read_back(after, new)
    both = seen[0].keys() & seen[1].keys()
    names = {name for name in set_to[0].keys() | set_to[1].keys() if set_to[0].get(name) != set_to[1].get(name)}
    names |= {name for name in both if None not in (seen[0][name], seen[1][name]) and seen[0][name] != seen[1][name]}
    for defaults in defaults_of_two_runs(before, after, [pair]):
        names |= {f"server.{one.name}" for one in defaults.differing if one.matters}
    servers = {str(each["stack.server"]) for each in set_to if "stack.server" in each}
    return tuple(sorted(names | {f"version {name}" for name in _versions(before, after, servers)}))


def settings_of(run: Run, treatment: Treatment) -> dict[str, Any]:
    """Return what the study sets for a treatment, by section and field: what varies at its own level."""
    levels = {f"{one.section}.{one.name}" for one in run.design.factors if not one.gives}
    body = {name: section for name, section in run.study.items() if name != _LEVELS}
    found = {name: value for name, value in _leaves(body) if name not in levels}
    for factor in run.design.factors:
        level = treatment.levels.get(factor.name, "")
        found |= (factor.gives or {}).get(level, {}) if factor.gives else {f"{factor.section}.{factor.name}": level}
    return found | ({"design.settle": run.design.settle} if run.design.settle else {})


def _versions(before: Run, after: Run, servers: set[str]) -> Iterator[str]:
    for name in before.versions.keys() | after.versions.keys():
        of_another = name.startswith(_SERVER) and servers and name.removeprefix(_SERVER) not in servers
        if before.versions.get(name) != after.versions.get(name) and not of_another:
            yield name


def _read_back(run: Run, treatment: Treatment) -> dict[str, Any]:
    """Return what each trial of a treatment read back, by layer and name; None where it was not always the same."""
    each = [
        dict(_leaves({layer: of for layer, of in trial.observed.items() if layer not in _OF_BEGINNING}))
        for trial in run.trials
        if trial.treatment == treatment.id
    ]
    names = set().union(*each)
    alike = {name: all(trial.get(name) == each[0].get(name) for trial in each) for name in names}
    return {name: each[0].get(name) if alike[name] else None for name in names}


def _leaves(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, inside in value.items():
        if isinstance(inside, dict):
            yield from _leaves(inside, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", inside
