"""Two runs against each other: what each treatment did before and after something changed.

The trials of two runs share no blocks, so nothing takes out what changed on the host between the runs. The figures are
those of two independent groups (``unpaired``), and cover only the noise inside the runs. A treatment that the change
can't have touched, a *control*, shows what the host did: what a treatment gained against its control inside the blocks
of each run is compared instead, and a change of the host that touches both alike is out of it.

Whether a word may be said at all is one rule (``_withhold_words``). Treatments that nothing distinguishes between the
runs are controls, unless one was named. Where that are all of them, there is no change to judge: what moved is the
host. Where a control is not shown to be as before, what the others did is of host and change together; so it is where
there is none and the host is known to have other processors. And where others used the host beside half of the trials
of a run or more, nothing is decided. Nor is what may be made by failures in one of the runs, by an emulated disk that
answered late, or by an emulated CPU.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dbdyno.analysis.blocks import RefusedError, UsableBlocks, usable_blocks
from dbdyno.analysis.client_hosts import limiting_hosts
from dbdyno.analysis.factors import difference
from dbdyno.analysis.fleet import block_levels
from dbdyno.analysis.lateness import EmulatedCpu, LateDisk, Side, not_of_the_drive, that_explains
from dbdyno.analysis.over_time import drift_of
from dbdyno.analysis.server_defaults import ServerDefaults, defaults_of_two_runs
from dbdyno.analysis.stand_ins import in_common_words
from dbdyno.analysis.statistics import Estimate, Floats, holm, log_margin, two_means_p_beyond
from dbdyno.analysis.unpaired import differences, smallest_p, unpaired_family
from dbdyno.analysis.verdict.evidence import (
    FINE_ENOUGH,
    Evidence,
    Relation,
    Resolution,
    combined,
    relations,
    relative_estimate,
    resolutions,
)
from dbdyno.analysis.verdict.finding import far_off, mostly
from dbdyno.analysis.verdict.reasons import (
    Dropped,
    LimitedClients,
    Obstacle,
    Reason,
    TooFew,
    UnequalFailures,
    WhichRun,
    ZeroFigures,
    first,
    reason_of,
)
from dbdyno.analysis.verdict.unequal import SpoiledAttempts, StruckBetweenRuns, spoiled_attempts
from dbdyno.model.design import Treatment
from dbdyno.model.metrics import Metric, metric_of
from dbdyno.model.word import Word
from dbdyno.store.records import Run, Trial, processor_model

# What distinguishes a treatment of one run from the same treatment of another: settings, versions, what was read back.
#
# A treatment that nothing distinguishes did not change, so what its figures did between the runs is the host's doing:
# it is a control. Facts of the host are left out on purpose: where they alone differ, it is the host that differs.


_SERVER = "server "  # begins the name of a server's version; behind it stands what a study calls the server
_OF_BEGINNING = {"data", "page_cache"}  # layers that say where a trial's data came from, which is no setting
_LEVELS = "levels"  # the section that has named levels, of which each treatment has one


def distinctions(before: Run, after: Run, pair: tuple[Treatment, Treatment]) -> tuple[str, ...]:
    """Return the names of all that is known to differ between two runs for one treatment, in order of the alphabet.

    That are settings of the study and what was read back, ``"server.settings.sync_binlog"``, variables of the server
    that matter to storage, and versions, ``"version kernel"``; of a server's version only where the treatment has it.
    """
    old, new = pair
    set_to = in_common_words(before, after, settings_of(before, old), settings_of(after, new))
    read_back = in_common_words(before, after, _read_back(before, old), _read_back(after, new))
    common = read_back[0].keys() & read_back[1].keys()
    names = {name for name in set_to[0].keys() | set_to[1].keys() if set_to[0].get(name) != set_to[1].get(name)}
    names |= {
        name
        for name in common
        if None not in (read_back[0][name], read_back[1][name]) and read_back[0][name] != read_back[1][name]
    }
    for defaults in defaults_of_two_runs(before, after, [pair]):
        names |= {f"server.{default.name}" for default in defaults.differing if default.matters}
    servers = {str(settings["stack.server"]) for settings in set_to if "stack.server" in settings}
    return tuple(sorted(names | {f"version {name}" for name in _versions(before, after, servers)}))


def settings_of(run: Run, treatment: Treatment) -> dict[str, Any]:
    """Return what the study sets for a treatment, by section and field: what varies at its own level."""
    levels = {f"{factor.section}.{factor.name}" for factor in run.design.factors if not factor.gives}
    body = {name: section for name, section in run.study.items() if name != _LEVELS}
    settings = {name: value for name, value in _leaves(body) if name not in levels}
    for factor in run.design.factors:
        level = treatment.levels.get(factor.name, "")
        settings |= (factor.gives or {}).get(level, {}) if factor.gives else {f"{factor.section}.{factor.name}": level}
    return settings | ({"design.settle": run.design.settle} if run.design.settle else {})


def _versions(before: Run, after: Run, servers: set[str]) -> Iterator[str]:
    old, new = in_common_words(before, after, before.versions, after.versions)
    for name in old.keys() | new.keys():
        of_another = name.startswith(_SERVER) and servers and name.removeprefix(_SERVER) not in servers
        if old.get(name) != new.get(name) and not of_another:
            yield name


def _read_back(run: Run, treatment: Treatment) -> dict[str, Any]:
    """Return what each trial of a treatment read back, by layer and name; None where it was not always the same."""
    readings = [
        dict(_leaves({layer: of for layer, of in trial.observed.items() if layer not in _OF_BEGINNING}))
        for trial in run.trials
        if trial.treatment == treatment.id
    ]
    names = set().union(*readings)
    alike = {name: all(trial.get(name) == readings[0].get(name) for trial in readings) for name in names}
    return {name: readings[0].get(name) if alike[name] else None for name in names}


def _leaves(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, inside in value.items():
        if isinstance(inside, dict):
            yield from _leaves(inside, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", inside


# Which treatment of one run is which of another: by label, by names given, or because there is only one.


def matched_treatments(before: Run, after: Run, names: Sequence[str]) -> list[tuple[Treatment, Treatment]]:
    """Return (before, after) of each treatment in both runs, in the order of the first.

    Raises:
        RefusedError: A name is unknown or used twice, or no treatment is in both runs.

    """
    old = {treatment.label: treatment for treatment in before.design.treatments}
    new = {treatment.label: treatment for treatment in after.design.treatments}
    renamed = dict(_parse_pair(name, old, new) for name in names)
    if min(len(renamed), len(set(renamed.values()))) < len(names):
        raise RefusedError("named twice")
    if len(old) == len(new) == 1:
        return [(next(iter(old.values())), next(iter(new.values())))]
    free = new.keys() - set(renamed.values())
    matched = [
        (treatment, new[renamed.get(label, label)])
        for label, treatment in old.items()
        if label in renamed or label in free
    ]
    if not matched:
        raise RefusedError("nothing in common", before=list(old), after=list(new))
    return matched


def _parse_pair(name: str, old: Mapping[str, Treatment], new: Mapping[str, Treatment]) -> tuple[str, str]:
    """Return the two labels; either may have "=" in it, as drives with numbers of their own do."""
    for place in (i for i, char in enumerate(name) if char == "="):
        left, right = name[:place].strip(), name[place + 1 :].strip()
        if left in old and right in new:
            return left, right
    raise RefusedError("no such pair", name=name, before=list(old), after=list(new))


def control_among(
    matched: Sequence[tuple[Treatment, Treatment]], label: str | None
) -> tuple[Treatment, Treatment] | None:
    """Return the treatment of that label in both runs; raises ``RefusedError`` where it is not, or nothing else is."""
    if label is None:
        return None
    control = next((pair for pair in matched if label in {treatment.label for treatment in pair}), None)
    if control is None:
        raise RefusedError("no such control", label=label, known=[old.label for old, _ in matched])
    if len(matched) == 1:
        raise RefusedError("control alone", label=label)
    return control


MIN_TRIALS = 2  # of either run
Pair = tuple[Treatment, Treatment]  # the same treatment, before and after


@dataclass(frozen=True)
class NothingChanged:
    """Nothing distinguishes any treatment of one run from that of the other, so there is no change to judge."""


@dataclass(frozen=True)
class HostShift:
    """What should not have changed did, or may have: the word would be of the host and the change together."""


@dataclass(frozen=True)
class OtherHost:
    """The two runs are known to be of hosts with other processors: the word would be of host and change together."""


@dataclass(frozen=True)
class Interference:
    """Others used the host too much beside half of a run's compared trials or more."""

    run: WhichRun
    disturbed: int  # trials
    trials: int


