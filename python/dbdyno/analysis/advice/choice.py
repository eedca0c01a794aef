"""Which of the treatments compared under one load may be taken: what verdicts carry, and nothing more.

A treatment is *beaten* where any comparison shows another to be faster, planned or not. Only planned verdicts speak
for one: it is taken if nothing beats it and a chain of planned verdicts, each "faster", leads from it to the baseline.
Where nothing beats the baseline it is kept, if all that is not beaten either is equivalent to it; else the choice is
open.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

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
