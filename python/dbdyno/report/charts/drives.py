"""A disk among the drives of the catalogue: what a durable commit takes, against reads a second; both logarithmic."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from dbdyno.analysis.quick import Key, Target
from dbdyno.model.printable import clipped
from dbdyno.report.charts.svg import (
    CHARACTER,
    INK,
    LIGHT,
    Scale,
    apart,
    axis_below,
    axis_beside,
    dots,
    drawing,
    overlap,
    rim,
    scale_ticks,
    treatment_colour,
    with_title,
    words,
)
from dbdyno.report.document import Chart, Width

LEFT, TOP, WIDTH, NARROW_WIDTH, HEIGHT, BELOW = 84, 12, 990, 236, 320, 44
TICKS = 7
DOT, OWN_DOT, LINE = 4.0, 7.0, 12
NAME_MAX, OWN_NAME_MAX = 22, 26
LIKE_OPACITY, OPACITY = "0.95", "0.55"


@dataclass(frozen=True)
class _Point:
    name: str
    x: float
    y: float
    says: str
    own: int | None  # place among what was measured here; None: a drive of the catalogue


def chart(targets: Sequence[Target], catalogue: Sequence[Target], like: str = "") -> Chart | None:
    """Return the picture; ``like`` is the drive that the first of ``targets`` is most like. None without a figure."""
    axes = _axes(targets[0])
    if axes is None:
        return None
    shown = [(place, target) for place, target in enumerate(targets) if all(key in target.steps for key in axes)]
    names = {target.name for _, target in shown}
    others = [target for target in catalogue if target.name not in names and all(key in target.steps for key in axes)]
    return Chart("", partial(_draw, shown, others, axes, like))


def _axes(target: Target) -> tuple[Key, Key] | None:
    """Return what lies across, a commit or else a read, and upwards, reads by as many clients as there were."""
    alone = next((key for key in (("fsync", 1), ("randread", 1)) if key in target.steps), None)
    most = max((key for key in target.steps if key[0] == "randread"), default=None)
    return None if alone is None or most is None else (alone, most)


def _draw(
    shown: Sequence[tuple[int, Target]], others: Sequence[Target], axes: tuple[Key, Key], like: str, window: Width
) -> Markup:
    across, up = axes
    everything = [*(target for _, target in shown), *others]
    times = [_ms(target, across) for target in everything]
    rates = [target.steps[up].rate.value for target in everything]
    x = Scale(min(times) / 1.4, max(times) * 1.4, LEFT, LEFT + (WIDTH if window == "wide" else NARROW_WIDTH), log=True)
    y = Scale(min(rates) / 1.5, max(rates) * 1.5, TOP + HEIGHT, TOP, log=True)
    what = "durable commit" if across[0] == "fsync" else "read of 16 KiB"
    ticked = scale_ticks(x, TICKS)
    marks = [
        *axis_beside(y, scale_ticks(y, TICKS), x.start,
                     x.end, f"random reads a second, {up[1]} clients (log)"),
        *axis_below(x, apart(ticked, x), TOP, TOP + HEIGHT, f"ms for a {what} (log), left is faster"),
    ]  # fmt: skip
    points = [
        *(_point(target, x, y, axes, place) for place, target in shown),
        *(_point(target, x, y, axes) for target in others),
    ]
    for point in points:
        if point.own is None:
            look = LIKE_OPACITY if point.name == like else OPACITY
            marks.append(with_title(point.says, [dots([(point.x, point.y)], DOT, INK, look)]))
        else:
            marks.append(with_title(point.says, [dots([(point.x, point.y)], OWN_DOT, treatment_colour(point.own))]))
    for point, left, above, text in _name_places(points, x):
        strong = {"font_weight": "bold"} if point.own is not None or point.name == like else {}
        marks.append(words(left, above, text, **rim(LIGHT), font_size=12 if strong else 11, **strong))
    return drawing(x.end + 16, TOP + HEIGHT + BELOW, f"reads a second against the time of a {what}", marks)


def _point(target: Target, x: Scale, y: Scale, axes: tuple[Key, Key], own: int | None = None) -> _Point:
    ms, rate = _ms(target, axes[0]), target.steps[axes[1]].rate.value
    return _Point(target.name, x(ms), y(rate), f"{target.name}: {ms:,.3g} ms, {rate:,.3g} reads a second", own)


def _ms(target: Target, key: Key) -> float:
    """Return what the usual one of these takes."""
    return target.steps[key].latency_ns["p50"] / 1e6


def _name_places(points: Sequence[_Point], x: Scale) -> Iterator[tuple[_Point, float, float, str]]:
    """Yield names beside their points, each where it touches no point and no name; one without room says it alone."""
    boxes = [(p.x - r, p.y - r, p.x + r, p.y + r) for p in points for r in [DOT if p.own is None else OWN_DOT]]
    for point in points:
        text = clipped(point.name, NAME_MAX if point.own is None else OWN_NAME_MAX)
        long, off = CHARACTER * len(text), (DOT if point.own is None else OWN_DOT) + 4
        tried = [(left, point.y + down) for down in (0, -LINE, LINE) for left in (point.x + off, point.x - off - long)]
        tried += [(point.x - long / 2, point.y + down) for down in (-off - 7, off + 7)]
        for left, up in tried:
            box = (left, up - LINE / 2, left + long, up + LINE / 2)
            inside = left >= x.start + 2 and box[2] <= x.end + 14 and TOP + 4 <= up <= TOP + HEIGHT - 6
            if inside and not any(overlap(box, other) for other in boxes):
                boxes.append(box)
                yield point, left, up, text
                break
