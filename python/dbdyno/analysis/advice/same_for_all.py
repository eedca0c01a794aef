"""What may be taken under every load, or else under which: stacks are the same where all their levels are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod

from dbdyno.analysis.advice.choice import Choice, Kind, Stack
from dbdyno.analysis.verdict.reasons import Lack, Step, hardest

Key = tuple[tuple[str, str], ...]  # of a stack or of a load


@dataclass(frozen=True)
class Load:
    """Treatments under one load."""

    levels: Stack  # of what varies of the load
    stacks: dict[str, Stack]  # treatment id -> its levels, of what else varies


@dataclass(frozen=True)
class Chosen:
    """What may be taken under one load."""

    load: Load
    choice: Choice
    alike: frozenset[frozenset[str]]
    lacking: Mapping[frozenset[str], Step]  # what open comparisons lack
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
    step: Step | None  # what telling them apart lacks; None: they were shown to be equivalent


def key_of(levels: Stack) -> Key:
    """Return levels as what can be looked up."""
    return tuple(levels.items())


def same_for_all(chosen: Sequence[Chosen]) -> list[list[Chosen]]:
    """Return the loads in parts, in each of which the same may be taken: in one part if anything may be under all."""
    if together := _under_all(chosen):
        return [together]
    parts: dict[tuple[Kind, frozenset[Key]], list[Chosen]] = {}
    for one in chosen:
        parts.setdefault((one.choice.kind, frozenset(one.pool())), []).append(one)
    return list(parts.values())


def _under_all(chosen: Sequence[Chosen]) -> list[Chosen]:
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


def _restricted(one: Chosen, kind: Kind, common: set[Key], taken: set[Key]) -> Choice:
    """Return the choice under a load, of the stacks that may be taken under all; ``taken`` are so under any."""
    pool = {key: id_ for key, id_ in one.pool().items() if key in common}
    take = tuple(id_ for key, id_ in pool.items() if key in (taken or common))
    return Choice(kind, take, tuple(id_ for id_ in pool.values() if id_ not in take))


def free_factors(part: Sequence[Chosen]) -> tuple[Stack, tuple[Free, ...]]:
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


def _free(name: str, levels: tuple[str, ...], part: Sequence[Chosen]) -> Free:
    steps = [step for one in part for step in _not_distinguished(name, one)]
    of_study = {stack.get(name, "") for one in part for stack in one.load.stacks.values()}
    return Free(name, levels, of_study == set(levels), hardest(steps))


def _not_distinguished(name: str, one: Chosen) -> list[Step]:
    """Return what comparisons lack that show no equivalence, of stacks that differ in this factor alone."""
    steps = []
    for first, second in combinations(one.choice.pool, 2):
        levels, others = dict(one.load.stacks[first]), dict(one.load.stacks[second])
        if {each for each in levels | others if levels.get(each) != others.get(each)} != {name}:
            continue
        pair = frozenset((first, second))
        if pair not in one.alike:
            steps.append(one.lacking.get(pair, Step(Lack.A_COMPARISON)))
    return steps
