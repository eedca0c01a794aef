"""What sums up a run beside its comparisons, a sentence each: noise floor, ranking, published figures, cost."""

import math
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, combinations

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.curves import SHARE, Curve, Curves, Plateau, Turn
from dbdyno.analysis.noise_floor import NoiseFloor
from dbdyno.analysis.ranking import Ranking
from dbdyno.analysis.reported import PublishedBeside
from dbdyno.model.design import level_label
from dbdyno.model.metrics import METRICS
from dbdyno.model.word import Word
from dbdyno.model.wording import (
    TWICE,
    capital,
    count,
    is_or_are,
    listed,
    margin_text,
    percent,
    percent_range,
    uncapital,
)
from dbdyno.report.reasons import totals_text
from dbdyno.report.sentences import LISTED_MAX, Versus, by_interest
from dbdyno.report.why import lack_text

# Where a curve turns, in words: its knee with its interval, or that the range measured has none.


def line_name(line: Curve) -> str:
    """Return what the other factors are on a curve; empty where there is no other."""
    return " / ".join(level_label(name, level) for name, level in line.at.items())


def knee_sentence(line: Curve, curves: Curves) -> str:
    """Return where a curve has its knee and where it leaves its best again, or that neither is in the range."""
    name = f"{line_name(line)}: " if line.at else ""
    plateau = line.plateau
    if plateau is None:
        return f"{name}the knee is unknown: two blocks with all levels are needed."
    clauses = [*_reaches(plateau, line, curves), *_dips(plateau, line, curves), *_leaves(plateau, line, curves)]
    text = "; ".join(clauses)
    return f"{name}{text if name else capital(text)}."


def _reaches(plateau: Plateau, line: Curve, curves: Curves) -> Iterator[str]:
    """Yield what more of the factor brings up to the best."""
    share, factor = margin_text(SHARE), curves.factor
    levels = [point.level for point in line.points]
    if plateau.flat:
        yield f"no knee: from {factor} = {levels[0]} to {levels[-1]} all are within {share} of the best"
    elif knee := plateau.knee:
        at = f"{factor} = {levels[knee.at]} ({_interval(knee, levels)})"
        yield f"the knee is at {at}: up to there more {_brings(curves)} by {share} or more, beyond it by less"
    elif plateau.rising:
        yield f"no knee in the range measured: {factor} = {levels[-1]} still {_brings(curves)} by {share} or more"
    elif plateau.first.high == len(levels) - 1:
        where = f"{factor} = {levels[plateau.first.low]}"
        yield f"no knee in the range measured: whether more than {where} still {_brings(curves)} by {share} is open"
    elif plateau.dips:
        yield f"no knee: {factor} = {levels[0]} and {levels[-1]} are within {share} of the best"
    elif not plateau.leaves:
        yield f"no knee is shown in the range measured: {factor} = {levels[-1]} may be within {share} of the best"


def _dips(plateau: Plateau, line: Curve, curves: Curves) -> Iterator[str]:
    """Yield where the curve is worse between levels that are as good as its best."""
    if plateau.dips:
        names = listed([line.points[place].level for place in plateau.dips], LISTED_MAX)
        worse = "lower" if curves.metric.more_is_better else "higher"
        where = f"in between, at {curves.factor} = {names}"
        yield f"{where}, {curves.metric.words} is {worse} than the best by {margin_text(SHARE)} or more"


def _leaves(plateau: Plateau, line: Curve, curves: Curves) -> Iterator[str]:
    """Yield beyond which level the curve is worse than its best."""
    levels = [point.level for point in line.points]
    if turn := plateau.leaves:
        at = f"{curves.factor} = {levels[turn.at]} ({_interval(turn, levels)})"
        direction = "lowers" if curves.metric.more_is_better else "raises"
        knee = "" if plateau.knee else "the knee: "
        yield f"{knee}beyond {at} more {direction} {curves.metric.words} by {margin_text(SHARE)} or more"


def _brings(curves: Curves) -> str:
    return f"{'raises' if curves.metric.more_is_better else 'lowers'} {curves.metric.words}"


def _interval(turn: Turn, levels: list[str]) -> str:
    if turn.low == turn.high:
        return f"95 % interval: only {levels[turn.low]}"
    return f"95 % interval {levels[turn.low]} to {levels[turn.high]}"


def knees_in_brief(curves: Curves) -> str:
    """Return the knees of the curves of a study's own metric, with what follows, in a sentence; empty without one."""
    knees, beyond = [], set()
    for line in curves.lines:
        turn = line.plateau and (line.plateau.knee or line.plateau.leaves)
        if line.plateau and turn:
            beyond.add(bool(line.plateau.knee))
            where = f" with {line_name(line)}" if line.at else ""
            interval = _interval(turn, [point.level for point in line.points])
            knees.append(f"{curves.factor} = {line.points[turn.at].level} ({interval}){where}")
    if not knees:
        return ""
    said = f"The knee in {curves.metric.words} is at {listed(knees, LISTED_MAX)}"
    if len(beyond) > 1:
        return f"{said}."
    if beyond == {True}:
        return f"{said}: beyond it, more {_brings(curves)} by less than {margin_text(SHARE)}."
    worse = "lowers" if curves.metric.more_is_better else "raises"
    return f"{said}: beyond it, more {worse} {curves.metric.words} by {margin_text(SHARE)} or more."