Withheld = NothingChanged | HostShift | OtherHost | Interference | UnequalFailures | LateDisk | EmulatedCpu


@dataclass(frozen=True)
class Change:
    """What became of one treatment; differences are relative, after against before: .03 for +3 %."""

    before: str  # label
    after: str
    effect: Estimate
    trials: tuple[int, int]
    means: tuple[float, float]  # of the metric; NaN where it is of a ratio to the control
    verdict: Word
    reason: Reason | Obstacle
    p: float = math.nan
    p_adjusted: float = math.nan  # Holm over the treatments
    p_equivalence: float = math.nan  # the same
    withheld_for: Withheld | None = None  # why the word that the figures would give, if any, is not given


@dataclass(frozen=True)
class Compared:
    """Everything that is said of two runs, but what they differ in.

    ``control`` is the treatment named, or else the geometric mean of all that nothing distinguishes between the runs;
    ``controls`` are their labels. Where that are all treatments, nothing changed, and it is the host's own shift.
    """

    metric: Metric
    margin: float
    changes: list[Change]  # of every matched treatment but controls; of all where nothing changed
    control: Change | None
    against_control: list[Change]  # of the same treatments as ``changes``, each as a ratio to the control
    matched: list[tuple[Treatment, Treatment]]
    only_before: list[str]  # labels
    only_after: list[str]
    drifts: tuple[Estimate, Estimate]
    server_defaults: list[ServerDefaults] = field(default_factory=list)
    controls: tuple[str, ...] = ()  # labels after
    control_is_named: bool = False
    nothing_changed: bool = False
    interference: tuple[Interference, ...] = ()  # of the runs that met too much of it

    @property
    def judged(self) -> list[Change]:
        """The changes that the answer is about: against the control, where there is one."""
        return self.against_control or self.changes


