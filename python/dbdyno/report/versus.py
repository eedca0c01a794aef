"""A comparison in as few words as it needs: the levels that differ, and where both stand."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.summary import TreatmentSummary
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.model.treatment import Treatment
from dbdyno.model.wording import listed

LISTED_MAX = 3  # names in a sentence
_SAYS_NOTHING = {"none", "default", "off", "on"}
_NOTHING_LEFT = -1 + 1e-9  # as a relative difference; a ratio of 0 has no logarithm


@dataclass(frozen=True)
class Versus:
    """A verdict with what differs between its two treatments."""

    verdict: Finding
    factors: tuple[str, ...]  # that differ
    level: str
    baseline: str
    pair: str  # "none vs mq-deadline": where one level says nothing by itself the other one does
    place: str  # what both have in common, "on hdd-7200 with ext4"; empty where nothing else varies
    places: int  # in how many such places the study could compare the same levels

    @property
    def name(self) -> str:
        """Return ``"none vs mq-deadline on hdd-7200"``."""
        return f"{self.pair} {self.place}".strip()


def by_interest(verdicts: Sequence[Finding], analysis: Analysis) -> list[Versus]:
    """Return the comparisons, those decided first, of these the different ones, of these what is surely large first."""
    return named(sorted(verdicts, key=_interest), analysis.treatments)


def named(verdicts: Sequence[Finding], treatments: Sequence[Treatment | TreatmentSummary]) -> list[Versus]:
    """Return the comparisons of treatments in the order given."""
    levels = {one.id: one.levels for one in treatments}
    return [_versus(verdict, levels) for verdict in verdicts]


def _interest(verdict: Finding) -> tuple[int, float, float]:
    """Rank a verdict; a difference counts by the end of its interval that is nearest to none."""
    effect = verdict.effect
    sure = max(_log(effect.low), -_log(effect.high), 0.0) if effect.bounded else 0.0
    return verdict.verdict.order, -sure, -abs(_log(effect.value)) if effect.known else 0.0


def _log(relative: float) -> float:
    return math.log1p(max(relative, _NOTHING_LEFT))


def _versus(verdict: Finding, levels_of: Mapping[str, Mapping[str, str]]) -> Versus:
    level, baseline = levels_of[verdict.level_id], levels_of[verdict.baseline_id]
    factors = [name for name in {**level, **baseline} if level.get(name) != baseline.get(name)]
    back = {name: baseline.get(name, "") for name in factors}
    common = {name: value for name, value in level.items() if name not in factors}
    return Versus(
        verdict=verdict,
        factors=tuple(factors),
        level=label_of(level, factors),
        baseline=label_of(baseline, factors),
        pair=f"{label_of(level, factors, alone=False)} vs {label_of(baseline, factors, alone=False)}",
        place=_place(common),
        places=_places(level, back, list(levels_of.values())),
    )


def _places(level: Mapping[str, str], baseline: Mapping[str, str], present: Sequence[Mapping[str, str]]) -> int:
    """Return how many treatments have these levels where another one differs from it by the baseline's alone."""
    alike = [one for one in present if all(one.get(name) == level.get(name) for name in baseline)]
    return sum({**one, **baseline} in present for one in alike)


def label_of(levels: Mapping[str, str], factors: Sequence[str], *, alone: bool = True) -> str:
    """Return the levels as a treatment's label has them; one that says nothing when ``alone`` goes by its factor."""
    found = {name: levels[name] for name in factors if name in levels}
    if alone and len(found) == 1 and set(found.values()) <= _SAYS_NOTHING:
        return " ".join(*found.items())
    return Treatment("", found).label


def _place(common: Mapping[str, str]) -> str:
    """Return ``"on hdd-7200 with ext4 and clients 10"``."""
    device = f"on {label_of(common, ['device'])}" if "device" in common else ""
    others = [label_of(common, [name]) for name in common if name != "device"]
    return " ".join(filter(None, (device, f"with {listed(others, LISTED_MAX)}" if others else "")))
