"""What the study wants to fail, and whether it does: a sentence that names the comparisons, or treatments, of it."""

from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.fail_if import Thresholds, conditions_of
from dbdyno.model.design import FailIf
from dbdyno.report.document import Paragraph, Section
from dbdyno.report.sentences import LISTED_MAX, comparisons_named, effect_text
from dbdyno.report.source import Source


def section(source: Source) -> Section | None:
    """Return the sentence; None of a study without thresholds."""
    found = source.analysis.thresholds
    if found is None:
        return None
    text = thresholds_text(found, source.analysis)
    style = Paragraph(text, "soft" if found.outcome == "passed" else "warning")
    return Section(
        "thresholds", "", (style,), data={"thresholds": thresholds_json(found, source.analysis)}, opening=True
    )


def thresholds_text(found: Thresholds, analysis: Analysis) -> str:
    """Return what came of all thresholds, the exit code where it is another than 0, and what it is about."""
    limits = limits_text(found.limits)
    if found.outcome == "passed":
        return f"Passed: nothing was found to be {limits}."
    if found.outcome == "failed":
        beyond = [
            f"{one.name} is {one.verdict.verdict}, {effect_text(one.verdict.effect)}"
            for one in comparisons_named(found.beyond, analysis.treatments)
        ]
        unsafe = [f"{treatment.label} {_lost(treatment.word)}" for treatment in found.unsafe]
        return f"Failed (exit code {found.exit_code}), as something is {limits}: {_first([*beyond, *unsafe])}."
    unsure = [one.name for one in comparisons_named(found.open, analysis.treatments)]
    unsure += [treatment.label for treatment in found.unsure]
    about = f" of {_first(unsure)}" if unsure else ""
    then = f"exit code {found.exit_code}" if found.exit_code else "the study lets that pass"
    return f"Not judged ({then}): whether anything is {limits} is undecided{about}."


def limits_text(limits: FailIf) -> str:
    """Return each threshold in words: ``"slower by 5 % or more or faster by 10 % or more"``."""
    sizes = [f"{limit.word} by {100 * limit.least:g} % or more" for limit in conditions_of(limits)]
    return " or ".join([*sizes, *(["unsafe"] if limits.unsafe else [])])


def _lost(word: str) -> str:
    return word if word.startswith("loses") else f"is {word}"


def _first(names: list[str]) -> str:
    more = len(names) - LISTED_MAX
    return f"{'; '.join(names[:LISTED_MAX])}; and {more:,} more" if more > 0 else "; ".join(names)


def thresholds_json(found: Thresholds, analysis: Analysis) -> dict[str, Any]:
    """Return the same for programs."""
    labels = {treatment.id: treatment.label for treatment in analysis.treatments}
    limits = found.limits

    def comparisons(findings: Any) -> list[dict[str, Any]]:  # noqa: ANN401
        return [
            {
                "level": labels[finding.level_id],
                "baseline": labels[finding.baseline_id],
                "verdict": finding.verdict,
                "effect": finding.effect.value,
            }
            for finding in findings
        ]

    return {
        "outcome": found.outcome,
        "exit_code": found.exit_code,
        "slower": limits.slower,
        "faster": limits.faster,
        "unsafe": limits.unsafe,
        "undecided": limits.undecided,
        "failed": comparisons(found.beyond),
        "not_judged": comparisons(found.open),
        "unsafe_treatments": [treatment.label for treatment in found.unsafe],
        "unsure_treatments": [treatment.label for treatment in found.unsure],
    }
