"""What a script does with a report: fail on a condition, JUnit's XML, annotations of GitHub's."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.errors import UserError
from dbdyno.model.printable import command_text, xml_attribute, xml_text
from dbdyno.model.word import Word
from dbdyno.model.wording import percent
from dbdyno.report.document import Document

_CONDITION = re.compile(r"(?P<negated>not (?!comparable))?(?P<word>[a-z ]+?)( by (?P<percent>[0-9]+(\.[0-9]+)?) ?%)?")


@dataclass(frozen=True)
class Compared:
    """A verdict of a report, by its names."""

    of: str  # the run, where there are several
    name: str
    word: Word
    effect: float  # of the metric: .03 for +3 %; NaN where it is unknown
    reason: str

    @property
    def sentence(self) -> str:
        """What it says."""
        return f"{self.name}: {self.word}, {percent(self.effect)}; {self.reason}"


@dataclass(frozen=True)
class Condition:
    """What is to fail a script: a verdict's word or its absence, and how large the effect must be for it."""

    text: str
    word: Word
    negated: bool
    least: float  # a fraction: .05 for 5 %

    def holds(self, comparison: Compared) -> bool:
        """Whether a verdict meets it; the size is that of the estimate."""
        return self.negated != (comparison.word == self.word and not abs(comparison.effect) < self.least)


def condition_of(text: str) -> Condition:
    """Return the condition of ``slower by 5%``, ``undecided``, ``not equivalent``. Raises ``UserError``."""
    match = _CONDITION.fullmatch(" ".join(text.lower().split()))
    if match is None or match["word"] not in tuple(Word):
        raise UserError(
            f'--fail-if {text!r} must be one of {", ".join(Word)}; "not" may precede it and "by N%" follow,'
            ' as in "slower by 5%"'
        )
    if match["percent"] and not Word(match["word"]).is_different:
        raise UserError(f'--fail-if {text!r}: only faster and slower have a size; leave out the "by" part')
    return Condition(text, Word(match["word"]), bool(match["negated"]), float(match["percent"] or 0) / 100)


def compared(document: Document) -> list[Compared]:
    """Return the verdicts of a report: of a run, of several, or of two that are compared."""
    values = document.values()
    if "runs" in values and "verdicts" not in values:
        return [comparison for run in values["runs"] for comparison in _read_comparisons(run["verdicts"], run["name"])]
    of_two_runs = values.get("against_control") or values.get("changes")  # as the headline has it
    return list(_read_comparisons(values.get("verdicts") or of_two_runs or (), ""))


def _read_comparisons(verdicts: Sequence[dict[str, Any]], of: str) -> Iterator[Compared]:
    for verdict in verdicts:
        sides = ("level", "baseline") if "level" in verdict else ("after", "before")
        name = " against ".join(verdict[side] for side in sides)
        yield Compared(of, name, Word(verdict["verdict"]), verdict["effect"], verdict.get("reason", ""))


def failed(comparisons: Sequence[Compared], conditions: Sequence[Condition]) -> dict[Compared, Condition]:
    """Return the verdicts that meet a condition, each with the first that it meets."""
    return {
        comparison: condition
        for comparison in comparisons
        for condition in reversed(conditions)
        if condition.holds(comparison)
    }


def junit(title: str, comparisons: Sequence[Compared], failures: dict[Compared, Condition]) -> str:
    """Return a test suite with a case for each comparison; one that is not decided and no failure is skipped."""
    skipped = [comparison for comparison in comparisons if comparison.word.is_open and comparison not in failures]
    counts = f'tests="{len(comparisons)}" failures="{len(failures)}" skipped="{len(skipped)}"'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuite name={xml_attribute(title)} {counts}>"]
    for comparison in comparisons:
        suite = f"{title}: {comparison.of}" if comparison.of else title
        lines.append(f"  <testcase classname={xml_attribute(suite)} name={xml_attribute(comparison.name)}>")
        if comparison in failures:
            message, detail = xml_attribute(f"--fail-if {failures[comparison].text}"), xml_text(comparison.sentence)
            lines.append(f"    <failure message={message}>{detail}</failure>")
        elif comparison in skipped:
            lines.append(f"    <skipped message={xml_attribute(comparison.sentence)}/>")
        lines += [f"    <system-out>{xml_text(comparison.sentence)}</system-out>", "  </testcase>"]
    return "\n".join([*lines, "</testsuite>"]) + "\n"


def annotations(title: str, comparisons: Sequence[Compared], failures: dict[Compared, Condition]) -> list[str]:
    """Return a workflow command for each comparison: an error, a warning where it is not decided, or a notice."""
    lines = []
    for comparison in comparisons:
        level = "error" if comparison in failures else "warning" if comparison.word.is_open else "notice"
        name = f"{title}: {comparison.of}" if comparison.of else title
        lines.append(f"::{level} title={command_text(name, ':,')}::{command_text(comparison.sentence)}")
    return lines
