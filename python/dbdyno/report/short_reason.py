"""The most important reason of a verdict, in about five words."""

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.explanation import PARTS, Changed, Kind
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.analysis.verdict.reasons import Dropped, Lack, LimitedClients, Reason, Step, ZeroFigures
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
_LACKS = {
    Lack.QUIET_HOST: "interference",
    Lack.LONGER_WARM_UP: "the buffer pool was still being filled",
    Lack.STRONGER_LOAD_GENERATOR: "the load generator was the limit",
    Lack.HIGHER_RATE: "the load asked for no more",
    Lack.A_TREATMENT_THAT_RUNS: "a treatment failed",
    Lack.REST_BETWEEN_TRIALS: "carry-over may explain it",
    Lack.A_DISK_IN_TIME: "the emulated disk was late",
    Lack.EQUAL_FAILURES: "one side failed or met interference more often",
    Lack.NO_STALLS_IN_TRIALS: "all events together say otherwise",
    Lack.NO_STALLS: "stalls",
    Lack.FINER_FIGURES: "figures are too coarse",
    Lack.A_COMPARISON: "they were not compared",
    Lack.LESS_NOISE: "not feasible at this noise",
    Lack.A_WIDER_MARGIN: "too close to the margin",
}


def short_reason(verdict: Finding, analysis: Analysis) -> str:
    """Return where the difference comes from, what limits both, or what a decision lacks."""
    match verdict.verdict:
        case Word.FASTER | Word.SLOWER:
            return _moved(changed_of(verdict, analysis)) or _same_side(verdict)
        case Word.EQUIVALENT:
            return _limited(changed_of(verdict, analysis)) or f"{margin_text(analysis.margin)} or more ruled out"
        case Word.UNDECIDED:
            return what_is_lacking(verdict)
        case Word.NOT_COMPARABLE:
            return why_not_comparable(verdict)


def what_is_lacking(finding: Finding) -> str:
    """Return what it takes to decide: a quiet host, more blocks, or another study; empty where it is decided."""
    if finding.lack is None:
        return ""
    if finding.lack.lack is Lack.QUIET_HOST:
        return f"interference in {finding.disturbed} of {count(finding.blocks, 'block')}"
    if finding.lack.lack is Lack.REST_BETWEEN_TRIALS and _withheld(finding) is Word.EQUIVALENT:
        return "carry-over may hide a difference"
    return lack_text(finding.lack)


def _withheld(finding: Finding) -> Word:
    return finding.reason.withheld if isinstance(finding.reason, Reason) else Word.UNDECIDED


def lack_text(step: Step) -> str:
    """Return what is lacking, in about five words."""
    return f"about {count(step.blocks, 'more block')}" if step.lack is Lack.MORE_BLOCKS else _LACKS[step.lack]


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
