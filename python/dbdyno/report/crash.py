"""Crash safety in words: what was lost after cuts of the power, or kills of the server, and what to take."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.safety import (
    ByHost,
    Control,
    ControlFailed,
    ControlKept,
    CrashSafety,
    CutsOnHost,
    Doubt,
    NoControl,
    RunsFailed,
    SafeChoice,
    Stratum,
    TooFewCuts,
    TreatmentSafety,
    Word,
    choice,
)
from dbdyno.model.cut import BOUND_MOST, OUTCOME_WORDS, OUTCOMES, RUNS_LEAST, CrashMode, Cut, Outcome
from dbdyno.model.design import Treatment
from dbdyno.model.wording import UNKNOWN, count, drive_bytes, is_or_are, listed, p_value
from dbdyno.report.document import Table
from dbdyno.report.sentences import how_different
from dbdyno.report.source import Source
from dbdyno.store.records import Run

# The words of crash safety: how cuts, outcomes and amounts are called, and treatments in short.


SHORT: Mapping[Outcome, str] = {
    "filesystem": "filesystem damaged",
    "server": "no server start",
    "table": "table damaged",
    "inconsistent": "data damaged",
    "tail": "commits lost",
    "nothing": "nothing lost",
}
WORD: Mapping[Word, str] = {
    "no loss seen": "no loss seen",
    "loses the newest commits": "loses commits",
    "not crash-safe": "not crash-safe",
    "undecided": "undecided",
}
TONES: Mapping[Word, str] = {  # the verdicts' colours, of which each word has one
    "no loss seen": "faster",
    "loses the newest commits": "slower",
    "not crash-safe": "not comparable",
    "undecided": "undecided",
}
_WHEN = {
    "uniform": "at a random time",
    "ack": "right after a commit was acknowledged",
    "flush": "in a FLUSH in flight",
    "page-write": "in a write of a data page",
    "ddl": "right after a DDL statement",
    "recovery": "during the recovery from another cut",
}
_SURVIVORS = {
    "none": "nothing survives",
    "random-512": "a random part of its 512-byte sectors survives",
    "random-4096": "a random part of its 4 KiB sectors survives",
    "prefix": "all up to a random time survives",
    "requests": "a random part of its requests survives, each whole",
    "versions": "a random version of each sector survives",
    "lying": "a drive that lies about FLUSH loses what it held back",
}
INDEPENDENT_SECTORS = {"random-512", "random-4096", "versions"}
_SECONDS_FROM_MS = 100
_DIGITS = (9.95, 0.95, 0.0095)  # percent: at or above each, 0, 1 and 2 decimals are enough


def found_text(outcome: Outcome) -> str:
    """Return what was found, as a clause without its explanation."""
    return OUTCOME_WORDS[outcome].partition(" (")[0]


_CALLED: dict[CrashMode, tuple[str, str]] = {
    "power": ("power cut", "power cuts"),
    "kill": ("kill of the server", "kills of the server"),
    "failover": ("failover", "failovers"),
}


def cuts(mode: CrashMode, number: int) -> str:
    """Return ``"300 power cuts"`` or ``"30 kills of the server"``."""
    singular, plural = _CALLED[mode]
    return f"{number:,} {singular if number == 1 else plural}"


def many(mode: CrashMode) -> str:
    """Return ``"power cuts"``."""
    return cuts(mode, 2).removeprefix("2 ")


def such(mode: CrashMode) -> str:
    """Return what a share is one of, as ``"such cuts"``."""
    return "such cuts" if mode == "power" else f"such {many(mode)}"


def a_cut(mode: CrashMode) -> str:
    """Return ``"a power cut"``."""
    return f"a {_CALLED[mode][0]}"


def share_text(value: float) -> str:
    """Return a share of cuts with two digits: ``"1.0 %"``, ``"0.10 %"``, ``"97 %"``."""
    if not math.isfinite(value):
        return UNKNOWN
    points = 100 * value
    if points >= 99.5:  # noqa: PLR2004 - would round to 100
        return "100 %" if value == 1 else f"{min(points, 99.9):.1f} %"
    if points == 0:
        return "0 %"
    decimals = next((d for d, least in enumerate(_DIGITS) if points >= least), len(_DIGITS))
    return f"{points:.{decimals}f} %"


def amount_text(ms: float) -> str:
    """Return how much was lost in time: ``"1.0 s"``, ``"40 ms"``."""
    return f"{ms / 1000:.1f} s" if ms >= _SECONDS_FROM_MS else f"{max(ms, 1):.0f} ms"


def stratum_text(stratum: Stratum) -> str:
    """Return ``"uniform / random-4096"``."""
    return " / ".join(filter(None, (stratum.when, stratum.survivors)))


def model_text(safety: CrashSafety) -> str:
    """Return how cuts were made, as one sentence."""
    times = "; ".join(_WHEN[time] for time in safety.when)
    if safety.mode == "kill":
        return f"Only the server was killed ({times}); what it had written stayed in memory: no power was cut."
    if safety.mode == "failover":
        return (
            f"The server under load was killed for good ({times}). Its replica, or the second node of its cluster, "
            "applied what it had received, and was examined."
        )
    left = "; ".join(f"{_SURVIVORS[survivor]} ({survivor})" for survivor in safety.survivors)
    return f"The power was cut {times}. Data that no FLUSH had made durable: {left}."


# How treatments are called beside cuts, one by one or together: by what varies, in as few words as that takes.


LISTED_MAX = 4  # levels of the one factor that varies
LABELS_MAX = 2  # labels of several factors, which are long
ALL_BUT = "all but "
_SAYS_NOTHING = {"none", "default", "off", "on", "true", "false", "yes", "no"}


def piece(factor: str, level: str) -> str:
    """Return ``"innodb_flush_log_at_trx_commit = 1"``; a level that says what it is stands alone: ``"xfs"``."""
    return level if level[:1].isalpha() and level.lower() not in _SAYS_NOTHING else f"{factor} = {level}"


@dataclass(frozen=True)
class Names:
    """The treatments of a run; one as it was written has no level that varies."""

    levels: Mapping[str, Mapping[str, str]]  # by treatment, in the order of the study

    @cached_property
    def factors(self) -> tuple[str, ...]:
        """What varies."""
        names = dict.fromkeys(name for levels in self.levels.values() for name in levels)
        return tuple(name for name in names if len({levels.get(name) for levels in self.levels.values()}) > 1)

    @property
    def heading(self) -> str:
        """What stands above the names of a table: ``"innodb_flush_log_at_trx_commit / sync_binlog"``."""
        return " / ".join(self.factors) or "treatment"

    def of_levels(self, levels: Mapping[str, str]) -> str:
        """Return the levels below ``heading``: ``"1 / 0"``."""
        return " / ".join(levels[name] for name in self.factors if name in levels) or Treatment("", dict(levels)).label

    def of_control(self, control: Control) -> str:
        """Return the control below ``heading``, or, where it has levels of its own, as the plan calls it."""
        if control.compared or set(self.factors) & set(control.levels):
            return self.of_levels(control.levels)
        named = control.label.removeprefix("control").strip().removeprefix("(").removesuffix(")")
        return named.removeprefix(f"{self.factors[0]} = ") if len(self.factors) == 1 else named

    def short(self, id_: str) -> str:
        """Return a treatment as ``of_levels``."""
        return self.of_levels(self.levels.get(id_, {}))

    def long(self, id_: str) -> str:
        """Return a treatment that nothing explains: ``"innodb_flush_log_at_trx_commit = 1 / sync_binlog = 0"``."""
        own = self.levels.get(id_, {})
        return " / ".join(piece(name, own[name]) for name in self.factors if name in own) or self.short(id_)

    def together(self, ids: Sequence[str], before: Collection[str] = ()) -> str:
        """Return several treatments by what they and no others have; ``before`` are those that were named already."""
        if len(self.factors) < 2:  # noqa: PLR2004
            left = [id_ for id_ in self.levels if id_ not in ids]
            most = len(ids) > LISTED_MAX and 0 < len(left) <= LABELS_MAX
            named = self._of_one_factor(left if most else ids, begun=bool(before))
            return f"{ALL_BUT if most else ''}{listed(named, LISTED_MAX)}"
        if len(ids) == 1:
            return self.long(ids[0])
        if len(ids) == len(self.levels):
            return f"all {len(ids)}"
        if common := self._in_common(ids) or self._of_levels_alone(ids):
            return f"{common} ({len(ids)} treatments)"
        if before and len(ids) + len(before) == len(self.levels):
            return f"the other {len(ids)}"
        return listed([self.long(id_) for id_ in ids], LABELS_MAX)

    def _of_one_factor(self, ids: Sequence[str], *, begun: bool) -> list[str]:
        """Return the levels; the first that is a number goes by its factor, unless one before did."""
        short, long = [self.short(id_) for id_ in ids], [self.long(id_) for id_ in ids]
        first = next((place for place, names in enumerate(zip(short, long, strict=True)) if len(set(names)) > 1), None)
        return [long[at] if at == first and not begun else name for at, name in enumerate(short)]

    def _having(self, factor: str, levels: Collection[str | None]) -> set[str]:
        return {id_ for id_, own in self.levels.items() if own.get(factor) in levels}

    def _in_common(self, ids: Sequence[str]) -> str:
        """Return the levels that all of these share, where no other treatment has them all."""
        first = self.levels[ids[0]]
        common = [
            factor
            for factor in self.factors
            if len({self.levels[id_].get(factor) for id_ in ids}) == 1 and factor in first
        ]
        having = [self._having(factor, [first[factor]]) for factor in common]
        if not common or set.intersection(*having) != set(ids):
            return ""
        return " / ".join(piece(factor, first[factor]) for factor in common)

    def _of_levels_alone(self, ids: Sequence[str]) -> str:
        """Return some levels of one factor, where these treatments and no others have them."""
        for factor in self.factors:
            levels = list(dict.fromkeys(self.levels[id_].get(factor) for id_ in ids))
            if self._having(factor, levels) == set(ids):
                known = [level for level in levels if level is not None]
                return listed([piece(factor, known[0]), *known[1:]], LISTED_MAX)
        return ""


def names_of(treatments: Sequence[Treatment]) -> Names:
    """Return the names of a study's treatments."""
    return Names({treatment.id: treatment.levels for treatment in treatments})


