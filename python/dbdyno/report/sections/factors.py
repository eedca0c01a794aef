"""What factors do: main effects and interactions in words, and curves over a factor that is an amount."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.curves import LATENCY, RATE, SHARE, Curve, Curves, Turn
from dbdyno.analysis.factors import Interaction, MainEffect, SimpleEffect
from dbdyno.analysis.statistics import Estimate
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.analysis.verdict.reasons import Reason
from dbdyno.model.design import Design, level_label
from dbdyno.model.word import Word
from dbdyno.model.wording import UNKNOWN, capital, count, listed, margin_text, p_value, percent, three_digits
from dbdyno.report.charts import curve, interaction
from dbdyno.report.document import Abridged, Block, Details, Item, List, Paragraph, Section, Strong, Table, Text
from dbdyno.report.reasons import agreeing_text, reason_code, reason_text
from dbdyno.report.sentences import certainty, estimate_text, evidence, figures_text, sentence_of
from dbdyno.report.source import Source, effect_values, fields, p_values
from dbdyno.report.summaries import counted, knee_sentence, line_name

Explained = tuple[Text, list[str]]  # a sentence, and what explains it
_EACH = (
    "Each factor is judged inside blocks, averaged over all combinations of the others. p and intervals take the"
    " number of main effects, or of interactions, into account."
)


def section(source: Source) -> Section:
    """Return main effects and interactions, and the plots of the clearest; none where fewer than two factors vary."""
    design, analysis = source.run.design, source.analysis
    effects = main_effects(analysis)
    data = {"factors": factors_json(design, analysis)}
    if not effects:
        return Section("factors", "Factors", data=data)
    line = whole_plots_line(design)
    shown: list[Block] = [Paragraph(line)] if line else []
    for heading, explained in (("What each does", effects), ("Whether it depends on another", interactions(analysis))):
        items = tuple(Item(sentence, tuple(filter(None, reasons))) for sentence, reasons in explained)
        shown += [List(items, "verdicts", heading)] if items else []
    return Section("factors", "Factors", (*shown, Abridged(_charts(analysis))), data=data)


def _charts(analysis: Analysis) -> tuple[Block, ...]:
    charts = interaction.charts(analysis)
    lines = (
        "Lines that run together: the effect does not depend on the other factor; lines that part: it does. Bars are"
        f" 95 % intervals, small dots single blocks, the grey band the margin of {margin_text(analysis.margin)}. "
    )
    return (*charts, Paragraph(f"{lines if charts else ''}{_EACH}", "soft"))


def whole_plots_line(design: Design) -> str:
    """Return that the design is a split-plot one and what follows from it; nothing where it is not."""
    hard = [factor.name for factor in design.factors if factor.hard_to_change]
    if not hard:
        return ""
    which = listed(hard)
    return (
        f"Split-plot: inside each block the trials of one {which} followed each other, as a whole plot. What all trials"
        f" of a whole plot have in common counts as noise of {which}: more blocks make that smaller, more trials don't."
    )


def main_effects(analysis: Analysis) -> list[Explained]:
    """Return a sentence for each main effect."""
    return [_main_effect(main_effect, analysis) for main_effect in analysis.factors.main_effects]


def interactions(analysis: Analysis) -> list[Explained]:
    """Return a sentence for each interaction, those of the clearest pair of factors first."""
    places = {pair: place for place, pair in enumerate(analysis.factors.pairs())}
    ordered = sorted(analysis.factors.interactions, key=lambda effect: places[effect.here.factor, effect.here.other])
    return [_interaction(effect, analysis) for effect in ordered]


def _main_effect(main_effect: MainEffect, analysis: Analysis) -> Explained:
    verdict = main_effect.verdict
    # A mean over cells is called one before its word is read: single cells may have other words.
    subject = f"On average over {listed(main_effect.averaged_over)}, {main_effect.factor} {main_effect.level}"
    baseline = level_label(main_effect.factor, main_effect.baseline)
    figures = f"{_of_single_comparisons(main_effect, analysis)}: {figures_text(verdict, analysis.metric.words)}"
    reasons = [evidence(verdict)]
    if main_effect.depends_on:
        reasons.append(f"Its effect differs with {listed(main_effect.depends_on)}, see below: the average hides that.")
    sentence = sentence_of(verdict, (subject, baseline), analysis.margin, figures)
    return sentence, [] if verdict.verdict == Word.NOT_COMPARABLE else reasons


def _of_single_comparisons(effect: MainEffect, analysis: Analysis) -> str:
    """Return what is said of the comparisons that a mean is over, where any of them has another word than the mean."""
    levels = {row.id: row.levels for row in analysis.treatments}
    words = []
    for finding in analysis.verdicts:
        above, below = levels[finding.level_id], levels[finding.baseline_id]
        different = {name for name in {**above, **below} if above.get(name) != below.get(name)}
        ends = above.get(effect.factor), below.get(effect.factor)
        if different == {effect.factor} and ends in {(effect.level, effect.baseline), (effect.baseline, effect.level)}:
            words.append(finding.verdict if ends[0] == effect.level else finding.verdict.opposite)
    if not words or set(words) == {effect.verdict.verdict}:
        return ""
    return f" (of the {count(len(words), 'single comparison')}, {counted(words)})"


def _interaction(interaction_effect: Interaction, analysis: Analysis) -> Explained:
    here, there, verdict = interaction_effect.here, interaction_effect.there, interaction_effect.verdict
    word = Strong(interaction_effect.word.interaction_text, interaction_effect.word.interaction_text)
    effect = f"effect of {here.factor} {here.level} against {here.baseline}"
    places = f"between {here.other} {_at(here, analysis.metric.words)} and {_at(there)}"
    figures = f": the ratio of the two is {_ratio(verdict.effect.value)} ({certainty(verdict, _ratio_range(verdict))})."
    reasons = [evidence(verdict).replace("cludes 0", "cludes 1")]  # a ratio of 1 is a difference of 0
    match interaction_effect.word:
        case Word.FASTER | Word.SLOWER:
            return (f"The {effect} ", word, f" {places}{figures}"), [_same_side(interaction_effect, analysis)]
        case Word.EQUIVALENT:
            within = f" within {margin_text(analysis.margin)} {places}{figures}"
            return (f"The {effect} ", word, within), reasons
        case Word.UNDECIDED:
            return (f"Whether the {effect} differs {places} is ", word, figures), reasons
        case Word.NOT_COMPARABLE:
            places = f" between {here.other} {here.at} and {level_label(there.other, there.at)}"
            rest = f"{places}: {reason_text(verdict.reason)}."
            return (f"The {effect} is ", word, rest), []


def _at(simple: SimpleEffect, words: str = "") -> str:
    """Return ``"ssd-sata (+12 % queries per second, faster)"``."""
    size = percent(simple.verdict.effect.value)
    return f"{simple.at} ({size}{' ' if words else ''}{words}, {simple.verdict.verdict})"


def _ratio(difference: float) -> str:
    return three_digits(1 + difference) if abs(difference) >= 1 else f"{1 + difference:.3f}"  # three digits that count


def _ratio_range(verdict: Finding) -> str:
    effect = verdict.effect
    return f"{_ratio(effect.low)} to {_ratio(effect.high)}" if effect.bounded else UNKNOWN


def _same_side(interaction_effect: Interaction, analysis: Analysis) -> str:
    """Return why an interaction is believed."""
    above, reason = interaction_effect.verdict.effect.value > 0, interaction_effect.verdict.reason
    blocks_text = agreeing_text(reason) if isinstance(reason, Reason) else ""
    judged = sum(other_effect.word is not Word.NOT_COMPARABLE for other_effect in analysis.factors.interactions)
    side = "above" if above else "below"
    over = f"{p_value(interaction_effect.verdict.p_adjusted)} over {count(judged, 'interaction')}"
    return f"The ratio lies {side} 1 in {blocks_text} ({over}), and the interval excludes 1."


def factors_json(design: Design, analysis: Analysis) -> dict[str, Any]:
    """Return the effects of factors as values; differences are fractions, interactions ratios of two simple effects."""
    factors = analysis.factors
    return {
        "hard_to_change": [factor.name for factor in design.factors if factor.hard_to_change],
        "main_effects": [
            {
                **fields(main_effect, "factor level baseline averaged_over depends_on"),
                **_difference(main_effect.verdict),
                "reason": reason_text(main_effect.verdict.reason),
                "reason_code": reason_code(main_effect.verdict.reason),
            }
            for main_effect in factors.main_effects
        ],
        "interactions": [_interaction_as_dict(interaction_effect) for interaction_effect in factors.interactions],
    }


def _interaction_as_dict(interaction_effect: Interaction) -> dict[str, Any]:
    effect = interaction_effect.verdict.effect
    return {
        **fields(interaction_effect.here, "factor level baseline other"),
        "simple_effects": [
            {"at": simple.at, **_difference(simple.verdict)}
            for simple in (interaction_effect.here, interaction_effect.there)
        ],
        "ratio": 1 + effect.value,
        **p_values(interaction_effect.verdict),
        "blocks": interaction_effect.verdict.blocks,
        "low": 1 + effect.low,
        "high": 1 + effect.high,
        "verdict": interaction_effect.word.interaction_text,
    }


def _difference(verdict: Finding) -> dict[str, Any]:
    return {**effect_values(verdict.effect), **p_values(verdict), "blocks": verdict.blocks, "verdict": verdict.verdict}


# What a load comes to at each level of a factor that is an amount: curves, their knees, and latency by throughput.


NOTE = (
    "Dots are geometric means over blocks, bars their 95 % intervals, each for one level by itself. Differences"
    " between levels are surer than overlapping bars suggest, as they are taken inside blocks. A ring marks a knee:"
    f" the first level that no other beats by {margin_text(SHARE)} or more, or the last such level. Its"
    " interval consists of levels that were measured."
)


def curve_section(source: Source) -> Section | None:
    """Return the curves of each factor that is an amount; none where there is none."""
    all_curves = source.analysis.curves
    if not all_curves:
        return None
    first = opening_curve(source)
    shown: list[Block] = []
    for curves in all_curves:
        knees = tuple(Item(knee_sentence(line, curves)) for line in curves.lines)
        shown.append(List(knees, heading=capital(f"{curves.metric.words} by {curves.factor}")))
        shown += [] if curves is first else [Abridged((curve.chart(curves),))]
    for rate, latency in _rates_and_latencies(all_curves):
        shown.append(Abridged((curve.against_latency(rate, latency),)))
    figures = Details("How to read these curves, and their figures", (Paragraph(NOTE, "soft"), *_tables(all_curves)))
    return Section("curves", "By level", (*shown, figures), data={"curves": [_json(curves) for curves in all_curves]})


def opening_curve(source: Source) -> Curves | None:
    """Return the curves that answer a study's question, with which its page begins; None where something else does."""
    analysis = source.analysis
    if source.safety is not None or analysis.noise_floor or analysis.ranking:
        return None
    return next((curves for curves in analysis.curves if curves.primary), None)


