"""All that a run on several hosts says of hosts."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

import numpy as np

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.looks import Looks
from dbdyno.analysis.noise_floor import RATES
from dbdyno.analysis.planned_looks import blocks_by_ranks
from dbdyno.analysis.scipy_special import special
from dbdyno.analysis.statistics import (
    Estimate,
    Floats,
    holm,
    log_margin,
    log_ratios,
    mean_p_beyond,
    relative,
    walsh_averages,
)
from dbdyno.analysis.unpaired import smallest_p, unpaired_evidence, unpaired_family
from dbdyno.analysis.verdict.evidence import Evidence, Relation, evidence, relations, relative_estimate
from dbdyno.analysis.verdict.finding import Finding, Paired
from dbdyno.analysis.verdict.reasons import Obstacle, TwoTreatments, word_of
from dbdyno.model.design import ALPHA, HOSTS_MIN, HOSTS_OF_LEVEL_MIN, Fleet
from dbdyno.model.metrics import Metric, metric_of, value_of
from dbdyno.model.word import Word
from dbdyno.store.records import Run

# The usable blocks of each host, and their figures.


@dataclass(frozen=True)
class OfHost:
    """A figure of one host: of a comparison its relative difference (.03 for 3 %), else a metric."""

    host: str
    blocks: int  # that carry it
    value: float


@dataclass(frozen=True)
class OnHosts:
    """A fleet, and which of its hosts each usable block ran on."""

    fleet: Fleet
    of_block: Mapping[int, str]

    @classmethod
    def of(cls, fleet: Fleet, blocks: UsableBlocks) -> "OnHosts":
        """Return it of a run; all trials of an attempt ran on one host."""
        return cls(fleet, {block: next(iter(row.values())).host for block, row in blocks.trials.items() if row})

    def by_host(self, values: Mapping[int, float]) -> dict[str, Floats]:
        """Return host -> its values, shape (blocks,), in the order of the fleet; a host without any is left out."""
        values_by_host: dict[str, list[float]] = {host: [] for host in self.fleet.hosts}
        for block, value in values.items():
            if (host := self.of_block.get(block, "")) in values_by_host:
                values_by_host[host].append(value)
        return {host: np.asarray(host_values) for host, host_values in values_by_host.items() if host_values}


def block_levels(blocks: UsableBlocks, treatments: list[str], metric: str) -> dict[int, float]:
    """Return block -> mean ln(metric) over these treatments, of blocks in which all of them have a figure above 0."""
    levels = {}
    for block, row in blocks.trials.items():
        values = [value_of(row[id_].metrics, metric) for id_ in treatments if id_ in row]
        if len(values) == len(treatments) and values and all(np.isfinite(value) and value > 0 for value in values):
            levels[block] = float(np.mean(np.log(values)))
    return levels


# What one figure per host says of hosts like these: estimate, interval, p, equivalence. Here n counts hosts.
#
# A treatment that helps on one machine may not on another: the effect is one of the host as well. So blocks of one host
# are no repetitions of that, and each host has one vote, however many blocks it ran: the Hodges-Lehmann estimate of its
# log ratios.
#
# * Where there are so many hosts that signed rank can reach p = .05 after Holm (6 of one comparison, 7 of two):
#   signed rank, Hodges-Lehmann, its exact interval, and for equivalence the mean as well, as of blocks.
# * Else, from ``HOSTS_MIN`` on: Student's t. It takes hosts for independent and the effect in them for normal, but not
#   for equally well known: with unequal variances, so with unequal numbers of blocks, and with any mixture of normal
#   distributions (heavy tails) t at 5 % is wrong less often, not more (Ibragimov and Mueller 2010, after Bakirov and
#   Szekely 2005).
# * Below: nothing. Of two hosts the interval by t is 12.7 standard errors long at either end.
#
# *Equivalent* is held against more than the hosts at hand: the mean, by t, must also be inside the margin if there were
# one more host, ``ONE_MORE`` times as far from the middle as the farthest, to either side. Where few hosts gain much
# and most lose a little, a sample has the few too seldom, and without it equivalence is wrong in 10 to 16 % at the
# margin. What no host at hand shows can't be known: k hosts exclude, with 95 %, only kinds that are
# ``excluded_kinds(k)`` of all or more.
#
# All functions take ``values`` of shape (..., hosts) and work on all leading axes at once; results have shape (...).


ONE_MORE = 2.0  # times


def excluded_kinds(hosts: int) -> float:
    """Return how large a share of all a kind of hosts has if, with 95 %, one of it is among so many; about 3/k."""
    return 1 - ALPHA ** (1 / hosts) if hosts else 1.0


def by_ranks(hosts: int, family: int = 1) -> bool:
    """Return whether signed rank can decide anything with so many hosts, ``family`` comparisons sharing the 5 %."""
    return hosts >= blocks_by_ranks(family)


def of_one_host(d: Floats) -> Floats:
    """Return a host's figure, shape (...), of its log ratios by block, shape (..., blocks): the usual block's."""
    return np.asarray(np.median(walsh_averages(d), axis=-1))


def evidence_over_hosts(values: Floats, margin: float, family: int = 1) -> Evidence:
    """Return what the hosts' figures say; of fewer than ``HOSTS_MIN`` an estimate alone, with p = 1.

    ``family`` comparisons are to share the 5 %: it decides by which procedure, beforehand.
    """
    n = values.shape[-1]
    bound = log_margin(margin)
    if by_ranks(n, family):
        figures = evidence(values, Looks.single(n), margin)
        return replace(figures, p_equivalence=np.maximum(figures.p_equivalence, _p_with_one_more(values, bound)))
    value = np.asarray(np.mean(values, axis=-1))
    if n < HOSTS_MIN:
        nothing, ones = np.full(value.shape, np.inf), np.ones(value.shape)
        return Evidence(value, -nothing, nothing, ones, ones, ones)
    error = np.asarray(np.std(values, axis=-1, ddof=1)) / np.sqrt(n)
    reach = float(special.stdtrit(n - 1, 1 - ALPHA / 2)) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * special.stdtr(n - 1, -np.abs(value) / error)
    p = np.where(error > 0, p, np.where(value == 0, 1.0, 0.0))
    p_equivalence = np.maximum(mean_p_beyond(values, bound), _p_with_one_more(values, bound))
    return Evidence(value, value - reach, value + reach, p, p, p_equivalence)


def _p_with_one_more(values: Floats, bound: float) -> Floats:
    """Return the p of "the mean is ``bound`` or more" with a further host, the larger of those to either side."""
    middle = np.median(values, axis=-1, keepdims=True)
    ends = values.min(axis=-1, keepdims=True), values.max(axis=-1, keepdims=True)
    extended = [np.concatenate((values, middle + ONE_MORE * (end - middle)), axis=-1) for end in ends]
    return np.maximum(*(mean_p_beyond(sample, bound) for sample in extended))


# Parts of a variance, one inside the other: how much comes with the host, how much with what is repeated on it.
#
# The one-way layout with groups that need not be equally large: means of the groups, all with one vote, against the
# spread inside them, whose share in a mean is that of the harmonic mean of the groups' sizes (Thomas and Hultquist
# 1978). Exact of groups of equal size under normal noise, close of others.


TAILS = (1 - ALPHA / 2, ALPHA / 2)


@dataclass(frozen=True)
class MeanSquare:
    """A variance as it was estimated: from so many degrees of freedom."""

    value: float
    freedom: int

    @classmethod
    def around_mean(cls, values: Floats) -> "MeanSquare":
        """Return that of values, shape (n,), around their mean; 0 with no freedom below 2."""
        freedom = max(0, len(values) - 1)
        return cls(float(np.var(values, ddof=1)) if freedom else 0.0, freedom)

    def deviation(self) -> Estimate:
        """Return it as a standard deviation, with its interval by chi squared."""
        if not self.freedom:
            return Estimate.unknown()
        ends = (self.value * self.freedom / float(special.chdtri(self.freedom, 1 - tail)) for tail in TAILS)
        low, high = map(math.sqrt, ends)
        return Estimate(math.sqrt(self.value), low, high, self.freedom + 1)


@dataclass(frozen=True)
class Groups:
    """Values of several groups: means of the groups against what is inside them."""

    means: Floats  # shape (groups,)
    sizes: Floats  # shape (groups,)
    inside: MeanSquare

    @classmethod
    def of(cls, values: Sequence[Floats]) -> "Groups":
        """Return the layout of groups, each of shape (any number above 0,)."""
        squares = sum(float(np.sum((group - group.mean()) ** 2)) for group in values)
        freedom = sum(len(group) - 1 for group in values)
        inside = MeanSquare(squares / freedom if freedom else 0.0, freedom)
        return cls(
            np.array([group.mean() for group in values]), np.array([len(group) for group in values], float), inside
        )

    @property
    def size(self) -> float:
        """The harmonic mean of the groups' sizes."""
        return len(self.sizes) / float(np.sum(1 / self.sizes))

    @property
    def between(self) -> MeanSquare:
        """The mean square of the means, as if each were of ``size`` values."""
        mean_square = MeanSquare.around_mean(self.means)
        return MeanSquare(self.size * mean_square.value, mean_square.freedom)

    def deviation(self) -> Estimate:
        """Return the standard deviation between groups, that of the noise in their means taken out."""
        return component(self.between, self.inside, self.size)