# Whether it is as safe, in a sentence or two: what leads the report of a crash run.


_ORDER: tuple[Word, ...] = ("no loss seen", "loses the newest commits", "not crash-safe", "undecided")
EACH_MAX = 3  # damaged treatments whose damage is described one by one
_RARE = 0.5  # share of the cuts: if fewer lose, the sentence gives how many


def crash_sentences(safety: CrashSafety, names: Names, *, begun: bool = False) -> list[str]:
    """Return what is known of all treatments, the safest first, as a sentence; ``begun``: after a colon."""
    writer = _ClauseWriter(safety, names)
    groups = [(word, [treatment for treatment in safety.treatments if treatment.word == word]) for word in _ORDER]
    clauses = [writer.clause(word, group) for word, group in groups if group]
    text = "; ".join(clauses)
    words = not begun and text.startswith(("whether", "after", ALL_BUT))  # and no name, whose case is its own
    return [f"{text[0].upper() if words else text[0]}{text[1:]}."] if text else []


class _ClauseWriter:
    """Clauses of one sentence: the factor is named once."""

    def __init__(self, safety: CrashSafety, names: Names) -> None:
        self.safety, self.names, self.mode = safety, names, safety.mode
        self.before: list[str] = []  # treatments that were named

    def _take_names(self, group: Sequence[TreatmentSafety]) -> str:
        ids = [treatment.id for treatment in group]
        text = self.names.together(ids, self.before)
        self.before += ids
        return text

    def clause(self, word: Word, group: Sequence[TreatmentSafety]) -> str:
        match word:
            case "no loss seen":
                return self._nothing(group)
            case "loses the newest commits":
                return self._tail(group)
            case "not crash-safe":
                return f"{self._take_names(group)} {is_or_are(len(group))} not crash-safe: {self.damage(group)}"
            case _:
                why = doubt_text(group[0].doubts, self.mode)
                return f"whether {self._take_names(group)} {is_or_are(len(group))} safe is still open: {why}"

    def _nothing(self, group: Sequence[TreatmentSafety]) -> str:
        tried = dict.fromkeys(treatment.tally.cuts for treatment in group)
        of = cuts(self.mode, min(tried)) if len(tried) == 1 else f"{min(tried):,} or more {many(self.mode)}"
        each = " each" if len(group) > 1 else ""
        most = share_text(max(treatment.tally.lost.at_most for treatment in group))
        runs = min(treatment.tally.runs for treatment in group)
        counted = f", counting {count(runs, 'trial')}" if runs < min(tried) else ""
        room = f"at most {most} of {such(self.mode)} lose anything{counted}"
        return f"{self._take_names(group)} lost nothing in {of}{each} ({room})"

    def _tail(self, group: Sequence[TreatmentSafety]) -> str:
        verb = "lose" if len(group) > 1 else "loses"
        most = max((treatment.tally.tail.ms_most for treatment in group if treatment.tally.tail), default=0.0)
        limited = any(treatment.tally.limit_reached for treatment in group)
        amount = f"{amount_text(most)} of commits or more" if limited else f"up to {amount_text(most)} of commits"
        rarely = max(group, key=lambda treatment: treatment.tally.lost.value).tally.lost
        often = f" in {rarely.seen:,} of {cuts(self.mode, rarely.cuts)}" if rarely.value < _RARE else ""
        kill = f" in {a_cut(self.mode)}" if self.mode == "kill" and not often else ""
        return f"{self._take_names(group)} {verb} {amount}{often}{kill}{self._only(group)}"

    def _only(self, group: Sequence[TreatmentSafety]) -> str:
        """Return where alone all of them lost, if not everywhere."""
        strata = {treatment.only_in for treatment in group}
        where = next(iter(strata)) if len(strata) == 1 else ()
        return f" (only with {listed([stratum_text(stratum) for stratum in where], LISTED_MAX)})" if where else ""

    def damage(self, group: Sequence[TreatmentSafety]) -> str:
        """Return the worst that was found of each, and how often; of many, of the worst alone."""
        ordered = sorted(group, key=lambda treatment: OUTCOMES.index(treatment.tally.worst))
        if len(group) == 1:
            return f"{self._seen(group[0], alone=True)}{self._beside(group[0])}{self._only(group)}"
        return ", ".join(self._seen(treatment) for treatment in (ordered if len(group) <= EACH_MAX else ordered[:1]))

    def _seen(self, treatment: TreatmentSafety, *, alone: bool = False) -> str:
        seen = treatment.tally.each[treatment.tally.worst]
        least = "at least " if treatment.tally.limit_reached else ""
        of = "" if alone else f" with {self.names.short(treatment.id)}"
        return f"after {least}{seen.seen:,} of {cuts(self.mode, seen.cuts)}{of} {OUTCOME_WORDS[treatment.tally.worst]}"

    @staticmethod
    def _beside(treatment: TreatmentSafety) -> str:
        """Return what is found most often, where that is not the worst."""
        counted = {outcome: number for outcome, number in treatment.tally.outcomes.items() if outcome != "nothing"}
        usual = max(counted, key=lambda outcome: counted[outcome])
        return f", after {counted[usual]:,} {found_text(usual)}" if usual != treatment.tally.worst else ""


