"""Where a curve turns, in words: its knee with its interval, or that the range measured has none."""

from collections.abc import Iterator

from dbdyno.analysis.curves import SHARE, Curve, Curves, Plateau, Turn
from dbdyno.model.treatment import level_label
from dbdyno.model.wording import capital, listed, margin_text
from dbdyno.report.versus import LISTED_MAX


def line_name(line: Curve) -> str:
    """Return what the other factors are on a curve; empty where there is no other."""
    return " / ".join(level_label(name, level) for name, level in line.at.items())


def knee_sentence(line: Curve, curves: Curves) -> str:
    """Return where a curve has its knee and where it leaves its best again, or that neither is in the range."""
    name = f"{line_name(line)}: " if line.at else ""
    found = line.plateau
    if found is None:
        return f"{name}the knee is unknown: it takes two blocks that have all levels."
    said = [*_reaches(found, line, curves), *_dips(found, line, curves), *_leaves(found, line, curves)]
    text = "; ".join(said)
    return f"{name}{text if name else capital(text)}."


def _reaches(found: Plateau, line: Curve, curves: Curves) -> Iterator[str]:
    """Yield what more of the factor brings up to the best."""
    share, factor = margin_text(SHARE), curves.factor
    levels = [point.level for point in line.points]
    if found.flat:
        yield f"no knee: from {factor} {levels[0]} to {levels[-1]} all are within {share} of the best"
    elif knee := found.knee:
        at = f"{factor} {levels[knee.at]} ({_interval(knee, levels)})"
        yield f"the knee is at {at}: up to there more {_brings(curves)} by {share} or more, from there on by less"
    elif found.rising:
        yield f"no knee in the range measured: {factor} {levels[-1]} still {_brings(curves)} by {share} or more"
    elif found.first.high == len(levels) - 1:
        where = f"{factor} {levels[found.first.low]}"
        yield f"no knee in the range measured: whether more than {where} still {_brings(curves)} by {share} is open"
    elif found.dips:
        yield f"no knee: {factor} {levels[0]} and {levels[-1]} are within {share} of the best"
    elif not found.leaves:
        yield f"no knee is shown in the range measured: {factor} {levels[-1]} may be within {share} of the best"


def _dips(found: Plateau, line: Curve, curves: Curves) -> Iterator[str]:
    """Yield where the curve is worse between levels that are as good as its best."""
    if found.dips:
        names = listed([line.points[place].level for place in found.dips], LISTED_MAX)
        worse = "lower" if curves.metric.more_is_better else "higher"
        where = f"in between, at {curves.factor} {names}"
        yield f"{where}, {curves.metric.words} is {worse} than the best by {margin_text(SHARE)} or more"


def _leaves(found: Plateau, line: Curve, curves: Curves) -> Iterator[str]:
    """Yield beyond which level the curve is worse than its best."""
    levels = [point.level for point in line.points]
    if turn := found.leaves:
        at = f"{curves.factor} {levels[turn.at]} ({_interval(turn, levels)})"
        direction = "lowers" if curves.metric.more_is_better else "raises"
        knee = "" if found.knee else "the knee: "
        yield f"{knee}beyond {at} more {direction} {curves.metric.words} by {margin_text(SHARE)} or more"


def _brings(curves: Curves) -> str:
    return f"{'raises' if curves.metric.more_is_better else 'lowers'} {curves.metric.words}"


def _interval(turn: Turn, levels: list[str]) -> str:
    if turn.low == turn.high:
        return f"95 % interval: {levels[turn.low]} alone"
    return f"95 % interval {levels[turn.low]} to {levels[turn.high]}"


def knees_in_brief(curves: Curves) -> str:
    """Return the knees of the curves of a study's own metric in a sentence; empty where there is none."""
    said = []
    for line in curves.lines:
        turn = line.plateau and (line.plateau.knee or line.plateau.leaves)
        if turn:
            where = f" with {line_name(line)}" if line.at else ""
            interval = _interval(turn, [point.level for point in line.points])
            said.append(f"{curves.factor} {line.points[turn.at].level} ({interval}){where}")
    if not said:
        return ""
    return f"The knee in {curves.metric.words} is at {listed(said, LISTED_MAX)}."