def in_halves(values: Floats) -> Floats:
    """Return the means of the earlier and the later half of values in order of time, shape (2,); of one, itself.

    What lasts longer than one value but not than a half is in the spread between the two as in their mean, where the
    spread between neighbours would pass it over (batch means).
    """
    middle = len(values) // 2
    return np.array([values[:middle].mean(), values[middle:].mean()]) if middle else values


def share_of(between: Estimate, inside: MeanSquare) -> Estimate:
    """Return the share of a component in the variance between two values (the intraclass correlation), 0 to 1.

    The interval is that of the component; ``inside`` is known so much better that it counts as known.
    """
    if not between.bounded or not inside.value > 0:
        return Estimate.unknown(between.n)
    value, low, high = (
        deviation**2 / (deviation**2 + inside.value) for deviation in (between.value, between.low, between.high)
    )
    return Estimate(value, low, high, between.n)


def component(top: MeanSquare, bottom: MeanSquare, n: float) -> Estimate:
    """Return sqrt((top - bottom) / n) with the interval of Williams and Tukey; never less than 0, unknown if either is.

    Williams 1962; that it holds the truth about as often as it says: Boardman 1974.
    """
    if not top.freedom or not bottom.freedom:
        return Estimate.unknown(top.freedom + 1 if top.freedom else 0)
    ends = []
    for tail in TAILS:
        above = bottom.value * float(special.fdtri(top.freedom, bottom.freedom, tail))
        ends.append(top.freedom * (top.value - above) / (n * float(special.chdtri(top.freedom, 1 - tail))))
    value, low, high = (math.sqrt(max(0.0, variance)) for variance in ((top.value - bottom.value) / n, *ends))
    return Estimate(value, low, high, top.freedom + 1)


