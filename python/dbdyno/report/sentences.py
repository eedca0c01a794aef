"""What every report says in words: a sentence per verdict, effects with their intervals, how large a difference is."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.ranking import Ties
from dbdyno.analysis.statistics import Estimate
from dbdyno.analysis.summary import TreatmentSummary
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.model.design import MIN_BLOCKS, Treatment, level_label
from dbdyno.model.metrics import Metric
from dbdyno.model.printable import PROGRESS_COLUMNS, distinguishable
from dbdyno.model.quantity import quantity_of
from dbdyno.model.word import Word
from dbdyno.model.wording import (
    TWICE,
    UNKNOWN,
    count,
    listed,
    margin_text,
    number,
    p_value,
    percent,
    percent_range,
    times_as_much,
)
from dbdyno.report.document import Strong, Text
from dbdyno.report.reasons import as_sentence, reason_text

NO_VERDICT = "The study plans no comparison, so there is no verdict."
_RATES = ("_per_second", "iops")  # endings of the names of metrics that can be called "fast"


def verdict_sentence(verdict: Finding, analysis: Analysis) -> Text:
    """Return the sentence a reader may quote: word, effect, interval, blocks, p."""
    figures = f": {figures_text(verdict, analysis.metric.words)}"
    return sentence_of(verdict, (verdict.level, verdict.baseline), analysis.margin, figures)


def sentence_of(verdict: Finding, names: tuple[str, str], margin: float, figures: str) -> Text:
    """Return a verdict on the first of two names against the second, which ``figures`` end."""
    (level, baseline), word = names, Strong(verdict.verdict, verdict.verdict)
    match verdict.verdict:
        case Word.FASTER | Word.SLOWER:
            return (f"{level} is ", word, f" than {baseline}{figures}.")
        case Word.EQUIVALENT:
            return (f"{level} is ", word, f" to {baseline} within {margin_text(margin)}{figures}.")
        case Word.UNDECIDED:
            return (f"{level} against {baseline} is ", word, f"{figures}.")
        case Word.NOT_COMPARABLE:
            return (f"{level} is ", word, f" with {baseline}: {reason_text(verdict.reason)}.")


def figures_text(verdict: Finding, words: str) -> str:
    """Return ``"+3.1 % queries per second (95 % interval +2.9 to +3.4 %, 10 blocks, p = 0.002)"``."""
    effect = verdict.effect
    return f"{percent(effect.value)} {words} ({certainty(verdict, percent_range(effect.low, effect.high))})"


def certainty(verdict: Finding, interval: str) -> str:
    """Return an interval with what it rests on."""
    return f"95 % interval {interval}, {count(verdict.blocks, 'block')}, {p_value(verdict.p_adjusted)}"


def anchor_of(verdict: Finding) -> str:
    """Return by what a link leads to a comparison's verdict."""
    return f"v-{verdict.level_id}-{verdict.baseline_id}"


def evidence(verdict: Finding) -> str:
    """Return the reason as a sentence of its own; empty where the verdict's sentence already says it."""
    return "" if verdict.verdict == Word.NOT_COMPARABLE else as_sentence(verdict.reason)


def effect_text(effect: Estimate, *, is_baseline: bool = False) -> str:
    """Return ``"+3.1 % (+2.9 to +3.4 %)"``, ``"baseline"`` or ``"unknown"``."""
    if is_baseline:
        return "baseline"
    if not effect.known:
        return UNKNOWN
    interval = percent_range(effect.low, effect.high) if effect.bounded else "interval unknown"
    return f"{percent(effect.value)} ({interval})"


def estimate_text(estimate: Estimate, form: Callable[[float], str] = number) -> str:
    """Return ``"4.426 (4.1 to 4.8)"``, as far as it is known."""
    if not estimate.known:
        return UNKNOWN
    interval = f"{form(estimate.low)} to {form(estimate.high)}" if estimate.bounded else "interval unknown"
    return f"{form(estimate.value)} ({interval})"


def with_interval(effect: Estimate) -> str:
    """Return ``"+3.1 % (95 % interval +2.9 to +3.4 %)"``."""
    return f"{percent(effect.value)} (95 % interval {percent_range(effect.low, effect.high)})"


