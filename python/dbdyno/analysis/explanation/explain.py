"""Why a verdict came out as it did: where an event's time goes in each treatment, and what changed between two.

Figures of a treatment are means over its usable trials, so that parts still add up to the whole. Differences are taken
inside blocks; their intervals are those of section 4 of METHODOLOGY.md, and not adjusted for how many there are: they
explain a verdict and are none.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.checks.load import BEHIND
from dbdyno.analysis.explanation.bottleneck import Limit, Place, limit
from dbdyno.analysis.explanation.time_parts import PARTS, Figures, Watched, figures
from dbdyno.analysis.statistics.arrays import Floats
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.analysis.verdict.evidence import Rule, evidence
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.model.design import MIN_BLOCKS, Design
from dbdyno.model.metrics import value_of
from dbdyno.model.word import Word
from dbdyno.store.records import Trial

NO_SPREAD = 1e-24
AGAINST = 0.1  # of the whole: what varies against it by less in all is taken off the others in proportion
ROUNDING = 1e-9  # of a latency: what sums of floats leave

Seen = Mapping[str, Watched]  # trial id -> what was watched


@dataclass(frozen=True)
class TimeSpent:
    """Where the time of an event goes in one treatment: means over ``n`` usable trials."""

    id: str
    label: str
    n: int
    figures: Figures
    limit: Limit


@dataclass(frozen=True)
class Changed:
    """What differs between two treatments, level minus baseline."""

    baseline_id: str
    level_id: str
    baseline: TimeSpent
    level: TimeSpent
    differences: dict[str, Estimate]  # "latency_ms" and each part, ms
    variance_shares: dict[str, float]  # part -> its share of the variance of the difference between blocks; sums to 1,
    # each from 0 to 1; empty where parts vary against each other, so that none has a share
    spread_parts_ms: dict[str, float]  # part -> signed, what it adds to the spread; sums to that
    spread_ms: float  # standard deviation of the difference in latency between blocks; NaN of few
    factors: tuple[tuple[str, str], ...]  # (section, name) of what was varied between the two


@dataclass(frozen=True)
class Why:
    """The explanation of a run; empty where no latency or no series are known."""

    treatments: list[TimeSpent]
    changes: dict[tuple[str, str], Changed]  # (baseline id, level id)


def explain(
    design: Design, blocks: UsableBlocks, verdicts: Sequence[Finding], seen: Seen, rule: Callable[[int], Rule]
) -> Why:
    """Return where the time went in each treatment, and what changed in each comparison that has a verdict."""
    by_trial = {
        trial.id: figures(trial, seen[trial.id])
        for row in blocks.trials.values()
        for trial in row.values()
        if seen.get(trial.id)
    }
    known = {}
    for treatment in design.treatments:
        trials = [trial for trial in blocks.of(treatment.id) if by_trial.get(trial.id)]
        if trials and treatment.id not in blocks.dropped:
            known[treatment.id] = _time_spent(treatment.id, treatment.label, trials, by_trial)
    changes = {}
    for verdict in verdicts:
        ids = (verdict.baseline_id, verdict.level_id)
        if verdict.verdict != Word.NOT_COMPARABLE and set(ids) <= known.keys():
            pairs = [
                (by_trial.get(row[ids[1]].id, {}), by_trial.get(row[ids[0]].id, {})) for row in blocks.trials.values()
            ]
            changes[ids] = _changed(known[ids[0]], known[ids[1]], pairs, rule(len(pairs)), _varied(design, *ids))
    return Why(list(known.values()), changes)


def _time_spent(id_: str, label: str, trials: Sequence[Trial], by_trial: Mapping[str, Figures]) -> TimeSpent:
    names = dict.fromkeys(name for trial in trials for name in by_trial[trial.id])
    mean = {name: _mean([by_trial[trial.id].get(name, math.nan) for trial in trials]) for name in names}
    found = {name: _bounded(name, value) for name, value in mean.items() if math.isfinite(value)}
    found = _with_rest(found)  # what one trial lacks is in the rest of all
    return TimeSpent(id_, label, len(trials), found, limit(found, _place(trials)))


def _bounded(name: str, value: float) -> float:
    """Return a share of a whole as one: the counters are coarse, and of a short trial they can say 102 %."""
    return min(1.0, max(0.0, value)) if name.endswith("_share") else value


def _with_rest(found: Figures) -> Figures:
    """Return the figures with the rest that their parts leave; without it where the whole is not known."""
    if "latency_ms" not in found:
        return found
    rest_ms = found["latency_ms"] - math.fsum(found.get(name, 0.0) for name in PARTS[:-1])
    return {**found, "rest_ms": rest_ms if rest_ms > ROUNDING * found["latency_ms"] else 0.0}


def _only(found: Figures, parts: set[str]) -> Figures:
    """Return the figures with these parts alone; the others are in the rest."""
    return _with_rest({name: value for name, value in found.items() if name in parts or name not in PARTS})


def _mean(values: Sequence[float]) -> float:
    """Return the mean; NaN where any trial lacks the figure."""
    return math.fsum(values) / len(values)


def _place(trials: Sequence[Trial]) -> Place:
    first = trials[0]
    cores, threads = first.disturbance.get("cores"), first.load.get("io_threads")
    cpus = _at(first.observed, "server").get("cpus")
    rotational = _at(first.observed, "queue").get("rotational")
    ratios = [value_of(trial.metrics, "achieved_ratio") for trial in trials]
    return Place(
        cores=float(cores) if isinstance(cores, int | float) else None,
        server_cores=float(_count_cpus(cpus)) if isinstance(cpus, str) else None,
        client_beside=cpus is not None and cpus == _at(first.observed, "client").get("cpus"),
        client_threads=float(threads) if isinstance(threads, int | float) and threads > 0 else 1.0,
        rotational={"0": False, "1": True}.get(str(rotational)),
        kept_up=all(ratio >= BEHIND for ratio in ratios),
    )


def _at(observed: Mapping[str, object], layer: str) -> Mapping[str, object]:
    found = observed.get(layer)
    return found if isinstance(found, Mapping) else {}


def _count_cpus(text: str) -> int:
    """Return how many processors a list such as ``"0-3,8"`` names."""
    ends = [part.split("-") for part in text.split(",") if part.replace("-", "").isdigit()]
    return sum(int(each[-1]) - int(each[0]) + 1 for each in ends)


def _changed(
    baseline: TimeSpent,
    level: TimeSpent,
    pairs: Sequence[tuple[Figures, Figures]],
    rule: Rule,
    factors: tuple[tuple[str, str], ...],
) -> Changed:
    """Return what differs; ``pairs`` are the figures of both in each block, the level's first.

    A part that any of these trials lacks is in the rest of both: like is compared with like.
    """
    common = set(PARTS).intersection(*(figures.keys() for pair in pairs for figures in pair))
    pairs = [(_only(one, common), _only(other, common)) for one, other in pairs]
    d = {
        name: np.array([one[name] - other[name] for one, other in pairs])
        for name in ("latency_ms", *PARTS)
        if all(name in one and name in other for one, other in pairs)
    }
    spread_known = len(pairs) >= MIN_BLOCKS and "latency_ms" in d
    parted = spread_parts(d) if spread_known else {}
    return Changed(
        baseline_id=baseline.id,
        level_id=level.id,
        baseline=replace(baseline, figures=_only(baseline.figures, common)),
        level=replace(level, figures=_only(level.figures, common)),
        differences={name: _difference(values, rule) for name, values in d.items()},
        variance_shares=variance_shares(parted),
        spread_parts_ms=parted,
        spread_ms=float(np.std(d["latency_ms"], ddof=1)) if spread_known else math.nan,
        factors=factors,
    )


def _difference(values: Floats, rule: Rule) -> Estimate:
    found = evidence(values, rule, margin=1.0)
    return Estimate(float(found.value), float(found.low), float(found.high), len(values))


def spread_parts(d: Mapping[str, Floats]) -> dict[str, float]:
    """Return what each part adds to the standard deviation of the whole, ms: cov(part, whole) / sd(whole), n - 1.

    They add up to it. ``d`` has arrays of shape (blocks,), "latency_ms" being the sum of the others. A part that varies
    against the whole is negative, and others may then be more than all of it.
    """
    whole = d.get("latency_ms")
    if whole is None:
        return {}
    centred = whole - whole.mean()
    squares = float(centred @ centred)
    if not squares > NO_SPREAD * float(whole @ whole):  # rounding errors, or nothing
        return {}
    scale = math.sqrt(squares * (len(whole) - 1))
    return {name: float((d[name] - d[name].mean()) @ centred) / scale for name in PARTS if name in d}


def variance_shares(spread_ms: Mapping[str, float]) -> dict[str, float]:
    """Return each part's share of the variance of the whole, from ``spread_parts``: from 0 to 1, 1 in all.

    Where parts vary against the whole by more than a tenth there are no shares, and nothing is returned.
    """
    whole = math.fsum(spread_ms.values())
    if not whole > 0 or math.fsum(min(0.0, value) for value in spread_ms.values()) < -AGAINST * whole:
        return {}
    positive = {name: max(0.0, value) for name, value in spread_ms.items()}
    return {name: value / math.fsum(positive.values()) for name, value in positive.items()}


def _varied(design: Design, baseline: str, level: str) -> tuple[tuple[str, str], ...]:
    levels = {one.id: one.levels for one in design.treatments}
    return tuple(
        field
        for factor in design.factors
        for field in factor.differing(levels[baseline].get(factor.name, ""), levels[level].get(factor.name, ""))
    )
