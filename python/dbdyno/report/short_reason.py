"""The most important reason of a verdict, in about five words."""

from dbdyno.analysis.advice.next_step import blocks_lacking
from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.explanation.bottleneck import Kind
from dbdyno.analysis.explanation.explain import Changed
from dbdyno.analysis.explanation.time_parts import PARTS
from dbdyno.analysis.verdict.finding import MANY_BLOCKS, Finding
from dbdyno.analysis.verdict.reasons import CarryOver, Dropped, LimitedClients, ZeroFigures
from dbdyno.model.word import Word
from dbdyno.model.wording import count, margin_text
from dbdyno.report.amounts import duration
from dbdyno.report.reasons import clients_named
from dbdyno.report.why import PART_NAMES, changed_of
from dbdyno.report.why_parts import WORTH_SAYING

_LIMITS: dict[Kind, str] = {
    "client": "load generator limits both",
    "processor": "CPUs limit both",
    "flushes": "flushes limit both",
    "device": "busy device limits both",
    "rate": "both keep the rate",
}


def short_reason(verdict: Finding, analysis: Analysis) -> str:
    """Return where the difference comes from, what limits both, or what a decision lacks."""
    match verdict.verdict:
        case Word.FASTER | Word.SLOWER:
            return _moved(changed_of(verdict, analysis)) or _same_side(verdict)
        case Word.EQUIVALENT:
            return _limited(changed_of(verdict, analysis)) or f"{margin_text(analysis.margin)} or more ruled out"
        case Word.UNDECIDED:
            return what_is_lacking(verdict, analysis)
        case Word.NOT_COMPARABLE:
            return why_not_comparable(verdict)


def what_is_lacking(verdict: Finding, analysis: Analysis) -> str:
    """Return what it takes to decide: a quiet host, more blocks, or another study."""
    if verdict.withheld_for is not None:
        carried = isinstance(verdict.withheld_for, CarryOver)
        return "carry-over may explain it" if carried else "one side failed more often"
    if verdict.mostly_disturbed:
        return f"interference in {verdict.disturbed} of {count(verdict.blocks, 'block')}"
    if verdict.resolution.too_coarse(analysis.margin):
        return "figures are too coarse"
    more = blocks_lacking(verdict, len(analysis.verdicts))
    if more > MANY_BLOCKS:
        return "too much noise"
    return f"about {count(more, 'more block')}" if more > 0 else "too close to the margin"


def why_not_comparable(verdict: Finding) -> str:
    """Return what was in the way."""
    match verdict.reason:
        case Dropped():
            return "failed again and again"
        case ZeroFigures():
            return "a figure is 0"
        case LimitedClients(hosts=hosts):
            return f"limited by {clients_named(hosts)}"
        case _:
            return f"only {count(verdict.blocks, 'usable block')}" if verdict.blocks else "no usable block"


def _moved(changed: Changed | None) -> str:
    """Return the part of an event's time that changed most with the whole: ``"26.9 ms less in flushes"``."""
    if changed is None:
        return ""
    whole = _delta(changed, "latency_ms")
    most = max((name for name in PARTS if name in changed.differences), key=lambda name: _delta(changed, name) * whole)
    delta = _delta(changed, most)
    if delta * whole < WORTH_SAYING * whole * whole or not whole:
        return ""
    return f"{duration(abs(delta))} {'more' if delta > 0 else 'less'} in {PART_NAMES[most]}"


def _delta(changed: Changed, name: str) -> float:
    return changed.level.figures.get(name, 0.0) - changed.baseline.figures.get(name, 0.0)


def _limited(changed: Changed | None) -> str:
    if changed is None or changed.level.limit.kind != changed.baseline.limit.kind:
        return ""
    return _LIMITS.get(changed.level.limit.kind, "")


def _same_side(verdict: Finding) -> str:
    above = verdict.effect.value > 0
    same = sum((value > 0) == above for _, value in verdict.by_block)
    return f"in all {count(same, 'block')}" if same == verdict.blocks else f"in {same} of {verdict.blocks} blocks"
