"""Tie letters: treatments that share a letter are those between which no finding claims a difference.

The compact letter display by insert, absorb and sweep. Source: Piepho, "An algorithm for a letter-based representation
of all-pairwise comparisons", Journal of Computational and Graphical Statistics 13, 2004.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from string import ascii_lowercase

import numpy as np

from dbdyno.analysis.statistics.arrays import Bools
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.analysis.verdict.reasons import Reason
from dbdyno.model.design import ALPHA

Columns = list[frozenset[int]]  # per letter, who carries it


@dataclass(frozen=True)
class Ties:
    """Who is tied with whom."""

    letters: dict[str, str]  # name -> letters; empty where nothing can be said of it
    pairs: int  # that were looked at, over which Holm's correction goes
    too_few_blocks: int = 0  # so many blocks can show no difference over so many pairs: then none has letters


def ties(findings: Sequence[Finding], names: Sequence[str], *, more_is_better: bool) -> Ties:
    """Return the letters of each name, "a" going to the best; none for one that nothing can be said of.

    ``findings`` are those of every two names, by their ids. Two names differ where their finding claims a difference.
    Letters follow the findings alone, so that other names give the same letters.
    """
    none = dict.fromkeys(names, "")
    judged = [one for one in findings if isinstance(one.reason, Reason)]
    usable = [name for name in names if any(name in one.ids for one in judged)]
    if not judged:
        return Ties(none, 0)
    reasons = [one.reason for one in judged if isinstance(one.reason, Reason)]
    if all(reason.p_best > ALPHA for reason in reasons):
        return Ties(none, len(judged), max(one.blocks for one in judged))
    place = {name: at for at, name in enumerate(usable)}
    different = np.zeros((len(usable), len(usable)), dtype=bool)
    ahead = np.zeros(different.shape)
    for one in judged:
        i, j = place[one.level_id], place[one.baseline_id]
        different[i, j] = different[j, i] = one.verdict.is_different
        ahead[i, j] = math.log1p(one.effect.value) * (1 if more_is_better else -1)
        ahead[j, i] = -ahead[i, j]
    order = np.argsort(-ahead.sum(axis=1), kind="stable")
    letters = compact_letters(different[np.ix_(order, order)])
    return Ties(none | {usable[i]: each for i, each in zip(order.tolist(), letters, strict=True)}, len(judged))


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