# On hosts like these: whether what was seen holds for further hosts, one figure per host.
#
# A word needs the same word on these hosts, from all blocks: what is not even shown of the hosts at hand, or is
# withheld there, is shown of no others. That two tests have to agree makes a wrong word rarer, never more frequent.


Method = Literal["signed rank", "t", "none"]


class HostsCode(StrEnum):
    """Why a word is said of hosts like these, or none is."""

    DIFFERENT = "the hosts agree"
    MARGIN_RULED_OUT = "a difference as large as the margin is ruled out"
    NOT_COMPARABLE = "not comparable on these hosts"
    TOO_FEW_HOSTS = "too few hosts"
    NOT_ON_THESE_HOSTS = "these hosts themselves do not show it"
    HOSTS_DIFFER = "so few hosts differ too much"


@dataclass(frozen=True)
class LikeThese(TwoTreatments):
    """What a comparison says of hosts like these. Differences are relative; ``effect.n`` counts hosts."""

    word: Word
    code: HostsCode
    effect: Estimate
    hosts: tuple[OfHost, ...]  # that have a usable block
    spread: Estimate  # SD of the effect between hosts, as a log ratio: .03 is about 3 %
    method: Method = "none"
    p: float = 1.0
    p_adjusted: float = 1.0  # Holm over the comparisons
    p_equivalence: float = 1.0  # the same
    family: int = 0  # comparisons that share the 5 %

    @property
    def excludes(self) -> float:
        """How large a share of all hosts a kind must have for one of it to be among these, with 95 %."""
        return excluded_kinds(len(self.hosts))


