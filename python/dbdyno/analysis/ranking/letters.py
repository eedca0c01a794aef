"""Tie letters: treatments that share a letter are those between which no difference was shown.

The compact letter display by insert, absorb and sweep. Source: Piepho, "An algorithm for a letter-based representation
of all-pairwise comparisons", Journal of Computational and Graphical Statistics 13, 2004.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from string import ascii_lowercase

import numpy as np

from dbdyno.analysis.looks.alpha_spending import nominal_level
from dbdyno.analysis.looks.min_blocks import smallest_p
from dbdyno.analysis.statistics.arrays import Bools
from dbdyno.analysis.statistics.effect import log_ratios
from dbdyno.analysis.statistics.multiplicity import holm
from dbdyno.analysis.verdict.evidence import AlwaysValid, Rule, evidence_of_each
from dbdyno.model.design import ALPHA

Columns = list[frozenset[int]]  # per letter, who carries it

MIN_SHARED_BLOCKS = 2
MORE_BLOCKS_MAX = 40


@dataclass(frozen=True)
class Ties:
    """Who is tied with whom."""

    letters: dict[str, str]  # name -> letters; empty where nothing can be said of it
    pairs: int  # that were looked at, over which Holm's correction goes
    too_few_blocks: int = 0  # so many blocks can show no difference over so many pairs: then none has letters
    blocks_needed: int | None = None  # with which one could be shown; None where they are many more


def ties(values: Mapping[str, Mapping[int, float]], rule: Callable[[int], Rule], *, more_is_better: bool) -> Ties:
    """Return the letters of each name, "a" going to the best; none for a name with fewer than 2 values.

    ``values`` is name -> block -> a positive figure. Two names differ where the p of their ratios inside blocks, Holm
    over all pairs, is at most 5 %. Letters follow the figures alone, so that other names give the same letters.
    """
    none = dict.fromkeys(values, "")
    usable = [name for name, of_block in values.items() if sum(map(_positive, of_block.values())) >= MIN_SHARED_BLOCKS]
    pairs = list(combinations(range(len(usable)), 2))
    ratios = [log_ratios(values[usable[i]], values[usable[j]]) for i, j in pairs]
    known = [place for place, d in enumerate(ratios) if len(d) >= MIN_SHARED_BLOCKS]
    if not known:
        return Ties(none, 0)
    blocks = max(len(ratios[place]) for place in known)
    if not _can_differ(blocks, len(known), rule):
        more = range(blocks + 1, blocks + MORE_BLOCKS_MAX)
        needed = next((n for n in more if _can_differ(n, len(known), rule)), None)
        return Ties(none, len(known), blocks, needed)
    found = evidence_of_each([np.array(list(ratios[place].values())) for place in known], rule, margin=1.0)
    different = np.zeros((len(usable), len(usable)), dtype=bool)
    ahead = np.zeros(different.shape)
    for place, value, p in zip(known, found.value.tolist(), holm(found.p).tolist(), strict=True):
        i, j = pairs[place]
        different[i, j] = different[j, i] = p <= ALPHA
        ahead[i, j], ahead[j, i] = value, -value
    order = np.argsort(ahead.sum(axis=1) * (-1 if more_is_better else 1), kind="stable")
    letters = compact_letters(different[np.ix_(order, order)])
    return Ties(none | {usable[i]: each for i, each in zip(order.tolist(), letters, strict=True)}, len(known))


def _can_differ(blocks: int, pairs: int, rule: Callable[[int], Rule]) -> bool:
    """Return whether so many blocks can show any difference over so many pairs."""
    now = rule(blocks)
    return isinstance(now, AlwaysValid) or smallest_p(blocks) <= nominal_level(now, ALPHA / pairs)


def _positive(value: float) -> bool:
    return math.isfinite(value) and value > 0


def compact_letters(different: Bools) -> list[str]:
    """Return the letters of each, given which differ, shape (k, k), symmetric; "a" goes to the first.

    Two share a letter exactly where they do not differ, and no letter can be taken away without breaking that.
    """
    columns = _swept(_inserted(different))
    columns.sort(key=sorted)
    return [
        "".join(_letter(number) for number, column in enumerate(columns) if i in column) for i in range(len(different))
    ]


def _letter(number: int) -> str:
    turn, place = divmod(number, len(ascii_lowercase))
    return f"{ascii_lowercase[place]}{turn or ''}"


def _inserted(different: Bools) -> Columns:
    """Insert and absorb: begin with one letter for all; each difference splits the letters that both carry."""
    everyone = frozenset(range(len(different)))
    columns = [everyone] if everyone else []
    for i, j in combinations(range(len(different)), 2):
        if different[i, j]:
            both = [column for column in columns if i in column and j in column]
            columns = [column for column in columns if not (i in column and j in column)]
            for half in (column - {one} for column in both for one in (i, j)):
                if not any(half <= column for column in columns):
                    columns = [column for column in columns if not column <= half] + [half]
    return columns


def _swept(columns: Columns) -> Columns:
    """Take letters away that say nothing new: from whoever shares another letter with all who carry this one."""
    kept = sorted(columns, key=sorted)
    for place in reversed(range(len(kept))):
        for one in sorted(kept[place], reverse=True):
            others = [column for k, column in enumerate(kept) if k != place and one in column]
            if others and kept[place] - {one} <= frozenset().union(*others):
                kept[place] -= {one}
    return [column for column in kept if column]
