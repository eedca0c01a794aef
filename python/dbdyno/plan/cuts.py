"""What a number of cuts can show before the first of them is taken."""

from collections.abc import Iterator

from dbdyno.model.cut import BOUND_MOST, RUNS_LEAST
from dbdyno.study.crash_section import CrashSection

ERROR = 0.05  # of a one-sided bound: it holds with 95 %
CUT_SECONDS = 1.0  # what examining one takes on ext4 with InnoDB: a guess until the first block has been measured


def bound_of_none(number: int) -> float:
    """Return the share that may lose although none of ``number`` trials did: the exact (Clopper-Pearson) 95 % bound.

    The same of that many cuts is what it would be if cuts of one trial had nothing in common.
    """
    return float(1 - ERROR ** (1 / number))


def planned_cuts(crash: CrashSection, blocks: int) -> int:
    """Return the cuts of each treatment in so many blocks: every trial takes as many."""
    return blocks * crash.cuts_each


def crash_warnings(crash: CrashSection, blocks: int) -> Iterator[str]:
    """Yield what can be foreseen of the answer: trials, or trials with some kind of cut, that are too few for one."""
    cuts = planned_cuts(crash, blocks)
    each = cuts // len(crash.strata)
    if (bound := bound_of_none(blocks)) > BOUND_MOST:
        few = "1 trial of each treatment is" if blocks == 1 else f"{blocks} trials of each treatment are"
        yield (
            f"{few} too few to call anything safe: if none loses, up to {100 * bound:.3g} % of such cuts still may, "
            f"as cuts of one trial are alike; {_remedy(crash, cuts)}"
        )
    elif min(each, blocks) < RUNS_LEAST:
        alone = f"{100 * bound_of_none(each):.3g} %" if each else "nothing"
        yield (
            f"of each of the {len(crash.strata)} kinds of cut there are about {each}, which alone show at best "
            f"{alone}; give crash.cuts = {RUNS_LEAST * len(crash.strata)} for a bound of 10 % to each"
        )


def _remedy(crash: CrashSection, cuts: int) -> str:
    """Return what makes enough trials of it: fewer cuts in each, or more cuts."""
    more = f"crash.cuts = {RUNS_LEAST * crash.cuts_each}"
    fewer = cuts // RUNS_LEAST
    if crash.cuts_each == 1:
        return f"give {more} or more"
    if fewer < 1:
        return f"give crash.cuts_per_run = 1 and crash.cuts = {RUNS_LEAST}"
    return f"give crash.cuts_per_run = {fewer}, or {more}"