def like_these(
    on: OnHosts,
    pairs: Sequence[Paired],
    verdicts: Sequence[Finding],
    metric: Metric,
    margin: float,
) -> list[LikeThese]:
    """Return what each comparison says of hosts like these; ``pairs`` and ``verdicts`` are of the same ones."""
    values_of_pairs = [_by_host(on, pair) for pair in pairs]
    statements = [_figures_before_test(pair, values) for pair, values in zip(pairs, values_of_pairs, strict=True)]
    judged = [
        place
        for place, (verdict, statement) in enumerate(zip(verdicts, statements, strict=True))
        if not isinstance(verdict.reason, Obstacle) and len(statement.hosts) >= HOSTS_MIN
    ]
    if not judged:
        return statements
    family = len(judged)
    values = [np.array([float(of_one_host(d)) for d in values_of_pairs[place].values()]) for place in judged]
    figures = Evidence.of_each([evidence_over_hosts(host_values, margin, family) for host_values in values])
    words, p, p_equivalence = relations(figures, margin), holm(figures.p), holm(figures.p_equivalence)
    for at, place in enumerate(judged):
        n = len(values[at])
        word, code = _word(Relation(words[at]), verdicts[place], metric)
        statements[place] = replace(
            statements[place],
            word=word,
            code=code,
            effect=relative_estimate(float(figures.value[at]), float(figures.low[at]), float(figures.high[at]), n),
            method="signed rank" if by_ranks(n, family) else "t",
            p=float(figures.p[at]),
            p_adjusted=float(p[at]),
            p_equivalence=float(p_equivalence[at]),
            family=family,
        )
    return statements


def _by_host(on: OnHosts, pair: Paired) -> dict[str, Floats]:
    """Return host -> the log ratios to judge by."""
    return on.by_host(dict(zip(pair.log_ratios, pair.d.tolist(), strict=True)))


def _figures_before_test(pair: Paired, values: Mapping[str, Floats]) -> LikeThese:
    """Return what is known of a comparison before any test: each host's figure, and how far apart they are."""
    figures = {host: float(of_one_host(d)) for host, d in values.items()}
    mean = relative(float(np.mean(list(figures.values())))) if figures else float("nan")
    return LikeThese(
        *(pair.baseline, pair.level, pair.baseline_id, pair.level_id),
        word=Word.UNDECIDED,
        code=HostsCode.NOT_COMPARABLE if pair.obstacle or not figures else HostsCode.TOO_FEW_HOSTS,
        effect=replace(Estimate.unknown(len(figures)), value=mean),
        hosts=tuple(OfHost(host, len(values[host]), relative(figure)) for host, figure in figures.items()),
        spread=Groups.of(list(values.values())).deviation() if len(values) > 1 else Estimate.unknown(len(values)),
    )


def _word(relation: Relation, verdict: Finding, metric: Metric) -> tuple[Word, HostsCode]:
    word = word_of(relation, more_is_better=metric.more_is_better)
    match word:
        case Word.FASTER | Word.SLOWER | Word.EQUIVALENT if word != verdict.verdict:
            return Word.UNDECIDED, HostsCode.NOT_ON_THESE_HOSTS
        case Word.FASTER | Word.SLOWER:
            return word, HostsCode.DIFFERENT
        case Word.EQUIVALENT:
            return word, HostsCode.MARGIN_RULED_OUT
        case _:
            return Word.UNDECIDED, HostsCode.HOSTS_DIFFER


# What is fixed to hosts, such as the drive in each: a whole plot is a host, so n counts hosts of each level.
#
# Whatever else differs between two machines comes with what is fixed to them, and no number of blocks tells them apart.
# So levels are compared by hosts: from ``HOSTS_OF_LEVEL_MIN`` of either level on by rank sum, Brunner and Munzel's test
# and Welch's, as two runs are. One host of either level: that is this machine against that one, and said so. The same
# is asked of the effects of treatments: whether they differ between the levels.


