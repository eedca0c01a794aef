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

    def holds(self, one: Compared) -> bool:
        """Whether a verdict meets it; the size is that of the estimate."""
        return self.negated != (one.word == self.word and not abs(one.effect) < self.least)


def condition_of(text: str) -> Condition:
    """Return the condition of ``slower by 5%``, ``undecided``, ``not equivalent``. Raises ``UserError``."""
    found = _CONDITION.fullmatch(" ".join(text.lower().split()))
    if found is None or found["word"] not in tuple(Word):
        raise UserError(
            f'--fail-if {text!r} must be one of {", ".join(Word)}; "not" may precede it and "by N%" follow,'
            ' as in "slower by 5%"'
        )
    if found["percent"] and not Word(found["word"]).is_different:
        raise UserError(f'--fail-if {text!r}: only faster and slower have a size; leave out the "by" part')
    return Condition(text, Word(found["word"]), bool(found["negated"]), float(found["percent"] or 0) / 100)


def compared(document: Document) -> list[Compared]:
    """Return the verdicts of a report: of a run, of several, or of two that are compared."""
    values = document.values()
    if "runs" in values and "verdicts" not in values:
        return [one for run in values["runs"] for one in _compared(run["verdicts"], run["name"])]
    of_two_runs = values.get("against_control") or values.get("changes")  # as the headline has it
    return list(_compared(values.get("verdicts") or of_two_runs or (), ""))


def _compared(verdicts: Sequence[dict[str, Any]], of: str) -> Iterator[Compared]:
    for one in verdicts:
        level, baseline = (one["level"], one["baseline"]) if "level" in one else (one["after"], one["before"])
        yield Compared(of, f"{level} against {baseline}", Word(one["verdict"]), one["effect"], one.get("reason", ""))


def failed(found: Sequence[Compared], conditions: Sequence[Condition]) -> dict[Compared, Condition]:
    """Return the verdicts that meet a condition, each with the first that it meets."""
    return {one: condition for one in found for condition in reversed(conditions) if condition.holds(one)}


def junit(title: str, found: Sequence[Compared], failures: dict[Compared, Condition]) -> str:
    """Return a test suite with a case for each comparison; one that is not decided and no failure is skipped."""
    skipped = [one for one in found if one.word.is_open and one not in failures]
    counts = f'tests="{len(found)}" failures="{len(failures)}" skipped="{len(skipped)}"'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuite name={xml_attribute(title)} {counts}>"]
    for one in found:
        suite = f"{title}: {one.of}" if one.of else title
        lines.append(f"  <testcase classname={xml_attribute(suite)} name={xml_attribute(one.name)}>")
        if one in failures:
            message, detail = xml_attribute(f"--fail-if {failures[one].text}"), xml_text(one.sentence)
            lines.append(f"    <failure message={message}>{detail}</failure>")
        elif one in skipped:
            lines.append(f"    <skipped message={xml_attribute(one.sentence)}/>")
        lines += [f"    <system-out>{xml_text(one.sentence)}</system-out>", "  </testcase>"]
    return "\n".join([*lines, "</testsuite>"]) + "\n"


def annotations(title: str, found: Sequence[Compared], failures: dict[Compared, Condition]) -> list[str]:
    """Return a workflow command for each comparison: an error, a warning where it is not decided, or a notice."""
    lines = []
    for one in found:
        level = "error" if one in failures else "warning" if one.word.is_open else "notice"
        name = f"{title}: {one.of}" if one.of else title
        lines.append(f"::{level} title={command_text(name, ':,')}::{command_text(one.sentence)}")
    return lines
