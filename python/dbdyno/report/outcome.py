"""A report for programs: conditions that fail, JUnit's XML, GitHub's annotations, Prometheus's format."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.fail_if import Condition, Thresholds
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.errors import UserError
from dbdyno.model.design import Treatment
from dbdyno.model.metrics import METRICS, Metric, mean_or_nan, value_of
from dbdyno.model.printable import command_text, prometheus_text, xml_attribute, xml_text
from dbdyno.model.similar import did_you_mean
from dbdyno.model.word import Word
from dbdyno.model.wording import percent
from dbdyno.report.document import Document
from dbdyno.store.records import Run

_CONDITION = re.compile(r"(?P<negated>not (?!comparable))?(?P<word>[a-z ]+?)( by (?P<percent>[0-9]+(\.[0-9]+)?) ?%)?")


@dataclass(frozen=True)
class OutcomeSafety:
    """What a report says of a treatment's crash safety, where its study is to fail by it."""

    of: str  # the run, where there are several
    name: str
    sentence: str
    is_open: bool
    condition: str  # what of [fail_if] it meets; empty where it meets nothing


@dataclass(frozen=True)
class OutcomeVerdict:
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

    @property
    def is_open(self) -> bool:
        """Whether nothing is decided."""
        return self.word.is_open


OutcomeCase = OutcomeVerdict | OutcomeSafety


def condition_of(text: str) -> Condition:
    """Return the condition of ``slower by 5%``, ``undecided``, ``not equivalent``. Raises ``UserError``."""
    match = _CONDITION.fullmatch(" ".join(text.lower().split()))
    if match is None or match["word"] not in tuple(Word):
        words, word = list(map(str, Word)), text.removeprefix("not ").partition(" by ")[0]
        raise UserError(
            f'--fail-if {text!r} must be one of {", ".join(words)}; "not" may precede it and "by N%" follow,'
            f' as in "slower by 5%"{"" if word in words else did_you_mean(word, words)}'
        )
    if match["percent"] and not Word(match["word"]).is_different:
        raise UserError(f'--fail-if {text!r}: only faster and slower have a size; leave out the "by" part')
    return Condition(
        f"--fail-if {text}", Word(match["word"]), bool(match["negated"]), float(match["percent"] or 0) / 100
    )


def compared(document: Document) -> list[OutcomeVerdict]:
    """Return the verdicts of a report: of a run, of several, or of two that are compared."""
    values = document.values()
    if "runs" in values and "verdicts" not in values:
        return [comparison for run in values["runs"] for comparison in _read_comparisons(run["verdicts"], run["name"])]
    of_two_runs = values.get("against_control") or values.get("changes")  # as the headline has it
    return list(_read_comparisons(values.get("verdicts") or of_two_runs or (), ""))


def _read_comparisons(verdicts: Sequence[dict[str, Any]], of: str) -> Iterator[OutcomeVerdict]:
    for verdict in verdicts:
        sides = ("level", "baseline") if "level" in verdict else ("after", "before")
        name = " against ".join(verdict[side] for side in sides)
        yield OutcomeVerdict(of, name, Word(verdict["verdict"]), verdict["effect"], verdict.get("reason", ""))


def safety_of(thresholds: Thresholds, of: str = "") -> Iterator[OutcomeSafety]:
    """Yield each treatment of which a study's thresholds ask whether it is safe."""
    undecided = "[fail_if] undecided" if thresholds.limits.undecided == "fail" else ""
    for treatment in thresholds.safety:
        is_open = treatment.word == "undecided"
        condition = undecided if is_open else "[fail_if] unsafe" if treatment in thresholds.unsafe else ""
        name = f"crash safety of {treatment.label}"
        yield OutcomeSafety(of, name, f"{name}: {treatment.word}", is_open, condition)


def failed(comparisons: Sequence[OutcomeVerdict], conditions: Sequence[Condition]) -> dict[OutcomeCase, str]:
    """Return the verdicts that meet a condition, each with the text of the first that it meets."""
    return {
        comparison: condition.text
        for comparison in comparisons
        for condition in reversed(conditions)
        if condition.holds(comparison.word, comparison.effect)
    }