def doubt_text(doubts: Sequence[Doubt], mode: CrashMode) -> str:
    """Return why "no loss" can't be said, the weightiest reason."""
    what = "cuts" if mode == "power" else many(mode)
    match doubts[0] if doubts else None:
        case NoControl():
            return "no treatment that is known to lose was run as a control, so this load may not reveal a loss"
        case ControlFailed():
            return "the control, which is known to lose, failed again and again, so this load may not reveal a loss"
        case ControlKept() as kept:
            where = f" with {stratum_text(kept.stratum)}" if kept.stratum else ""
            return (
                f"the control, which is known to lose, lost in only {kept.lost:,} of {kept.cuts:,} {what}{where}:"
                " this load would not show a loss"
            )
        case TooFewCuts() as few:
            at_most = share_text(few.at_most)
            room = f"{few.cuts:,} {what} of {count(few.runs, 'run')} leave room for a loss in {at_most} of them"
            return f"nothing was lost, but {room} ({RUNS_LEAST} runs are needed)"
        case RunsFailed() as failed:
            return f"{failed.failed} of its runs failed, so a loss may have been missed"
        case None:
            return "it has no results"


# What to take where both count, safety and speed, in plain words.


def chosen(source: Source, safety: CrashSafety) -> SafeChoice:
    """Return what to take by both figures."""
    analysis = source.analysis
    findings = [*analysis.every_pair, *analysis.verdicts]
    more_is_better = analysis.metric.more_is_better
    return choice(safety, analysis.treatments, findings, analysis.ties, more_is_better=more_is_better)


