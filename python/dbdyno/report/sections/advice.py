"""What to do, right below the headline: the sentence, and what it costs in safety."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.analysis.advice import Advice, Free, Hold, Recommended, Safety
from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.safety import SafeChoice
from dbdyno.analysis.verdict.reasons import Lack, NextStep
from dbdyno.model.design import Treatment
from dbdyno.model.metrics import METRICS
from dbdyno.model.printable import one_line
from dbdyno.model.word import Word
from dbdyno.model.wording import count, is_or_are, listed, margin_text, percent
from dbdyno.mysql.durability import risk_clause
from dbdyno.mysql.settings import FLUSH_LOG
from dbdyno.report.crash import chosen, crash_advice
from dbdyno.report.document import Paragraph, Section
from dbdyno.report.notes import LONGER
from dbdyno.report.sentences import LISTED_MAX, label_of
from dbdyno.report.source import Source
from dbdyno.report.why import lack_text
from dbdyno.store.records import Run

# What a recommendation costs in safety, in words.


_UNTRIED = "power cuts were not tried"
_WITHOUT_BINARY_LOG = "Without the binary log there is no replica, and no restore to a point in time."
_MADE_UP = {"emulated", "simulated"}  # kinds of disks


def only_if(safety: Safety, what: str, safer: str) -> str:
    """Return what may be done by whom it does not matter that others are safer: that comes first."""
    gaps = listed([risk_clause(risk) for risk in safety.worse])
    return f"Only if a power cut may take data, {what}: {gaps} (safer: {safer})"


def risk_text(safeties: Sequence[Safety]) -> str:
    """Return the risk of all that is recommended, the worst of it, and on what disks it was measured."""
    worst = min(safeties, key=lambda safety: (safety.durable is not False, safety.durable is not None))
    given_up = _WITHOUT_BINARY_LOG if any(safety.gives_up_binary_log for safety in safeties) else ""
    disks = _disks({kind for safety in safeties for kind in safety.disks})
    return " ".join(filter(None, [f"Safety: {_risk_of(worst)}.", given_up, disks]))


def _disks(kinds: set[str]) -> str:
    if made_up := kinds & _MADE_UP:
        which = "The drives were" if kinds <= _MADE_UP else "Some drives were"
        return f"{which} {listed(sorted(made_up))}; this holds for drives like them."
    return "The data was in memory, so no disk was measured." if kinds == {"memory"} else ""


def _risk_of(safety: Safety) -> str:
    if not safety.served:
        return "commits and power cuts were not measured"
    if safety.worse:
        return f"a power cut may take data, see above; {_UNTRIED}"
    if safety.durable:
        read = [one_line(reading) for reading in safety.synced if reading]
        how = f" ({FLUSH_LOG} = {listed(read)} read back)" if read else ""
        return f"commits are durable as set{how}; {_UNTRIED}"
    if safety.durable is None:
        unlike = "; others compared here are known to be durable" if safety.less_known else ""
        return f"whether commits are durable is not known{unlike}"
    gaps = listed([risk_clause(risk) for risk in safety.lacking])
    return f"a power cut may take data with every treatment: {gaps}"


PARTS_MAX = 3  # loads, or groups of them, each with another answer
_AGAIN = "run the study again"
_IMPORTED = "a result that was imported can't be gone on with here"
_OPEN, _PARTLY_OPEN = "Not conclusive", "Not final"  # where no verdict is decided, and where one is
_REMEDIES = {
    Lack.QUIET_HOST: "Stop other programs and run again",
    Lack.LONGER_WARM_UP: f"The buffer pool was still being filled; {LONGER}",
    Lack.A_TREATMENT_THAT_RUNS: "A treatment failed, or measured 0; find out why first",
    Lack.A_GRANTED_SETTING: f"The host did not grant a compared setting; grant it, then {_AGAIN}",
    Lack.REST_BETWEEN_TRIALS: f"Each trial affects the next; {_AGAIN} with rests (settle in [design])",
    Lack.A_REAL_CPU: f"QEMU emulated the CPU, which may make or hide a difference; {_AGAIN} on a host with KVM",
    Lack.A_DISK_IN_TIME: f"The emulated disk answered too late; {_AGAIN} on an idle host",
    Lack.NO_STALLS_IN_TRIALS: f"Some trials stall and others don't; {_AGAIN} with longer trials",
    Lack.EQUAL_FAILURES: "One side failed or met interference more often; find out why",
    Lack.FINER_FIGURES: f"The figures are too coarse; {_AGAIN} with longer trials",
    Lack.A_COMPARISON: f'The best two were not compared; {_AGAIN}: compare = "every-pair" in [design]',
    Lack.LESS_NOISE: f"The noise is too high; {_AGAIN} with longer trials, or on an idle host",
}
_NO_RECOMMENDATION = {  # whatever was decided
    Lack.STRONGER_LOAD_GENERATOR: "the load generator was the bottleneck; give it more CPU",
    Lack.HIGHER_RATE: "the load's rate was below the limit; compare latencies, or raise it",
    Lack.NO_STALLS: "average and typical block disagree; find the stalls first",
}


def advice_text(run: Run, analysis: Analysis) -> str:
    """Return what to do, one line for all formats."""
    advice = analysis.advice
    if advice.hold:
        return _hold_text(advice.hold, run, analysis)
    if len(advice.parts) > PARTS_MAX:
        return f"It depends on the load: see the comparisons. {_risk(advice)}".strip()
    words = _PartsAdvice(run, analysis.margin)
    sentences = [words.sentence(part) for part in advice.parts]
    return " ".join(filter(None, [*sentences, _risk(advice)]))


def _risk(advice: Advice) -> str:
    known = [part.safety for part in advice.parts if part.safety]
    return risk_text(known) if known else ""


def _hold_text(hold: Hold, run: Run, analysis: Analysis) -> str:
    match hold:
        case Hold.NO_BLOCK if run.ended == "done":
            return "No recommendation: no block is usable; see the failures."
        case Hold.NO_BLOCK | Hold.UNFINISHED:
            return f"{_OPEN}. The run is not finished; {_IMPORTED if run.imported else 'go on with --resume'}"
        case Hold.LOAD_ALONE:
            lacking = analysis.advice.step
            then = f" {_PartsAdvice(run, analysis.margin).to_decide(lacking)}." if lacking else ""
            return f"No setting to choose: only the load varied.{then}"
        case Hold.NOTHING_COMPARED:
            return "No recommendation: nothing was compared; give a factor two levels."
        case Hold.SAME_TREATMENTS:
            return _of_the_same(analysis)


def _of_the_same(analysis: Analysis) -> str:
    host = "these hosts" if analysis.fleet else "this host"
    if any(verdict.mostly_disturbed for verdict in analysis.verdicts):
        return f"{_OPEN}. {_REMEDIES[Lack.QUIET_HOST]}."
    match analysis.verdicts[0].verdict if analysis.verdicts else Word.NOT_COMPARABLE:
        case Word.FASTER | Word.SLOWER:
            return f"Do not trust verdicts of {host} yet: find out why identical treatments differ."
        case Word.EQUIVALENT:
            return f"Nothing to change: differences beyond {margin_text(analysis.margin)} on {host} are credible."
        case _ if doubts := [verdict.lack for verdict in analysis.verdicts if verdict.doubted_for and verdict.lack]:
            return f"{_OPEN}. {_REMEDIES[doubts[0].lack]}."
        case _:
            return f"Not conclusive. Run more blocks, or make trials longer, before you rely on {host}."


@dataclass(frozen=True)
class _PartsAdvice:
    """What names treatments of a run."""

    run: Run
    margin: float

    def sentence(self, part: Recommended) -> str:
        """Return what may be taken under some loads."""
        text = f"{self._text(part)}."
        if not part.loads:
            return text
        loads = listed([Treatment("", dict(load)).label for load in part.loads], LISTED_MAX)
        return f"With {loads}: {text[0].lower()}{text[1:]}"

    def _text(self, part: Recommended) -> str:
        if part.step:
            text = self.to_decide(part.step, is_partly_decided=part.is_partly_decided)
            if part.slower:
                text += f"; leave out {self._labels(part.slower)}, which {is_or_are(len(part.slower))} slower"
            return text
        if part.safety and part.safety.worse:
            verb = "keep" if part.choice.kind in {"keep", "any"} else "take"
            return only_if(part.safety, f"{verb} {self._take_text(part)}", self._labels(part.safety.safer))
        return self._choice_text(part)

    def _choice_text(self, part: Recommended) -> str:
        within = f"within {margin_text(self.margin)}"
        if part.at_odds and part.choice.kind in {"any", "keep", "safer"}:
            return f"{_either_of(self._labels_without_load(part.choice.pool))} are as fast {within}, {self._odds(part)}"
        match part.choice.kind:
            case "any" if part.free and not any(factor.step for factor in part.free):
                return f"Nothing to change: {listed([_which(factor) for factor in part.free])} will do {within}"
            case "any":
                return f"Nothing to change: all are as good {within}"
            case "keep":
                also = f"; {self._labels(part.choice.as_good)} will do as well {within}" if part.choice.as_good else ""
                return f"Nothing to change: keep {self._labels(part.choice.take)}{also}"
            case "safer":
                return f"Take {self._take_text(part)}: as fast {within}, and safer than the baseline"
            case _:
                return f"Take {self._take_text(part)}"

    def _take_text(self, part: Recommended) -> str:
        """Return ``"ssd-sata; either scheduler will do"``."""
        pool = self._labels_without_load(part.choice.pool)
        if len(pool) == 1:
            return pool[0]
        if not part.free:
            return f"{_either_of(pool)}; no difference between them was shown"
        whole = [factor for factor in part.free if factor.all_of_them and part.fixed]
        some = [factor for factor in part.free if factor not in whole]
        named = [label_of(part.fixed, list(part.fixed))] if part.fixed else []
        named += [
            _either_of([label_of({factor.name: level}, [factor.name]) for level in factor.levels]) for factor in some
        ]
        will_do = "will do" if not part.at_odds else f"is as fast, {self._odds(part)}"
        clauses = [f"{_which(factor)} {will_do}" if factor.step is None else self._open(factor) for factor in whole]
        clauses += [
            f"they differ by less than {margin_text(self.margin)}" if factor.step is None else self._open(factor)
            for factor in some
        ]
        return "; ".join([" with ".join(named), *clauses])

    def _odds(self, part: Recommended) -> str:
        """Return ``"but 99th percentile of latency is +900 % with none against mq-deadline: look at that first"``."""
        each = [
            f"{METRICS[verdict.metric].words} is {percent(verdict.effect.value)} with"
            f" {self._labels([verdict.level_id])} against {self._labels([verdict.baseline_id])}"
            for verdict in part.at_odds[:LISTED_MAX]
        ]
        return f"but {listed(each)}: look at that first"

    def _open(self, factor: Free) -> str:
        step = factor.step or NextStep(Lack.A_COMPARISON)
        return f"which {factor.name} is still open: {lack_text(step)}"

    def to_decide(self, step: NextStep, *, is_partly_decided: bool = False) -> str:
        """Return what to do next; a headline that says "faster" is not contradicted below it."""
        opening = _PARTLY_OPEN if is_partly_decided else _OPEN
        if step.lack is Lack.MORE_BLOCKS:
            more = f"Run at least {count(step.blocks, 'more block')}"
            if self.run.imported:
                return f"{opening}. {more} where it was measured ({_IMPORTED})"
            return f"{opening}. {more}: go on with --resume --until-decided"
        if step.lack is Lack.A_WIDER_MARGIN:
            return f"Leave it as it is: too close to the margin of {margin_text(self.margin)} for more blocks to decide"
        if step.lack in _NO_RECOMMENDATION:
            return f"No recommendation: {_NO_RECOMMENDATION[step.lack]}"
        return f"{opening}. {_REMEDIES[step.lack]}"

    def _labels_without_load(self, ids: Iterable[str]) -> list[str]:
        """Return the labels, without what all treatments of the study have in common and without the load."""
        treatments = {treatment.id: treatment.levels for treatment in self.run.design.treatments}
        varied = _varying_names(list(treatments.values()))
        load = {factor.name for factor in self.run.design.factors if factor.is_load}
        names = [name for name in varied if name not in load]
        return list(dict.fromkeys(label_of(treatments[id_], names) for id_ in ids))

    def _labels(self, ids: Iterable[str]) -> str:
        return listed(self._labels_without_load(ids), LISTED_MAX)


def _varying_names(levels: Sequence[Mapping[str, str]]) -> list[str]:
    names = dict.fromkeys(name for levels_of_treatment in levels for name in levels_of_treatment)
    return [name for name in names if len({levels_of_treatment.get(name) for levels_of_treatment in levels}) > 1]


def _which(factor: Free) -> str:
    """Return ``"either scheduler"``."""
    return f"{'either' if len(factor.levels) == 2 else 'any'} {factor.name}"  # noqa: PLR2004


def _either_of(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def section(source: Source) -> Section:
    """Return one paragraph, and what it says as values."""
    if source.safety is not None:
        text = crash_advice(source, source.safety)
        data = {"advice": {"text": text, "hold": None, "parts": [], **choice_json(chosen(source, source.safety))}}
    else:
        text = advice_text(source.run, source.analysis)
        data = {"advice": {"text": text, **advice_json(source.analysis)}}
    return Section("advice", "", (Paragraph(text, "advice"),), data=data, opening=True)


def choice_json(choice: SafeChoice) -> dict[str, Any]:
    """Return what is recommended where cuts count as well, by the ids of treatments."""
    return {
        "take": list(choice.take),
        "safe_and_slower": list(choice.slower),
        "faster": [treatment.id for treatment in choice.faster],
    }


def advice_json(analysis: Analysis) -> dict[str, Any]:
    """Return what is recommended, by the ids of treatments, or why nothing is."""
    advice = analysis.advice
    return {"hold": advice.hold.name if advice.hold else None, "parts": [_part(part) for part in advice.parts]}


def _part(part: Recommended) -> dict[str, Any]:
    safety = part.safety
    return {
        "loads": [dict(load) for load in part.loads],
        "action": part.choice.kind,
        "take": list(part.choice.take),
        "as_good": list(part.choice.as_good),
        "slower": list(part.slower),
        "lacks": part.step.lack.name if part.step else None,
        "blocks_lacking": (part.step.blocks or None) if part.step else None,
        "durable": safety.durable if safety else None,
        "less_durable_than": list(safety.safer) if safety else [],
    }