class LevelCode(StrEnum):
    """Why a word is said of two levels, or none is."""

    DIFFERENT = "the hosts of both levels agree"
    MARGIN_RULED_OUT = "a difference as large as the margin is ruled out"
    NO_HOST = "a level has no host with a usable block"
    ONE_HOST_EACH = "one host for each level"
    TOO_FEW_HOSTS = "too few hosts of a level"
    P_OUT_OF_REACH = "too few hosts for any p, after Holm"
    HOSTS_DIFFER = "so few hosts of a level differ too much"


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
class _LevelPair:
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
    return _judge_levels(list(_level_pairs(on, values, None)), margin)


def effects_between_levels(
    on: OnHosts,
    effects: Sequence[tuple[TwoTreatments, Mapping[int, float]]],
    margin: float,
) -> list[BetweenLevels]:
    """Return whether each comparison's effect, block -> log ratio, differs between levels. All are one family."""
    level_pairs = [level_pair for of, values in effects for level_pair in _level_pairs(on, values, of)]
    return _judge_levels(level_pairs, margin)


def _level_pairs(on: OnHosts, values: Mapping[int, float], of: TwoTreatments | None) -> Iterator[_LevelPair]:
    values_by_host = on.by_host(values)
    for factor, level_of in on.fleet.levels.items():
        names = list(dict.fromkeys(level_of[host] for host in on.fleet.hosts if host in level_of))
        groups = [
            {host: values_by_host[host] for host in values_by_host if level_of.get(host) == name} for name in names
        ]
        for name, group in zip(names[1:], groups[1:], strict=True):
            yield _LevelPair(factor, (names[0], name), (groups[0], group), of)


def _judge_levels(level_pairs: Sequence[_LevelPair], margin: float) -> list[BetweenLevels]:
    differences = [_levels_before_test(level_pair) for level_pair in level_pairs]
    places = [place for place, level_pair in enumerate(level_pairs) if min(level_pair.sizes) >= HOSTS_OF_LEVEL_MIN]
    if not places:
        return differences
    figures = unpaired_family([level_pairs[place].figures() for place in places], margin)
    words, p, p_equivalence = relations(figures, margin), holm(figures.p), holm(figures.p_equivalence)
    for at, place in enumerate(places):
        value, low, high = (float(getattr(figures, name)[at]) for name in ("value", "low", "high"))
        word, code = _word_of_levels(Relation(words[at]), level_pairs[place].sizes, len(places))
        differences[place] = replace(
            differences[place],
            word=word,
            code=code,
            effect=relative_estimate(value, low, high, sum(level_pairs[place].sizes)),
            p_adjusted=float(p[at]),
            p_equivalence=float(p_equivalence[at]),
        )
    return differences


def _word_of_levels(relation: Relation, sizes: tuple[int, int], family: int) -> tuple[Relation, LevelCode]:
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


def _levels_before_test(level_pair: _LevelPair) -> BetweenLevels:
    first, second = level_pair.figures()
    sizes = level_pair.sizes
    code = LevelCode.TOO_FEW_HOSTS
    if not min(sizes):
        code = LevelCode.NO_HOST
    elif sizes == (1, 1):
        code = LevelCode.ONE_HOST_EACH
    value = relative(float(second.mean() - first.mean())) if min(sizes) else float("nan")
    of_levels = [
        OfLevel(
            name,
            tuple(OfHost(host, len(group[host]), _figure_of(x, level_pair)) for host, x in zip(group, of, strict=True)),
        )
        for name, group, of in zip(level_pair.names, level_pair.groups, (first, second), strict=True)
    ]
    return BetweenLevels(
        factor=level_pair.factor,
        baseline=of_levels[0],
        level=of_levels[1],
        word=Relation.UNDECIDED,
        code=code,
        effect=replace(Estimate.unknown(sum(sizes)), value=value),
        machines=_machines(level_pair) if code is LevelCode.ONE_HOST_EACH else None,
        of=level_pair.of,
    )


def _figure_of(log: float, level_pair: _LevelPair) -> float:
    return float(np.exp(log)) if level_pair.of is None else relative(log)


