"""Runs of the same study through time: when a treatment's figures changed, run-to-run variance being the yardstick.

A run is one value: the mean ln(metric) of a treatment over its blocks, or of its ratio to a control inside them. Blocks
repeat inside a run, so their spread says nothing of how far two runs lie apart; it is the least that this can be.

After every run the question is asked again whether the last few differ from those before them, as a nightly job asks
it, and an answer once given is kept. Of the runs since the change before, n, the last k are held against the n - k
before them for k = 3, 4, 6, ...:

    t = (mean of the last - mean of those before) / (s sqrt(1 / k + 1 / (n - k)))

s is the standard deviation of those before, of AR(1) noise where that is more (``long_run_variance``; of few runs rho
is taken to be .4 at least), and no less than the standard error of a run's mean. So that one or two bad nights are no
change, runs before are cut to ``CUT`` robust standard deviations, and the last ones to ``CUT`` beyond that of them
which moved least. The error is spent over time: at n runs, ``ALPHA MIN_RUNS / (n (n + 1))`` over all k and all
treatments, by Bonferroni. Over all n from ``MIN_RUNS`` that adds up to ``ALPHA``, however long the history becomes
(alpha spending, Lan and DeMets 1983; the sum telescopes). So of histories in which nothing changes, at most 5 % ever
name a change, as far as a night's noise is like these models of it.

Runs are not randomised in time: what the host did counts as well. Two runs in a row that nothing distinguishes, in
settings, versions and what was read back, are an A/A pair. What moves between these is the host's doing, and a change
found there says so; the spread of such pairs is shown beside that of all runs.

What gets no word of two runs gets none here: the rules of ``two_runs`` are asked about all runs on either side of a
change. These are interference, unequal failures, an emulated disk's lateness, an emulated CPU, and what did not change
but moved at the same time. A run in which a treatment has no figures of its own, as it was dropped or its clients were
the limit, is left out of its course, and named.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import attrgetter

import numpy as np

from dbdyno.analysis.blocks import RefusedError, usable_blocks
from dbdyno.analysis.fleet import block_levels
from dbdyno.analysis.lateness import Side, not_of_the_drive, that_explains
from dbdyno.analysis.scipy_special import special
from dbdyno.analysis.statistics import Estimate, Floats, log_margin, long_run_variance, relative, robust_sd
from dbdyno.analysis.two_runs import (
    HostShift,
    OtherHost,
    Withheld,
    check_comparable,
    control_among,
    distinctions,
    has_other_host,
    interference_of,
    matched_treatments,
    obstacle_of,
)
from dbdyno.analysis.verdict.evidence import FINE_ENOUGH, Resolution, combined, resolutions
from dbdyno.analysis.verdict.reasons import Obstacle
from dbdyno.analysis.verdict.unequal import StruckBetweenRuns, extreme_of, spoiled_attempts
from dbdyno.model.design import ALPHA, Treatment
from dbdyno.model.metrics import Metric, metric_of
from dbdyno.model.word import Word
from dbdyno.store.records import Run, Trial

MIN_RUNS = 11  # fewer have no spread to hold a change against
BEFORE_MIN = 8  # runs before a change
LAST = (3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # runs after it; two may be bad nights
CUT = 3.0  # robust standard deviations
# Runs resemble their neighbours. How much is not known of few: until there are so many it is taken to be this at least.
_MEMORY, _MEMORY_KNOWN = 0.4, 24


@dataclass(frozen=True)
class Shift:
    """A change in a row of values: first seen in the run at ``place``, named after that at ``found``."""

    place: int
    found: int
    p: float  # of this look alone


def shifts(values: Floats, least: float = 0.0, alpha: float = ALPHA) -> list[Shift]:
    """Return the changes in values of shape (runs,), in the order of time; ``least`` bounds a run's error from below.

    At most ``alpha`` of rows without a change have one, however long they are.
    """
    found, begin, n = [], 0, MIN_RUNS
    while begin + n <= len(values):
        shift = _shift_at_the_end(values[begin : begin + n], least, alpha * MIN_RUNS / (n * (n + 1)))
        if shift is None:
            n += 1
            continue
        place, p = shift
        found.append(Shift(begin + place, begin + n - 1, p))
        begin, n = begin + place, max(MIN_RUNS, n - place + 1)
    return found


def _shift_at_the_end(values: Floats, least: float, budget: float) -> tuple[int, float] | None:
    """Return where values changed, if their last few differ from all before, and p."""
    n = len(values)
    lengths = [k for k in LAST if n - k >= BEFORE_MIN]
    p, k = min(((_p_of_last(values, k, least), k) for k in lengths), default=(1.0, 0))
    if p * len(lengths) > budget:
        return None
    # The lengths between those in the list fit better than their neighbour where the change lies there.
    places = [place for place in range(BEFORE_MIN, n - LAST[0] + 1) if k / 2 <= n - place <= 2 * k]
    return min(places, key=lambda place: _squares(values[:place]) + _squares(values[place:])), p


def _squares(values: Floats) -> float:
    """Return what a level leaves unexplained; absolute deviations, so that one bad night moves no change."""
    return float(np.abs(values - np.median(values)).sum())


def _p_of_last(values: Floats, k: int, least: float) -> float:
    before, last = values[:-k], values[-k:]
    centre, scale = float(np.median(before)), max(robust_sd(before), least)
    side = 1.0 if float(np.median(last)) >= centre else -1.0  # to which the last ones lie
    before, last = side * (before - centre), side * (last - centre)
    before = np.clip(before, -CUT * scale, CUT * scale)
    last = np.clip(last, -CUT * scale, max(0.0, float(last.min())) + CUT * scale)
    residuals = before - before.mean()
    variance = float(residuals @ residuals) / (len(before) - 1)
    taken = (1 + _MEMORY) / (1 - _MEMORY) if len(before) < _MEMORY_KNOWN else 1.0
    variance = max(variance * taken, long_run_variance(residuals))
    apart = abs(float(last.mean() - before.mean()))
    error = math.sqrt(max(variance, least**2) * (1 / k + 1 / len(before)))
    if error == 0:
        return float(apart == 0)
    return float(2 * special.stdtr(len(before) - 1, -apart / error))


@dataclass(frozen=True)
class Point:
    """A treatment in one run: mean ln(metric), or ln of its ratio to the control, and that mean's standard error."""

    run: int  # its place in the history
    value: float
    error: float  # NaN of one block
    logs: tuple[float, ...]  # ln(metric) of each block, or of its ratio
    trials: tuple[Trial, ...] = ()  # the treatment's, of these blocks
    of_control: tuple[Trial, ...] = ()
    left_out: tuple[int, int] = (0, 0)  # attempts that the treatment alone spoiled, and its control alone
    attempts: int = 0  # at blocks, those that count among them
    resolution: Resolution = FINE_ENOUGH

    @property
    def net(self) -> int:
        """How many more attempts the treatment spoiled than its control, of what was left out."""
        return self.left_out[0] - self.left_out[1]

    @property
    def blocks(self) -> int:
        """How many blocks it is the mean of."""
        return len(self.logs)