def _rates_and_latencies(all_curves: Sequence[Curves]) -> Iterator[tuple[Curves, Curves]]:
    """Yield throughput and latency by each factor that is the load offered, where both are known of the same levels."""
    for rate in all_curves:
        for latency in all_curves:
            ends = (rate.metric.name, latency.metric.name)
            if rate.offered and rate.factor == latency.factor and ends == (RATE, LATENCY) and _alike(rate, latency):
                yield rate, latency


def _alike(rate: Curves, latency: Curves) -> bool:
    ids = [[[point.treatment for point in line.points] for line in curves.lines] for curves in (rate, latency)]
    return ids[0] == ids[1]


def _tables(all_curves: Sequence[Curves]) -> Iterator[Table]:
    """Yield a table for each factor: a row for each treatment, a column for each metric."""
    for factor in dict.fromkeys(curves.factor for curves in all_curves):
        ours = [curves for curves in all_curves if curves.factor == factor]
        values = [{point.treatment: point.value for line in curves.lines for point in line.points} for curves in ours]
        rows = tuple(
            (_row_name(line, factor, point.level), *(_cell(value.get(point.treatment)) for value in values))
            for line in ours[0].lines
            for point in line.points
        )
        yield Table(f"Figures by {factor}", ("treatment", *(curves.metric.heading for curves in ours)), rows)


def _row_name(line: Curve, factor: str, level: str) -> str:
    return " / ".join(filter(None, (line_name(line), level_label(factor, level))))


def _cell(value: Estimate | None) -> str:
    return "-" if value is None else estimate_text(value)


def _json(curves: Curves) -> dict[str, Any]:
    return {
        **fields(curves, "factor unit"),
        "metric": curves.metric.name,
        "share": SHARE,
        "lines": [_line_json(line, curves) for line in curves.lines],
    }


def _line_json(line: Curve, curves: Curves) -> dict[str, Any]:
    levels, plateau = [point.level for point in line.points], line.plateau
    return {
        **fields(line, "at blocks"),
        "points": [
            {**fields(point, "treatment level amount"), **effect_values(point.value, "value"), "blocks": point.value.n}
            for point in line.points
        ],
        "knee": _turn(plateau.knee if plateau else None, levels),
        "worse_beyond": _turn(plateau.leaves if plateau else None, levels),
        "worse_between": [levels[place] for place in plateau.dips] if plateau else [],
        "text": knee_sentence(line, curves),
    }


def _turn(turn: Turn | None, levels: Sequence[str]) -> dict[str, str] | None:
    return {name: levels[place] for name, place in asdict(turn).items()} if turn else None