def _machines(level_pair: _LevelPair) -> Estimate:
    """Return one machine against the other, from their blocks."""
    x, y = (next(iter(group.values())) for group in level_pair.groups)
    figures = unpaired_evidence(x, y, margin=1.0)
    return relative_estimate(float(figures.value), float(figures.low), float(figures.high), len(x) + len(y))


# What an A/A run over several hosts says of them: which part of the variance comes with what, and which host is odd.
#
# The unit on a host is the block: its trials share a moment of the host. Beside it stand the start of the server, by
# which two trials of a block differ, and what fluctuates inside a trial, by the difference of its halves. Blocks of a
# host may resemble their neighbours (a drift, an hour of heat), and their mean is then less sure than they look: so
# what lies between hosts is held against the earlier and the later half of each.


ODD_MIN = 4  # hosts; of three, who is odd?
TRIALS = 2  # of a block of an A/A run


@dataclass(frozen=True)
class Left:
    """A host against the mean of all others."""

    host: OfHost  # its figure: the geometric mean of the metric
    difference: float  # relative
    p: float  # that it is one of them: Holm over the hosts; 1 of fewer than ``ODD_MIN``

    @property
    def odd(self) -> bool:
        """Whether it is named."""
        return self.p <= ALPHA


@dataclass(frozen=True)
class FleetNoise:
    """Standard deviations of ln(metric), .01 for 1 %, each without those below it; unknown ones can't be told apart."""

    between_hosts: Estimate
    between_blocks: Estimate  # moments of a host
    between_starts: Estimate  # of the server; where ``inside`` is unknown, with that in it
    inside: Estimate  # a trial: what fluctuates in it, as it is left in its figure
    share_of_hosts: Estimate  # intraclass correlation: of the variance between two blocks, 0 to 1
    each: tuple[Left, ...]

    @property
    def odd(self) -> tuple[Left, ...]:
        """The hosts that stand apart."""
        return tuple(left_out for left_out in self.each if left_out.odd)


def fleet_noise(
    on: OnHosts,
    levels: Mapping[int, float],
    log_ratios: Mapping[int, float],
    halves: Sequence[float],
) -> FleetNoise:
    """Return it for an A/A run: ``levels`` is block -> mean ln(metric), ``log_ratios`` of its two trials.

    ``halves`` are the ratios of the second half of each trial to its first.
    """
    logs_by_host = on.by_host(levels)
    groups = Groups.of(list(logs_by_host.values())) if logs_by_host else Groups.of([np.zeros(1)])
    between = (
        Groups.of([in_halves(logs) for logs in logs_by_host.values()]).deviation()
        if logs_by_host
        else Estimate.unknown()
    )
    trial = _of_a_trial([d for _, d in sorted(log_ratios.items())])
    of_blocks = MeanSquare(TRIALS * groups.inside.value, groups.inside.freedom)
    inside = MeanSquare.around_mean(np.log(halves) / 2)  # a trial is the mean of two halves
    return FleetNoise(
        between_hosts=between,
        between_blocks=component(of_blocks, trial, TRIALS),
        between_starts=component(trial, inside, 1) if inside.freedom else trial.deviation(),
        inside=inside.deviation(),
        share_of_hosts=share_of(between, groups.inside),
        each=left_one_out(logs_by_host, groups.inside.value),
    )


def _of_a_trial(d: Sequence[float]) -> MeanSquare:
    """Return the variance of a trial around its block, from the log ratios of the two trials of each."""
    of_ratio = MeanSquare.around_mean(np.asarray(d, dtype=np.float64))
    return MeanSquare(of_ratio.value / TRIALS, of_ratio.freedom)


def left_one_out(logs_by_host: Mapping[str, Floats], variance: float) -> tuple[Left, ...]:
    """Return each host against the others.

    ``logs_by_host`` is host -> ln(metric) by block, ``variance`` that of a block.
    """
    means = np.array([logs.mean() for logs in logs_by_host.values()])
    errors = variance / np.array([len(logs) for logs in logs_by_host.values()], dtype=np.float64)
    hosts = [OfHost(host, len(logs), float(np.exp(logs.mean()))) for host, logs in logs_by_host.items()]
    if len(hosts) < 2:  # noqa: PLR2004 - there are no others
        return tuple(Left(host, np.nan, 1.0) for host in hosts)
    apart, p = odd_p(means, errors)
    return tuple(Left(host, relative(float(apart[at])), float(p[at])) for at, host in enumerate(hosts))


