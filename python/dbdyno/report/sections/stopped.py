"""Why a run stopped, and what its looks at the data mean for p and intervals, in words."""

from dataclasses import dataclass
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.planned_looks import FIRST_DECIDING
from dbdyno.analysis.stopping import settled
from dbdyno.model.word import Word
from dbdyno.model.wording import count, is_or_are, looks_listed, margin_text
from dbdyno.report.document import Paragraph, Section
from dbdyno.report.source import Source
from dbdyno.store.records import Run

MINUTE, HOUR = 60, 3600  # seconds


@dataclass(frozen=True)
class IntervalWords:
    """What the page calls its estimate, interval and test."""

    estimate: str
    name: str
    test: str
    looks: str


def section(source: Source) -> Section:
    """Return why the run stopped, and what its looks mean."""
    run, analysis = source.run, source.analysis
    shown = tuple(Paragraph(line, "soft") for line in stopped_lines(run, analysis))
    return Section("stopped", "", shown, data=stopping(run, analysis))


def stopping(run: Run, analysis: Analysis) -> dict[str, Any]:
    """Return what the JSON report says of when measuring stopped."""
    return {
        "until": run.design.until,
        "stopped": run.stopped or None,
        "stopped_because": why_it_stopped(run, analysis) or None,
        "looks": list(analysis.looks.after),
        "extended_from": run.extended_from,
    }


def stopped_lines(run: Run, analysis: Analysis) -> list[str]:
    """Return why the run stopped, and what its looks mean: at most a sentence each."""
    return [line for line in (why_it_stopped(run, analysis), _extension_text(run), looks_text(analysis)) if line]


def why_it_stopped(run: Run, analysis: Analysis) -> str:
    """Return the sentence; empty for a run that goes on or was cut off, of which there is a note."""
    if not run.stopped:
        return ""
    if run.stopped == "blocks" and run.design.until == "blocks":
        return f"Stopped after all {count(run.design.blocks, 'planned block')}."
    return f"Stopped after {_so_far(run, analysis)}: {_because(run, analysis)}."


def _because(run: Run, analysis: Analysis) -> str:
    match run.stopped:
        case "budget":
            return f"the next would not have ended within {_time(run.design.budget_seconds or 0)}"
        case "precise":
            reach = f"reaches at most {margin_text(run.design.half_width or 0)} to either side"
            return _every(analysis, "interval", reach)
        case "decided":
            return _every(analysis, "comparison", "was decided") if analysis.verdicts else "there is nothing to compare"
        case _:
            return f"more were not allowed{_left(run, analysis)}"


def _so_far(run: Run, analysis: Analysis) -> str:
    """``"15 of at most 40 blocks"``."""
    done, design = len(analysis.blocks.trials), run.design
    match design.until:
        case "blocks":
            return f"{done} of {count(design.blocks, 'planned block')}"
        case "open":
            return count(done, "block")
        case _:
            return f"{done} of at most {count(design.blocks, 'block')}"


def _every(analysis: Analysis, kind: str, predicate: str) -> str:
    lost = sum(verdict.verdict == Word.NOT_COMPARABLE for verdict in analysis.verdicts)
    if lost == len(analysis.verdicts):
        return f"no {kind} could be judged"
    return f"every {kind}{' that could be judged' if lost else ''} {predicate}"


def _left(run: Run, analysis: Analysis) -> str:
    """What was not reached."""
    left, of = sum(not settled(verdict, run.design) for verdict in analysis.verdicts), len(analysis.verdicts)
    if not left:
        return ""
    if run.design.until == "precise":
        wanted = margin_text(run.design.half_width or 0)
        return f"; {left} of {count(of, 'interval')} {is_or_are(left)} wider than {wanted} to either side"
    return f"; {left} of {count(of, 'comparison')} {is_or_are(left)} undecided"


def _extension_text(run: Run) -> str:
    if run.extended_from is None:
        return ""
    return (
        f"It was extended from {count(run.extended_from, 'block')} after its results could be seen, so its verdicts "
        "are now drawn by the always-valid sequence alone."
    )


def looks_text(analysis: Analysis) -> str:
    """Return what p and intervals allow for; empty where the data were looked at once, at the end."""
    looks = analysis.looks
    if looks.always:
        return (
            "Looked at after every block: p and intervals are of the mean, and hold at all looks together if the log"
            " ratios are normal."
        )
    if not looks.after:
        return ""
    deciding = [look for look in looks.after if look >= FIRST_DECIDING]
    if len(deciding) < 2:  # noqa: PLR2004
        now = looks.after[-1]
        return f"Looked at after {now} blocks: p and intervals allow for all planned looks, they hold at all together."
    after = looks_listed(deciding)
    return f"Looked at after {after} blocks: p and intervals allow for it, they hold at all looks together."


def blocks_used(run: Run, analysis: Analysis) -> str:
    """Return ``"15 of at most 40 blocks used"``."""
    return f"{_so_far(run, analysis).replace('planned ', '')} used"


def interval_words(analysis: Analysis) -> IntervalWords:
    """Return the page's words for estimate, interval and test under the rule of this run."""
    if analysis.looks.always:
        name = "always-valid 95 % interval, which holds at all looks together if the log ratios are normal"
        return IntervalWords("mean of the log ratios", name, "always-valid t sequence", looks_text(analysis))
    if not (looks := looks_text(analysis)):
        # What is taken out was estimated, which no exact distribution knows of.
        fitted = any(verdict.carry_over and verdict.carry_over.taken_out for verdict in analysis.verdicts)
        exact = "" if fitted else "exact "
        return IntervalWords("Hodges-Lehmann", f"{exact}95 % interval", f"{exact}signed-rank test", "")
    name = "95 % interval, which allows for the looks: it holds at all of them together"
    return IntervalWords("Hodges-Lehmann", name, "signed-rank test", looks)


def _time(seconds: float) -> str:
    """``"2 h"``, ``"90 s"``: a budget as its author may have written it."""
    for unit, name in ((HOUR, "h"), (MINUTE, "min")):
        if seconds >= unit and seconds % unit == 0:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.4g} s"