def crash_advice(source: Source, safety: CrashSafety) -> str:
    """Return the advice in one paragraph."""
    names = names_of(source.run.design.treatments)
    return " ".join(filter(None, _CrashAdvice(safety, names, source.analysis, chosen(source, safety)).sentences()))


class _CrashAdvice:
    def __init__(self, safety: CrashSafety, names: Names, analysis: Analysis, choice: SafeChoice) -> None:
        self.safety, self.names, self.analysis, self.choice = safety, names, analysis, choice
        self.of = {treatment.id: treatment for treatment in safety.treatments}

    def sentences(self) -> list[str]:
        if not self.choice.take:
            return [self._none_safe()]
        return [self._take(), self._faster(), self._never()]

    def _labels(self, ids: Sequence[str]) -> str:
        return self.names.together(
            [treatment.id for treatment in self.safety.treatments if treatment.id in ids], self.choice.take
        )

    def _take(self) -> str:
        take = self.choice.take
        lost = f"lost nothing in {many(self.safety.mode)}"
        if len(take) > 1:
            named = self.names.together([treatment.id for treatment in self.safety.treatments if treatment.id in take])
            but = named.removeprefix(ALL_BUT)
            either = " or ".join(named.rsplit(" and ", 1)) if but == named else f"any but {but}"
            return f"Take {either}: the fastest that {lost}; they show no difference in speed."
        if not self.choice.slower:
            others = len(self.safety.treatments) - 1
            why = f"the only one that {lost}" if others else f"it {lost}"
        else:
            why = f"the fastest that {lost}"
        return f"Take {self.names.long(take[0])}: {why}."

    def _faster(self) -> str:
        """Return what is faster, and what it costs."""
        losing = [speed for speed in self.choice.faster if self.of[speed.id].word == "loses the newest commits"]
        if not losing:
            return ""
        tails = [tail for speed in losing if (tail := self.of[speed.id].tally.tail)]
        most = amount_text(max(tail.ms_most for tail in tails)) if tails else "some"
        most += " or more" if any(self.of[speed.id].tally.limit_reached for speed in losing) else ""
        damage = max(self.of[speed.id].tally.damage.at_most for speed in losing)
        worse = f", and worse in up to {share_text(damage)} of {such(self.safety.mode)}" if damage > BOUND_MOST else ""
        ids = [speed.id for speed in losing]
        verb = "are" if len(ids) > 1 else "is"
        gains = [speed.ratio - 1 for speed in losing]
        many_of_several = len(ids) > LABELS_MAX and len(self.names.factors) > 1
        named = f"{len(ids)} others" if many_of_several else self._labels(ids)
        baseline = "" if many_of_several else self.names.short(self.choice.take[0])
        different = how_different("faster", gains, self.analysis.metric, baseline)
        them = "them" if len(ids) > 1 else "it"
        where = f"take {them} only if {a_cut(self.safety.mode)} may lose {most} of commits{worse}"
        return f"{named} {verb} {different}: {where}."

    def _never(self) -> str:
        """Return what nobody should take who may meet a cut."""
        bad = [treatment for treatment in self.safety.treatments if treatment.word == "not crash-safe"]
        if not bad:
            return ""
        named = self._labels([treatment.id for treatment in bad])
        if len(bad) > 1:
            return f"Not {named}: {a_cut(self.safety.mode)} may damage them."
        return f"Not {named}: after {a_cut(self.safety.mode)} {found_text(_worst(bad).tally.worst)}."

    def _none_safe(self) -> str:
        opened = [treatment for treatment in self.safety.treatments if treatment.word == "undecided"]
        if opened:
            remedy = _remedy(opened[0].doubts, self.safety.mode)
            return f"Not conclusive. {remedy[:1].upper()}{remedy[1:]}. {self._never()}".strip()
        sound = [treatment for treatment in self.safety.treatments if treatment.word == "loses the newest commits"]
        if not sound:
            return f"None of them: each is damaged by {a_cut(self.safety.mode)}."
        least = min(sound, key=lambda treatment: treatment.tally.tail.ms_most if treatment.tally.tail else 0.0)
        tail = least.tally.tail
        more = " or more" if least.tally.limit_reached else ""
        amount = f", up to {amount_text(tail.ms_most)} of commits{more}" if tail else ""
        return (
            f"None survives {a_cut(self.safety.mode)} without loss: {self.names.long(least.id)} lost the"
            f" least{amount}. {self._never()}"
        ).strip()