def odd_p(means: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """Return how far each host's mean is from that of the others, and p, Holm over the hosts; shapes (..., hosts).

    The t test of a new value against a sample: by how far apart the others are (the externally studentised residual;
    Cook and Weisberg 1982, section 2.2.2). ``errors`` are the squared standard errors of the means, shape (hosts,): a
    host of which fewer blocks are known than of the others may be farther off. p is 1 of fewer than ``ODD_MIN`` hosts.
    """
    k = means.shape[-1]
    rest = (means.sum(axis=-1, keepdims=True) - means) / (k - 1)
    apart = means - rest
    if k < ODD_MIN:
        return apart, np.ones(means.shape)
    others = means[..., None, :] - rest[..., :, None]
    squares = np.sum(np.where(np.eye(k, dtype=bool), 0.0, others**2), axis=-1)
    less_known = np.maximum(0.0, errors - (errors.sum() - errors) / (k - 1))
    error = np.sqrt(squares / (k - 2) * k / (k - 1) + less_known)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * special.stdtr(k - 2, -np.abs(apart) / error)
    return apart, holm(np.where(error > 0, p, np.where(apart == 0, 1.0, 0.0)))


@dataclass(frozen=True)
class FleetFindings:
    """What is said of hosts, beside verdicts that hold on these."""

    blocks: dict[str, int]  # host -> usable blocks, in the order of the study
    like_these: list[LikeThese]  # of each planned comparison; empty of an A/A run
    levels: list[BetweenLevels]  # of what is fixed to hosts
    effects: list[BetweenLevels]  # whether a comparison's effect goes with what is fixed to hosts
    noise: FleetNoise | None  # of an A/A run

    def of(self, compared: TwoTreatments) -> LikeThese:
        """Return what a planned comparison says of hosts like these."""
        ids = compared.baseline_id, compared.level_id
        return next(statement for statement in self.like_these if (statement.baseline_id, statement.level_id) == ids)


def fleet_findings(
    run: Run, blocks: UsableBlocks, pairs: Sequence[Paired], verdicts: Sequence[Finding]
) -> FleetFindings | None:
    """Return it for a run on several hosts; ``pairs`` and ``verdicts`` are those of the planned comparisons."""
    design = run.design
    if design.fleet is None:
        return None
    on = OnHosts.of(design.fleet, blocks)
    usable = list(on.of_block.values())
    treatment_ids = [treatment.id for treatment in design.treatments if treatment.id not in blocks.dropped]
    levels = block_levels(blocks, treatment_ids, design.metric)
    judged = [] if design.aa else [pair for pair in pairs if not pair.obstacle]
    effects = [(_treatments_of(pair), dict(zip(pair.log_ratios, pair.d.tolist(), strict=True))) for pair in judged]
    return FleetFindings(
        blocks={host: usable.count(host) for host in design.fleet.hosts},
        like_these=[] if design.aa else like_these(on, pairs, verdicts, metric_of(design), design.margin),
        levels=between_levels(on, levels, design.margin),
        effects=effects_between_levels(on, effects, design.margin),
        noise=_noise(run, blocks, levels, on) if design.aa else None,
    )


def _treatments_of(pair: Paired) -> TwoTreatments:
    return TwoTreatments(pair.baseline, pair.level, pair.baseline_id, pair.level_id)


def _noise(run: Run, blocks: UsableBlocks, levels: dict[int, float], on: OnHosts) -> FleetNoise:
    metric = run.design.metric
    a, b = (blocks.values(treatment.id, metric) for treatment in run.design.treatments)
    trials = [trial for row in blocks.trials.values() for trial in row.values()] if metric in RATES else []
    halves = [ratio for trial in trials if (ratio := trial.load.get("second_half_ratio"))]
    return fleet_noise(on, levels, log_ratios(b, a), halves)
