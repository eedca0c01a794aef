"""What is fixed to hosts, such as the drive in each: a whole plot is a host, so n counts hosts of each level.

Whatever else differs between two machines comes with what is fixed to them, and no number of blocks tells them apart.
So levels are compared by hosts: from ``HOSTS_OF_LEVEL_MIN`` of either level on by rank sum, Brunner and Munzel's test
and Welch's, as two runs are. One host of either level: that is this machine against that one, and said so. The same is
asked of the effects of treatments: whether they differ between the levels.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from dbdyno.analysis.fleet.by_host import OfHost, OnHosts
from dbdyno.analysis.fleet.over_hosts import of_one_host
from dbdyno.analysis.statistics.arrays import Floats
from dbdyno.analysis.statistics.effect import relative
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.analysis.statistics.multiplicity import holm
from dbdyno.analysis.two_runs.unpaired import smallest_p, unpaired_evidence, unpaired_family
from dbdyno.analysis.verdict.evidence import Relation, relations, relative_estimate
from dbdyno.analysis.verdict.reasons import TwoTreatments
from dbdyno.model.design import ALPHA, HOSTS_OF_LEVEL_MIN


class LevelCode(StrEnum):
    """Why a word is said of two levels, or none is."""

    DIFFERENT = "the hosts of either level agree"
    MARGIN_RULED_OUT = "a difference as large as the margin is ruled out"
    NO_HOST = "a level has no host with a usable block"
    ONE_HOST_EACH = "one host of either level"
    TOO_FEW_HOSTS = "too few hosts of a level"
    P_OUT_OF_REACH = "too few hosts for any p, after Holm"
    HOSTS_DIFFER = "the hosts of a level differ too much, for so few"


@dataclass(frozen=True)
class OfLevel:
    """A level and the hosts that have it; their figures are geometric means of the metric, or effects."""

    level: str
    hosts: tuple[OfHost, ...]


@dataclass(frozen=True)
class BetweenLevels:
    """One level against another; ``effect`` is relative, its interval of hosts, unbounded where too few have a level.

    ``of`` is the comparison whose effect is asked for; without one it is the metric itself.
    """

    factor: str
    baseline: OfLevel
    level: OfLevel
    word: Relation
    code: LevelCode
    effect: Estimate
    p_adjusted: float = 1.0
    p_equivalence: float = 1.0
    machines: Estimate | None = None  # of one host against one: of these two alone, from their blocks
    of: TwoTreatments | None = None

    @property
    def tested(self) -> bool:
        """Whether there were hosts enough for a test."""
        return min(len(self.baseline.hosts), len(self.level.hosts)) >= HOSTS_OF_LEVEL_MIN


@dataclass(frozen=True)
class _Asked:
    """A contrast: the blocks' figures of each host, logs."""

    factor: str
    names: tuple[str, str]
    groups: tuple[dict[str, Floats], dict[str, Floats]]
    of: TwoTreatments | None

    def figures(self) -> tuple[Floats, Floats]:
        """Return one figure per host, of either level."""
        first, second = (np.array([float(of_one_host(d)) for d in group.values()]) for group in self.groups)
        return first, second

    @property
    def sizes(self) -> tuple[int, int]:
        """How many hosts either level has."""
        return len(self.groups[0]), len(self.groups[1])


def between_levels(on: OnHosts, values: Mapping[int, float], margin: float) -> list[BetweenLevels]:
    """Return each level against the first, of ``values``: block -> ln(metric). All of them are one family."""
    return _judged(list(_asked(on, values, None)), margin)


def effects_between_levels(
    on: OnHosts,
    effects: Sequence[tuple[TwoTreatments, Mapping[int, float]]],
    margin: float,
) -> list[BetweenLevels]:
    """Return whether each comparison's effect, block -> log ratio, differs between levels. All are one family."""
    asked = [one for of, values in effects for one in _asked(on, values, of)]
    return _judged(asked, margin)


def _asked(on: OnHosts, values: Mapping[int, float], of: TwoTreatments | None) -> Iterator[_Asked]:
    found = on.by_host(values)
    for factor, level_of in on.fleet.levels.items():
        names = list(dict.fromkeys(level_of[host] for host in on.fleet.hosts if host in level_of))
        groups = [{host: found[host] for host in found if level_of.get(host) == name} for name in names]
        for name, group in zip(names[1:], groups[1:], strict=True):
            yield _Asked(factor, (names[0], name), (groups[0], group), of)


def _judged(asked: Sequence[_Asked], margin: float) -> list[BetweenLevels]:
    found = [_unjudged(one) for one in asked]
    places = [place for place, one in enumerate(asked) if min(one.sizes) >= HOSTS_OF_LEVEL_MIN]
    if not places:
        return found
    figures = unpaired_family([asked[place].figures() for place in places], margin)
    words, p, p_equivalence = relations(figures, margin), holm(figures.p), holm(figures.p_equivalence)
    for at, place in enumerate(places):
        value, low, high = (float(getattr(figures, name)[at]) for name in ("value", "low", "high"))
        word, code = _word(Relation(words[at]), asked[place].sizes, len(places))
        found[place] = replace(
            found[place],
            word=word,
            code=code,
            effect=relative_estimate(value, low, high, sum(asked[place].sizes)),
            p_adjusted=float(p[at]),
            p_equivalence=float(p_equivalence[at]),
        )
    return found


def _word(relation: Relation, sizes: tuple[int, int], family: int) -> tuple[Relation, LevelCode]:
    match relation:
        case Relation.HIGHER:
            return relation, LevelCode.DIFFERENT
        case Relation.LOWER:
            return relation, LevelCode.DIFFERENT
        case Relation.EQUIVALENT:
            return relation, LevelCode.MARGIN_RULED_OUT
        case _ if smallest_p(*sizes) * family > ALPHA:
            return Relation.UNDECIDED, LevelCode.P_OUT_OF_REACH
        case _:
            return Relation.UNDECIDED, LevelCode.HOSTS_DIFFER


def _unjudged(one: _Asked) -> BetweenLevels:
    first, second = one.figures()
    sizes = one.sizes
    code = LevelCode.TOO_FEW_HOSTS
    if not min(sizes):
        code = LevelCode.NO_HOST
    elif sizes == (1, 1):
        code = LevelCode.ONE_HOST_EACH
    value = relative(float(second.mean() - first.mean())) if min(sizes) else float("nan")
    each = [
        OfLevel(name, tuple(OfHost(host, len(group[host]), _said(x, one)) for host, x in zip(group, of, strict=True)))
        for name, group, of in zip(one.names, one.groups, (first, second), strict=True)
    ]
    return BetweenLevels(
        factor=one.factor,
        baseline=each[0],
        level=each[1],
        word=Relation.UNDECIDED,
        code=code,
        effect=replace(Estimate.unknown(sum(sizes)), value=value),
        machines=_machines(one) if code is LevelCode.ONE_HOST_EACH else None,
        of=one.of,
    )


def _said(log: float, one: _Asked) -> float:
    return float(np.exp(log)) if one.of is None else relative(log)


def _machines(one: _Asked) -> Estimate:
    """Return one machine against the other, from their blocks."""
    x, y = (next(iter(group.values())) for group in one.groups)
    found = unpaired_evidence(x, y, margin=1.0)
    return relative_estimate(float(found.value), float(found.low), float(found.high), len(x) + len(y))
