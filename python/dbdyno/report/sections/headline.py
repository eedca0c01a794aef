"""The answer to the study's question in a few sentences, and the picture that a page begins with.

How a difference is worded ("20 % faster than ...") is in ``report.sentences``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.curves import Curves
from dbdyno.analysis.safety import placed
from dbdyno.analysis.verdict.reasons import hardest
from dbdyno.model.word import Word
from dbdyno.model.wording import capital, count, listed, margin_text, number, percent
from dbdyno.report.charts import bars, curve, forest
from dbdyno.report.charts import safety as plane
from dbdyno.report.crash import crash_sentences, many, names_of
from dbdyno.report.document import Abridged, Block, Chart, Details, Paragraph, Section
from dbdyno.report.fleet import hosts_used, of_hosts
from dbdyno.report.sections import heat_map
from dbdyno.report.sections.factors import opening_curve
from dbdyno.report.sections.server_defaults import headline_defaults
from dbdyno.report.sections.stopped import interval_words
from dbdyno.report.sentences import LISTED_MAX, Versus, by_interest, how_different, in_order
from dbdyno.report.source import Source
from dbdyno.report.summaries import (
    beside_comparisons,
    counted,
    is_nothing_decided,
    knees_in_brief,
    leading,
    line_name,
    the_best_of_all,
)
from dbdyno.report.why import what_is_lacking, why_not_comparable
from dbdyno.store.records import Run

SENTENCES_MAX = 3  # about comparisons; what is left is counted
PLACES_MAX = 2
FEW = 4  # treatments of a crash run whose speeds fit beside what they lose
_NO_BLOCK = "There is no answer yet: no block is complete."
_NOUNS = {"device", "scheduler", "filesystem", "server", "engine", "size", "memory", "load", "transaction"}


def section(source: Source) -> Section:
    """Return the sentences as one paragraph."""
    text = " ".join(_all(source))
    return Section("headline", "", (Paragraph(text, "headline"),), data={"headline": text}, opening=True)


def _all(source: Source) -> list[str]:
    """Return the sentences, those on what cuts showed first; of many treatments speed is in the table beside it."""
    speed, names = headline(source.run, source.analysis), names_of(source.run.design.treatments)
    if source.safety is None:
        return speed
    opening = [sentence for sentence in speed[:1] if sentence.endswith(":")]
    crash = crash_sentences(source.safety, names, begun=bool(opening))
    few = len(names.levels) <= FEW and len(names.factors) == 1
    apart = {*of_hosts(source.analysis)}  # of speed alone: beside what was lost it would be taken for all of it
    return [*opening, *crash, *(sentence for sentence in speed[len(opening) :] if few and sentence not in apart)]


def headline(run: Run, analysis: Analysis) -> list[str]:
    """Return the sentences; the first answers what the most interesting comparison asks."""
    sentences = [*leading(analysis), *_of_comparisons(analysis)] or [_without_comparison(analysis)]
    pairs = [(verdict.baseline_id, verdict.level_id) for verdict in analysis.verdicts]
    defaults = filter(None, [headline_defaults(analysis.server_defaults, pairs)])
    sentences += [*defaults, *of_hosts(analysis), *beside_comparisons(analysis)]
    so_far = run.ended != "done" and analysis.blocks.trials
    opening = ["simulated"] * run.is_simulated + ["with an emulated CPU"] * any(
        trial.has_emulated_cpu for trial in run.trials
    )
    opening += ["so far"] * bool(so_far)
    opening += (
        [f"on these {count(used, 'host')}"]
        if (used := len(hosts_used(analysis))) > 1 and not analysis.noise_floor
        else []
    )
    opened = ", ".join(opening)
    return [f"{opened[:1].upper()}{opened[1:]}:", *sentences] if opening else sentences


def _without_comparison(analysis: Analysis) -> str:
    known = [row for row in analysis.treatments if row.n]
    if not known:
        return _NO_BLOCK
    each = listed([f"{number(row.metric_mean)} with {row.label}" for row in known], LISTED_MAX)
    if len(known) == 1:
        each = f"{number(known[0].metric_mean)} {analysis.metric.words}, mean of {count(known[0].n, 'trial')}"
        return f"{each}; nothing was compared."
    return f"Measured in {analysis.metric.words}: {each}; nothing was compared."


def _of_comparisons(analysis: Analysis) -> list[str]:
    """Return a sentence for each group of comparisons that have their factors and baseline levels in common."""
    if analysis.noise_floor or not analysis.verdicts:
        return []
    if not analysis.blocks.trials:
        return [_NO_BLOCK]
    if of_suite := heat_map.sentences(analysis):
        return of_suite
    ordered = by_interest(analysis.verdicts, analysis)
    if answer := _nothing_known(ordered, analysis) or the_best_of_all(ordered, analysis):
        return [answer]
    groups: dict[tuple[tuple[str, ...], str], list[Versus]] = {}
    answered = {(curves.factor,) for curves in analysis.curves if curves.primary and knees_in_brief(curves)}
    for comparison in (each for each in ordered if each.factors not in answered):  # a knee says it of all amounts
        groups.setdefault((comparison.factors, comparison.baseline), []).append(comparison)
    all_groups = list(groups.values())
    shown = all_groups if len(all_groups) <= SENTENCES_MAX else all_groups[: SENTENCES_MAX - 1]
    left = [comparison.verdict.verdict for group in all_groups[len(shown) :] for comparison in group]
    rest = [f"{count(len(left), 'other comparison')}: {counted(left)}."] if left else []
    return [*(_BaselineGroup(group, analysis).sentence() for group in shown), *rest]


def _nothing_known(ordered: Sequence[Versus], analysis: Analysis) -> str:
    """Return one sentence where several comparisons are all undecided, or none of them can be judged."""
    words = {comparison.verdict.verdict for comparison in ordered}
    if len(ordered) == 1 or not all(word.is_open for word in words):
        return ""
    first = ordered[0].verdict
    if Word.UNDECIDED not in words:
        return f"Nothing can be compared: {why_not_comparable(first)}."
    lacking = {
        what_is_lacking(comparison.verdict) for comparison in ordered if comparison.verdict.verdict == Word.UNDECIDED
    }
    why = next(iter(lacking)) if len(lacking) == 1 else "see what each comparison lacks below"
    means = [mean for mean in analysis.factors.main_effects if not mean.verdict.verdict.is_open]
    if not means:
        return f"Nothing is decided yet: {why}."
    averages = [
        f"{mean.factor} {mean.level} is {mean.verdict.verdict} {_to(mean.verdict.verdict)} {mean.baseline} on average"
        f" over {listed(mean.averaged_over)}"
        for mean in means
    ]
    return f"No single comparison is decided yet: {why}. But {listed(averages, LISTED_MAX)}."


def _to(word: Word) -> str:
    return "to" if word is Word.EQUIVALENT else "than"


class _BaselineGroup:
    """Comparisons of the same factors with the same baseline levels, the most interesting first."""

    def __init__(self, group: Sequence[Versus], analysis: Analysis) -> None:
        self.group, self.analysis = group, analysis
        self.baseline = group[0].baseline
        self.several = len({comparison.level for comparison in group}) > 1

    def sentence(self) -> str:
        """Return one clause for each word that there is."""
        words = dict.fromkeys(comparison.verdict.verdict for comparison in self.group)
        clauses: list[str] = []
        for word in words:
            clauses += self._clauses(word, later=bool(clauses))
        text = "; ".join(clauses)
        start = f"Against {self.baseline}, " if self.several else ""
        ours = text.startswith(("whether ", "the ")) and not start  # a label keeps its letters
        return f"{text[0].upper()}{text[1:]}." if ours else f"{start}{text}."

    def _clauses(self, word: Word, *, later: bool) -> list[str]:
        by_level: dict[str, list[Versus]] = {}
        for comparison in self.group:
            if comparison.verdict.verdict == word:
                by_level.setdefault(comparison.level, []).append(comparison)
        if word.is_different:
            return [listed([self._different(each) for each in by_level.values()], LISTED_MAX)]
        each = [f"{level}{self._where(group)}" if self.several else "" for level, group in by_level.items()]
        names = listed(each, LISTED_MAX)
        comparisons = [comparison for group in by_level.values() for comparison in group]
        match word:
            case Word.EQUIVALENT:
                return [self._no_difference(names, comparisons)]
            case Word.UNDECIDED:
                return [self._open(names, comparisons, later=later)]
            case _:
                why = why_not_comparable(comparisons[0].verdict)
                where = "" if self.several else self._where(comparisons)
                return [f"{names or comparisons[0].level} can't be compared with {self.baseline}{where}: {why}"]

    def _different(self, comparisons: Sequence[Versus]) -> str:
        """Return ``"ssd-sata is 5.9 times as fast as hdd-7200"``, over all places where it is so."""
        effects = [comparison.verdict.effect.value for comparison in comparisons]
        baseline = "" if self.several else self.baseline
        different = how_different(
            comparisons[0].verdict.verdict, effects, self.analysis.metric, baseline, self._where(comparisons)
        )
        return f"{comparisons[0].level} is {different}"

    def _no_difference(self, names: str, comparisons: Sequence[Versus]) -> str:
        beyond = f"no difference beyond {margin_text(self.analysis.margin)}"
        if self.several:
            levels = {comparison.level for comparison in comparisons}
            return f"{names} {'make' if len(levels) > 1 else 'makes'} {beyond}"
        if noun := self._noun():
            return f"{noun} makes {beyond}{self._where(comparisons)}"
        return f"{comparisons[0].level} and {self.baseline} show {beyond}{self._where(comparisons)}"

    def _open(self, names: str, comparisons: Sequence[Versus], *, later: bool) -> str:
        step = hardest(comparison.verdict.lack for comparison in comparisons if comparison.verdict.lack)
        lacking = what_is_lacking(
            next(comparison.verdict for comparison in comparisons if comparison.verdict.lack == step)
        )
        if self.several:
            levels = {comparison.level for comparison in comparisons}
            return f"{names} {'are' if len(levels) > 1 else 'is'} still open: {lacking}"
        where = self._where(comparisons).strip()
        if later:
            return f"{where}{' ' if where else ''}that is still open: {lacking}"
        what = f"{noun} matters" if (noun := self._noun()) else f"{comparisons[0].level} differs from {self.baseline}"
        return f"whether {what}{f' {where}' if where else ''} is still open: {lacking}"

    def _noun(self) -> str:
        """Return what varies, where that can be said in a word: one factor of two levels."""
        factors = self.group[0].factors
        levels = {row.levels.get(name, "") for row in self.analysis.treatments for name in factors}
        if len(factors) != 1 or len(levels) != 2:  # noqa: PLR2004
            return ""
        return f"the {factors[0]}" if factors[0] in _NOUNS else factors[0]

    def _where(self, comparisons: Sequence[Versus]) -> str:
        """Return where it is so; nothing where it is so everywhere."""
        of_level = [comparison for comparison in self.group if comparison.level == comparisons[0].level]
        if len(comparisons) == len(of_level) == comparisons[0].places:
            return ""
        places = [comparison.place for comparison in comparisons if comparison.place]
        return f" {_places(places)}" if places else ""


def _places(places: Sequence[str]) -> str:
    """Return ``"on hdd-7200 and ssd-sata"``; of many how many there are."""
    if len(places) > PLACES_MAX:
        return f"in {len(places)} combinations"
    preposition = places[0].partition(" ")[0]
    return " and ".join([places[0], *(place.removeprefix(f"{preposition} ") for place in places[1:])])


# The picture that a page begins with, chosen by what the study varies: it answers the question by itself.


VERSIONS = ("server",)  # the factor whose levels are versions of a server
BARS_MIN = 3  # treatments; of fewer, a comparison says as much as bars
MANY = 12  # treatments; of more, bars are too many to read at a glance


def hero_section(source: Source) -> Section | None:
    """Return the picture; below it, folded, every comparison with its blocks where that is another picture."""
    comparisons = _comparisons(source.analysis)
    first = _picture(source)
    if first is None:
        return Section("effect", "", (Abridged(comparisons),)) if comparisons else None
    folded = (Details("Each comparison, with its blocks", comparisons),) if comparisons else ()
    return Section("effect", "", (Abridged((first, *folded)),))


def _picture(source: Source) -> Chart | None:
    """Return what shows more than a chart of comparisons; None where nothing does."""
    analysis = source.analysis
    if (safety := source.safety) is not None:
        points, names = placed(safety, analysis.treatments), names_of(source.run.design.treatments)
        return plane.chart(points, analysis.metric, names, many(safety.mode)) if len(points) > 1 else None
    if (curves := opening_curve(source)) is not None:
        chart = curve.chart(curves, {verdict.baseline_id for verdict in analysis.verdicts})
        return replace(chart, caption=capital(f"{curves.metric.words} by {curves.factor}"))
    return heat_map.picture(analysis) or _versions(analysis)


def _versions(analysis: Analysis) -> Chart | None:
    """Return versions of a server as bars, where nothing else varies and all are compared with one of them."""
    rows = [row for row in analysis.treatments if row.metric.known]
    comparisons = in_order(analysis)
    baselines = {comparison.verdict.baseline_id for comparison in comparisons}
    alone = {comparison.factors for comparison in comparisons} == {VERSIONS} and len(baselines) == 1
    findings = {
        comparison.verdict.level_id: comparison.verdict for comparison in comparisons if comparison.verdict.effect.known
    }
    if not alone or not BARS_MIN <= len(rows) <= MANY or len(findings) + 1 != len(rows):
        return None
    return bars.chart(rows, findings, analysis.metric)


def _comparisons(analysis: Analysis) -> tuple[Block, ...]:
    """Return the chart of comparisons; folded a close-up of the margin where the whole range hides it."""
    charts = forest.charts(analysis)
    if not charts:
        return ()
    words = interval_words(analysis)
    note = (
        "To the left the figure of each side, a geometric mean over blocks, with its 95 % interval; to the right the"
        f" difference inside blocks: {words.estimate}, with its {words.name}. The margin is"
        f" {margin_text(analysis.margin)}. The axis is logarithmic: twice as fast and half as fast are equally far from"
        " no difference."
    )
    close_up = (Details("Close to the margin", charts[1:]),) if charts[1:] else ()
    return (charts[0], *close_up, Details("More on this chart", (Paragraph(note, "soft"),)))


def figures(source: Source) -> Iterator[tuple[str, str]]:
    """Yield the figures of a summary card, each with what it is, the most important first."""
    analysis = source.analysis
    if (safety := source.safety) is not None:
        names = names_of(source.run.design.treatments)
        for treatment in safety.treatments:
            lost = treatment.tally.lost
            yield f"{lost.seen:,} of {lost.cuts:,}", f"{many(safety.mode)} lost commits: {names.long(treatment.id)}"
        return
    if (curves := opening_curve(source)) is not None and not is_nothing_decided(analysis):
        yield from _knee_figures(curves)
    for versus in by_interest(analysis.verdicts, analysis):
        if versus.verdict.effect.known:
            yield percent(versus.verdict.effect.value), f"{versus.name}: {versus.verdict.verdict}"


def _knee_figures(curves: Curves) -> Iterator[tuple[str, str]]:
    for line in curves.lines:
        if (plateau := line.plateau) and (turn := plateau.turn):
            point = line.points[turn.at]
            where = f", {line_name(line)}" if line.at else ""
            yield point.level, f"{curves.factor} at the knee{where}"
            yield number(point.value.value), f"{curves.metric.heading} there"
