"""What to do after a run: what may be taken under which load and at what risk, or why nothing is recommended yet."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations
from math import prod
from typing import Literal

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.explanation import Why
from dbdyno.analysis.load_checks import shows_capacity
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.analysis.verdict.reasons import Lack, NextStep, Secondary, hardest
from dbdyno.model.design import Design
from dbdyno.model.metrics import Metric
from dbdyno.model.word import Word
from dbdyno.mysql.durability import CommitRisk, Durability, added_risks, durability, has_binary_log
from dbdyno.mysql.settings import FLUSH_LOG
from dbdyno.store.records import Run, Trial

# Which of the treatments compared under one load may be taken: what verdicts carry, and nothing more.
#
# A treatment is *beaten* where any comparison shows another to be faster, planned or not. Only planned verdicts speak
# for one: it is taken if nothing beats it and a chain of planned verdicts, each "faster", leads from it to the
# baseline. Where nothing beats the baseline it is kept, if all that is not beaten either is equivalent to it; else the
# choice is open.


Kind = Literal["take", "keep", "any", "safer", "open"]
Stack = Mapping[str, str]  # factor -> level, of those factors that are a choice


@dataclass(frozen=True)
class Relations:
    """What is known of treatments that stand under one load, by id."""

    stacks: Mapping[str, Stack]  # of those that were judged, in the order of the study
    baseline: str | None  # None: it was not judged
    faster: frozenset[tuple[str, str]]  # (the faster, the slower), by planned verdicts
    alike: frozenset[frozenset[str]]  # by planned verdicts
    behind: frozenset[str] = frozenset()  # slower than another one, by whatever finding that carries a recommendation
    perhaps_behind: frozenset[str] = frozenset()  # so only by findings that carry none, as under interference
    every_stack: bool = True  # whether all stacks of the study were judged: none was dropped

    @property
    def unbeaten(self) -> list[str]:
        """Those that nothing is shown to be faster than."""
        slower = {slower for _, slower in self.faster} | self.behind | self.perhaps_behind
        return [id_ for id_ in self.stacks if id_ not in slower]

    def are_alike(self, first: str, second: str) -> bool:
        """Whether a planned verdict says so."""
        return frozenset((first, second)) in self.alike


@dataclass(frozen=True)
class Choice:
    """What the verdicts carry: ids of treatments."""

    kind: Kind
    take: tuple[str, ...] = ()  # to take or to keep; none where the choice is open
    as_good: tuple[str, ...] = ()  # beside those: not beaten, and equivalent to one of them

    @property
    def pool(self) -> tuple[str, ...]:
        """All that may be taken."""
        return (*self.take, *self.as_good)


def choose(relations: Relations) -> Choice:
    """Return what may be taken."""
    unbeaten = relations.unbeaten
    if relations.baseline in unbeaten:
        return _keep_baseline(relations, relations.baseline, unbeaten)
    taken = [id_ for id_ in unbeaten if _leads_to_baseline(relations, id_)]
    if not taken:
        return Choice("open")
    taken += [id_ for id_ in unbeaten if id_ not in taken and any(_same_change(relations, id_, of) for of in taken)]
    return Choice("take", tuple(taken), _as_good(relations, taken, unbeaten))


def _as_good(relations: Relations, taken: Iterable[str], unbeaten: Iterable[str]) -> tuple[str, ...]:
    others = (id_ for id_ in unbeaten if id_ not in taken)
    return tuple(id_ for id_ in others if any(relations.are_alike(id_, of) for of in taken))


def _leads_to_baseline(relations: Relations, start: str) -> bool:
    """Return whether one is faster than the baseline, or than what is faster than that, and so on.

    Where there is no baseline, whether it is faster than anything.
    """
    visited, ahead = {start}, [start]
    while ahead:
        id_ = ahead.pop()
        slower = {slower for faster, slower in relations.faster if faster == id_}
        if relations.baseline in slower or (relations.baseline is None and slower):
            return True
        ahead += slower - visited
        visited |= slower
    return False


def _same_change(relations: Relations, candidate: str, of: str) -> bool:
    """Return whether one has what another one changed of the baseline, and is faster than the same without that."""
    if relations.baseline is None:
        return False
    stack, base, taken_stack = relations.stacks[candidate], relations.stacks[relations.baseline], relations.stacks[of]
    changed = {name: level for name, level in taken_stack.items() if base.get(name) != level}
    if not changed.items() <= stack.items():
        return False
    without = {name: base[name] if name in changed and name in base else level for name, level in stack.items()}
    return any(
        (candidate, other) in relations.faster for other, levels in relations.stacks.items() if levels == without
    )


def _keep_baseline(relations: Relations, baseline: str, unbeaten: list[str]) -> Choice:
    """Return that the baseline is kept, unless something that is not beaten either may be better."""
    component = _component_of(relations, baseline)
    if len(relations.stacks) == 1:  # all others failed, so nothing speaks for it
        return Choice("open")
    if relations.perhaps_behind:  # what speaks against these would speak against the baseline as little
        return Choice("open")
    for id_ in unbeaten:
        beats_it = any(faster == id_ and slower in component for faster, slower in relations.faster)
        by_a_chain_alone = id_ != baseline and not relations.are_alike(id_, baseline)
        if id_ not in component or (by_a_chain_alone and beats_it):
            return Choice("open")
    as_good = tuple(id_ for id_ in unbeaten if id_ != baseline)
    is_any = relations.every_stack and len(unbeaten) == len(relations.stacks) > 1
    return Choice("any" if is_any else "keep", (baseline,), as_good)


def _component_of(relations: Relations, start: str) -> set[str]:
    """Return what equivalences connect with one treatment."""
    component, ahead = {start}, [start]
    while ahead:
        id_ = ahead.pop()
        more = {neighbour for pair in relations.alike if id_ in pair for neighbour in pair} - component
        component |= more
        ahead += more
    return component


# What a recommendation costs in safety, by the settings that trials read back.


Durable = Mapping[str, Durability | None]  # treatment id -> as ``durability``; None: no server was in its trials


@dataclass(frozen=True)
class Safety:
    """Of the treatments that may be taken, beside all others."""

    durable: bool | None  # whether the commits of all are; None: not known of one of them
    served: bool  # whether a server was in their trials
    lacking: tuple[CommitRisk, ...]  # by which settings any of them may lose a commit
    worse: tuple[CommitRisk, ...]  # those of them that another treatment does better
    safer: tuple[str, ...]  # ids of the treatments that do
    less_known: bool  # whether commits are known to be durable of another treatment, and not of these
    synced: tuple[str, ...]  # ``FLUSH_LOG`` of these, as read back
    disks: tuple[str, ...]  # kinds of the disks below all that was compared: "emulated", "real"
    gives_up_binary_log: bool = False  # one of these has none, and another treatment has one


def safest(choice: Choice, relations: Relations, durable: Durable) -> Choice:
    """Return the choice without what another one in it does more safely that is as good by the same right.

    That is one which is shown to be faster as well, or which is equivalent; to the latter the baseline gives way, too.
    What is as good and may be had less safely than that is not offered.
    """
    pool, ahead = choice.pool, choice.take if choice.kind == "take" else ()
    better = {id_: [of for of in pool if of in ahead or relations.are_alike(id_, of)] for id_ in pool}
    remaining = [id_ for id_ in pool if not any(is_safer(of, id_, durable) for of in better[id_])]
    take = tuple(id_ for id_ in choice.take if id_ in remaining)
    as_good = tuple(id_ for id_ in remaining if id_ not in take)
    if not take:
        return Choice("safer" if choice.kind in {"keep", "any"} else choice.kind, as_good)
    if any(is_safer(of, id_, durable) for id_ in remaining for of in remaining):
        as_good = ()
    kind = "keep" if choice.kind == "any" and len(take) + len(as_good) < len(pool) else choice.kind
    return replace(choice, kind=kind, take=take, as_good=as_good)


def is_safer(first_id: str, second_id: str, durable: Durable) -> bool:
    """Return whether the first keeps commits that the second may lose, and loses none that the second keeps."""
    first, second = durable.get(first_id), durable.get(second_id)
    return bool(first and second and added_risks(second, first) and not added_risks(first, second))


def safety(pool: Sequence[str], durable: Durable, trials: Mapping[str, Sequence[Trial]]) -> Safety:
    """Return what taking any of some treatments means beside all others that were measured."""
    own = [own_safety for id_ in pool if (own_safety := durable.get(id_))]
    logged = {id_: any(has_binary_log(trial.observed) for trial in of_id) for id_, of_id in trials.items()}
    others = {id_: other_safety for id_, other_safety in durable.items() if other_safety}
    worse = {
        id_: [gap for own_safety in own for gap in added_risks(own_safety, other_safety)]
        for id_, other_safety in others.items()
    }
    unknown = any(own_safety.durable is None for own_safety in own)
    return Safety(
        durable=None if unknown or not own else all(own_safety.durable for own_safety in own),
        served=bool(own),
        lacking=_unique(gap for own_safety in own for gap in own_safety.lacking),
        worse=_unique(gap for gaps in worse.values() for gap in gaps),
        safer=tuple(id_ for id_, gaps in worse.items() if gaps),
        less_known=unknown and any(other_safety.durable for other_safety in others.values()),
        synced=tuple(dict.fromkeys(_flush_log(trial) for id_ in pool for trial in trials[id_])),
        disks=tuple(dict.fromkeys(_disk(trial) for trials_of_id in trials.values() for trial in trials_of_id)),
        gives_up_binary_log=any(logged.values()) and not all(logged[id_] for id_ in pool),
    )


def _unique(gaps: Iterable[CommitRisk]) -> tuple[CommitRisk, ...]:
    return tuple(dict.fromkeys(gaps))


def _flush_log(trial: Trial) -> str:
    return str(trial.observed.get("server", {}).get(FLUSH_LOG, ""))


def _disk(trial: Trial) -> str:
    return str(trial.observed.get("device", {}).get("kind", ""))


# What may be taken under every load, or else under which: stacks are the same where all their levels are.


Key = tuple[tuple[str, str], ...]  # of a stack or of a load


@dataclass(frozen=True)
class LoadGroup:
    """Treatments under one load."""

    levels: Stack  # of what varies of the load
    stacks: dict[str, Stack]  # treatment id -> its levels, of what else varies


@dataclass(frozen=True)
class LoadChoice:
    """What may be taken under one load."""

    load: LoadGroup
    choice: Choice
    alike: frozenset[frozenset[str]]
    lacking: Mapping[frozenset[str], NextStep]  # what open comparisons lack
    slower: tuple[str, ...]

    def pool(self) -> dict[Key, str]:
        """Return the stacks that may be taken, with their ids."""
        return {key_of(self.load.stacks[id_]): id_ for id_ in self.choice.pool}


@dataclass(frozen=True)
class Free:
    """A factor in whose levels those differ that may be taken."""

    name: str
    levels: tuple[str, ...]
    all_of_them: bool  # that the study has
    step: NextStep | None  # what telling them apart lacks; None: they were shown to be equivalent


def key_of(levels: Stack) -> Key:
    """Return levels as what can be looked up."""
    return tuple(levels.items())


def same_for_all(choices: Sequence[LoadChoice]) -> list[list[LoadChoice]]:
    """Return the loads in parts, in each of which the same may be taken: in one part if anything may be under all."""
    if together := _under_all(choices):
        return [together]
    parts: dict[tuple[Kind, frozenset[Key]], list[LoadChoice]] = {}
    for load_choice in choices:
        parts.setdefault((load_choice.choice.kind, frozenset(load_choice.pool())), []).append(load_choice)
    return list(parts.values())


def _under_all(choices: Sequence[LoadChoice]) -> list[LoadChoice]:
    """Return the loads with what may be taken under all of them; empty where nothing may, or a load is open."""
    kinds: set[Kind] = {load_choice.choice.kind for load_choice in choices}
    if kinds == {"open"}:
        return list(choices)
    common = set.intersection(*(set(load_choice.pool()) for load_choice in choices))
    if "open" in kinds or not common:
        return []
    ordered: tuple[Kind, ...] = ("take", "safer", "keep", "any")
    kind = next(kind for kind in ordered if kind in kinds)
    taken = {
        key
        for load_choice in choices
        for key, id_ in load_choice.pool().items()
        if key in common and id_ in load_choice.choice.take
    }
    return [replace(load_choice, choice=_restrict_choice(load_choice, kind, common, taken)) for load_choice in choices]


def _restrict_choice(load_choice: LoadChoice, kind: Kind, common: set[Key], taken: set[Key]) -> Choice:
    """Return the choice under a load, of the stacks that may be taken under all; ``taken`` are so under any."""
    pool = {key: id_ for key, id_ in load_choice.pool().items() if key in common}
    take = tuple(id_ for key, id_ in pool.items() if key in (taken or common))
    return Choice(kind, take, tuple(id_ for id_ in pool.values() if id_ not in take))


def free_factors(part: Sequence[LoadChoice]) -> tuple[Stack, tuple[Free, ...]]:
    """Return what all have in common that may be taken, and what they differ in.

    The second is empty, too, where they are not all combinations of some levels: then each must be named.
    """
    stacks = [dict(key) for key in dict.fromkeys(key for load_choice in part for key in load_choice.pool())]
    if not stacks:
        return {}, ()
    names = dict.fromkeys(name for stack in stacks for name in stack)
    levels = {name: tuple(dict.fromkeys(stack.get(name, "") for stack in stacks)) for name in names}
    fixed = {name: factor_levels[0] for name, factor_levels in levels.items() if len(factor_levels) == 1}
    different = {name: factor_levels for name, factor_levels in levels.items() if len(factor_levels) > 1}
    if prod(map(len, different.values())) != len(stacks):
        return fixed, ()
    return fixed, tuple(_free(name, factor_levels, part) for name, factor_levels in different.items())


def _free(name: str, levels: tuple[str, ...], part: Sequence[LoadChoice]) -> Free:
    steps = [step for load_choice in part for step in _not_distinguished(name, load_choice)]
    of_study = {stack.get(name, "") for load_choice in part for stack in load_choice.load.stacks.values()}
    return Free(name, levels, of_study == set(levels), hardest(steps))


def _not_distinguished(name: str, load_choice: LoadChoice) -> list[NextStep]:
    """Return what comparisons lack that show no equivalence, of stacks that differ in this factor alone."""
    steps = []
    for first, second in combinations(load_choice.choice.pool, 2):
        levels, other_levels = dict(load_choice.load.stacks[first]), dict(load_choice.load.stacks[second])
        if {factor for factor in levels | other_levels if levels.get(factor) != other_levels.get(factor)} != {name}:
            continue
        pair = frozenset((first, second))
        if pair not in load_choice.alike:
            steps.append(load_choice.lacking.get(pair, NextStep(Lack.A_COMPARISON)))
    return steps


_RATES = ("_per_second", "_per_minute", "iops")  # how the names of metrics end that an offered rate decides


class Hold(StrEnum):
    """Why nothing can be recommended, whatever the verdicts are."""

    NO_BLOCK = "no block is complete"
    SAME_TREATMENTS = "an A/A run"
    NOTHING_COMPARED = "nothing was compared"
    LOAD_ALONE = "only the load varied"
    UNFINISHED = "the run is not finished"


@dataclass(frozen=True)
class Recommended:
    """What may be taken under some loads; ``loads`` is empty where it holds under all."""

    loads: tuple[Stack, ...]
    choice: Choice  # ids, of all these loads
    fixed: Stack  # the levels that all have in common that may be taken, of what varied
    free: tuple[Free, ...]  # what they differ in; empty, too, where they can only be named one by one
    slower: tuple[str, ...]  # ids shown to be slower than another one that is as durable
    step: NextStep | None  # what an open choice lacks
    is_partly_decided: bool  # whether a planned verdict under these loads is "faster" or "slower"
    safety: Safety | None  # None: nothing may be taken
    at_odds: tuple[Secondary, ...] = ()  # what differs between those that are as good in the study's own metric


@dataclass(frozen=True)
class Advice:
    """What to do."""

    hold: Hold | None = None
    parts: tuple[Recommended, ...] = ()
    step: NextStep | None = None  # what all comparisons lack, where nothing can be chosen anyway


def wants_more_blocks(advice: Advice) -> bool:
    """Whether more blocks of the same run are what it asks for."""
    return any(step and step.lack is Lack.MORE_BLOCKS for step in (advice.step, *(part.step for part in advice.parts)))


@dataclass(frozen=True)
class AdviceBasis:
    """What advice rests on."""

    verdicts: Sequence[Finding]  # planned
    unplanned: Sequence[Finding]  # of all other pairs
    why: Why
    filling: Collection[str] = ()  # ids of treatments whose buffer pool was still being filled


def advise(run: Run, blocks: UsableBlocks, metric: Metric, basis: AdviceBasis) -> Advice:
    """Return what the verdicts carry: nothing is recommended that any comparison shows to be slower than another."""
    design = run.design
    if hold := _hold(run, blocks, basis):
        return Advice(hold)
    loads, judge = _loads(design), _Judge(design, blocks, metric, basis)
    if all(len(load.stacks) < 2 for load in loads):  # noqa: PLR2004 - a choice
        return Advice(
            Hold.LOAD_ALONE, step=hardest(judge.open.values()) if judge.open.keys() == judge.planned else None
        )
    choices = [load_choice for load in loads if (load_choice := judge.choice_under(load))]
    if not choices:
        return Advice(Hold.NOTHING_COMPARED)
    return Advice(
        parts=tuple(judge.recommendation(part, whole=len(part) == len(choices)) for part in same_for_all(choices))
    )


def _hold(run: Run, blocks: UsableBlocks, basis: AdviceBasis) -> Hold | None:
    if not blocks.trials:
        return Hold.NO_BLOCK
    if run.design.aa is not None:
        return Hold.SAME_TREATMENTS
    if not basis.verdicts:
        return Hold.NOTHING_COMPARED
    return Hold.UNFINISHED if run.ended != "done" else None


def _loads(design: Design) -> list[LoadGroup]:
    """Return the treatments by the load that they stand under; only factors that vary count."""
    levels: dict[str, set[str]] = {}
    for treatment in design.treatments:
        for name, level in treatment.levels.items():
            levels.setdefault(name, set()).add(level)
    varied = {name for name, factor_levels in levels.items() if len(factor_levels) > 1}
    of_load = {factor.name for factor in design.factors if factor.is_load} & varied
    groups: dict[Key, LoadGroup] = {}
    for treatment in design.treatments:
        load = {name: level for name, level in treatment.levels.items() if name in of_load}
        stack = {name: level for name, level in treatment.levels.items() if name in varied - of_load}
        groups.setdefault(key_of(load), LoadGroup(load, {})).stacks[treatment.id] = stack
    return list(groups.values())


class _Judge:
    """The comparisons of a run, as far as each carries a recommendation."""

    def __init__(self, design: Design, blocks: UsableBlocks, metric: Metric, basis: AdviceBasis) -> None:
        self.design, self.blocks, self.metric, self.basis = design, blocks, metric, basis
        self.trials = {treatment.id: blocks.of(treatment.id) for treatment in design.treatments}
        self.durable = {id_: durability([trial.observed for trial in trials]) for id_, trials in self.trials.items()}
        self.open = {finding.ids: step for finding in basis.verdicts if (step := self._step(finding))}
        self.planned = {finding.ids for finding in basis.verdicts}

    def choice_under(self, load: LoadGroup) -> LoadChoice | None:
        """Return what may be taken under a load; nothing where no two stacks were compared under it."""
        inside = [finding for finding in self.basis.verdicts if finding.ids <= load.stacks.keys()]
        if not inside:
            return None
        relations = self._relations(load, inside)
        choice = safest(choose(relations), relations, self.durable)
        lacking = {pair: step for pair, step in self.open.items() if pair <= load.stacks.keys()}
        unbeaten = relations.unbeaten
        slower = tuple(
            id_
            for id_ in relations.stacks
            if id_ not in unbeaten and id_ not in relations.perhaps_behind
            # Nobody is advised against what is more durable for being slower.
            if not any(is_safer(id_, other, self.durable) for other in relations.stacks)
        )
        return LoadChoice(load, choice, relations.alike, lacking, slower)

    def _relations(self, load: LoadGroup, inside: Sequence[Finding]) -> Relations:
        compared = {id_ for finding in inside for id_ in finding.ids}
        stacks = {id_: stack for id_, stack in load.stacks.items() if id_ in compared - self.blocks.dropped}
        base = next(treatment.levels for treatment in self.design.treatments if treatment.id == self.design.baseline)
        carried = [finding for finding in inside if finding.ids not in self.open]
        behind, perhaps_behind = self._behind(load.stacks)
        return Relations(
            stacks,
            next((id_ for id_, stack in stacks.items() if stack.items() <= base.items()), None),
            frozenset(_in_order(finding) for finding in carried if finding.verdict.is_different),
            frozenset(finding.ids for finding in carried if finding.verdict is Word.EQUIVALENT),
            behind,
            perhaps_behind,
            every_stack=len(stacks) == len(load.stacks),
        )

    def _behind(self, stacks: Mapping[str, Stack]) -> tuple[frozenset[str], frozenset[str]]:
        """Return what is slower than another one by any finding, and what is so only by findings that carry nothing."""
        findings = [*self.basis.verdicts, *self.basis.unplanned]
        differing = [finding for finding in findings if finding.verdict.is_different and finding.ids <= stacks.keys()]
        surely = {_in_order(finding)[1] for finding in differing if not self._step(finding)}
        return frozenset(surely), frozenset(_in_order(finding)[1] for finding in differing) - surely

    def _step(self, finding: Finding) -> NextStep | None:
        """Return why a finding carries no recommendation; nothing where it does."""
        if finding.lack is not None:
            return finding.lack
        if finding.mostly_disturbed:
            return NextStep(Lack.QUIET_HOST)
        if finding.ids & set(self.basis.filling):
            return NextStep(Lack.LONGER_WARM_UP)
        if finding.totals_disagree:
            return NextStep(Lack.NO_STALLS)
        return self._step_of_equivalence(finding) if finding.verdict is Word.EQUIVALENT else None

    def _step_of_equivalence(self, finding: Finding) -> NextStep | None:
        """Return what keeps two from differing that is neither of them."""
        ids = finding.baseline_id, finding.level_id
        changed = self.basis.why.changes.get(ids)
        limits = [changed.baseline.limit, changed.level.limit] if changed else []
        if any(limit.kind == "client" and limit.full for limit in limits):
            return NextStep(Lack.STRONGER_LOAD_GENERATOR)
        if self.metric.name.endswith(_RATES) and not all(shows_capacity(self.trials[id_]) for id_ in ids):
            return NextStep(Lack.HIGHER_RATE)
        return None

    def recommendation(self, part: Sequence[LoadChoice], *, whole: bool) -> Recommended:
        """Return what may be taken under some loads, which is the same under all of them."""
        choice = Choice(
            part[0].choice.kind,
            tuple(id_ for load_choice in part for id_ in load_choice.choice.take),
            tuple(id_ for load_choice in part for id_ in load_choice.choice.as_good),
        )
        fixed, free = free_factors(part)
        steps = [step for load_choice in part for step in load_choice.lacking.values()]
        is_open = choice.kind == "open"
        under = [set(load_choice.load.stacks) for load_choice in part]
        return Recommended(
            loads=() if whole else tuple(load_choice.load.levels for load_choice in part),
            choice=choice,
            fixed=fixed,
            free=free,
            slower=tuple(id_ for load_choice in part for id_ in load_choice.slower),
            step=(hardest(steps) or NextStep(Lack.A_COMPARISON)) if is_open else None,
            is_partly_decided=any(
                finding.verdict.is_different and any(finding.ids <= ids for ids in under)
                for finding in self.basis.verdicts
            ),
            safety=None if is_open else safety(choice.pool, self.durable, self.trials),
            at_odds=tuple(
                secondary
                for finding in self.basis.verdicts
                if finding.ids <= set(choice.pool)
                for secondary in finding.at_odds
            ),
        )


def _in_order(finding: Finding) -> tuple[str, str]:
    """Return the ids, the faster first."""
    ids = finding.level_id, finding.baseline_id
    return ids if finding.verdict is not Word.SLOWER else ids[::-1]
