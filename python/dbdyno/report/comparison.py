"""The report of two runs against each other."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dbdyno.analysis.blocks import usable_blocks
from dbdyno.analysis.lateness import EmulatedCpu, LateDisk
from dbdyno.analysis.over_time import is_clear
from dbdyno.analysis.safety import lost_in_both
from dbdyno.analysis.stand_ins import in_common_words
from dbdyno.analysis.two_runs import Change, Compared, HostShift, Interference, NothingChanged, OtherHost
from dbdyno.analysis.verdict.reasons import Reason, UnequalFailures
from dbdyno.model.design import ALPHA, Treatment
from dbdyno.model.printable import short
from dbdyno.model.word import Word
from dbdyno.model.wording import capital, count, listed, margin_text, number, p_value, percent, percent_range
from dbdyno.report.charts.changes import chart
from dbdyno.report.document import FIGURES_MAX, Abridged, Document, Paragraph, Section, bullets
from dbdyno.report.notes import settle_words
from dbdyno.report.reasons import as_sentence, cause_text, reason_code, reason_text
from dbdyno.report.sections.about import UNOBSERVED, flattened
from dbdyno.report.sections.badges import badges
from dbdyno.report.sections.server_defaults import defaults_section
from dbdyno.report.sentences import LISTED_MAX, how_different, with_interval
from dbdyno.report.source import before_and_after, effect_values, fields, p_values
from dbdyno.store.records import Run

# What two runs differ in: versions, host, study, and what was read back from the kernel and the server.


KINDS = ("version", "host", "study")
ABSENT = "not there"
_SHOWN = 40  # characters of a value in the question
OF_A_MOMENT = {"load_average_1min"}  # facts that no two runs share


@dataclass(frozen=True)
class Difference:
    """One fact that is not the same in both runs."""

    what: str  # "version", "host", "study", "observed"
    name: str
    before: str
    after: str
    of: tuple[str, ...] = ()  # labels of the treatments it was seen in, where it was not seen in all


def run_differences(before: Run, after: Run, matched: Sequence[tuple[Treatment, Treatment]]) -> list[Difference]:
    """Return every known difference, by kind and name."""
    old, new = in_common_words(before, after, facts(before), facts(after))
    changed = [key for key in old.keys() | new.keys() if old.get(key) != new.get(key)]
    ordered = sorted(changed, key=lambda key: (KINDS.index(key[0]), key[1]))
    return [
        *(Difference(*key, old.get(key, ABSENT), new.get(key, ABSENT)) for key in ordered),
        *_observed_differences(before, after, matched),
    ]


def facts(run: Run) -> dict[tuple[str, str], str]:
    """Return what is known of versions, host and study, by kind and name."""
    settle = {"design.settle": settle_words(run.design.settle)} if run.design.settle else {}
    # Of several hosts each by its name; where the run was typed changes nothing then.
    sources = zip(KINDS, (run.versions, run.hosts or run.host, run.study), strict=True)
    known = {(kind, name): text for kind, value in sources for name, text in flattened(value).items()}
    known |= {("study", name): text for name, text in settle.items()}
    return {key: text for key, text in known.items() if key[1].rpartition(".")[2] not in OF_A_MOMENT}


def _observed_differences(before: Run, after: Run, matched: Sequence[tuple[Treatment, Treatment]]) -> list[Difference]:
    """Return what was read back otherwise; a value that changes inside a run says nothing about the run."""
    seen: dict[tuple[str, str, str], list[str]] = {}
    for old, new in matched:
        sides = in_common_words(before, after, _constant(before, old), _constant(after, new))
        for name in sorted(sides[0].keys() & sides[1].keys()):
            values = sides[0][name], sides[1][name]
            if None not in values and values[0] != values[1]:
                seen.setdefault((name, str(values[0]), str(values[1])), []).append(new.label)
    return [
        Difference("observed", *key, of=() if len(labels) == len(matched) else tuple(labels))
        for key, labels in sorted(seen.items())
    ]


def _constant(run: Run, treatment: Treatment) -> dict[str, str | None]:
    """Return what every trial of a treatment read back, by name; None where it was not always the same."""
    trials = [flattened(trial.observed) for trial in run.trials if trial.treatment == treatment.id]
    names = {name for trial in trials for name in trial}
    values = {name: {trial.get(name, UNOBSERVED) for trial in trials} for name in names}
    return {name: next(iter(readings)) if len(readings) == 1 else None for name, readings in values.items()}


WARNING = (
    "The two runs were not interleaved. The difference includes anything that changed on the host between them, such"
    " as neighbours, temperature or free disk space. The intervals cover only the noise inside the runs. To judge"
    " the change itself, make it a factor of one study."
)
NO_CONTROL = (
    "To detect a change of the host, name a treatment that should not have changed by --control. The others are then"
    " compared by their ratio to it as well."
)
OTHER_CHANGE = (
    "If you changed something that no study file, version or setting shows, such as firmware, name a treatment that"
    " it can't affect by --control."
)


OTHER_HOST = "the host has other processors than before, and no treatment is there to show what they do"


_CODES = {
    NothingChanged: "NOTHING_CHANGED",
    HostShift: "HOST_SHIFT",
    OtherHost: "OTHER_HOST",
    Interference: "INTERFERENCE",
    UnequalFailures: "UNEQUAL_FAILURES",
    LateDisk: "LATE_DISK",
    EmulatedCpu: "EMULATED_CPU",
}
_ORDER = ("different", Word.EQUIVALENT, Word.UNDECIDED, Word.NOT_COMPARABLE)


def document(before: Run, after: Run, compared: Compared) -> Document:
    """Return the whole report. Differences are fractions (.03 for +3 %); an unknown figure is not finite."""
    runs, control = {"before": before, "after": after}, compared.control
    differences, notes = run_differences(before, after, compared.matched), _notes(runs, compared)
    against = [_change_text(change, compared) for change in compared.against_control]
    of_host = bullets([_control_text(control, compared)] if control else [])
    heading = "Host" if compared.nothing_changed else "Control"
    beware = [WARNING, *_other_load(before, after, differences), *_hints(compared)]
    headline = f"{before_and_after(runs)}{changes_sentence(compared)}"
    sections = (
        Section("headline", "", (Paragraph(headline, "headline"),), data={"headline": headline}, opening=True),
        badges([(run, usable_blocks(run)) for run in runs.values()], linked=False),
        Section("effect", "", (Abridged((picture,)),) if (picture := chart(compared)) is not None else ()),
        Section("control", heading if control else "", of_host),
        Section(
            "verdicts",
            "Verdicts",
            bullets([_change_text(change, compared) for change in compared.changes]),
            unfolded=not against,
        ),
        _of_cuts(before, after, compared),
        defaults_section(compared.server_defaults),
        Section(
            "against-control", f"Against {_controls_text(compared)}" if against else "", bullets(against), unfolded=True
        ),
        Section("beware", "Beware", bullets(beware), data={"warning": " ".join(beware)}, unfolded=True),
        Section(
            "differences",
            "What differs between the runs",
            bullets([difference_text(difference) for difference in differences]),
            data={"differences": [asdict(difference) for difference in differences]},
        ),
        Section("notes", "Notes", bullets(notes), data={"notes": notes}),
    )
    title = " / ".join(dict.fromkeys((before.title, after.title)))
    known = [change for change in compared.judged if change.effect.known][:FIGURES_MAX]
    figures = tuple((percent(change.effect.value), f"{change.after}: {change.verdict}") for change in known)
    question = (Paragraph(text, "question"),) if (text := _question(differences)) else ()
    return Document(f"{title}: before and after", question, sections, _values(runs, compared), figures)


def _question(differences: Sequence[Difference]) -> str:
    """Return what is asked: what the known changes did; empty where none is known of versions or of the study."""
    known = [each for each in differences if each.what in {"version", "study"}]
    changes = [f"{each.name} from {short(each.before, _SHOWN)} to {short(each.after, _SHOWN)}" for each in known]
    return f"What did changing {listed(changes, LISTED_MAX)} do?" if changes else ""


def _of_cuts(before: Run, after: Run, compared: Compared) -> Section:
    """Return what was lost in cuts, of two crash runs; of one that it is the only one."""
    with_cuts = [
        name for name, run in (("before", before), ("after", after)) if any(trial.cuts for trial in run.trials)
    ]
    losses = lost_in_both(before, after, compared.matched)
    words = ["differs" if loss.p <= ALPHA else "no difference shown" for loss in losses]
    lines = [
        f"{loss.label}: anything lost in {loss.before[0]:,} of {loss.before[1]:,} cuts before, {loss.after[0]:,} of"
        f" {loss.after[1]:,} after ({word}, {p_value(loss.p)}, by runs)."
        for loss, word in zip(losses, words, strict=True)
    ]
    if with_cuts and not losses:
        lines = [f"Cuts are not compared: only the run {with_cuts[0]} has any of these treatments."]
    heading = "Crash safety"
    data = {"lost_in_cuts": [asdict(loss) for loss in losses]} if with_cuts else {}
    return Section("crash-safety", heading if lines else "", bullets(lines), data=data, opening=True)


def _change_text(change: Change, compared: Compared) -> str:
    sentence = change_sentence(change, compared)
    if change.verdict == Word.NOT_COMPARABLE:
        return sentence
    why = as_sentence(change.reason) if change.withheld_for is None else f"{_why_withheld(change)}."
    return f"{sentence} {_means(change, compared)}{why[0].upper()}{why[1:]}"


def _why_withheld(change: Change) -> str:
    """Return why the word that the figures as such would give is not given."""
    match change.withheld_for:
        case NothingChanged():
            return "no known change between the runs, so the difference comes from the host: no verdict"
        case HostShift():
            return f"as measured it is {_measured_word(change)}, but the host may have changed: see the control"
        case OtherHost():
            return f"as measured it is {_measured_word(change)}, but {OTHER_HOST}"
        case Interference() as met:
            return f"as measured it is {_measured_word(change)}, but {_met(met)}"
        case UnequalFailures() | LateDisk() | EmulatedCpu() as cause:
            return f"as measured it is {_measured_word(change)}, but {cause_text(cause)}"
        case None:
            return reason_text(change.reason)


def _measured_word(change: Change) -> Word:
    return change.reason.word if isinstance(change.reason, Reason) else change.verdict


def _met(met: Interference) -> str:
    return f"interference met {met.disturbed:,} of {count(met.trials, 'trial')} of the run {met.run}"


def change_sentence(change: Change, compared: Compared) -> str:
    """Return the sentence a reader may quote."""
    name = change.after if change.before == change.after else f"{change.after} (before: {change.before})"
    effect = change.effect
    figures = (
        f"{percent(effect.value)} {compared.metric.words} ({_interval(change)},"
        f" {change.trials[0]} and {change.trials[1]} trials, {p_value(change.p_adjusted)})"
    )
    match change.verdict:
        case Word.FASTER | Word.SLOWER:
            return f"{name} is {change.verdict} after than before: {figures}."
        case Word.EQUIVALENT:
            return f"{name} is equivalent before and after within {margin_text(compared.margin)}: {figures}."
        case Word.UNDECIDED:
            return f"Whether {name} changed is undecided: {figures}."
        case Word.NOT_COMPARABLE:
            return f"{name} is not comparable before and after: {reason_text(change.reason)}."


def changes_sentence(compared: Compared) -> str:
    """Return what changed and what did not, what differs first; against the control where there is one."""
    met = "".join(f"{capital(_met(interference))}. " for interference in compared.interference)
    if compared.nothing_changed:
        host = _host_clause(compared)
        return f"{met}No known change between the runs; {host}: no verdict on a change."
    changes = compared.judged
    if not changes:
        return "The two runs have no treatment in common."
    by_word: dict[str, list[Change]] = {word: [] for word in _ORDER}
    for change in changes:
        different = change.verdict.is_different
        by_word["different" if different else change.verdict].append(change)
    clauses = [_clause(word, group, compared) for word, group in by_word.items() if group]
    against = f"Against {_controls_text(compared)}, " if compared.against_control else ""
    text = f"{against}{'; '.join(clauses)}."
    text = capital(text) if text.startswith("whether ") else text  # a label keeps its letters
    return f"{met}{_shift_first(compared)}{text}"


def _shift_first(compared: Compared) -> str:
    """Return what the host did, which stands before what is said against it; empty where it was to be expected."""
    host = compared.control
    if host is None or not compared.against_control or (compared.control_is_named and not host.verdict.is_different):
        return ""
    return f"{capital(_host_clause(compared))}. "


def _controls_text(compared: Compared) -> str:
    """Return ``"the control X"``, or the names of those that nothing distinguishes."""
    names = listed(compared.controls, LISTED_MAX)
    alike = f"{names}, without a known change between the runs"
    return f"the control {names}" if compared.control_is_named else alike


def _host_clause(compared: Compared) -> str:
    """Return what the host did where nothing else changed: the mean over all treatments."""
    host = compared.control
    if host is None or host.verdict == Word.NOT_COMPARABLE:
        return "whether the host changed is not known"
    figures = f"{percent(host.effect.value)} {compared.metric.words} ({_interval(host)})"
    match host.verdict:
        case Word.FASTER | Word.SLOWER:
            return f"the host is {host.verdict} than before, {figures}"
        case Word.EQUIVALENT:
            return f"the host is as before within {margin_text(compared.margin)}, {figures}"
        case _:
            return f"whether the host is as before is open, {figures}"


def _interval(change: Change) -> str:
    return f"95 % interval {percent_range(change.effect.low, change.effect.high)}"


def _clause(word: str, changes: Sequence[Change], compared: Compared) -> str:
    names, single = listed([change.after for change in changes], LISTED_MAX), len(changes) == 1
    match word:
        case "different":
            ordered = sorted(changes, key=lambda change: -abs(change.effect.value))
            return listed([_different(change, compared) for change in ordered], LISTED_MAX)
        case Word.EQUIVALENT:
            return f"{names} {'is' if single else 'are'} as before within {margin_text(compared.margin)}"
        case Word.UNDECIDED:
            return f"whether {names} changed is still open"
        case _:
            return f"{names} can't be compared"


def _different(change: Change, compared: Compared) -> str:
    return f"{change.after} is {how_different(change.verdict, [change.effect.value], compared.metric, 'before')}"


def _means(change: Change, compared: Compared) -> str:
    if not all(mean > 0 for mean in change.means):
        return ""
    before, after = map(number, change.means)
    return f"Mean {compared.metric.heading}: {before} before, {after} after. "


def _control_text(control: Change, compared: Compared) -> str:
    if compared.nothing_changed:
        of = f"All treatments together ({listed(compared.controls, LISTED_MAX)})"
        return f"{of}: {_host_clause(compared)}. {_means(control, compared)}".strip()
    text = _change_text(control, compared)
    them = "It should not have changed" if compared.control_is_named else "No known change affects it"
    match control.verdict:
        case Word.FASTER | Word.SLOWER:
            return f"{text} {them}, so the host changed: the others are judged by their ratio to it."
        case Word.EQUIVALENT if control.p_adjusted <= ALPHA:
            return f"{text} {them}, so the host changed, by less than the margin."
        case Word.EQUIVALENT:
            return f"{text} {them}, and it shows no change: there is no sign that the host changed."
        case _:
            return f"{text} So it is not known whether the host changed."


def _other_load(before: Run, after: Run, differences: Sequence[Difference]) -> list[str]:
    """Whether the treatments that are compared were under different loads; a factor of both runs is in their labels."""
    factors = [{factor.name for factor in run.design.factors} for run in (before, after)]
    in_labels = {f"workload.{name.rpartition('.')[2]}" for name in factors[0] & factors[1]}
    names = [
        difference.name.removeprefix("workload.")
        for difference in differences
        if difference.what == "study" and difference.name.startswith("workload.") and difference.name not in in_labels
    ]
    if not names:
        return []
    return [f"The load was not the same ({', '.join(names)}): part of the difference may come from the load."]


def _hints(compared: Compared) -> list[str]:
    lines = []
    for name, drift in zip(("before", "after"), compared.drifts, strict=True):
        if is_clear(drift):
            lines.append(
                f"In the run {name} the host drifted by {with_interval(drift)} from the first trial to the last;"
                f" trials are less independent than the interval assumes."
            )
    if compared.nothing_changed and len(compared.matched) > 1:
        return [*lines, OTHER_CHANGE]
    wanting = len(compared.matched) > 1 and compared.control is None
    return [*lines, NO_CONTROL] if wanting else lines


def difference_text(difference: Difference) -> str:
    """Return ``"version mariadb: 10.11.14 before, 11.8.2 after"``."""
    of = f" ({', '.join(difference.of)})" if difference.of else ""
    return f"{difference.what} {difference.name}{of}: {difference.before} before, {difference.after} after"


def _notes(runs: Mapping[str, Run], compared: Compared) -> list[str]:
    notes = []
    for name, run in runs.items():
        if run.trials:
            first, last = run.trials[0].started_at, run.trials[-1].started_at
            notes.append(f"The trials {name} started between {first} and {last}.")
        if run.ended != "done":
            notes.append(f"The run {name} is incomplete: {run.ended}.")
        if run.stopped in {"decided", "precise"}:
            notes.append(
                f"The run {name} stopped once its own verdicts were clear; these figures are not corrected for that."
            )
        if run.failures:
            failed = count(len(run.failures), "failed trial")
            notes.append(f"The run {name} had {failed}; the other trials of the same attempt at a block are left out.")
    for name, labels in (("before", compared.only_before), ("after", compared.only_after)):
        if labels:
            notes.append(f"Only in the run {name}, and so not compared: {', '.join(labels)}.")
    return notes


def _values(runs: Mapping[str, Run], compared: Compared) -> dict[str, Any]:
    return {
        **{
            name: {"study": run.title, "seed": run.design.seed, "ended": run.ended, "simulated": run.is_simulated}
            for name, run in runs.items()
        },
        "metric": compared.metric.name,
        "more_is_better": compared.metric.more_is_better,
        "margin": compared.margin,
        "changes": [_change(change) for change in compared.changes],
        "control": _change(compared.control) if compared.control else None,
        "controls": list(compared.controls),
        "control_is_named": compared.control_is_named,
        "nothing_changed": compared.nothing_changed,
        "interference": [asdict(interference) for interference in compared.interference],
        "against_control": [_change(change) for change in compared.against_control],
        "only_before": compared.only_before,
        "only_after": compared.only_after,
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        **fields(change, "before after"),
        **effect_values(change.effect),
        **p_values(change),
        "verdict": change.verdict,
        "trials_before": change.trials[0],
        "trials_after": change.trials[1],
        "mean_before": change.means[0],
        "mean_after": change.means[1],
        "reason": _why_withheld(change),
        "reason_code": reason_code(change.reason) if change.withheld_for is None else _CODES[type(change.withheld_for)],
    }