USUAL_BLOCKS = 10
AT_ODDS_MAX = 2  # other metrics that a headline names
MANY = 3  # treatments, from which one may be ahead of the others


def leading(analysis: Analysis) -> list[str]:
    """Return what answers the question before any single comparison does."""
    return [
        *([noise_floor_sentence(analysis, analysis.noise_floor)] if analysis.noise_floor else []),
        *([ranking_sentence(analysis.ranking)] if analysis.ranking else []),
        *_knees(analysis),
    ]


def is_nothing_decided(analysis: Analysis) -> bool:
    """Return whether there are comparisons and all of them are open."""
    return bool(analysis.verdicts) and all(verdict.verdict.is_open for verdict in analysis.verdicts)


def _knees(analysis: Analysis) -> list[str]:
    """Return where the curves of the study's own metric turn, where anything is decided."""
    if is_nothing_decided(analysis):
        return []
    return [*filter(None, (knees_in_brief(curves) for curves in analysis.curves if curves.primary))]


def beside_comparisons(analysis: Analysis) -> list[str]:
    """Return what is worth knowing beside them."""
    return [*_contradictions(analysis), *_steadiness(analysis), *_cost(analysis), *_claims_in_brief(analysis.beside)]


def _contradictions(analysis: Analysis) -> Iterator[str]:
    """Yield what speaks against a word of the headline: totals of the same work, or another metric that differs."""
    ordered = by_interest(analysis.verdicts, analysis)
    for comparison in ordered:
        if comparison.verdict.totals_disagree:
            yield f"{comparison.name}: {uncapital(totals_text(comparison.verdict.totals, comparison.verdict.blocks))}"
    others = [
        f"{comparison.name}: {METRICS[secondary.metric].words} is {percent(secondary.effect.value)} with"
        f" {comparison.level} (exploratory)."
        for comparison in ordered
        for secondary in comparison.verdict.at_odds
    ]
    yield from others[:AT_ODDS_MAX]
    if (left := len(others) - AT_ODDS_MAX) > 0:
        yield f"{count(left, 'more metric')} like that {'differs' if left == 1 else 'differ'} (exploratory)."


def doubts_of_same(analysis: Analysis) -> str:
    """Return what may account for what an A/A run shows, so that no number of blocks can be named; else nothing."""
    return next((lack_text(verdict.lack) for verdict in analysis.verdicts if verdict.doubted_for and verdict.lack), "")


def noise_floor_sentence(analysis: Analysis, floor: NoiseFloor) -> str:
    """Return whether an A/A run found what is not there, and what its host can show."""
    word = analysis.verdicts[0].verdict if analysis.verdicts else Word.NOT_COMPARABLE
    host = "These hosts show" if analysis.fleet else "This host shows"
    match word:
        case Word.FASTER | Word.SLOWER:
            sentence = f"{host} a difference where there is none (B is {word} than A, though both are the same)"
        case Word.EQUIVALENT:
            sentence = f"{host} no difference beyond {margin_text(analysis.margin)} where there is none"
        case _:
            sentence = f"Whether {host[0].lower()}{host[1:]} a difference where there is none is still open"
    if doubts := doubts_of_same(analysis):
        return f"{sentence}: {doubts}."
    reaches = [reach for reach in floor.reach if reach.difference is not None]
    if not reaches:
        return f"{sentence}."
    usual = min(reaches, key=lambda reach: abs(reach.blocks - USUAL_BLOCKS))
    smallest = percent(usual.difference or math.nan, sign=False)
    return f"{sentence}; {count(usual.blocks, 'block')} can detect differences of about {smallest} or more."


def ranking_sentence(ranking: Ranking) -> str:
    """Return which stack leads, by how much, and who is not shown to be behind it."""
    first, rest = ranking.scores[0], ranking.scores[1:]
    tied = [score.stack for score in rest if set(score.letters) & set(first.letters)]
    size = f" ({percent(first.score.value - 1)} {ranking.metric.words} against {ranking.baseline})"
    size = "" if first.is_baseline else size
    over = f"Over {count(len(ranking.tests), 'test')}"
    if not first.letters or len(tied) == len(rest):
        return f"{over} no stack is shown to be ahead; {first.stack} has the best score{size}."
    but = f", but not shown to be ahead of {listed(tied, LISTED_MAX)}" if tied else ""
    return f"{over} {first.stack} is ahead of {_those(len(rest) - len(tied), tied)}{size}{but}."


