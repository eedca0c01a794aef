"""What a factorial study's factors do, in words: one sentence for each main effect and each interaction."""

from collections.abc import Sequence
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.factorial import Interaction, MainEffect, SimpleEffect
from dbdyno.analysis.verdict import Verdict
from dbdyno.analysis.wording import UNKNOWN, count, margin_text, p_value, percent, percent_range
from dbdyno.report.sentences import Sentence, evidence
from dbdyno.store.records import Design, is_word

Told = tuple[Sentence, list[str]]  # a sentence, and what explains it


def whole_plots_line(design: Design) -> str:
    """Return that the design is a split-plot one and what follows from it; nothing where it is not."""
    hard = [factor.name for factor in design.factors if factor.hard_to_change]
    if not hard:
        return ""
    named = _listed(hard)
    return (
        f"Split-plot: inside each block the trials of one {named} followed each other, as a whole plot. What all trials"
        f" of a whole plot have in common counts as noise of {named}: more blocks make that smaller, more trials don't."
    )


def main_effects(analysis: Analysis) -> list[Told]:
    """Return a sentence for each main effect."""
    return [_main_effect(one, analysis) for one in analysis.factors.main_effects]


def interactions(analysis: Analysis) -> list[Told]:
    """Return a sentence for each interaction, those of the clearest pair of factors first."""
    places = {pair: place for place, pair in enumerate(analysis.factors.pairs())}
    ordered = sorted(analysis.factors.interactions, key=lambda one: places[one.here.factor, one.here.other])
    return [_interaction(one, analysis) for one in ordered]


def _main_effect(one: MainEffect, analysis: Analysis) -> Told:
    subject, verdict = f"{one.factor} {one.level}", one.verdict
    baseline = named(one.factor, one.baseline)
    figures = (
        f", averaged over {_listed(one.averaged_over)}: {percent(verdict.effect.value)} {analysis.metric.words}"
        f" ({_certainty(verdict, percent_range(verdict.effect.low, verdict.effect.high))})."
    )
    reasons = [evidence(verdict)]
    if one.depends_on:
        reasons.append(f"Its effect differs with {_listed(one.depends_on)}, see below: the average hides that.")
    match verdict.verdict:
        case "faster" | "slower":
            return Sentence(subject, " is ", verdict.verdict, f" than {baseline}{figures}"), reasons
        case "equivalent":
            within = f" to {baseline} within {margin_text(analysis.margin)}"
            return Sentence(subject, " is ", verdict.verdict, f"{within}{figures}"), reasons
        case "undecided":
            return Sentence(f"{subject} against {baseline}", " is ", verdict.verdict, figures), reasons
        case "not comparable":
            return Sentence(subject, " is ", verdict.verdict, f" with {baseline}: {verdict.reason}."), []


def _interaction(one: Interaction, analysis: Analysis) -> Told:
    here, there, verdict = one.here, one.there, one.verdict
    effect = f"effect of {here.factor} {here.level} against {here.baseline}"
    places = f"between {here.other} {_at(here, analysis.metric.words)} and {_at(there)}"
    figures = (
        f": the ratio of the two is {_ratio(verdict.effect.value)} ({_certainty(verdict, _ratio_range(verdict))})."
    )
    reasons = [evidence(verdict).replace("cludes 0", "cludes 1")]  # a ratio of 1 is a difference of 0
    match one.word:
        case "differs":
            return Sentence(f"The {effect}", " ", one.word, f" {places}{figures}"), [_same_side(one, analysis)]
        case "does not differ":
            within = f" within {margin_text(analysis.margin)} {places}{figures}"
            return Sentence(f"The {effect}", " ", one.word, within), reasons
        case "undecided":
            return Sentence(f"Whether the {effect} differs {places}", " is ", one.word, figures), reasons
        case "not comparable":
            rest = f" between {here.other} {here.at} and {named(there.other, there.at)}: {verdict.reason}."
            return Sentence(f"The {effect}", " is ", one.word, rest), []


def _at(one: SimpleEffect, words: str = "") -> str:
    """Return ``"ssd-sata (+12 % queries per second, faster)"``."""
    size = percent(one.verdict.effect.value)
    return f"{one.at} ({size}{' ' if words else ''}{words}, {one.verdict.verdict})"


def _certainty(verdict: Verdict, interval: str) -> str:
    return f"95 % interval {interval}, {count(verdict.blocks, 'block')}, {p_value(verdict.p_adjusted)}"


def _ratio(difference: float) -> str:
    return f"{1 + difference:.3g}" if abs(difference) >= 1 else f"{1 + difference:.3f}"  # three digits that tell


def _ratio_range(verdict: Verdict) -> str:
    effect = verdict.effect
    return f"{_ratio(effect.low)} to {_ratio(effect.high)}" if effect.bounded else UNKNOWN


def _same_side(one: Interaction, analysis: Analysis) -> str:
    """Return why an interaction is believed."""
    above = one.verdict.effect.value > 0
    same = sum((value > 0) == above for _, value in one.verdict.by_block)
    blocks = f"all {same} blocks" if same == one.verdict.blocks else f"{same} of {one.verdict.blocks} blocks"
    judged = sum(other.word != "not comparable" for other in analysis.factors.interactions)
    side = "above" if above else "below"
    over = f"{p_value(one.verdict.p_adjusted)} over {count(judged, 'interaction')}"
    return f"The ratio lies {side} 1 in {blocks} ({over}), and the interval excludes 1."


def named(factor: str, level: str) -> str:
    """Return the level, with its factor where it is no word: ``"ssd-sata"``, ``"clients 10"``."""
    return level if is_word(level) else f"{factor} {level}"


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def as_dict(design: Design, analysis: Analysis) -> dict[str, Any]:
    """Return all of it for programs; differences are fractions, interactions ratios of two simple effects."""
    factors = analysis.factors
    return {
        "hard_to_change": [factor.name for factor in design.factors if factor.hard_to_change],
        "main_effects": [
            {
                "factor": one.factor,
                "level": one.level,
                "baseline": one.baseline,
                "averaged_over": list(one.averaged_over),
                "depends_on": list(one.depends_on),
                **_difference(one.verdict),
                "reason": one.verdict.reason,
            }
            for one in factors.main_effects
        ],
        "interactions": [_interaction_as_dict(one) for one in factors.interactions],
    }


def _interaction_as_dict(one: Interaction) -> dict[str, Any]:
    effect = one.verdict.effect
    return {
        "factor": one.here.factor,
        "level": one.here.level,
        "baseline": one.here.baseline,
        "other": one.here.other,
        "simple_effects": [{"at": simple.at, **_difference(simple.verdict)} for simple in (one.here, one.there)],
        "ratio": 1 + effect.value,
        **_figures(one.verdict),
        "low": 1 + effect.low,
        "high": 1 + effect.high,
        "verdict": one.word,
    }


def _difference(verdict: Verdict) -> dict[str, Any]:
    effect = verdict.effect
    found = {"effect": effect.value, "low": effect.low, "high": effect.high}
    return {**found, **_figures(verdict), "verdict": verdict.verdict}


def _figures(verdict: Verdict) -> dict[str, Any]:
    return {
        "p": verdict.p_adjusted,
        "p_unadjusted": verdict.p,
        "p_equivalence": verdict.p_equivalence,
        "blocks": verdict.blocks,
    }