@dataclass(frozen=True)
class ChangeInTime:
    """A change of a treatment, from the runs since the change before it to those until the next."""

    before: int  # place of the last run before it
    after: int  # and of the first run after it
    found: int  # and of the run with which it was named
    effect: Estimate  # relative; the interval is that of this change alone
    word: Word  # equivalent: it is a change, and within the margin
    p: float
    distinctions: tuple[str, ...]  # what is known to differ between the two runs beside it; none: the host
    measured: Word  # what the figures by themselves say
    withheld_for: Withheld | None = None  # why that is not the word
    resolution: Resolution = FINE_ENOUGH


@dataclass(frozen=True)
class Course:
    """One treatment through time."""

    label: str
    points: list[Point]
    levels: list[Estimate]  # between changes: the metric itself, or its ratio to the control; intervals of 95 %
    changes: list[ChangeInTime]
    run_sd: float  # relative, of runs around their level: the yardstick; NaN of too few
    inside_sd: float  # what of it the noise inside runs explains, on average
    pairs_sd: float  # the same as run_sd from A/A pairs alone
    pairs: int  # A/A pairs: runs in a row that nothing distinguishes
    without_figures: tuple[tuple[int, Obstacle], ...] = ()  # places of runs that are left out, and why


@dataclass(frozen=True)
class RunHistory:
    """Runs in the order of time, with what became of every treatment that all or some of them have."""

    metric: Metric
    margin: float
    names: list[str]
    times: list[str]  # when each began, ISO 8601
    courses: list[Course]
    control: str | None
    alone: list[str] = field(default_factory=list)  # labels of which fewer than ``MIN_RUNS`` runs have figures


