"""Percentiles: stalls that come in a third of the trials, judged by each trial's 99th percentile and by all events.

Latencies are log-normal about 1 ms, those in a stall about 20 ms. Of a trial with stalls 4 to 12 % of the events meet
one, of the others .05 %. The *even* treatment has as many such events in all, and equally many in every trial: over all
events both are equal, while the usual trial of the one has no stall. What each trial says alone is shown; what both say
is judged, by the interval that spans both.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benches.honesty.designs import MARGIN
from benches.honesty.noise import Floats
from benches.honesty.row import Row
from benches.honesty.verdicts import limit
from dbdyno.analysis.looks import Looks
from dbdyno.analysis.percentiles import merged_percentile_evidence
from dbdyno.analysis.scipy_special import special
from dbdyno.analysis.statistics import Bools
from dbdyno.analysis.verdict.evidence import Evidence, Relation, evidence, relations
from dbdyno.analysis.verdict.finding import both
from dbdyno.model.design import ALPHA
from dbdyno.store.latencies import Latencies

PERCENTILE = 0.99
SIZES = (10, 20, 40)
STUDIES_MOST = 200  # each has two histograms a block, which take some milliseconds to compare
EVENTS = 4000  # of a trial
BASE, SEVERITY = 0.0005, (0.04, 0.12)  # shares of a trial's events that meet a stall
QUICK_SD, STALL_SD, STALL_MS = 0.35, 0.4, 20.0
BLOCK_SD, TRIAL_SD = 0.05, 0.02  # of the logarithm of a host's speed
EDGES = np.arange(np.log(0.1), np.log(300), 0.005)  # of the buckets, logarithms of ms


@dataclass(frozen=True)
class Kind:
    """How a treatment stalls: so large a share of its trials does, or else all do alike, as often over all events."""

    name: str
    share: float
    even: bool = False

    def stalled(self, rng: np.random.Generator, blocks: int) -> Floats:
        """Return which share of the events of each trial meets a stall."""
        if self.even:
            return np.full(blocks, BASE + self.share * (sum(SEVERITY) / 2 - BASE))
        return np.where(rng.random(blocks) < self.share, rng.uniform(*SEVERITY, blocks), BASE)

    def histograms(self, rng: np.random.Generator, speed: Floats) -> list[Latencies]:
        """Return one trial's for each block, whose host has this speed (a logarithm)."""
        at = EDGES - (speed + TRIAL_SD * rng.standard_normal(len(speed)))[:, None]
        stalled = self.stalled(rng, len(speed))[:, None]
        quick, slow = special.ndtr(at / QUICK_SD), special.ndtr((at - np.log(STALL_MS)) / STALL_SD)
        share = np.diff((1 - stalled) * quick + stalled * slow, axis=1)
        counts = rng.poisson(EVENTS * share)
        ns = np.exp(EDGES[1:]) * 1e6
        return [Latencies(ns[met > 0], met[met > 0].astype(np.int64)) for met in counts]


QUIET = Kind("no stalls", 0.0)
EQUAL = (
    (QUIET, QUIET),
    (Kind("stalls in 30 %", 0.3), Kind("stalls in 30 %", 0.3)),
    (Kind("stalls in 40 %", 0.4), Kind("stalls in 40 %", 0.4)),
    (Kind("stalls in 30 %", 0.3), Kind("even", 0.3, even=True)),
    (Kind("stalls in 40 %", 0.4), Kind("even", 0.4, even=True)),
)
SLOWER = ((QUIET, 0.05), (Kind("stalls in 35 %", 0.35), 0.5))


def rows(replicates: int, seed: int) -> list[Row]:
    """Return every row about percentiles."""
    rng = np.random.default_rng(seed)
    studies = min(replicates, STUDIES_MOST)
    return [*_rows(rng, studies), *_looked_at_often(rng, studies)]