def how_different(word: str, effects: Sequence[float], metric: Metric, baseline: str, where: str = "") -> str:
    """Return ``"5.9 times as fast as hdd-7200"``, ``"12 to 20 % slower than ..."``, or of what is no rate its figure.

    ``effects`` are relative differences of one direction, ``word`` the verdict on all; ``baseline`` may be empty.
    """
    low, high = min(effects), max(effects)
    least, most = sorted((low, high), key=abs)
    than = f" than {baseline}" if baseline else ""
    if not (metric.more_is_better and metric.name.endswith(_RATES)):
        size = percent(low) if percent(low) == percent(high) else percent_range(low, high)
        return f"{word}{than}{where} ({size} {metric.words})"
    if most >= TWICE:
        return f"{times_as_much(least, most)} as fast{f' as {baseline}' if baseline else ''}{where}"
    shares = dict.fromkeys(percent(abs(end), sign=False).removesuffix(" %") for end in (least, most))
    return f"{' to '.join(shares)} % {word}{than}{where}"


# Several treatments in as few words as there are.


FEW = 2  # treatments of a run that are named one by one, if all are meant


Named = Treatment | TreatmentSummary


def treatments_named(ids: Collection[str], treatments: Sequence[Named], between: str = "; ") -> str:
    """Return ``"all treatments"``, the levels that these and no others have, as ``"raid0-s510"``, or else their labels.

    ``ids`` are some of the ``treatments``, which are all of a run.
    """
    chosen = [treatment for treatment in treatments if treatment.id in ids]
    if len(chosen) == len(treatments) > FEW:
        return "all treatments"
    for factor in chosen[0].levels if 1 < len(chosen) < len(treatments) else ():
        levels = list(dict.fromkeys(treatment.levels[factor] for treatment in chosen))
        if len(levels) < len(chosen) == sum(treatment.levels[factor] in levels for treatment in treatments):
            return between.join(level_label(factor, level) for level in levels)
    return between.join(treatment.label for treatment in chosen)


# The column of tie letters, and what it says.


LETTERS_HEADING = "ties"


def has_letters(analysis: Analysis) -> bool:
    """Whether the table has the column."""
    return any(analysis.ties.letters.values())


def ties_text(ties: Ties, what: str, words: str) -> str:
    """Return one sentence on the letters of ``what``: "treatments", "stacks"."""
    if not ties.pairs:
        return ""
    if ties.too_few_blocks:
        blocks, pairs = count(ties.too_few_blocks, "block"), count(ties.pairs, "pair")
        return f"No tie letters: {blocks} can show no difference over {pairs}; {MIN_BLOCKS} are needed."
    return (
        f"Ties: {what} that share a letter show no difference in {words}, which does not prove that they are"
        f" equivalent."
    )


# A comparison in as few words as it needs: the levels that differ, and where both stand.


LISTED_MAX = 3  # names in a sentence
_SAYS_NOTHING = {"none", "default", "off", "on"}
_NOTHING_LEFT = -1 + 1e-9  # as a relative difference; a ratio of 0 has no logarithm


@dataclass(frozen=True)
class Versus:
    """A verdict with what differs between its two treatments."""

    verdict: Finding
    factors: tuple[str, ...]  # that differ
    level: str
    baseline: str
    pair: str  # "none vs mq-deadline": where one level says nothing by itself the other one does
    place: str  # what both have in common, "on hdd-7200 with ext4"; empty where nothing else varies
    places: int  # in how many such places the study could compare the same levels

    @property
    def name(self) -> str:
        """Return ``"none vs mq-deadline on hdd-7200"``."""
        return f"{self.pair} {self.place}".strip()


def by_interest(verdicts: Sequence[Finding], analysis: Analysis) -> list[Versus]:
    """Return the comparisons, those decided first, of these the different ones, of these what is surely large first."""
    return comparisons_named(sorted(verdicts, key=_interest), analysis.treatments)


def in_order(analysis: Analysis) -> list[Versus]:
    """Return the planned comparisons as a chart and a table have them: amounts ascending, else by interest."""
    comparisons = by_interest(analysis.verdicts, analysis)
    factors = {comparison.factors for comparison in comparisons}
    if len(factors) != 1 or len(factor := next(iter(factors))) != 1:
        return comparisons
    levels = list(dict.fromkeys(row.levels[factor[0]] for row in analysis.treatments if factor[0] in row.levels))
    amounts = quantity_of(levels)
    if amounts is None:
        return comparisons
    amount = dict(zip(levels, amounts.values, strict=True))
    level_of = {row.id: row.levels[factor[0]] for row in analysis.treatments if factor[0] in row.levels}
    return sorted(comparisons, key=lambda comparison: (comparison.place, amount[level_of[comparison.verdict.level_id]]))