def in_order_of_time(runs: Sequence[tuple[str, Run]]) -> list[tuple[str, Run]]:
    """Return runs by the time at which their first trial began; one without trials is last, and has no figures."""
    return sorted(runs, key=lambda named: (not named[1].trials, began(named[1])))


def began(run: Run) -> str:
    """Return when the first trial of a run began, ISO 8601; empty where there is none."""
    return min((trial.started_at for trial in run.trials), default="")


def history(
    named_runs: Sequence[tuple[str, Run]], *, margin: float | None = None, control: str | None = None
) -> RunHistory:
    """Return what became of each treatment of the last run through all runs.

    Without a ``margin`` that of the last run counts. ``control`` is the label of a treatment that should not change.

    Raises:
        RefusedError: There are fewer than two runs, they have other metrics or loads, or nothing in common.

    """
    ordered = in_order_of_time(named_runs)
    if len(ordered) < 2:  # noqa: PLR2004
        raise RefusedError("too few runs", count=len(ordered))
    last = ordered[-1][1]
    counterparts: list[dict[str, Treatment]] = []
    for _, run in ordered:
        check_comparable(run, last)
        matched = matched_treatments(run, last, [])
        counterparts.append({new.label: old for old, new in matched})
        control_among(matched, control)
    labels = [treatment.label for treatment in last.design.treatments if treatment.label != control]
    having = {label: sum(label in of_run for of_run in counterparts) for label in labels}
    judged = [label for label in labels if having[label] >= MIN_RUNS]
    runs = [run for _, run in ordered]
    width = last.design.margin if margin is None else margin
    metric = metric_of(last.design)
    courses = [
        _course(label, runs, counterparts, control, metric, width, ALPHA / max(1, len(judged))) for label in labels
    ]
    return RunHistory(
        metric=metric,
        margin=width,
        names=[name for name, _ in ordered],
        times=[began(run) for run in runs],
        courses=courses if control else _without_shifts_of_the_host(courses),
        control=control,
        alone=[course.label for course in courses if len(course.points) < MIN_RUNS],
    )


def _course(  # noqa: PLR0913, PLR0917  (what a course is made from)
    label: str,
    runs: Sequence[Run],
    counterparts: Sequence[Mapping[str, Treatment]],
    control: str | None,
    metric: Metric,
    margin: float,
    alpha: float,
) -> Course:
    points, without = [], []
    for place, (run, of_run) in enumerate(zip(runs, counterparts, strict=True)):
        if label not in of_run:
            continue
        point = _point(place, run, of_run[label], of_run[control] if control else None)
        if isinstance(point, Point):
            points.append(point)
        elif point:
            without.append((place, point))
    values = np.array([point.value for point in points])
    errors = [point.error for point in points if math.isfinite(point.error)]
    inside = math.sqrt(float(np.mean(np.square(errors)))) if errors else 0.0
    found = shifts(values, inside, alpha)
    ends = [0, *(shift.place for shift in found), len(values)]
    parts = [_cut(values[begin:end]) for begin, end in pairwise(ends)]
    residuals = np.concatenate([part - part.mean() for part in parts]) if len(values) else values
    freedom = len(values) - len(parts)
    sd = math.sqrt(float(residuals @ residuals) / freedom) if freedom > 1 else math.nan
    same, of_pairs = [], []
    for one, other in pairwise(points):
        pair = counterparts[one.run][label], counterparts[other.run][label]
        what = distinctions(runs[one.run], runs[other.run], pair)
        same.append(what)
        of_pairs += [] if what else [other.value - one.value]
    changes = []
    for place, shift in enumerate(found):
        before, after = (_Stretch(points[ends[at] : ends[at + 1]], parts[at]) for at in (place, place + 1))
        change = _changed(shift, before, after, points, same, sd, freedom, metric, margin)
        on_another = control is None and has_other_host(runs[change.before], runs[change.after])
        cause = OtherHost() if on_another else _other_cause(label, before, after, change, metric, margin)
        changes.append(_withhold_word(change, cause))
    return Course(
        label=label,
        points=points,
        levels=[_level(part, sd, freedom) for part in parts if len(part)],
        changes=changes,
        run_sd=sd,
        inside_sd=inside if errors else math.nan,
        pairs_sd=robust_sd(np.array([0.0, *of_pairs, *(-d for d in of_pairs)])) / math.sqrt(2)
        if of_pairs
        else math.nan,
        pairs=len(of_pairs),
        without_figures=tuple(without),
    )