@dataclass(frozen=True)
class _TwoSamples:
    """The values of one treatment or ratio in both runs, as logarithms; ``obstacle`` says why they can't be judged."""

    before: str
    after: str
    x: Floats
    y: Floats
    means: tuple[float, float]
    obstacle: Obstacle | None = None
    resolution: Resolution = FINE_ENOUGH
    not_of_the_drive: tuple[LateDisk | EmulatedCpu, ...] = ()  # what may account for more than the margin
    struck: StruckBetweenRuns | None = None


@dataclass(frozen=True)
class _Side:
    """One of the two runs, with what counts of it."""

    run: Run
    blocks: UsableBlocks
    name: WhichRun
    resolutions: dict[str, Resolution]  # by treatment
    spoiled: SpoiledAttempts

    @classmethod
    def of(cls, run: Run, name: WhichRun) -> "_Side":
        blocks, about = usable_blocks(run), metric_of(run.design)
        return cls(run, blocks, name, resolutions(blocks, about.name, about.unit), spoiled_attempts(run, blocks))

    def levels(self, treatments: Sequence[Treatment]) -> dict[int, float]:
        """Block -> mean ln(metric) of treatments, where all of them have a figure."""
        return block_levels(self.blocks, [treatment.id for treatment in treatments], self.run.design.metric)

    def mean(self, treatments: Sequence[Treatment]) -> float:
        """The mean of the metric itself; of several treatments the geometric mean over them of each block."""
        return float(np.mean(np.exp(list(levels.values())))) if (levels := self.levels(treatments)) else math.nan

    def interference(self, treatments: Sequence[Treatment]) -> Interference | None:
        """Whether others disturbed half of the trials of these treatments or more."""
        return interference_of([trial for each in treatments for trial in self.blocks.of(each.id)], self.name)

    def obstacle(self, treatment: Treatment, usable: int) -> Obstacle | None:
        if obstacle := obstacle_of(self.blocks, treatment, self.run.design.metric, self.name):
            return obstacle
        return TooFew(usable, MIN_TRIALS, "trial", self.name) if usable < MIN_TRIALS else None


