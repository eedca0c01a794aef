"""Settings that a server showed as asked for though the host did not grant them, by the server's own error log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.model.design import Comparison, Design
from dbdyno.model.printable import short
from dbdyno.model.quantity import is_off
from dbdyno.store.records import NOT_GRANTED, Trial


@dataclass(frozen=True)
class NotGranted:
    """A setting that a treatment had in name only."""

    name: str
    value: str  # as the server showed it
    said: str  # by the server
    trials: int  # in which it was not granted
    of: int


def not_granted(trials: Sequence[Trial]) -> tuple[NotGranted, ...]:
    """Return what trials of a treatment were not granted, by name; nothing of runs that did not look."""
    lacking: dict[str, list[Trial]] = {}
    said: dict[str, str] = {}
    for trial in trials:
        found = _server(trial).get(NOT_GRANTED)
        for name, sentence in found.items() if isinstance(found, Mapping) else ():
            lacking.setdefault(str(name), []).append(trial)
            said.setdefault(str(name), short(str(sentence)))
    return tuple(
        NotGranted(short(name), shown_value(those, name), said[name], len(those), len(trials))
        for name, those in sorted(lacking.items())
    )


def in_name_only(design: Design, blocks: UsableBlocks, pair: Comparison) -> tuple[str, NotGranted] | None:
    """Return the id of the treatment that has the only difference of a pair in name only, and the setting.

    So both of them were measured without it; ``None`` where the two differ in fact, or in more than that.
    """
    levels = {one.id: one.levels for one in design.treatments}
    level, baseline = levels[pair.level], levels[pair.baseline]
    differing = [name for name in level if level[name] != baseline.get(name)]
    if len(differing) != 1:
        return None
    setting = _plain(differing[0].rpartition(".")[2])
    sides = (pair.level, pair.baseline)
    lacking = [
        {_plain(one.name): one for one in not_granted(blocks.of(id_)) if one.trials == one.of}.get(setting)
        for id_ in sides
    ]
    for id_, one, other, at_other in zip(sides, lacking, reversed(sides), reversed(lacking), strict=True):
        if one is not None and (at_other is not None or is_without(blocks.of(other), one.name)):
            return id_, one
    return None


def is_without(trials: Sequence[Trial], name: str) -> bool:
    """Return whether a treatment is without what a setting gives, as the server showed it."""
    return is_off(shown_value(trials, name))


def _plain(name: str) -> str:
    return name.replace("-", "_").casefold()


def shown_value(trials: Sequence[Trial], name: str) -> str:
    """Return what a setting was in a treatment, as the server showed it; empty where no trial read it back."""
    return next((short(str(found[name])) for trial in trials if name in (found := _server(trial))), "")


def _server(trial: Trial) -> Mapping[str, object]:
    found = trial.observed.get("server")
    return found if isinstance(found, Mapping) else {}