def _without_shifts_of_the_host(courses: Sequence[Course]) -> list[Course]:
    """Return the courses, of which no change has a word where one that nothing explains is ``LAST[0]`` runs away.

    The host moved there, so that such a change is of host and version together.
    """
    moved = {(course.label, change.after) for course in courses for change in course.changes if not change.distinctions}

    def is_of_the_host(label: str, change: ChangeInTime) -> bool:
        others = (after for other, after in moved if other != label)
        return bool(change.distinctions) and any(abs(after - change.after) < LAST[0] for after in others)

    return [
        replace(
            course,
            changes=[
                _withhold_word(change, HostShift() if is_of_the_host(course.label, change) else None)
                for change in course.changes
            ],
        )
        for course in courses
    ]


def _point(place: int, run: Run, treatment: Treatment, control: Treatment | None) -> Point | Obstacle | None:
    """Return a treatment in one run, or why its figures there are not its own; None where no block has any."""
    blocks = usable_blocks(run)
    about = [treatment, *([control] if control else [])]
    for each in about:
        if obstacle := obstacle_of(blocks, each, run.design.metric):
            return obstacle
    levels = block_levels(blocks, [treatment.id], run.design.metric)
    of_control = block_levels(blocks, [control.id], run.design.metric) if control else dict.fromkeys(levels, 0.0)
    at = [block for block in levels if block in of_control]
    logs = [levels[block] - of_control[block] for block in at]
    if not logs:
        return None
    error = float(np.std(logs, ddof=1)) / math.sqrt(len(logs)) if len(logs) > 1 else math.nan
    trials, trials_of_control = (
        tuple(blocks.trials[block][each.id] for block in at) if each else () for each in (treatment, control)
    )
    spoiled, weights = spoiled_attempts(run, blocks), {treatment.id: 1.0} | ({control.id: -1.0} if control else {})
    of_metric = metric_of(run.design)
    steps = resolutions(blocks, of_metric.name, of_metric.unit)
    return Point(
        run=place,
        value=float(np.mean(logs)),
        error=error,
        logs=tuple(logs),
        trials=trials,
        of_control=trials_of_control,
        left_out=(
            spoiled.favouring(weights).left_out,
            spoiled.favouring({id_: -weight for id_, weight in weights.items()}).left_out,
        ),
        attempts=len(blocks.trials) + len(blocks.void),
        resolution=combined((1.0, steps.get(each.id, FINE_ENOUGH)) for each in about),
    )


@dataclass(frozen=True)
class _Stretch:
    """The runs between two changes, with their values, of which extremes are cut."""

    points: Sequence[Point]
    values: Floats

    @property
    def left_out(self) -> tuple[int, int]:
        return sum(point.left_out[0] for point in self.points), sum(point.left_out[1] for point in self.points)

    @property
    def attempts(self) -> int:
        return sum(point.attempts for point in self.points)

    @property
    def trials(self) -> list[Trial]:
        return [trial for point in self.points for trial in (*point.trials, *point.of_control)]

    @property
    def resolution(self) -> Resolution:
        return max((point.resolution for point in self.points), key=attrgetter("log_width"))

    def bound(self, missing: int, sign: float) -> float:
        """Return the mean of its values, had ``missing`` blocks that are left out lain at the extreme of all blocks."""
        extreme = extreme_of(np.array([log for point in self.points for log in point.logs]), sign)
        side = 1 if sum(point.net for point in self.points) > 0 else -1
        nets = np.array([max(0, side * point.net) for point in self.points], dtype=float)
        of_each = missing * nets / nets.sum() if nets.any() else nets
        numbers = np.array([len(point.logs) for point in self.points])
        away = np.array([extreme - point.value for point in self.points])
        return float(np.mean(self.values + away * of_each / (numbers + of_each)))