def interference_of(trials: Sequence[Trial], run: WhichRun) -> Interference | None:
    """Return the interference that met half of these trials or more; None where it met fewer."""
    disturbed = sum(trial.disturbed for trial in trials)
    return Interference(run, disturbed, len(trials)) if mostly(disturbed, len(trials)) else None


def obstacle_of(blocks: UsableBlocks, treatment: Treatment, metric: str, run: WhichRun = "") -> Obstacle | None:
    """Return why a treatment's figures of one run are not to be compared with those of another."""
    if treatment.id in blocks.dropped:
        return Dropped(treatment.label, run)
    if zeros := blocks.without_ratio(treatment.id, metric):
        return ZeroFigures(treatment.label, metric, zeros, run)
    if limiting := limiting_hosts(blocks.of(treatment.id)):
        return LimitedClients(treatment.label, limiting, run)
    return None


def compare(
    before: Run, after: Run, *, margin: float | None = None, names: Sequence[str] = (), control: str | None = None
) -> Compared:
    """Return what changed from one run to the other.

    ``names`` are ``"old label=new label"`` for treatments that are called differently; ``control`` is the label of one
    that should not have changed; without one, all that nothing distinguishes are. Without a ``margin`` both runs must
    have the same.

    Raises:
        RefusedError: The runs can't be compared, or a label is unknown.

    """
    check_comparable(before, after)
    width = _margin(before, after, margin)
    matched = matched_treatments(before, after, names)
    named = control_among(matched, control)
    sides = _Side.of(before, "before"), _Side.of(after, "after")
    controls = [named] if named else [pair for pair in matched if _is_control(sides, pair)]
    nothing_changed = not named and not any(distinctions(before, after, pair) for pair in matched)
    judged = [pair for pair in matched if nothing_changed or pair not in controls]
    primary = metric_of(after.design)
    interferences = [side.interference([pair[at] for pair in matched]) for at, side in enumerate(sides)]
    interference = tuple(of_side for of_side in interferences if of_side)
    shift = _changes([_group(sides, *controls)], primary, width)[0] if controls else None
    is_against = controls and not nothing_changed
    against = [_group(sides, pair, margin=width, against=controls) for pair in judged] if is_against else []
    moved = shift is not None and shift.verdict not in {Word.EQUIVALENT, Word.NOT_COMPARABLE}
    of_host = OtherHost() if not controls and has_other_host(before, after) else HostShift() if moved else None
    cause = NothingChanged() if nothing_changed else next(iter(interference), of_host)
    disturbed = next(iter(interference), None)
    return Compared(
        metric=primary,
        margin=width,
        changes=_withhold_words(
            _changes([_group(sides, pair, margin=width) for pair in judged], primary, width), cause
        ),
        control=_withhold_words([shift], disturbed)[0] if shift else None,
        controls=tuple(new.label for _, new in controls),
        control_is_named=named is not None,
        nothing_changed=nothing_changed,
        interference=interference,
        against_control=_withhold_words(_changes(against, primary, width), disturbed),
        matched=matched,
        only_before=[
            treatment.label for treatment in before.design.treatments if treatment not in [old for old, _ in matched]
        ],
        only_after=[
            treatment.label for treatment in after.design.treatments if treatment not in [new for _, new in matched]
        ],
        drifts=(drift_of(before, sides[0].blocks), drift_of(after, sides[1].blocks)),
        server_defaults=defaults_of_two_runs(before, after, matched),
    )


def has_other_host(before: Run, after: Run) -> bool:
    """Whether two runs are known to be of hosts with other processors; computed figures do not depend on them."""
    if before.is_simulated and after.is_simulated:
        return False
    old, new = in_common_words(before, after, _processors(before), _processors(after))
    return any(old[name] != new[name] for name in old.keys() & new.keys())


def _processors(run: Run) -> dict[str, list[Any]]:
    """Return what is known of the processors of a run's hosts, each kind once."""
    hosts = list(run.hosts.values()) or [run.host]
    models = {model for host in hosts if (model := processor_model(host))}
    cores = {cores for host in hosts if isinstance(cores := host.get("cores"), int)}
    return {name: sorted(values) for name, values in (("cpu", models), ("cores", cores)) if values}