def _remedy(doubts: Sequence[Doubt], mode: CrashMode) -> str:
    """Return what would decide it."""
    match doubts[0] if doubts else None:
        case NoControl():
            return "add a treatment that is known to lose, as a control"
        case ControlKept():
            return f"find a load under which the control loses: more clients, or longer before {a_cut(mode)}"
        case ControlFailed() | RunsFailed():
            return "fix the cause of the failed runs, then run again"
        case _:
            return f"more {many(mode)} in more runs are needed: raise cuts in [crash]"


def _worst(group: Sequence[TreatmentSafety]) -> TreatmentSafety:
    return min(group, key=lambda treatment: OUTCOMES.index(treatment.tally.worst))


# What each host lost, of a crash run on several; where they differ, a sentence says so.


LINES_MAX = 3


def host_lines(safety: CrashSafety, names: Names) -> list[str]:
    """Return a sentence for each treatment whose hosts differ, and one on what bounds are of; none of one host."""
    if not safety.by_host:
        return []
    differing = [_line(by_host, safety, names) for by_host in safety.by_host if by_host.differs]
    more = [f"{count(len(differing) - LINES_MAX, 'more treatment')}: see By host."] if differing[LINES_MAX:] else []
    hosts = dict.fromkeys(on.host for by_host in safety.by_host for on in by_host.hosts)
    same = "" if differing else ", which show no difference between them"
    return [*differing[:LINES_MAX], *more, f"Runs of {len(hosts)} hosts together{same}: bounds hold for these hosts."]


