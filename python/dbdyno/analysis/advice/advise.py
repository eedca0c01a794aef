"""What to do after a run: what may be taken under which load and at what risk, or why nothing is recommended yet."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from dbdyno.analysis.advice.choice import Choice, Relations, Stack, choose
from dbdyno.analysis.advice.safety import Safety, is_safer, safest, safety
from dbdyno.analysis.advice.same_for_all import Chosen, Free, Key, Load, free_factors, key_of, same_for_all
from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.checks.durability import durability
from dbdyno.analysis.checks.load import shows_capacity
from dbdyno.analysis.explanation.explain import Why
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.analysis.verdict.reasons import Lack, Secondary, Step, hardest
from dbdyno.model.design import Design, Factor
from dbdyno.model.metrics import Metric
from dbdyno.model.word import Word
from dbdyno.store.records import Run

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
    step: Step | None  # what an open choice lacks
    safety: Safety | None  # None: nothing may be taken
    at_odds: tuple[Secondary, ...] = ()  # what differs between those that are as good in the study's own metric


@dataclass(frozen=True)
class Advice:
    """What to do."""

    hold: Hold | None = None
    parts: tuple[Recommended, ...] = ()
    step: Step | None = None  # what all comparisons lack, where nothing can be chosen anyway


@dataclass(frozen=True)
class Found:
    """What advice rests on."""

    verdicts: Sequence[Finding]  # planned
    unplanned: Sequence[Finding]  # of all other pairs
    why: Why
    filling: Collection[str] = ()  # ids of treatments whose buffer pool was still being filled


def advise(run: Run, blocks: UsableBlocks, metric: Metric, found: Found) -> Advice:
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


def _hold(run: Run, blocks: UsableBlocks, found: Found) -> Hold | None:
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


def _loads(design: Design) -> list[Load]:
    """Return the treatments by the load that they stand under; only factors that vary count."""
    levels: dict[str, set[str]] = {}
    for one in design.treatments:
        for name, level in one.levels.items():
            levels.setdefault(name, set()).add(level)
    varied = {name for name, each in levels.items() if len(each) > 1}
    of_load = {factor.name for factor in design.factors if _is_load(factor)} & varied
    found: dict[Key, Load] = {}
    for one in design.treatments:
        load = {name: level for name, level in one.levels.items() if name in of_load}
        stack = {name: level for name, level in one.levels.items() if name in varied - of_load}
        found.setdefault(key_of(load), Load(load, {})).stacks[one.id] = stack
    return list(found.values())


class _Judged:
    """The comparisons of a run, as far as each carries a recommendation."""

    def __init__(self, design: Design, blocks: UsableBlocks, metric: Metric, found: Found) -> None:
        self.design, self.blocks, self.metric, self.found = design, blocks, metric, found
        self.trials = {one.id: blocks.of(one.id) for one in design.treatments}
        self.durable = {id_: durability(trials) for id_, trials in self.trials.items()}
        self.open = {one.ids: step for one in found.verdicts if (step := self._step(one))}
        self.planned = {one.ids for one in found.verdicts}

    def chosen(self, load: Load) -> Chosen | None:
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
        return Chosen(load, choice, known.alike, lacking, slower)

    def _relations(self, load: Load, inside: Sequence[Finding]) -> Relations:
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

    def _step(self, finding: Finding) -> Step | None:
        """Return why a finding carries no recommendation; nothing where it does."""
        if finding.lack is not None:
            return finding.lack
        if finding.mostly_disturbed:
            return Step(Lack.QUIET_HOST)
        if finding.ids & set(self.found.filling):
            return Step(Lack.LONGER_WARM_UP)
        if finding.totals_disagree:
            return Step(Lack.NO_STALLS)
        return self._step_of_equivalence(finding) if finding.verdict is Word.EQUIVALENT else None

    def _step_of_equivalence(self, finding: Finding) -> Step | None:
        """Return what keeps two from differing that is neither of them."""
        ids = finding.baseline_id, finding.level_id
        changed = self.found.why.changes.get(ids)
        limits = [changed.baseline.limit, changed.level.limit] if changed else []
        if any(one.kind == "client" and one.full for one in limits):
            return Step(Lack.STRONGER_LOAD_GENERATOR)
        if self.metric.name.endswith(_RATES) and not all(shows_capacity(self.trials[id_]) for id_ in ids):
            return Step(Lack.HIGHER_RATE)
        return None

    def recommended(self, part: Sequence[Chosen], *, whole: bool) -> Recommended:
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
            step=(hardest(steps) or Step(Lack.A_COMPARISON)) if is_open else None,
            safety=None if is_open else safety(choice.pool, self.durable, self.trials),
            at_odds=tuple(
                one for finding in self.found.verdicts if finding.ids <= set(choice.pool) for one in finding.at_odds
            ),
        )


def _in_order(finding: Finding) -> tuple[str, str]:
    """Return the ids, the faster first."""
    ids = finding.level_id, finding.baseline_id
    return ids if finding.verdict is not Word.SLOWER else ids[::-1]
