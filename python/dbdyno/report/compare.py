"""Two runs against each other, for a terminal, a wiki and programs."""

import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dbdyno.analysis.compare import Change, Compared
from dbdyno.analysis.estimate import Estimate
from dbdyno.analysis.metrics import number
from dbdyno.analysis.min_blocks import ALPHA
from dbdyno.analysis.wording import count, margin_text, p_value, percent, percent_range
from dbdyno.clean import NO_BREAK, glued
from dbdyno.report.differences import Difference, run_differences
from dbdyno.report.markdown import escape
from dbdyno.report.rounding import rounded
from dbdyno.store.records import Run

WARNING = (
    "The two runs were not interleaved. Whatever changed on the host between them, such as its neighbours, its"
    " temperature or how full its disk is, is in the difference, and no interval allows for it: the intervals cover the"
    " noise inside the runs. To judge the change itself, make it a factor of one study."
)
NO_CONTROL = (
    "A treatment that should not have changed would tell of the host: name it by --control, and the others are compared"
    " by their ratio to it as well."
)


@dataclass(frozen=True)
class Section:
    """A heading and what is listed below it."""

    heading: str
    lines: list[str]


@dataclass(frozen=True)
class Comparison:
    """Two runs, what became of their treatments, and what they differ in."""

    before: Run
    after: Run
    compared: Compared

    @property
    def title(self) -> str:
        """The one title, or both."""
        titles = dict.fromkeys((self.before.title, self.after.title))
        return " / ".join(titles)

    @property
    def differences(self) -> list[Difference]:
        """What the runs differ in, as far as it is known."""
        return run_differences(self.before, self.after, self.compared.matched)


def text(comparison: Comparison, width: int = 120) -> str:
    """Return plain text, wrapped."""
    lines = _wrapped(f"{comparison.title}: before and after", width)
    for section in _sections(comparison):
        lines += ["", section.heading]
        for line in section.lines:
            lines += _wrapped(line, width, first="- ", indent="  ")
    return "\n".join(lines) + "\n"


def _wrapped(line: str, width: int, first: str = "", indent: str = "") -> list[str]:
    found = textwrap.wrap(glued(line), width, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False)
    return [part.replace(NO_BREAK, " ") for part in found]


def markdown(comparison: Comparison) -> str:
    """Return GitHub's Markdown."""
    lines = [f"# {escape(comparison.title)}: before and after"]
    for section in _sections(comparison):
        lines += ["", f"## {section.heading}", "", *(f"- {escape(line)}" for line in section.lines)]
    return "\n".join(lines) + "\n"


def _sections(comparison: Comparison) -> list[Section]:
    compared = comparison.compared
    control = compared.control
    listed = [
        Section("Verdicts", [_told(change, compared) for change in compared.changes]),
        Section("Control", [_control_told(control, compared)] if control else []),
        Section(
            f"Against the control {control.after}" if control else "",
            [_told(change, compared) for change in compared.against_control],
        ),
        Section("Beware", [WARNING, *_hints(comparison)]),
        Section("What differs between the runs", [difference_text(one) for one in comparison.differences]),
        Section("Notes", _notes(comparison)),
    ]
    return [section for section in listed if section.lines]


def _told(change: Change, compared: Compared) -> str:
    sentence = change_sentence(change, compared)
    return sentence if change.verdict == "not comparable" else f"{sentence} {_means(change, compared)}{_reason(change)}"


def change_sentence(change: Change, compared: Compared) -> str:
    """Return the sentence a reader may quote."""
    name = change.after if change.before == change.after else f"{change.after} (before: {change.before})"
    effect = change.effect
    figures = (
        f"{percent(effect.value)} {compared.metric.words} (95 % interval {percent_range(effect.low, effect.high)},"
        f" {change.trials[0]} and {change.trials[1]} trials, {p_value(change.p_adjusted)})"
    )
    match change.verdict:
        case "faster" | "slower":
            return f"{name} is {change.verdict} after than before: {figures}."
        case "equivalent":
            return f"{name} is equivalent before and after within {margin_text(compared.margin)}: {figures}."
        case "undecided":
            return f"Whether {name} changed is undecided: {figures}."
        case "not comparable":
            return f"{name} is not comparable before and after: {change.reason}."


def _means(change: Change, compared: Compared) -> str:
    if not all(mean > 0 for mean in change.means):
        return ""
    before, after = map(number, change.means)
    return f"Mean {compared.metric.heading}: {before} before, {after} after. "


def _reason(change: Change) -> str:
    return f"{change.reason[0].upper()}{change.reason[1:]}."


