"""The run-order strip: every trial in the order it ran, so that drift, jumps and outliers cannot hide in a mean."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from statistics import fmean

from markupsafe import Markup

from dbdyno.analysis.analyse import Analysis
from dbdyno.model.metrics import value_of
from dbdyno.model.wording import number, percent
from dbdyno.report.charts.svg import (
    DASHES,
    Scale,
    axis_below,
    axis_beside,
    dots,
    drawing,
    ring,
    rule,
    scale_ticks,
    treatment_colour,
    with_title,
)
from dbdyno.report.document import Chart, Width
from dbdyno.store.records import Run, Trial

LEFT, TOP, WIDTH, HEIGHT = 76, 8, 980, 110
NARROW_WIDTH = 250
BETWEEN, BELOW = 12, 40  # pixels between the two panels, and of the axis with its title
LABELS, NARROW_LABELS = 24, 8  # at most, along the trials
TICKS = 5
PADDING = 10  # pixels to the first and the last value
LOG_FROM = 3.0  # largest over smallest
DOT, RING = 4.4, 4.2


@dataclass(frozen=True)
class _Dot:
    """A trial: its place in the run, its metric, how far off its treatment's mean it is in percent."""

    place: int
    value: float
    off: float
    treatment: int
    counts: bool


def chart(run: Run, analysis: Analysis) -> Chart | None:
    """Return the metric of each trial, and each trial against its treatment's mean; None without a usable trial."""
    compared = {treatment.id for treatment in run.design.treatments}
    values = [
        (trial, value_of(trial.metrics, analysis.metric.name)) for trial in run.trials if trial.treatment in compared
    ]
    usable = [(trial, value) for trial, value in values if value > 0]
    if not usable:
        return None
    index = {treatment.id: place for place, treatment in enumerate(run.design.treatments)}
    counted = {trial.id for row in analysis.blocks.trials.values() for trial in row.values()}
    means = _means(usable)
    shown = [
        _Dot(place, value, 100 * (value / means[trial.treatment] - 1), index[trial.treatment], trial.id in counted)
        for place, (trial, value) in enumerate(usable, start=1)
    ]
    starts = [place for place in range(2, len(usable) + 1) if _starts_block(usable, place)]
    legend = tuple(treatment.label for treatment in run.design.treatments)
    return Chart("", partial(_draw, shown, starts, analysis), legend)


def _draw(shown: list[_Dot], starts: list[int], analysis: Analysis, window: Width) -> Markup:
    labels_of = [row.label for row in analysis.treatments]
    width, labels = (WIDTH, LABELS) if window == "wide" else (NARROW_WIDTH, NARROW_LABELS)
    x = Scale(0.5, len(shown) + 0.5, LEFT, LEFT + width)
    values = [dot.value for dot in shown]
    log = max(values) / min(values) > LOG_FROM
    upper = _scale(values, TOP, log=log)
    lower = _scale([0.0, *(dot.off for dot in shown)], TOP + HEIGHT + BETWEEN)
    bottom = TOP + 2 * HEIGHT + BETWEEN
    step = 1 + len(shown) // labels
    places = [(place, str(place)) for place in range(1, len(shown) + 1, step)]
    title = f"{analysis.metric.heading}{' (log)' if log else ''}"
    marks = [
        *_panel(upper, title, x),
        *_panel(lower, "% off its mean", x),
        *axis_below(x, places, bottom, bottom, "trial, in run order"),
        *(rule((x(at - 0.5),) * 2, (TOP, bottom), stroke_opacity="0.2", stroke_dasharray=DASHES) for at in starts),
        *_trials([(x(dot.place), upper(dot.value), number(dot.value), dot) for dot in shown], labels_of),
        *_trials([(x(dot.place), lower(dot.off), percent(dot.off / 100), dot) for dot in shown], labels_of),
    ]
    return drawing(x.end + 10, bottom + BELOW, f"{analysis.metric.words} of every trial in run order", marks)


def _scale(values: list[float], top: float, *, log: bool = False) -> Scale:
    """Return the scale of a panel, whose values keep off its edges."""
    low, high = min(values), max(values)
    if low == high:
        return Scale(low - 1, high + 1, top + HEIGHT, top)
    share = PADDING / (HEIGHT - 2 * PADDING)
    if log:
        factor = (high / low) ** share
        return Scale(low / factor, high * factor, top + HEIGHT, top, log=True)
    return Scale(low - share * (high - low), high + share * (high - low), top + HEIGHT, top)


def _panel(scale: Scale, title: str, x: Scale) -> list[Markup]:
    return axis_beside(scale, scale_ticks(scale, TICKS), x.start, x.end, title)


def _trials(placed: list[tuple[float, float, str, _Dot]], labels: list[str]) -> Iterator[Markup]:
    """Draw the trials of each treatment that count as dots, the others as rings."""
    counting = defaultdict(list)
    for x, y, value, dot in placed:
        if dot.counts:
            counting[dot.treatment].append(((x, y), f"{value}, trial {dot.place}"))
    for treatment, dots_and_texts in counting.items():
        places, says = zip(*dots_and_texts, strict=True)
        yield dots(places, DOT, treatment_colour(treatment), says=says, what=labels[treatment])
    for x, y, value, dot in placed:
        if not dot.counts:
            text = f"{labels[dot.treatment]}: {value}, trial {dot.place}, which does not count"
            yield with_title(text, [ring(x, y, RING, treatment_colour(dot.treatment))])


def _means(usable: list[tuple[Trial, float]]) -> dict[str, float]:
    by_treatment = defaultdict(list)
    for trial, value in usable:
        by_treatment[trial.treatment].append(value)
    return {treatment: fmean(values) for treatment, values in by_treatment.items()}


def _starts_block(usable: list[tuple[Trial, float]], place: int) -> bool:
    before, here = usable[place - 2][0], usable[place - 1][0]
    return (before.block, before.attempt) != (here.block, here.attempt)
