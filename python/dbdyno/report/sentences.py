"""What every report says in words: a sentence per verdict, effects with their intervals, how large a difference is."""

from collections.abc import Callable, Sequence

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.model.metrics import Metric
from dbdyno.model.word import Word
from dbdyno.model.wording import (
    TWICE,
    UNKNOWN,
    count,
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
_RATES = ("_per_second", "iops")  # how the names of metrics end that "fast" is said of


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