def _control_told(control: Change, compared: Compared) -> str:
    told = _told(control, compared)
    match control.verdict:
        case "faster" | "slower":
            return (
                f"{told} It should not have changed, so the host did, and the verdicts above are of host and change"
                " together; those against the control below are what is left of the change."
            )
        case "equivalent" if control.p_adjusted <= ALPHA:
            return f"{told} It should not have changed, so the host did, by less than the margin."
        case "equivalent":
            return f"{told} It should not have changed, and no change is seen: nothing speaks for a change of the host."
        case _:
            return f"{told} So it can't tell whether the host changed."


def _other_load(comparison: Comparison) -> list[str]:
    """Whether the treatments that are compared were under different loads; a factor of both runs is in their labels."""
    factors = [{one.name for one in run.design.factors} for run in (comparison.before, comparison.after)]
    in_labels = {f"workload.{name.rpartition('.')[2]}" for name in factors[0] & factors[1]}
    names = [
        one.name.removeprefix("workload.")
        for one in comparison.differences
        if one.what == "study" and one.name.startswith("workload.") and one.name not in in_labels
    ]
    if not names:
        return []
    return [f"The load was not the same ({', '.join(names)}): what differs is the load's doing as well as the host's."]


def _hints(comparison: Comparison) -> list[str]:
    lines = _other_load(comparison)
    named = (("before", comparison.before), ("after", comparison.after))
    for (name, _), drift in zip(named, comparison.compared.drifts, strict=True):
        if drift.known and not drift.low <= 0 <= drift.high:
            interval = percent_range(drift.low, drift.high)
            lines.append(
                f"Already inside the run {name} the host drifted by {percent(drift.value)} (95 % interval {interval})"
                " from the first trial to the last; the trials of a treatment are not as independent as the interval"
                " takes them to be."
            )
    wanting = len(comparison.compared.matched) > 1 and comparison.compared.control is None
    return [*lines, NO_CONTROL] if wanting else lines


def difference_text(difference: Difference) -> str:
    """Return ``"version mariadb: 10.11.14 before, 11.8.2 after"``."""
    of = f" ({', '.join(difference.of)})" if difference.of else ""
    return f"{difference.what} {difference.name}{of}: {difference.before} before, {difference.after} after"


def _notes(comparison: Comparison) -> list[str]:
    notes = []
    for name, run in (("before", comparison.before), ("after", comparison.after)):
        if run.trials:
            first, last = run.trials[0].started_at, run.trials[-1].started_at
            notes.append(f"The trials {name} began from {first} to {last}.")
        if run.ended != "done":
            notes.append(f"The run {name} is not whole: {run.ended}.")
        if run.stopped in {"decided", "precise"}:
            notes.append(
                f"The run {name} ended when its own answer was clear enough, which these figures don't allow for."
            )
        if run.failures:
            failed = count(len(run.failures), "failed trial")
            notes.append(
                f"The run {name} had {failed}; whatever was measured in the same attempt at a block is left out."
            )
    for name, labels in (("before", comparison.compared.only_before), ("after", comparison.compared.only_after)):
        if labels:
            notes.append(f"Only in the run {name}, and so not compared: {', '.join(labels)}.")
    return notes


def as_json(comparison: Comparison) -> str:
    """Return the comparison for programs; differences are fractions (.03 for +3 %), what is unknown is null."""
    compared = comparison.compared
    document = {
        "before": _run(comparison.before),
        "after": _run(comparison.after),
        "metric": compared.metric.name,
        "more_is_better": compared.metric.more_is_better,
        "margin": compared.margin,
        "changes": _changes(compared.changes),
        "control": _changes([compared.control])[0] if compared.control else None,
        "against_control": _changes(compared.against_control),
        "only_before": compared.only_before,
        "only_after": compared.only_after,
        "warning": " ".join((WARNING, *_hints(comparison))),
        "differences": [asdict(one) for one in comparison.differences],
        "notes": _notes(comparison),
    }
    return json.dumps(rounded(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _run(run: Run) -> dict[str, Any]:
    return {"study": run.title, "seed": run.design.seed, "ended": run.ended}


def _changes(changes: Sequence[Change]) -> list[dict[str, Any]]:
    return [_change(change, change.effect) for change in changes]


def _change(change: Change, effect: Estimate) -> dict[str, Any]:
    return {
        "before": change.before,
        "after": change.after,
        "effect": effect.value,
        "low": effect.low,
        "high": effect.high,
        "p": change.p_adjusted,
        "p_unadjusted": change.p,
        "p_equivalence": change.p_equivalence,
        "verdict": change.verdict,
        "trials_before": change.trials[0],
        "trials_after": change.trials[1],
        "mean_before": change.means[0],
        "mean_after": change.means[1],
        "reason": change.reason,
    }