def comparisons_named(verdicts: Sequence[Finding], treatments: Sequence[Treatment | TreatmentSummary]) -> list[Versus]:
    """Return the comparisons of treatments in the order given."""
    levels = {treatment.id: treatment.levels for treatment in treatments}
    return [_versus(verdict, levels) for verdict in verdicts]


def _interest(verdict: Finding) -> tuple[int, float, float]:
    """Rank a verdict; a difference counts by the end of its interval that is nearest to none."""
    effect = verdict.effect
    sure = max(_log(effect.low), -_log(effect.high), 0.0) if effect.bounded else 0.0
    return verdict.verdict.order, -sure, -abs(_log(effect.value)) if effect.known else 0.0


def _log(relative: float) -> float:
    return math.log1p(max(relative, _NOTHING_LEFT))


def _versus(verdict: Finding, levels_of: Mapping[str, Mapping[str, str]]) -> Versus:
    level, baseline = levels_of[verdict.level_id], levels_of[verdict.baseline_id]
    factors = [name for name in {**level, **baseline} if level.get(name) != baseline.get(name)]
    back = {name: baseline.get(name, "") for name in factors}
    common = {name: value for name, value in level.items() if name not in factors}
    return Versus(
        verdict=verdict,
        factors=tuple(factors),
        level=label_of(level, factors),
        baseline=label_of(baseline, factors),
        pair=f"{label_of(level, factors, alone=False)} vs {label_of(baseline, factors, alone=False)}",
        place=_place(common),
        places=_places(level, back, list(levels_of.values())),
    )


def _places(level: Mapping[str, str], baseline: Mapping[str, str], present: Sequence[Mapping[str, str]]) -> int:
    """Return how many treatments have these levels where another one differs from it by the baseline's alone."""
    alike = [levels for levels in present if all(levels.get(name) == level.get(name) for name in baseline)]
    return sum({**levels, **baseline} in present for levels in alike)


def label_of(levels: Mapping[str, str], factors: Sequence[str], *, alone: bool = True) -> str:
    """Return the levels as a treatment's label has them; one that says nothing when ``alone`` goes by its factor."""
    named_levels = {name: levels[name] for name in factors if name in levels}
    if alone and len(named_levels) == 1 and set(named_levels.values()) <= _SAYS_NOTHING:
        return " ".join(*named_levels.items())
    return Treatment("", named_levels).label


def _place(common: Mapping[str, str]) -> str:
    """Return ``"on hdd-7200 with ext4 and clients 10"``."""
    device = f"on {label_of(common, ['device'])}" if "device" in common else ""
    others = [label_of(common, [name]) for name in common if name != "device"]
    return " ".join(filter(None, (device, f"with {listed(others, LISTED_MAX)}" if others else "")))


# What a look of a sequential design shows of the comparisons while the run goes on: one short line each.
#
# Only a look that the design plans may show them: who sees effects at other moments is led to end the run at a good
# one, which the intervals do not allow for.


LINES_MAX, INDENT = 6, "  "


def so_far(verdicts: Sequence[Finding], treatments: Sequence[Treatment]) -> list[str]:
    """Return a line per comparison, in the order of the plan, of at most ``PROGRESS_COLUMNS`` characters."""
    shown = comparisons_named(verdicts[:LINES_MAX], treatments)
    lines = []
    for place, comparison in enumerate(shown):
        finding_text = f": {_finding_text(comparison.verdict)}"
        names = distinguishable([each.name for each in shown], PROGRESS_COLUMNS - len(INDENT) - len(finding_text))
        lines.append(f"{INDENT}{names[place]}{finding_text}")
    more = len(verdicts) - LINES_MAX
    return [*lines, *([f"{INDENT}and {more} more"] if more > 0 else [])]


def _finding_text(verdict: Finding) -> str:
    """Return the effect, and the word where there is one: that nothing is decided yet is what goes without saying."""
    if not verdict.effect.known:
        return verdict.verdict
    decided = "" if verdict.verdict == Word.UNDECIDED else f", {verdict.verdict}"
    return f"{effect_text(verdict.effect)}{decided}"