def _other_cause(  # noqa: PLR0913, PLR0917  (as above)
    label: str, before: _Stretch, after: _Stretch, change: ChangeInTime, metric: Metric, margin: float
) -> Withheld | None:
    """Return what else than a change may have made it."""
    if interference := interference_of(before.trials, "before") or interference_of(after.trials, "after"):
        return interference
    has_control = any(point.of_control for point in after.points)
    struck = StruckBetweenRuns(
        (f"{label} (before)", f"{label} (after)"),
        before.left_out,
        after.left_out,
        (before.attempts, after.attempts),
        has_control=has_control,
    )
    if cause := struck.cause:
        half = (
            (math.log1p(change.effect.high) - math.log1p(change.effect.low)) / 2 if change.effect.bounded else math.inf
        )
        missing = struck.missing
        for sign in (-1.0, 1.0):
            value = after.bound(missing[1], sign) - before.bound(missing[0], -sign)
            if _word_of(value, half, metric, margin, is_change=abs(value) > half) is not change.word:
                return cause
    causes = not_of_the_drive(_sides(label, before.points, after.points), metric, margin)
    return that_explains(causes, change.effect, change.word)


def _word_of(value: float, half: float, metric: Metric, margin: float, *, is_change: bool) -> Word:
    """Return the word on a change by ``value`` with an interval of ``half`` to either side, both as logarithms."""
    if abs(value) + half < log_margin(margin):
        return Word.EQUIVALENT
    if not is_change:
        return Word.UNDECIDED
    return Word.FASTER if (value > 0) == metric.more_is_better else Word.SLOWER


def _sides(label: str, before: Sequence[Point], after: Sequence[Point]) -> list[Side]:
    """Return what a change contrasts: a treatment before and after, and its control, which no change touched."""
    sides = []
    for name, sign, points in (("before", -1.0, before), ("after", 1.0, after)):
        trials, of_control = (
            [trial for point in points for trial in trials_of(point)]
            for trials_of in (attrgetter("trials"), attrgetter("of_control"))
        )
        sides.append(Side(f"{label} ({name})", sign, trials))
        sides += [Side(f"control ({name})", -sign, of_control, "control")] if of_control else []
    return sides


def _cut(values: Floats) -> Floats:
    """Return the values of one level, extremes cut."""
    if not len(values):
        return values
    centre, scale = float(np.median(values)), robust_sd(values)
    return np.clip(values, centre - CUT * scale, centre + CUT * scale) if scale > 0 else values


def _changed(  # noqa: PLR0913, PLR0917  (as above)
    shift: Shift,
    before: _Stretch,
    after: _Stretch,
    points: Sequence[Point],
    same: Sequence[tuple[str, ...]],
    sd: float,
    freedom: int,
    metric: Metric,
    margin: float,
) -> ChangeInTime:
    value = float(after.values.mean() - before.values.mean())
    runs = len(before.points), len(after.points)
    resolution = combined((1.0, each.resolution) for each in (before, after))
    half = (
        resolution.log_width + _reach(freedom) * sd * math.sqrt(1 / runs[0] + 1 / runs[1])
        if math.isfinite(sd)
        else math.inf
    )
    low = relative(value - half) if math.isfinite(half) else -math.inf
    effect = Estimate(relative(value), low, relative(value + half), sum(runs))
    word = _word_of(value, half, metric, margin, is_change=abs(value) > resolution.log_width)
    if word is Word.EQUIVALENT and resolution.too_coarse(margin):
        word = Word.UNDECIDED
    return ChangeInTime(
        before=points[shift.place - 1].run,
        after=points[shift.place].run,
        found=points[shift.found].run,
        effect=effect,
        word=word,
        p=shift.p,
        distinctions=same[shift.place - 1],
        measured=word,
        resolution=resolution,
    )


def _withhold_word(change: ChangeInTime, cause: Withheld | None) -> ChangeInTime:
    """Return the change without its word and its interval where something else than a change may account for it."""
    if cause is None or change.withheld_for is not None:
        return change
    effect = replace(change.effect, low=-math.inf, high=math.inf)
    return replace(change, word=Word.UNDECIDED, effect=effect, withheld_for=cause)


def _level(values: Floats, sd: float, freedom: int) -> Estimate:
    half = _reach(freedom) * sd / math.sqrt(len(values)) if math.isfinite(sd) else math.inf
    low = math.exp(float(values.mean()) - half) if math.isfinite(half) else -math.inf
    high = math.exp(float(values.mean()) + half) if math.isfinite(half) else math.inf
    return Estimate(math.exp(float(values.mean())), low, high, len(values))


def _reach(freedom: int) -> float:
    return float(special.stdtrit(freedom, 1 - ALPHA / 2))