def _line(by_host: ByHost, safety: CrashSafety, names: Names) -> str:
    """Return what each host lost, hosts that lost nothing together; and whether that may be chance."""
    name = _treatment_name(by_host.treatment, safety, names)
    lost = [f"{on.host} {SHORT[on.tally.worst]} in {_of(on, safety)}" for on in by_host.hosts if on.tally.lost.seen]
    spared = [on for on in by_host.hosts if not on.tally.lost.seen]
    nothing = sum(on.tally.cuts for on in spared)
    lost += [f"{listed([on.host for on in spared])} nothing in {cuts(safety.mode, nothing)}"] if spared else []
    odd = [f"{on.host}: {p_value(on.p)}" for on in by_host.hosts if on.is_odd]
    why = f"more than chance ({', '.join(odd)})" if odd else "which may be chance"
    return f"{name} differs by host: {'; '.join(lost)}; {why}."


def _of(on: CutsOnHost, safety: CrashSafety) -> str:
    return f"{on.tally.lost.seen:,} of {cuts(safety.mode, on.tally.cuts)}"


def _treatment_name(id_: str, safety: CrashSafety, names: Names) -> str:
    control = safety.control
    if control is not None and control.id == id_ and not control.compared:
        return "control"
    return names.long(id_)


def host_table(safety: CrashSafety, names: Names) -> Table:
    """Return a row for each treatment on each host."""
    rows = tuple(
        (
            *(_treatment_name(on.treatment, safety, names), on.host, f"{on.tally.runs:,}"),
            f"{on.tally.lost.seen:,} of {on.tally.lost.cuts:,}",
            *(share_text(on.tally.lost.at_most), f"{on.tally.damage.seen:,}", SHORT[on.tally.worst]),
            p_value(on.p).removeprefix("p ").removeprefix("= "),
        )
        for by_host in safety.by_host
        for on in by_host.hosts
    )
    headings = (names.heading, "host", "runs", "lost in", "at most", "damage", "worst seen", "p against others (Holm)")
    return Table("By host", headings, rows, words=(1, 6))