def junit(title: str, comparisons: Sequence[OutcomeCase], failures: Mapping[OutcomeCase, str]) -> str:
    """Return a test suite with a case for each comparison; one that is not decided and no failure is skipped."""
    skipped = [comparison for comparison in comparisons if comparison.is_open and comparison not in failures]
    counts = f'tests="{len(comparisons)}" failures="{len(failures)}" skipped="{len(skipped)}"'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuite name={xml_attribute(title)} {counts}>"]
    for comparison in comparisons:
        suite = f"{title}: {comparison.of}" if comparison.of else title
        lines.append(f"  <testcase classname={xml_attribute(suite)} name={xml_attribute(comparison.name)}>")
        if comparison in failures:
            message, detail = xml_attribute(failures[comparison]), xml_text(comparison.sentence)
            lines.append(f"    <failure message={message}>{detail}</failure>")
        elif comparison in skipped:
            lines.append(f"    <skipped message={xml_attribute(comparison.sentence)}/>")
        lines += [f"    <system-out>{xml_text(comparison.sentence)}</system-out>", "  </testcase>"]
    return "\n".join([*lines, "</testsuite>"]) + "\n"


def annotations(title: str, comparisons: Sequence[OutcomeCase], failures: Mapping[OutcomeCase, str]) -> list[str]:
    """Return a workflow command for each comparison: an error, a warning where it is not decided, or a notice."""
    lines = []
    for comparison in comparisons:
        level = "error" if comparison in failures else "warning" if comparison.is_open else "notice"
        name = f"{title}: {comparison.of}" if comparison.of else title
        lines.append(f"::{level} title={command_text(name, ':,')}::{command_text(comparison.sentence)}")
    return lines


# A run's figures in Prometheus's text format, for a textfile collector or a push gateway.
#
# The format is version 0.0.4; by its last line it is OpenMetrics 1.0, too. Names begin with ``dbdyno_`` and end in a
# base unit; samples have no time of their own, as a collector refuses those.


# Unit of a metric -> the part of its name that says so, what its base unit is called, and how many of these one is.
_BASE = {
    "ms": ("ms", "seconds", 1e-3),
    "us": ("us", "seconds", 1e-6),
    "s": ("seconds", "seconds", 1.0),
    "B": ("bytes", "bytes", 1.0),
}
_OF_A_RATE = {"MB/s": ("megabytes_per_second", "bytes_per_second", 1e6)}

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Exported:
    """A run with its label and what was made of it."""

    label: str
    run: Run
    analysis: Analysis


@dataclass(frozen=True)
class _Sample:
    """A value of a family, which is called ``name`` and described by ``words``."""

    name: str
    words: str
    labels: Labels
    value: float


def render(exported: Sequence[Exported]) -> str:
    """Return all figures of runs; each family once, with its samples of every run. What is unknown is left out."""
    families: dict[str, list[_Sample]] = {}
    for exported_run in exported:
        for sample in _samples(exported_run):
            if not math.isnan(sample.value):
                families.setdefault(sample.name, []).append(sample)
    lines = [line for name, samples in families.items() for line in _family(name, samples)]
    return "\n".join([*lines, "# EOF"]) + "\n"


def base_unit(metric: Metric) -> tuple[str, float]:
    """Return a metric's name by its base unit, and how many of these its unit is: ``("real_seconds", 1.0)``."""
    if metric.unit in _OF_A_RATE:
        part, base, scale = _OF_A_RATE[metric.unit]
        return metric.name.replace(part, base), scale
    if metric.unit not in _BASE:
        return metric.name, 1.0
    part, base, scale = _BASE[metric.unit]
    return "_".join([*(word for word in metric.name.split("_") if word != part), base]), scale


def _family(name: str, samples: Sequence[_Sample]) -> Iterator[str]:
    yield f"# HELP {name} {samples[0].words}."
    yield f"# TYPE {name} gauge"
    for sample in samples:
        labels = ",".join(f'{label}="{prometheus_text(value)}"' for label, value in sample.labels)
        yield f"{name}{{{labels}}} {sample.value!r}"


