"""Operations a second by how many are outstanding, a curve each operation, with intervals; both axes logarithmic."""

from collections.abc import Mapping, Sequence
from functools import partial

from markupsafe import Markup

from dbdyno.analysis.quick import DepthStep, Target
from dbdyno.report.charts.svg import (
    Scale,
    axis_below,
    axis_beside,
    curve,
    dots,
    drawing,
    rule,
    scale_ticks,
    treatment_colour,
)
from dbdyno.report.document import Chart, Width

LEFT, TOP, WIDTH, NARROW_WIDTH, HEIGHT, BELOW = 80, 10, 980, 230, 230, 44
TICKS = 6
DASHES = ((), (5, 4))  # of the target, and of the target that it is compared with


def chart(targets: Sequence[Target], words: Mapping[str, str]) -> Chart:
    """Return the curves of one or two targets."""
    operations = [name for name in words if any(key[0] == name for target in targets for key in target.steps)]
    legend = tuple(words[name] for name in operations)
    dashed = f" (dashed: {targets[1].name})" if len(targets) > 1 else ""
    return Chart(f"Operations a second{dashed}", partial(_draw, targets, operations), legend)


def _draw(targets: Sequence[Target], operations: Sequence[str], window: Width) -> Markup:
    width = WIDTH if window == "wide" else NARROW_WIDTH
    steps = [step for target in targets for step in target.steps.values()]
    ends = [end for step in steps for end in step.rate.ends]
    depths = sorted({step.depth for step in steps})
    x = Scale(depths[0] / 1.3, depths[-1] * 1.3, LEFT, LEFT + width, log=True)
    y = Scale(min(ends) / 1.5, max(ends) * 1.5, TOP + HEIGHT, TOP, log=True)
    ticked = scale_ticks(y, TICKS)
    marks = [
        *axis_beside(y, ticked, x.start, x.end, "a second (log)"),
        *axis_below(x, [(depth, str(depth)) for depth in depths], TOP, TOP + HEIGHT, "clients at a time (log)"),
    ]
    for target, dash in zip(targets, DASHES, strict=False):
        for place, operation in enumerate(operations):
            marks += _curve([step for key, step in target.steps.items() if key[0] == operation], x, y, place, dash)
    return drawing(x.end + 12, TOP + HEIGHT + BELOW, "operations a second by number of clients", marks)


def _curve(steps: Sequence[DepthStep], x: Scale, y: Scale, place: int, dash: Sequence[int]) -> list[Markup]:
    colour = treatment_colour(place)
    places = [(x(step.depth), y(step.rate.value)) for step in steps]
    bars = [
        rule((x(step.depth),) * 2, (y(low), y(high)), stroke=colour) for step in steps for low, high in [step.rate.ends]
    ]
    says = [f"{step.depth} clients: {step.rate.value:,.4g} ({low:,.4g} to {high:,.4g}) a second" for step in steps
            for low, high in [step.rate.ends]]  # fmt: skip
    return [curve(places, colour, dash), *bars, dots(places, 3.5, colour, says=says)]
