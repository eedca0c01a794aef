"""Whether a run has measured enough by its rule (``plan.stop_rule``), and what figures allow for because of it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dbdyno.analysis.looks import Looks
from dbdyno.analysis.planned_looks import planned_looks
from dbdyno.analysis.statistics import blocks_to_reach, blocks_to_resolve, log_margin
from dbdyno.analysis.verdict.evidence import AlwaysValid, Rule
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.model.design import MIN_BLOCKS, Design, StopReason
from dbdyno.model.word import Word


@dataclass(frozen=True)
class Allowance:
    """What the figures of a run allow for: a design, and whether its last look may spend what is left of the 5 %."""

    design: Design
    ended_by_clock: bool = False

    def rule(self, blocks: int) -> Rule:
        """Return the rule under which so many usable blocks are judged."""
        design = self.design
        if design.until == "open":
            return AlwaysValid()
        if design.until == "blocks":
            return Looks.single(blocks)
        taken = (*(look for look in planned_looks(design.blocks) if look < blocks), blocks)
        return Looks(taken, max(design.blocks, blocks), final=self.ended_by_clock)


@dataclass(frozen=True)
class Looked:
    """How often the data were looked at before they were reported, as far as the figures allow for it."""

    after: tuple[int, ...]  # usable blocks; empty where their number was fixed beforehand
    always: bool = False  # by the always-valid sequence, which allows any number of looks


def looked(design: Design, blocks: int) -> Looked:
    """Return the looks of a run that has so many usable blocks now."""
    if design.until == "open":
        return Looked(tuple(range(MIN_BLOCKS, blocks + 1)), always=True)
    rule = Allowance(design).rule(blocks)
    return Looked(rule.taken if isinstance(rule, Looks) and design.until != "blocks" else ())


def is_look(design: Design, blocks: int) -> bool:
    """Return whether the data may be looked at after so many usable blocks."""
    if design.until == "open":
        return blocks >= MIN_BLOCKS
    return design.until != "blocks" and blocks in planned_looks(design.blocks)


def reason_to_stop(design: Design, blocks: int, verdicts: Sequence[Finding]) -> StopReason:
    """Return why measuring stops after so many usable blocks, or nothing where it goes on."""
    if is_look(design, blocks) and all(settled(verdict, design) for verdict in verdicts):
        return "precise" if design.until == "precise" else "decided"
    return "blocks" if blocks >= design.blocks else ""


def settled(verdict: Finding, design: Design) -> bool:
    """Return whether a comparison needs no further block: decided or precise, whatever is wanted; or past judging.

    One of which no block has figures is past judging, too; one of which a single block has may still come to be judged.
    """
    if verdict.verdict == Word.NOT_COMPARABLE:
        return verdict.lost or not verdict.blocks
    if design.until != "precise":
        return verdict.verdict != Word.UNDECIDED
    if not verdict.effect.bounded:
        return False
    low, value, high = (math.log1p(end) for end in (verdict.effect.low, verdict.effect.value, verdict.effect.high))
    # Either side by itself: an estimate may lie near one end of its interval.
    return max(high - value, value - low) <= log_margin(design.half_width or 0.0)


def more_blocks(design: Design, blocks: int, verdicts: Sequence[Finding]) -> int | None:
    """Return about how many more blocks the run will take, at most those planned; None where that can't be said yet.

    A run that stops when all is decided goes on to the first look at which its slowest comparison is.
    """
    remaining = design.blocks - blocks
    if design.until == "blocks":
        return remaining
    needed = [_needed(verdict, design, len(verdicts)) for verdict in verdicts if not settled(verdict, design)]
    if blocks < MIN_BLOCKS or any(n is None for n in needed):
        return None
    target = max((n for n in needed if n is not None), default=blocks)
    looks = planned_looks(design.blocks) if design.until != "open" else range(blocks, design.blocks + 1)
    return next((look - blocks for look in looks if look >= max(target, blocks + 1)), remaining)


def _needed(verdict: Finding, design: Design, comparisons: int) -> int | None:
    """Return about how many blocks, in all, settle a comparison: show its effect where that exceeds the margin."""
    d = np.log1p([ratio for _, ratio in verdict.by_block])
    if verdict.verdict == Word.NOT_COMPARABLE or verdict.mostly_disturbed or verdict.doubted_for:
        return None
    if design.until == "precise":
        return blocks_to_reach(d, design.half_width or 0.0)
    return blocks_to_resolve(d, max(design.margin, math.expm1(abs(math.log1p(verdict.effect.value)))), comparisons)