def _rows(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    most = limit(ALPHA, replicates)
    for level, baseline in EQUAL:
        for blocks in SIZES:
            by_trial, merged = _studies(rng, replicates, blocks, level, baseline)
            span = both(by_trial, merged)
            what = f"{level.name} and {baseline.name}, {blocks} blocks"
            yield Row("percentiles: wrong, each trial alone", what, _differs(by_trial), "%", None, None)
            yield Row("percentiles: wrong, all events alone", what, _differs(merged), "%", None, None)
            yield Row("percentiles: wrong, both", what, _differs(span), "%", None, most)
            yield Row("percentiles: coverage, all events", what, _covers(merged, 0.0), "%", None, None)
            yield Row("percentiles: coverage, both", what, _covers(span, 0.0), "%", 100 - most, None)
    for kind, effect in SLOWER:
        for blocks in SIZES:
            by_trial, merged = _studies(rng, replicates, blocks, kind, kind, float(np.log1p(effect)))
            span = both(by_trial, merged)
            what = f"{kind.name}, +{100 * effect:.0f} %, {blocks} blocks"
            yield Row("percentiles: found, each trial alone", what, _differs(by_trial), "%", None, None)
            yield Row("percentiles: found, all events alone", what, _differs(merged), "%", None, None)
            yield Row("percentiles: found, both", what, _differs(span), "%", None, None)
            covers = _covers(span, float(np.log1p(effect)))
            yield Row("percentiles: coverage, both", what, covers, "%", 100 - most, None)


def _looked_at_often(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    """What both say at any of the looks after 10, 20 and 40 of 40 blocks."""
    for level, baseline in EQUAL[1::2]:
        wrong = np.zeros((replicates, 1), np.bool_)
        histograms = [_histograms(rng, SIZES[-1], level, baseline) for _ in range(replicates)]
        for place, blocks in enumerate(SIZES):
            looks = Looks(SIZES[: place + 1], SIZES[-1])
            so_far = [(one[:blocks], other[:blocks]) for one, other in histograms]
            wrong |= _words_differ(both(*_judged(so_far, looks)))
        what = f"{level.name} and {baseline.name}, looks after 10, 20, 40"
        yield Row("percentiles: wrong, both", what, 100 * float(wrong.mean()), "%", None, limit(ALPHA, replicates))


def _studies(  # noqa: PLR0913, PLR0917
    rng: np.random.Generator, replicates: int, blocks: int, level: Kind, baseline: Kind, effect: float = 0.0
) -> tuple[Evidence, Evidence]:
    """Return what the percentiles of each trial say, and what those of all events: shape (replicates, 1) each."""
    made = [_histograms(rng, blocks, level, baseline, effect) for _ in range(replicates)]
    return _judged(made, Looks.single(blocks))


def _histograms(
    rng: np.random.Generator, blocks: int, level: Kind, baseline: Kind, effect: float = 0.0
) -> tuple[list[Latencies], list[Latencies]]:
    speed = BLOCK_SD * rng.standard_normal(blocks)
    return level.histograms(rng, speed + effect), baseline.histograms(rng, speed)


def _judged(studies: Sequence[tuple[list[Latencies], list[Latencies]]], looks: Looks) -> tuple[Evidence, Evidence]:
    own = np.log([[[_percentile(trial) for trial in trials] for trials in pair] for pair in studies])
    merged = [merged_percentile_evidence(*pair, PERCENTILE, looks, MARGIN) for pair in studies]
    return evidence((own[:, 0] - own[:, 1])[:, None], looks, MARGIN), _as_studies(Evidence.of_each(merged))


def _as_studies(found: Evidence) -> Evidence:
    return Evidence(*(getattr(found, name)[:, None] for name in Evidence.__dataclass_fields__))


def _percentile(trial: Latencies) -> float:
    """Return a trial's own percentile, as the load generator tells it."""
    sums = np.cumsum(trial.count)
    return float(trial.latency_ns[np.searchsorted(sums, np.ceil(PERCENTILE * sums[-1]))])


def _differs(found: Evidence) -> float:
    return 100 * float(np.mean(_words_differ(found)))


def _words_differ(found: Evidence) -> Bools:
    return np.isin(relations(found, MARGIN), (Relation.HIGHER, Relation.LOWER))


def _covers(found: Evidence, truth: float) -> float:
    return 100 * float(np.mean((found.low <= truth) & (truth <= found.high)))
