"""What an open comparison lacks."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from dbdyno.analysis.looks.min_blocks import blocks_needed
from dbdyno.analysis.verdict.finding import MANY_BLOCKS, MIN_USABLE_BLOCKS, Finding
from dbdyno.analysis.verdict.reasons import CarryOver, Dropped, LimitedClients, ZeroFigures, excludes_zero
from dbdyno.model.word import Word


class Lack(StrEnum):
    """What it takes to decide, what concerns the host first; in this order one of several is named."""

    QUIET_HOST = "a quiet host"
    LONGER_WARM_UP = "a longer warm-up"
    STRONGER_LOAD_GENERATOR = "a stronger load generator"
    HIGHER_RATE = "a higher rate"
    A_TREATMENT_THAT_RUNS = "a treatment that runs"
    REST_BETWEEN_TRIALS = "rest between trials"
    EQUAL_FAILURES = "failures that favour neither"
    NO_STALLS = "totals that agree with the usual block"
    FINER_FIGURES = "finer figures"
    A_COMPARISON = "a comparison"
    LESS_NOISE = "less noise"
    MORE_BLOCKS = "more blocks"
    A_WIDER_MARGIN = "a wider margin"


@dataclass(frozen=True)
class Step:
    """What is lacking; ``blocks`` are about how many more are needed, where it is these."""

    lack: Lack
    blocks: int = 0


def step_of(verdict: Finding, margin: float, comparisons: int) -> Step:
    """Return what a verdict that decides nothing lacks; ``comparisons`` are those of its family."""
    if isinstance(verdict.reason, Dropped | ZeroFigures):
        return Step(Lack.A_TREATMENT_THAT_RUNS)
    if isinstance(verdict.reason, LimitedClients):
        return Step(Lack.STRONGER_LOAD_GENERATOR)
    if verdict.withheld_for is not None:
        carried = isinstance(verdict.withheld_for, CarryOver)
        return Step(Lack.REST_BETWEEN_TRIALS if carried else Lack.EQUAL_FAILURES)
    if verdict.mostly_disturbed:
        return Step(Lack.QUIET_HOST)
    if verdict.verdict == Word.NOT_COMPARABLE:
        return Step(Lack.MORE_BLOCKS, max(blocks_needed(comparisons), MIN_USABLE_BLOCKS) - verdict.blocks)
    return Step(Lack.FINER_FIGURES) if verdict.resolution.too_coarse(margin) else _by_blocks(verdict, comparisons)


def _by_blocks(verdict: Finding, comparisons: int) -> Step:
    more = blocks_lacking(verdict, comparisons)
    if more > MANY_BLOCKS:
        return Step(Lack.LESS_NOISE)
    return Step(Lack.MORE_BLOCKS, more) if more > 0 else Step(Lack.A_WIDER_MARGIN)


def hardest(steps: Iterable[Step]) -> Step | None:
    """Return the step without which the others are of no use: the most blocks, if all that is lacking are blocks."""
    order = list(Lack)
    return min(steps, key=lambda step: (order.index(step.lack), -step.blocks), default=None)


def blocks_lacking(verdict: Finding, comparisons: int) -> int:
    """Return about how many more blocks can decide anything at all, or resolve the margin; 0 or less where none do."""
    fewest = blocks_needed(comparisons) - verdict.blocks
    if fewest > 0 and excludes_zero(verdict.effect):
        return fewest
    return max(fewest, (verdict.blocks_needed or 0) - verdict.blocks)