def _is_control(sides: tuple[_Side, _Side], pair: Pair) -> bool:
    """Whether nothing distinguishes a treatment between the runs, and it has figures to show what the host did."""
    usable = not _group(sides, pair).obstacle
    return usable and not distinctions(sides[0].run, sides[1].run, pair)


def _withhold_words(changes: Sequence[Change], cause: Withheld | None) -> list[Change]:
    """Return changes whose word is not given, for ``cause``; what had none to give says so only of a missing change.

    Their intervals are not given either: they cover the noise inside the runs, and what may have made the difference is
    not of that kind.
    """
    nothing_changed = isinstance(cause, NothingChanged)
    return [
        replace(
            change,
            verdict=Word.UNDECIDED,
            withheld_for=cause,
            effect=replace(change.effect, low=-math.inf, high=math.inf),
        )
        if cause and change.verdict != Word.NOT_COMPARABLE and (nothing_changed or not change.verdict.is_open)
        else change
        for change in changes
    ]


def check_comparable(before: Run, after: Run) -> None:
    """Raise ``RefusedError`` where two runs have another metric or another load."""
    metrics = before.design.metric, after.design.metric
    if metrics[0] != metrics[1]:
        raise RefusedError("other metric", before=metrics[0], after=metrics[1])
    for name in ("kind", "load"):
        loads = [run.study.get("workload", {}).get(name) for run in (before, after)]
        if loads[0] != loads[1] and all(isinstance(load, str) for load in loads):
            raise RefusedError("other load", name=name, before=loads[0], after=loads[1])


def _margin(before: Run, after: Run, margin: float | None) -> float:
    margins = before.design.margin, after.design.margin
    if margin is None and margins[0] != margins[1]:
        raise RefusedError("other margin", before=margins[0], after=margins[1])
    return margins[0] if margin is None else margin


def _group(
    sides: tuple[_Side, _Side], *pairs: Pair, margin: float = math.inf, against: Sequence[Pair] = ()
) -> _TwoSamples:
    """Return the figures of a treatment, or of several as their geometric mean, or as ratios to controls by block.

    Without a ``margin`` it is not asked what else may have made it: of the host that belongs to its shift.
    """
    logs, means = [], []
    for at, side in enumerate(sides):
        level = side.levels([pair[at] for pair in pairs])
        control = side.levels([pair[at] for pair in against]) if against else dict.fromkeys(level, 0.0)
        logs.append(np.array([level[block] - control[block] for block in sorted(level.keys() & control.keys())]))
        means.append(math.nan if against else side.mean([pair[at] for pair in pairs]))
    treatments = [(pair[at], at) for pair in (*pairs, *against) for at in (0, 1)]
    obstacles = [sides[at].obstacle(treatment, len(logs[at])) for treatment, at in treatments]
    before, after = (" + ".join(dict.fromkeys(pair[at].label for pair in pairs)) for at in (0, 1))
    coarse = _resolution(sides, pairs, against)
    causes = _not_of_the_drive(sides, pairs, against, margin)
    struck = _struck(sides, pairs, against) if math.isfinite(margin) else None
    return _TwoSamples(before, after, logs[0], logs[1], (means[0], means[1]), first(obstacles), coarse, causes, struck)


def _not_of_the_drive(
    sides: tuple[_Side, _Side], pairs: Sequence[Pair], against: Sequence[Pair], margin: float
) -> tuple[LateDisk | EmulatedCpu, ...]:
    """Return what may account for more than the margin; a control is the same treatment before and after."""
    parts = [
        Side(
            f"{pair[at].label} ({side.name})",
            sign * (2 * at - 1) / len(group),
            side.blocks.of(pair[at].id),
            pair[1].id if group is against else "",
        )
        for group, sign in ((pairs, 1), (against, -1))
        for pair in group
        for at, side in enumerate(sides)
    ]
    if not all(part.trials for part in parts):
        return ()
    return tuple(not_of_the_drive(parts, metric_of(sides[1].run.design), margin))