def hosts_json(safety: CrashSafety) -> list[dict[str, Any]]:
    """Return what each host lost as values; empty of one host."""
    return [
        {
            "id": by_host.treatment,
            "differs": by_host.differs,
            "hosts": [
                {"host": on.host, "p": on.p, **asdict(on.tally), "worst": on.tally.worst if on.tally.cuts else None}
                for on in by_host.hosts
            ],
        }
        for by_host in safety.by_host
    ]


# What of crash safety was tried in runs, in a clause; so that nothing says that power was cut where it was not.


UNTRIED = "power cuts were not tried"


def tried_in(runs: Sequence[Run]) -> str:
    """Return ``"900 power cuts were tried: see crash safety"``; of kills, that no power was cut."""
    all_cuts = [cut for run in runs for trial in run.trials for cut in trial.cuts]
    if not all_cuts:
        return UNTRIED
    power = [cut for cut in all_cuts if cut.mode == "power"]
    if not power:
        return f"{_were(all_cuts, all_cuts[0].mode)} tried: see crash safety; {UNTRIED}"
    others = [cut for cut in all_cuts if cut.mode != "power"]
    beside = f", and {cuts(others[0].mode, len(others))}" if others else ""
    return f"{_were(power, 'power')} tried{beside}: see crash safety"


def _were(group: Sequence[Cut], mode: CrashMode) -> str:
    return f"{cuts(mode, len(group))} {'was' if len(group) == 1 else 'were'}"


# What changes how far the verdicts on crash safety are to be trusted, a line each.


def crash_warnings(safety: CrashSafety, names: Names) -> Iterator[str]:
    """Yield the lines, the weightiest first."""
    what = many(safety.mode)
    if safety.mode == "kill":
        yield "A kill of the server is not a power cut: what it wrote survived in memory. Power cuts may lose more."
    if safety.mode == "failover":
        yield "All servers stood on one host; the only network between them was the round_trip that the study gives."
    if safety.control is None:
        yield "No control: no treatment known to lose was run, so nothing shows that this load shows a loss."
    elif (kept := safety.control.doubt) and all(treatment.word != "undecided" for treatment in safety.treatments):
        yield f"{doubt_text((kept,), safety.mode).capitalize()}."
    for treatment in safety.treatments:
        if treatment.tally.limit_reached:
            most, seen = drive_bytes(treatment.tally.unflushed_bytes_most), treatment.tally.limit_reached
            yield (
                f"{names.long(treatment.id)}: at {seen:,} of {cuts(safety.mode, treatment.tally.cuts)} more data was"
                f" unflushed ({most}) than dbdyno tracks, so the loss is at least this."
            )
        failed = [doubt for doubt in treatment.doubts if isinstance(doubt, RunsFailed)]
        if failed and treatment.word != "undecided":
            yield f"{names.long(treatment.id)}: {doubt_text(failed, safety.mode)}."
    if safety.correlation.may_be and math.isfinite(safety.correlation.within):
        yield from _correlation_warning(safety, what)
    yield from _spared_strata(safety, names)


def _correlation_warning(safety: CrashSafety, what: str) -> Iterator[str]:
    """Yield how much alike cuts of one run are, where there is a bound of what was not seen."""
    bounds = [
        treatment.tally.lost
        for treatment in safety.treatments
        if treatment.tally.cuts and not treatment.tally.lost.seen
    ]
    if bounds:
        how = f"correlation {safety.correlation.within:.2f} of what the control lost"
        yield f"{what.capitalize()} of one run resemble each other ({how}): only more runs narrow the bound."


def _spared_strata(safety: CrashSafety, names: Names) -> Iterator[str]:
    """Yield the treatments that lost in some strata and in others nothing."""
    for treatment in safety.treatments:
        if treatment.only_in:
            where = listed([stratum_text(stratum) for stratum in treatment.only_in], 3)
            yield f"{names.long(treatment.id)} lost only with {where}; with the other {many(safety.mode)} nothing."