def the_best_of_all(ordered: Sequence[Versus], analysis: Analysis) -> str:
    """Return which treatment is ahead where every two were compared and one is; else nothing."""
    rows = [row for row in analysis.treatments if analysis.ties.letters.get(row.id)]
    pairs = {frozenset((comparison.verdict.level_id, comparison.verdict.baseline_id)) for comparison in ordered}
    if len(rows) < MANY or not all(
        {first.id, second.id} in pairs for first, second in combinations(analysis.treatments, 2)
    ):
        return ""
    sign = 1 if analysis.metric.more_is_better else -1
    best = max(rows, key=lambda row: sign * row.metric_mean)
    theirs = [
        comparison for comparison in ordered if best.id in {comparison.verdict.level_id, comparison.verdict.baseline_id}
    ]
    letters = analysis.ties.letters
    tied = [row.label for row in rows if row is not best and set(letters[row.id]) & set(letters[best.id])]
    behind = [comparison.verdict for comparison in theirs if comparison.verdict.winner == best.id]
    if len(behind) < sum(comparison.verdict.verdict.is_different for comparison in theirs):
        return ""
    if not behind or len(theirs) > len(behind) + len(tied):
        return ""
    by = sorted(_ratio(verdict.effect.value, turned=verdict.baseline_id == best.id) for verdict in behind)
    size = percent(by[0]) if len(by) == 1 else percent_range(by[0], by[-1])
    but = f", but not shown to be ahead of {listed(tied, LISTED_MAX)}" if tied else ""
    left = [comparison.verdict.verdict for comparison in ordered if comparison not in theirs]
    ahead_of = f"{_those(len(behind), tied)} ({size} {analysis.metric.words})"
    return f"{best.label} is ahead of {ahead_of}{but}{_of_the_others(left)}."


def _of_the_others(left: Sequence[Word]) -> str:
    if len(left) == 1:
        return f"; the other two {'differ, too' if left[0] in {'faster', 'slower'} else f'are {left[0]}'}"
    return f"; of the {count(len(left), 'comparison')} of the others, {counted(left)}" if left else ""


def _those(behind: int, tied: Sequence[str]) -> str:
    if tied:
        return f"{behind} of the others"
    return {1: "the other one", 2: "both others"}.get(behind, f"all {behind} others")


def _ratio(effect: float, *, turned: bool) -> float:
    return 1 / (1 + effect) - 1 if turned else effect


def counted(words: Sequence[Word]) -> str:
    """Return ``"2 differ, 1 is equivalent and 1 is undecided"``."""
    differ = sum(word.is_different for word in words)
    parts = [f"{differ} {'differs' if differ == 1 else 'differ'}"] if differ else []
    same: tuple[Word, ...] = (Word.EQUIVALENT, Word.UNDECIDED, Word.NOT_COMPARABLE)
    numbers = ((words.count(word), word) for word in same)
    parts += [f"{number} {is_or_are(number)} {word}" for number, word in numbers if number]
    return listed(parts)


def _steadiness(analysis: Analysis) -> Iterator[str]:
    comparisons = by_interest(analysis.steadiness.verdicts, analysis) if analysis.steadiness else []
    differing = [comparison for comparison in comparisons if comparison.verdict.verdict.is_different]
    if differing:
        first, more = differing[0], len(differing) - 1
        word = "steadier" if first.verdict.verdict == Word.FASTER else "less steady"
        place = f" {first.place}" if first.place else ""
        differ = "differs" if more == 1 else "differ"
        rest = f"; {count(more, 'more comparison')} {differ} in steadiness" if more else ""
        yield f"{first.level} is {word} than {first.baseline}{place}{rest}."


def _cost(analysis: Analysis) -> Iterator[str]:
    compared = analysis.cost.comparisons if analysis.cost else []
    if sure := [comparison for comparison in compared if comparison.is_shown]:
        most = max(sure, key=lambda comparison: abs(math.log1p(comparison.per_million.value)))
        value = most.per_million.value
        if value >= TWICE:
            yield f"A query costs {percent(value)} as much with {most.level} as with {most.baseline}."
        else:
            by = f"{percent(abs(value), sign=False)} {'more' if value > 0 else 'less'}"
            yield f"A query costs {by} with {most.level} than with {most.baseline}."


def _claims_in_brief(besides: Sequence[PublishedBeside]) -> Iterator[str]:
    """Give how many published claims, and of tables without a claim how many differences, come out the same here."""
    claims = [[set(claim.counts) for claim in beside.claims if claim.outcomes] for beside in besides]
    alone = [beside for beside, claimed in zip(besides, claims, strict=True) if not claimed]
    differences = [{against.agreement} for beside in alone for figure in beside.figures for against in figure.against]
    for what, agreements in (
        ("published claim", list(chain.from_iterable(claims))),
        ("published difference", differences),
    ):
        if agreements:
            yield f"{count(len(agreements), what)}: {_outcomes(agreements)}."


def _outcomes(agreements: Sequence[AbstractSet[str]]) -> str:
    agree = sum(agreement == {"agrees"} for agreement in agreements)
    opened = sum(
        bool(agreement & {"undecided here", "not comparable here", "not measured here"}) for agreement in agreements
    )
    sized = sum(agreement == {"other size"} for agreement in agreements)
    against = len(agreements) - agree - opened - sized
    parts = [f"{agree} come out the same here"] if agree else []
    parts += [f"{sized} in the same direction"] if sized else []
    parts += [f"{against} otherwise"] if against else []
    parts += [f"{opened} not decided here"] if opened else []
    return listed(parts)
