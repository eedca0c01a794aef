"""What to do after a run: what may be taken under which load and at what risk, or why nothing is recommended yet."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations
from math import prod
from typing import Literal

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.checks import shows_capacity
from dbdyno.analysis.explanation import Why
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.analysis.verdict.reasons import Lack, NextStep, Secondary, hardest
from dbdyno.model.design import Design, Factor
from dbdyno.model.metrics import Metric
from dbdyno.model.word import Word
from dbdyno.mysql.durability import CommitRisk, Durability, added_risks, durability
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
        return [one for one in self.stacks if one not in slower]

    def are_alike(self, one: str, other: str) -> bool:
        """Whether a planned verdict says so."""
        return frozenset((one, other)) in self.alike


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


def choose(known: Relations) -> Choice:
    """Return what may be taken."""
    unbeaten = known.unbeaten
    if known.baseline in unbeaten:
        return _kept(known, known.baseline, unbeaten)
    taken = [one for one in unbeaten if _leads_to_baseline(known, one)]
    if not taken:
        return Choice("open")
    taken += [one for one in unbeaten if one not in taken and any(_same_change(known, one, of) for of in taken)]
    return Choice("take", tuple(taken), _as_good(known, taken, unbeaten))


def _as_good(known: Relations, taken: Iterable[str], unbeaten: Iterable[str]) -> tuple[str, ...]:
    others = (one for one in unbeaten if one not in taken)
    return tuple(one for one in others if any(known.are_alike(one, of) for of in taken))


def _leads_to_baseline(known: Relations, start: str) -> bool:
    """Return whether one is faster than the baseline, or than what is faster than that, and so on.

    Where there is no baseline, whether it is faster than anything.
    """
    seen, ahead = {start}, [start]
    while ahead:
        one = ahead.pop()
        slower = {slower for faster, slower in known.faster if faster == one}
        if known.baseline in slower or (known.baseline is None and slower):
            return True
        ahead += slower - seen
        seen |= slower
    return False


def _same_change(known: Relations, one: str, of: str) -> bool:
    """Return whether one has what another one changed of the baseline, and is faster than the same without that."""
    if known.baseline is None:
        return False
    stack, base, taken = known.stacks[one], known.stacks[known.baseline], known.stacks[of]
    changed = {name: level for name, level in taken.items() if base.get(name) != level}
    if not changed.items() <= stack.items():
        return False
    without = {name: base[name] if name in changed and name in base else level for name, level in stack.items()}
    return any((one, other) in known.faster for other, levels in known.stacks.items() if levels == without)


def _kept(known: Relations, baseline: str, unbeaten: list[str]) -> Choice:
    """Return that the baseline is kept, unless something that is not beaten either may be better."""
    component = _connected(known, baseline)
    if len(known.stacks) == 1:  # all others failed, so nothing speaks for it
        return Choice("open")
    if known.perhaps_behind:  # what speaks against these would speak against the baseline as little
        return Choice("open")
    for one in unbeaten:
        beats_it = any(faster == one and slower in component for faster, slower in known.faster)
        by_a_chain_alone = one != baseline and not known.are_alike(one, baseline)
        if one not in component or (by_a_chain_alone and beats_it):
            return Choice("open")
    as_good = tuple(one for one in unbeaten if one != baseline)
    is_any = known.every_stack and len(unbeaten) == len(known.stacks) > 1
    return Choice("any" if is_any else "keep", (baseline,), as_good)


def _connected(known: Relations, start: str) -> set[str]:
    """Return what equivalences connect with one treatment."""
    found, ahead = {start}, [start]
    while ahead:
        one = ahead.pop()
        more = {each for pair in known.alike if one in pair for each in pair} - found
        found |= more
        ahead += more
    return found


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


def safest(choice: Choice, known: Relations, durable: Durable) -> Choice:
    """Return the choice without what another one in it does more safely that is as good by the same right.

    That is one which is shown to be faster as well, or which is equivalent; to the latter the baseline gives way, too.
    What is as good and may be had less safely than that is not offered.
    """
    pool, ahead = choice.pool, choice.take if choice.kind == "take" else ()
    better = {one: [of for of in pool if of in ahead or known.are_alike(one, of)] for one in pool}
    kept = [one for one in pool if not any(is_safer(of, one, durable) for of in better[one])]
    take = tuple(one for one in choice.take if one in kept)
    as_good = tuple(one for one in kept if one not in take)
    if not take:
        return Choice("safer" if choice.kind in {"keep", "any"} else choice.kind, as_good)
    if any(is_safer(of, one, durable) for one in kept for of in kept):
        as_good = ()
    kind = "keep" if choice.kind == "any" and len(take) + len(as_good) < len(pool) else choice.kind
    return replace(choice, kind=kind, take=take, as_good=as_good)


def is_safer(one: str, other: str, durable: Durable) -> bool:
    """Return whether the first keeps commits that the second may lose, and loses none that the second keeps."""
    first, second = durable.get(one), durable.get(other)
    return bool(first and second and added_risks(second, first) and not added_risks(first, second))


def safety(pool: Sequence[str], durable: Durable, trials: Mapping[str, Sequence[Trial]]) -> Safety:
    """Return what taking any of some treatments means beside all others that were measured."""
    own = [found for one in pool if (found := durable.get(one))]
    others = {id_: found for id_, found in durable.items() if found}
    worse = {id_: [gap for one in own for gap in added_risks(one, found)] for id_, found in others.items()}
    unknown = any(one.durable is None for one in own)
    return Safety(
        durable=None if unknown or not own else all(one.durable for one in own),
        served=bool(own),
        lacking=_unique(gap for one in own for gap in one.lacking),
        worse=_unique(gap for gaps in worse.values() for gap in gaps),
        safer=tuple(id_ for id_, gaps in worse.items() if gaps),
        less_known=unknown and any(found.durable for found in others.values()),
        synced=tuple(dict.fromkeys(_synced(trial) for one in pool for trial in trials[one])),
        disks=tuple(dict.fromkeys(_disk(trial) for each in trials.values() for trial in each)),
    )


def _unique(gaps: Iterable[CommitRisk]) -> tuple[CommitRisk, ...]:
    return tuple(dict.fromkeys(gaps))


def _synced(trial: Trial) -> str:
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


def same_for_all(chosen: Sequence[LoadChoice]) -> list[list[LoadChoice]]:
    """Return the loads in parts, in each of which the same may be taken: in one part if anything may be under all."""
    if together := _under_all(chosen):
        return [together]
    parts: dict[tuple[Kind, frozenset[Key]], list[LoadChoice]] = {}
    for one in chosen:
        parts.setdefault((one.choice.kind, frozenset(one.pool())), []).append(one)
    return list(parts.values())


def _under_all(chosen: Sequence[LoadChoice]) -> list[LoadChoice]:
    """Return the loads with what may be taken under all of them; empty where nothing may, or a load is open."""
    kinds: set[Kind] = {one.choice.kind for one in chosen}
    if kinds == {"open"}:
        return list(chosen)
    common = set.intersection(*(set(one.pool()) for one in chosen))
    if "open" in kinds or not common:
        return []
    ordered: tuple[Kind, ...] = ("take", "safer", "keep", "any")
    kind = next(one for one in ordered if one in kinds)
    taken = {key for one in chosen for key, id_ in one.pool().items() if key in common and id_ in one.choice.take}
    return [replace(one, choice=_restricted(one, kind, common, taken)) for one in chosen]


def _restricted(one: LoadChoice, kind: Kind, common: set[Key], taken: set[Key]) -> Choice:
    """Return the choice under a load, of the stacks that may be taken under all; ``taken`` are so under any."""
    pool = {key: id_ for key, id_ in one.pool().items() if key in common}
    take = tuple(id_ for key, id_ in pool.items() if key in (taken or common))
    return Choice(kind, take, tuple(id_ for id_ in pool.values() if id_ not in take))


def free_factors(part: Sequence[LoadChoice]) -> tuple[Stack, tuple[Free, ...]]:
    """Return what all have in common that may be taken, and what they differ in.

    The second is empty, too, where they are not all combinations of some levels: then each must be named.
    """
    stacks = [dict(key) for key in dict.fromkeys(key for one in part for key in one.pool())]
    if not stacks:
        return {}, ()
    names = dict.fromkeys(name for stack in stacks for name in stack)
    levels = {name: tuple(dict.fromkeys(stack.get(name, "") for stack in stacks)) for name in names}
    fixed = {name: each[0] for name, each in levels.items() if len(each) == 1}
    different = {name: each for name, each in levels.items() if len(each) > 1}
    if prod(map(len, different.values())) != len(stacks):
        return fixed, ()
    return fixed, tuple(_free(name, each, part) for name, each in different.items())


def _free(name: str, levels: tuple[str, ...], part: Sequence[LoadChoice]) -> Free:
    steps = [step for one in part for step in _not_distinguished(name, one)]
    of_study = {stack.get(name, "") for one in part for stack in one.load.stacks.values()}
    return Free(name, levels, of_study == set(levels), hardest(steps))


def _not_distinguished(name: str, one: LoadChoice) -> list[NextStep]:
    """Return what comparisons lack that show no equivalence, of stacks that differ in this factor alone."""
    steps = []
    for first, second in combinations(one.choice.pool, 2):
        levels, others = dict(one.load.stacks[first]), dict(one.load.stacks[second])
        if {each for each in levels | others if levels.get(each) != others.get(each)} != {name}:
            continue
        pair = frozenset((first, second))
        if pair not in one.alike:
            steps.append(one.lacking.get(pair, NextStep(Lack.A_COMPARISON)))
    return steps


_RATES = ("_per_second", "_per_minute", "iops")  # how the names of metrics end that an offered rate decides


class Hold(StrEnum):
    """Why nothing can be recommended, whatever the verdicts are."""

    NO_BLOCK = "no block is complete"
    SAME_TREATMENTS = "an A/A run"
    NOTHING_COMPARED = "nothing was compared"
    LOAD_ALONE = "the load alone varied"
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
    safety: Safety | None  # None: nothing may be taken
    at_odds: tuple[Secondary, ...] = ()  # what differs between those that are as good in the study's own metric


@dataclass(frozen=True)
class Advice:
    """What to do."""

    hold: Hold | None = None
    parts: tuple[Recommended, ...] = ()
    step: NextStep | None = None  # what all comparisons lack, where nothing can be chosen anyway


@dataclass(frozen=True)
class AdviceBasis:
    """What advice rests on."""

    verdicts: Sequence[Finding]  # planned
    unplanned: Sequence[Finding]  # of all other pairs
    why: Why
    filling: Collection[str] = ()  # ids of treatments whose buffer pool was still being filled


def advise(run: Run, blocks: UsableBlocks, metric: Metric, found: AdviceBasis) -> Advice:
    """Return what the verdicts carry: nothing is recommended that any comparison shows to be slower than another."""
    design = run.design
    if hold := _hold(run, blocks, found):
        return Advice(hold)
    loads, judged = _loads(design), _Judged(design, blocks, metric, found)
    if all(len(load.stacks) < 2 for load in loads):  # noqa: PLR2004 - a choice
        return Advice(
            Hold.LOAD_ALONE, step=hardest(judged.open.values()) if judged.open.keys() == judged.planned else None
        )
    chosen = [one for load in loads if (one := judged.chosen(load))]
    if not chosen:
        return Advice(Hold.NOTHING_COMPARED)
    return Advice(
        parts=tuple(judged.recommended(part, whole=len(part) == len(chosen)) for part in same_for_all(chosen))
    )


def _hold(run: Run, blocks: UsableBlocks, found: AdviceBasis) -> Hold | None:
    if not blocks.trials:
        return Hold.NO_BLOCK
    if run.design.aa is not None:
        return Hold.SAME_TREATMENTS
    if not found.verdicts:
        return Hold.NOTHING_COMPARED
    return Hold.UNFINISHED if run.ended != "done" else None


def _is_load(factor: Factor) -> bool:
    """Return whether a factor is a circumstance, which nobody chooses: all that it gives belongs to the load."""
    given = {field for each in (factor.gives or {}).values() for field in each}
    return all(name.partition(".")[0] == "workload" for name in given or {factor.section})


def _loads(design: Design) -> list[LoadGroup]:
    """Return the treatments by the load that they stand under; only factors that vary count."""
    levels: dict[str, set[str]] = {}
    for one in design.treatments:
        for name, level in one.levels.items():
            levels.setdefault(name, set()).add(level)
    varied = {name for name, each in levels.items() if len(each) > 1}
    of_load = {factor.name for factor in design.factors if _is_load(factor)} & varied
    found: dict[Key, LoadGroup] = {}
    for one in design.treatments:
        load = {name: level for name, level in one.levels.items() if name in of_load}
        stack = {name: level for name, level in one.levels.items() if name in varied - of_load}
        found.setdefault(key_of(load), LoadGroup(load, {})).stacks[one.id] = stack
    return list(found.values())


class _Judged:
    """The comparisons of a run, as far as each carries a recommendation."""

    def __init__(self, design: Design, blocks: UsableBlocks, metric: Metric, found: AdviceBasis) -> None:
        self.design, self.blocks, self.metric, self.found = design, blocks, metric, found
        self.trials = {one.id: blocks.of(one.id) for one in design.treatments}
        self.durable = {id_: durability([trial.observed for trial in trials]) for id_, trials in self.trials.items()}
        self.open = {one.ids: step for one in found.verdicts if (step := self._step(one))}
        self.planned = {one.ids for one in found.verdicts}

    def chosen(self, load: LoadGroup) -> LoadChoice | None:
        """Return what may be taken under a load; nothing where no two stacks were compared under it."""
        inside = [one for one in self.found.verdicts if one.ids <= load.stacks.keys()]
        if not inside:
            return None
        known = self._relations(load, inside)
        choice = safest(choose(known), known, self.durable)
        lacking = {pair: step for pair, step in self.open.items() if pair <= load.stacks.keys()}
        unbeaten = known.unbeaten
        slower = tuple(
            one
            for one in known.stacks
            if one not in unbeaten and one not in known.perhaps_behind
            # Nobody is advised against what is more durable for being slower.
            if not any(is_safer(one, other, self.durable) for other in known.stacks)
        )
        return LoadChoice(load, choice, known.alike, lacking, slower)

    def _relations(self, load: LoadGroup, inside: Sequence[Finding]) -> Relations:
        compared = {id_ for one in inside for id_ in one.ids}
        stacks = {id_: stack for id_, stack in load.stacks.items() if id_ in compared - self.blocks.dropped}
        base = next(one.levels for one in self.design.treatments if one.id == self.design.baseline)
        carried = [one for one in inside if one.ids not in self.open]
        behind, perhaps_behind = self._behind(load.stacks)
        return Relations(
            stacks,
            next((id_ for id_, stack in stacks.items() if stack.items() <= base.items()), None),
            frozenset(_in_order(one) for one in carried if one.verdict.is_different),
            frozenset(one.ids for one in carried if one.verdict is Word.EQUIVALENT),
            behind,
            perhaps_behind,
            every_stack=len(stacks) == len(load.stacks),
        )

    def _behind(self, stacks: Mapping[str, Stack]) -> tuple[frozenset[str], frozenset[str]]:
        """Return what is slower than another one by any finding, and what is so only by findings that carry nothing."""
        findings = [*self.found.verdicts, *self.found.unplanned]
        differing = [one for one in findings if one.verdict.is_different and one.ids <= stacks.keys()]
        surely = {_in_order(one)[1] for one in differing if not self._step(one)}
        return frozenset(surely), frozenset(_in_order(one)[1] for one in differing) - surely

    def _step(self, finding: Finding) -> NextStep | None:
        """Return why a finding carries no recommendation; nothing where it does."""
        if finding.lack is not None:
            return finding.lack
        if finding.mostly_disturbed:
            return NextStep(Lack.QUIET_HOST)
        if finding.ids & set(self.found.filling):
            return NextStep(Lack.LONGER_WARM_UP)
        if finding.totals_disagree:
            return NextStep(Lack.NO_STALLS)
        return self._step_of_equivalence(finding) if finding.verdict is Word.EQUIVALENT else None

    def _step_of_equivalence(self, finding: Finding) -> NextStep | None:
        """Return what keeps two from differing that is neither of them."""
        ids = finding.baseline_id, finding.level_id
        changed = self.found.why.changes.get(ids)
        limits = [changed.baseline.limit, changed.level.limit] if changed else []
        if any(one.kind == "client" and one.full for one in limits):
            return NextStep(Lack.STRONGER_LOAD_GENERATOR)
        if self.metric.name.endswith(_RATES) and not all(shows_capacity(self.trials[id_]) for id_ in ids):
            return NextStep(Lack.HIGHER_RATE)
        return None

    def recommended(self, part: Sequence[LoadChoice], *, whole: bool) -> Recommended:
        """Return what may be taken under some loads, which is the same under all of them."""
        choice = Choice(
            part[0].choice.kind,
            tuple(id_ for one in part for id_ in one.choice.take),
            tuple(id_ for one in part for id_ in one.choice.as_good),
        )
        fixed, free = free_factors(part)
        steps = [step for one in part for step in one.lacking.values()]
        is_open = choice.kind == "open"
        return Recommended(
            loads=() if whole else tuple(one.load.levels for one in part),
            choice=choice,
            fixed=fixed,
            free=free,
            slower=tuple(id_ for one in part for id_ in one.slower),
            step=(hardest(steps) or NextStep(Lack.A_COMPARISON)) if is_open else None,
            safety=None if is_open else safety(choice.pool, self.durable, self.trials),
            at_odds=tuple(
                one for finding in self.found.verdicts if finding.ids <= set(choice.pool) for one in finding.at_odds
            ),
        )


def _in_order(finding: Finding) -> tuple[str, str]:
    """Return the ids, the faster first."""
    ids = finding.level_id, finding.baseline_id
    return ids if finding.verdict is not Word.SLOWER else ids[::-1]
