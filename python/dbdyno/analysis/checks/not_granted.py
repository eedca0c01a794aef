"""Settings that a server showed as asked for though the host did not grant them, by the server's own error log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbdyno.model.printable import short
from dbdyno.store.records import Trial

NOT_GRANTED = "not_granted"  # in what a trial read back of its server


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


def shown_value(trials: Sequence[Trial], name: str) -> str:
    """Return what a setting was in a treatment, as the server showed it; empty where no trial read it back."""
    return next((short(str(found[name])) for trial in trials if name in (found := _server(trial))), "")


def _server(trial: Trial) -> Mapping[str, object]:
    found = trial.observed.get("server")
    return found if isinstance(found, Mapping) else {}
