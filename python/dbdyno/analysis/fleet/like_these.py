"""On hosts like these: whether what was seen holds for further hosts, one figure per host.

A word needs the same word on these hosts, from all blocks: what is not even shown of the hosts at hand, or is withheld
there, is shown of no others. That two tests have to agree makes a wrong word rarer, never more frequent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

import numpy as np

from dbdyno.analysis.fleet.by_host import OfHost, OnHosts
from dbdyno.analysis.fleet.components import Groups
from dbdyno.analysis.fleet.over_hosts import by_ranks, evidence_over_hosts, excluded_kinds, of_one_host
from dbdyno.analysis.statistics.arrays import Floats
from dbdyno.analysis.statistics.effect import relative
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.analysis.statistics.multiplicity import holm
from dbdyno.analysis.verdict.evidence import Evidence, Relation, relations, relative_estimate
from dbdyno.analysis.verdict.finding import Finding, Paired
from dbdyno.analysis.verdict.reasons import Obstacle, TwoTreatments, word_of
from dbdyno.model.design import HOSTS_MIN
from dbdyno.model.metrics import Metric
from dbdyno.model.word import Word

Method = Literal["signed rank", "t", "none"]


class HostsCode(StrEnum):
    """Why a word is said of hosts like these, or none is."""

    DIFFERENT = "the hosts agree"
    MARGIN_RULED_OUT = "a difference as large as the margin is ruled out"
    NOT_COMPARABLE = "not comparable on these hosts"
    TOO_FEW_HOSTS = "too few hosts"
    NOT_ON_THESE_HOSTS = "the same word is not given on these hosts"
    HOSTS_DIFFER = "the hosts differ too much, for so few"


@dataclass(frozen=True)
class LikeThese(TwoTreatments):
    """What a comparison says of hosts like these. Differences are relative; ``effect.n`` counts hosts."""

    word: Word
    code: HostsCode
    effect: Estimate
    hosts: tuple[OfHost, ...]  # that have a usable block
    spread: Estimate  # SD of the effect between hosts, as a log ratio: .03 is about 3 %
    method: Method = "none"
    p: float = 1.0
    p_adjusted: float = 1.0  # Holm over the comparisons
    p_equivalence: float = 1.0  # the same
    family: int = 0  # comparisons that share the 5 %

    @property
    def excludes(self) -> float:
        """How large a share of all hosts a kind must have for one of it to be among these, with 95 %."""
        return excluded_kinds(len(self.hosts))


def like_these(
    on: OnHosts,
    pairs: Sequence[Paired],
    verdicts: Sequence[Finding],
    metric: Metric,
    margin: float,
) -> list[LikeThese]:
    """Return what each comparison says of hosts like these; ``pairs`` and ``verdicts`` are of the same ones."""
    each = [_by_host(on, pair) for pair in pairs]
    found = [_unjudged(pair, values) for pair, values in zip(pairs, each, strict=True)]
    judged = [
        place
        for place, (verdict, one) in enumerate(zip(verdicts, found, strict=True))
        if not isinstance(verdict.reason, Obstacle) and len(one.hosts) >= HOSTS_MIN
    ]
    if not judged:
        return found
    family = len(judged)
    values = [np.array([float(of_one_host(d)) for d in each[place].values()]) for place in judged]
    figures = Evidence.of_each([evidence_over_hosts(one, margin, family) for one in values])
    words, p, p_equivalence = relations(figures, margin), holm(figures.p), holm(figures.p_equivalence)
    for at, place in enumerate(judged):
        n = len(values[at])
        word, code = _word(Relation(words[at]), verdicts[place], metric)
        found[place] = replace(
            found[place],
            word=word,
            code=code,
            effect=relative_estimate(float(figures.value[at]), float(figures.low[at]), float(figures.high[at]), n),
            method="signed rank" if by_ranks(n, family) else "t",
            p=float(figures.p[at]),
            p_adjusted=float(p[at]),
            p_equivalence=float(p_equivalence[at]),
            family=family,
        )
    return found


def _by_host(on: OnHosts, pair: Paired) -> dict[str, Floats]:
    """Return host -> the log ratios to judge by."""
    return on.by_host(dict(zip(pair.log_ratios, pair.d.tolist(), strict=True)))


def _unjudged(pair: Paired, values: Mapping[str, Floats]) -> LikeThese:
    """Return what is known of a comparison before any test: each host's figure, and how far apart they are."""
    figures = {host: float(of_one_host(d)) for host, d in values.items()}
    mean = relative(float(np.mean(list(figures.values())))) if figures else float("nan")
    return LikeThese(
        *(pair.baseline, pair.level, pair.baseline_id, pair.level_id),
        word=Word.UNDECIDED,
        code=HostsCode.NOT_COMPARABLE if pair.obstacle or not figures else HostsCode.TOO_FEW_HOSTS,
        effect=replace(Estimate.unknown(len(figures)), value=mean),
        hosts=tuple(OfHost(host, len(values[host]), relative(one)) for host, one in figures.items()),
        spread=Groups.of(list(values.values())).deviation() if len(values) > 1 else Estimate.unknown(len(values)),
    )


def _word(relation: Relation, verdict: Finding, metric: Metric) -> tuple[Word, HostsCode]:
    word = word_of(relation, more_is_better=metric.more_is_better)
    match word:
        case Word.FASTER | Word.SLOWER | Word.EQUIVALENT if word != verdict.verdict:
            return Word.UNDECIDED, HostsCode.NOT_ON_THESE_HOSTS
        case Word.FASTER | Word.SLOWER:
            return word, HostsCode.DIFFERENT
        case Word.EQUIVALENT:
            return word, HostsCode.MARGIN_RULED_OUT
        case _:
            return Word.UNDECIDED, HostsCode.HOSTS_DIFFER