def _struck(sides: tuple[_Side, _Side], pairs: Sequence[Pair], against: Sequence[Pair]) -> StruckBetweenRuns:
    """Return which attempts were left out for either side of a contrast alone; what was kept has a rule of its own."""
    level = [{pair[at].id: 1 / len(pairs) for pair in pairs} for at in (0, 1)]
    control = [{pair[at].id: 1 / len(against) for pair in against} for at in (0, 1)]
    left_out = [
        (
            side.spoiled.favouring(difference(level[at], control[at])).left_out,
            side.spoiled.favouring(difference(control[at], level[at])).left_out,
        )
        for at, side in enumerate(sides)
    ]
    labels = [f"{' + '.join(pair[at].label for pair in pairs)} ({side.name})" for at, side in enumerate(sides)]
    attempts = [len(side.blocks.trials) + len(side.blocks.void) for side in sides]
    return StruckBetweenRuns(
        (labels[0], labels[1]), left_out[0], left_out[1], (attempts[0], attempts[1]), has_control=bool(against)
    )


def _resolution(sides: tuple[_Side, _Side], *means: Sequence[Pair]) -> Resolution:
    terms = ((1 / len(pairs), pair[at], at) for pairs in means for pair in pairs for at in (0, 1))
    return combined((weight, sides[at].resolutions.get(treatment.id, FINE_ENOUGH)) for weight, treatment, at in terms)


def _changes(groups: Sequence[_TwoSamples], primary: Metric, margin: float) -> list[Change]:
    """Judge groups that are one family."""
    usable = [group for group in groups if not group.obstacle]
    changes = list(_judge_groups(usable, primary, margin))
    judged = iter(
        _withhold_words([change], _explained_by(usable, place, change, margin))[0]
        for place, change in enumerate(changes)
    )
    return [_without_figures(group, group.obstacle) if group.obstacle else next(judged) for group in groups]


def _explained_by(groups: Sequence[_TwoSamples], place: int, change: Change, margin: float) -> Withheld | None:
    """Return what else than the change may have made the word on one of a family."""
    group = groups[place]
    if change.verdict.is_open:
        return None
    if group.struck and (cause := group.struck.cause):
        word = _words(groups, margin)[place]
        for x, y in group.struck.samples(group.x, group.y):
            if _words([*groups[:place], replace(group, x=x, y=y), *groups[place + 1 :]], margin)[place] != word:
                return cause
    return that_explains(group.not_of_the_drive, change.effect, change.verdict)


def _words(groups: Sequence[_TwoSamples], margin: float) -> list[Relation]:
    return [Relation(word) for word in relations(_family(groups, margin), margin)]


def _family(groups: Sequence[_TwoSamples], margin: float) -> Evidence:
    units = [group.resolution.log_width for group in groups]
    return unpaired_family([(group.x, group.y) for group in groups], margin, units)


def _without_figures(group: _TwoSamples, reason: Reason | Obstacle) -> Change:
    return Change(
        before=group.before,
        after=group.after,
        effect=Estimate.unknown(),
        trials=(len(group.x), len(group.y)),
        means=group.means,
        verdict=reason.word if isinstance(reason, Reason) else Word.NOT_COMPARABLE,
        reason=reason,
    )


def _judge_groups(groups: Sequence[_TwoSamples], primary: Metric, margin: float) -> Iterator[Change]:
    if not groups:
        return
    family = _family(groups, margin)
    words, p, p_equivalence = relations(family, margin), holm(family.p), holm(family.p_equivalence)
    for i, group in enumerate(groups):
        x, y = group.x, group.y
        effect = relative_estimate(float(family.value[i]), float(family.low[i]), float(family.high[i]), len(x) + len(y))
        reason = reason_of(
            *(Relation(words[i]), effect, differences(x, y), primary),
            p_mean=float(two_means_p_beyond(x, y, log_margin(margin))),
            margin=margin,
            sizes=(len(x), len(y)),
            family=len(groups),
            p_adjusted=float(p[i]),
            p_equivalence=float(p_equivalence[i]),
            p_best=min(1.0, smallest_p(len(x), len(y)) * len(groups)),
            far_off=int(far_off(x).sum() + far_off(y).sum()),
            resolution=group.resolution,
        )
        yield replace(
            _without_figures(group, reason),
            effect=effect,
            p=float(family.p[i]),
            p_adjusted=reason.p_adjusted,
            p_equivalence=reason.p_equivalence,
        )