def _samples(exported_run: Exported) -> Iterator[_Sample]:
    run, labels = exported_run.run, (("run", exported_run.label),)
    about = {"study": run.title, "ended": run.ended, "metric": run.design.metric, **_versions(run)}
    yield _Sample("dbdyno_run_info", "What was run", (*labels, *about.items()), 1.0)
    times = [time for trial in run.trials if (time := _time_of(trial.started_at)) is not None]
    for which, time in zip(("first", "last"), (min(times), max(times)) if times else (), strict=False):
        words = f"When the {which} finished trial began, in seconds since 1970"
        yield _Sample(f"dbdyno_run_{which}_trial_timestamp_seconds", words, labels, time)
    yield _Sample(
        "dbdyno_run_usable_blocks",
        "Blocks that verdicts rest on",
        labels,
        float(len(exported_run.analysis.blocks.trials)),
    )
    called = factor_words({name for treatment in run.design.treatments for name in treatment.levels})
    for treatment in run.design.treatments:
        levels = tuple((f"factor_{called[name]}", level) for name, level in treatment.levels.items())
        yield from _of_treatment(exported_run, treatment, (*labels, ("treatment", treatment.label), *levels))
    for verdict in exported_run.analysis.verdicts:
        yield from _of_comparison(verdict, (*labels, ("metric", run.design.metric)), run)


def _time_of(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):  # it is no time, or none that a clock can show
        return None


def _versions(run: Run) -> Mapping[str, str]:
    return {name: run.versions[name] for name in ("dbdyno", "kernel") if name in run.versions}


def factor_words(names: Collection[str]) -> dict[str, str]:
    """Return factor -> its name as a label may be called, which no two share: ``device-x`` is ``device_x``.

    Of those that would share one, a sign is its code point, and ``_`` is ``__``: ``device-x`` is ``device_2d_x``.
    """
    words = {name: _plain(name) for name in names}
    times = Counter(words.values())
    words = {name: _distinct(name) if times[word] > 1 else word for name, word in words.items()}
    return words if len({*words.values()}) == len(words) else {name: _distinct(name) for name in names}


def _plain(name: str) -> str:
    return "".join(char if char.isascii() and char.isalnum() else "_" for char in name)


def _distinct(name: str) -> str:
    """Return a word from which the name can be had again: the escapes of Prometheus's ``values`` scheme."""
    return "".join(
        char if char.isascii() and char.isalnum() else "__" if char == "_" else f"_{ord(char):x}_" for char in name
    )


def _of_treatment(exported_run: Exported, treatment: Treatment, labels: Labels) -> Iterator[_Sample]:
    trials = exported_run.analysis.blocks.of(treatment.id)
    failed = sum(failure.treatment == treatment.id for failure in exported_run.run.failures)
    counts = {
        "trials": ("Usable trials", len(trials)),
        "trials_failed": ("Trials that failed", failed),
        "trials_with_interference": ("Usable trials that met interference", sum(trial.disturbed for trial in trials)),
    }
    for name, (words, number) in counts.items():
        yield _Sample(f"dbdyno_{name}", words, labels, float(number))
    for metric in METRICS.values():
        name, scale = base_unit(metric)
        words = f"Mean over usable trials of {metric.words} ({metric.name} x {scale:g})"
        yield _Sample(
            f"dbdyno_{name}",
            words,
            labels,
            mean_or_nan(value_of(trial.metrics, metric.name) for trial in trials) * scale,
        )


def _of_comparison(verdict: Finding, labels: Labels, run: Run) -> Iterator[_Sample]:
    known = {treatment.id: treatment.label for treatment in run.design.treatments}
    sides: Labels = (("level", known[verdict.level_id]), ("baseline", known[verdict.baseline_id]))
    labels = (*labels, *sides)
    effect = verdict.effect
    words = "of the metric's relative difference, level against baseline (0.03 is +3 %)"
    yield _Sample("dbdyno_comparison_effect_ratio", f"Estimate {words}", labels, effect.value)
    for name, bound in (("low", effect.low), ("high", effect.high)):
        yield _Sample(
            f"dbdyno_comparison_effect_{name}_ratio", f"The {name} end of the 95 % interval {words}", labels, bound
        )
    yield _Sample(
        "dbdyno_comparison_p_value", "p of the difference, adjusted for the comparisons", labels, verdict.p_adjusted
    )
    for word in Word:
        is_so = float(word == verdict.verdict)
        yield _Sample(
            "dbdyno_comparison_verdict", "1 at the verdict, 0 at the others", (*labels, ("verdict", word)), is_so
        )
