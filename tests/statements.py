"""What a report says of two treatments, wherever it says so: its document, its JSON, and what is made of both.

A report is read as a person and as a program read it. What a structure says (JSON, the tone of a cell) is taken from
there; the headline and the advice are read by the templates that they are made of. A sentence that none of them fits
is *unread*, and so is a comparison that a place leaves out, so that words which change are noticed.
"""

import html
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from dbdyno.analysis.analyse import Analysis
from dbdyno.report import contents
from dbdyno.report.document import Abridged, Block, Cell, Chart, Details, Document, List, Section, Strong, Table, plain
from dbdyno.report.outcome import Exported, compared
from dbdyno.report.outcome import render as prometheus
from dbdyno.report.render import text
from dbdyno.report.sentences import LINES_MAX, Versus, comparisons_named, so_far
from dbdyno.store.records import Run

WORDS = ("faster", "slower", "equivalent", "undecided", "not comparable")
DIFFERENT, DECIDED = {"faster", "slower"}, {"faster", "slower", "equivalent"}
TURNED = {"faster": "slower", "slower": "faster"}
APART, TIED = "no letter in common", "a letter in common"
SIZE = r"[\d.,]+(?: to [\d.,]+)?"
FLUSH = "innodb_flush_log_at_trx_commit"
_LOSES = {"1": 0, "3": 0, "2": 1, "0": 2}  # of that setting: 1 and 3 sync at each commit, 0 not even when it crashes
_KNOWN = [
    re.compile(pattern)
    for pattern in (
        r"^(Simulated|So far|On these \d+ hosts|With an emulated CPU)\b.*:$",
        rf" is ({SIZE} % (faster|slower)|{SIZE} times as fast|faster|slower)",
        r"(make|makes|show) no difference beyond [\d.]+ %",
        r"still open",
        r"can't be compared",
        r" is ahead of ",
        r"no stack is shown to be ahead",
        r"^Nothing (is decided|can be compared)",
        r"^No single comparison is decided yet",
        r"^But .* on average over ",
        r"\(exploratory\)\.$",
        r": average and typical block disagree",
        r"part of what was compared\.$",
        r"^There is no answer yet",
        r"nothing was compared",
        r"^The knee in ",
        r"^A query costs ",
        r"(steadier|less steady) than",
        r"^(This host|These hosts) shows? |^Whether (this host|these hosts) ",
        r"^\d+ other comparisons?: ",
        r"^\d+ published [^:]*: ",
        r"^(With .*: )?([Nn]ot (conclusive|final)|[Nn]o (recommendation|setting to choose)|[Nn]othing to change)",
        r"^(With .*: )?[Tt]ake ",
        r"(is|are) as fast( within [\d.]+ %)?, but ",
        r"^(With .*: )?[Oo]nly if a power cut",
        r"^(With .*: )?[Ll]eave it as it is",
        r"^It depends on the load",
        r"^Safety: ",
        r"^(The drives were|Some drives were|The data was in memory)",
        r"^Do not trust verdicts of this host yet: ",
        r"^Run (at least [\d.,]+ )?more blocks?\b",
        r"^Stop other programs and run again",
        r"^The run is not finished; go on with --resume",
        r"^(The noise is too high|The figures are too coarse|Each trial affects the next); run ",
        r"^(Some trials stall [^;]*|The best two were not compared|The emulated disk answered too late); run ",
        r"^(A treatment failed, or measured 0|One side failed or met interference more often); find out why",
        r"^QEMU emulated the CPU, which may make or hide a difference; run ",
        r"^(The buffer pool was still being filled|The host did not grant a compared setting); ",
        r": [^:]+ is [^:]+ \(exploratory\)\.$",
        r": [Aa]verage and typical block disagree",
        r" are as fast within ",
        r": not set by the study, so ",
    )
]

Pair = tuple[str, str]  # ids of a level and its baseline


@dataclass(frozen=True)
class Statement:
    """What is said of a level against a baseline, and where; ``claim`` is a verdict's word or about letters."""

    pair: Pair
    claim: str
    where: str
    low: float = math.nan  # of the interval shown beside it, a fraction
    high: float = math.nan

    @property
    def in_order(self) -> "Statement":
        """The same with the ids in order, so that it can be held against one that is said the other way round."""
        if self.pair[0] < self.pair[1]:
            return self
        return Statement(self.pair[::-1], TURNED.get(self.claim, self.claim), self.where)

    def clashes_with(self, other: "Statement") -> bool:
        """Whether two statements about the same pair can't both follow from one finding."""
        claims = {self.claim, other.claim}
        if claims <= set(WORDS):
            return len(claims) > 1
        if TIED in claims:
            return bool(claims & DIFFERENT) or APART in claims
        return bool(claims & {"equivalent", "undecided", "not comparable"})


@dataclass(frozen=True)
class Contradiction:
    """What is wrong: its kind, the same for all runs, and in words with the treatments of this one."""

    kind: str
    text: str


class Report:
    """The report of a run, and every statement of it about two treatments."""

    def __init__(self, run: Run, analysis: Analysis) -> None:
        """Build the document as every format has it."""
        self.run, self.analysis = run, analysis
        self.document = contents.document(run, analysis)
        self.values = self.document.values()
        self.treatments = {one.id: one for one in run.design.treatments}
        self.ids = {one.label: one.id for one in run.design.treatments}
        self.loads = {factor.name for factor in run.design.factors if factor.section == "workload"}

    @cached_property
    def opening(self) -> str:
        """What a terminal shows without --details, in one line."""
        return opening(self.document)

    @cached_property
    def planned(self) -> dict[Pair, dict]:
        """The findings of planned comparisons, by pair."""
        return {(one["level_id"], one["baseline_id"]): one for one in self.values["verdicts"]}

    @cached_property
    def findings(self) -> dict[Pair, dict]:
        """Those that were asked for afterwards, too; a planned one comes first."""
        return {(one["level_id"], one["baseline_id"]): one for one in self.values["every_pair"]} | self.planned

    @cached_property
    def versus(self) -> list[Versus]:
        """What the planned comparisons are called in few words."""
        return comparisons_named(self.analysis.verdicts, self.run.design.treatments)

    @property
    def headline(self) -> str:
        """The answer to it all."""
        return self.values["headline"]

    @property
    def advice(self) -> str:
        """What to do."""
        return self.values["advice"]["text"]

    def claim(self, level: str, baseline: str) -> str:
        """Return the word on two treatments, from whichever side it was asked; empty where they were not compared."""
        if found := self.findings.get((level, baseline)):
            return str(found["verdict"])
        if found := self.findings.get((baseline, level)):
            return TURNED.get(found["verdict"], str(found["verdict"]))
        return ""

    def called(self, pair: Pair) -> str:
        """Return two treatments by their labels."""
        return " vs ".join(self.treatments[id_].label for id_ in pair)

    def load_of(self, id_: str) -> tuple[str, ...]:
        """Return under which load a treatment stands."""
        return tuple(level for name, level in self.treatments[id_].levels.items() if name in self.loads)

    def mostly_disturbed(self, pair: Pair) -> bool:
        """Whether half of its blocks or more met interference, counted from the trials."""
        rows = [row for row in self.analysis.blocks.trials.values() if set(pair) <= row.keys()]
        met = sum(any(row[id_].disturbed for id_ in pair) for row in rows)
        return 0 < len(rows) <= 2 * met

    def loses(self, id_: str) -> int | None:
        """Return how much a power cut may take by the setting read back, 0 for nothing; None where it is unknown."""
        trials = [trial for trial in self.run.trials if trial.treatment == id_]
        read = {str(trial.observed.get("server", {}).get(FLUSH, "")) for trial in trials}
        known = [_LOSES[one] for one in read if one in _LOSES]
        return max(known) if known and len(known) == len(read) else None

    @cached_property
    def statements(self) -> list[Statement]:
        """Everything that is said of two treatments in a word, the findings themselves first."""
        return [
            *self._of_json(),
            *self._of_simple_effects(),
            *self._of_letters(),
            *self._of_table(),
            *self._of_sentences(),
            *self._of_charts(),
            *self._of_outcome(),
            *self._of_prometheus(),
            *self._of_lines_so_far(),
        ]

    def unread(self) -> Iterator[str]:
        """Yield sentences of the headline and the advice that no template fits, and comparisons that a place lacks."""
        if self.analysis.safety is None:  # of a crash run, cuts are another matter
            found = [one for said in (self.headline, self.advice) for one in sentences(said)]
            yield from (one for one in found if not any(each.search(one) for each in _KNOWN))
        places = ("comparisons (table)", "verdicts (sentences)", "outcome (JUnit, --fail-if)", "Prometheus")
        read = {(one.pair, one.where) for one in self.statements}
        for number, pair in enumerate(self.planned):
            known = math.isfinite(self.planned[pair]["effect"])
            wanted = [*places, *(["effect chart"] * known), *(["lines so far"] * (number < LINES_MAX))]
            yield from (f"{pair} in {where}" for where in wanted if (pair, where) not in read)

    def rows(self) -> Iterator[tuple[Versus, tuple[str | Cell, ...]]]:
        """Yield each row of the table of comparisons with the comparison that it is about."""
        by_name = {one.name: one for one in self.versus}
        for section, block in blocks_of(self.document):
            if section.id == "comparisons" and isinstance(block, Table):
                yield from ((by_name[str(row[0])], row) for row in block.rows)

    def _of_json(self) -> Iterator[Statement]:
        for where, key in (("verdicts (JSON)", "verdicts"), ("every pair (JSON)", "every_pair")):
            for one in self.values[key]:
                pair = (one["level_id"], one["baseline_id"])
                yield Statement(pair, str(one["verdict"]), where, one["low"], one["high"])

    def _of_letters(self) -> Iterator[Statement]:
        letters = {one["id"]: set(one["letters"]) for one in self.values["treatments"] if one["letters"]}
        for one, other in combinations(letters, 2):
            yield Statement((one, other), TIED if letters[one] & letters[other] else APART, "letters")

    def _of_table(self) -> Iterator[Statement]:
        for one, row in self.rows():
            word = next(cell.tone for cell in row if isinstance(cell, Cell) and cell.tone)
            yield Statement((one.verdict.level_id, one.verdict.baseline_id), str(word), "comparisons (table)")

    def _of_sentences(self) -> Iterator[Statement]:
        """Yield what each verdict's sentence says: the word stands out between the two treatments."""
        for section, block in blocks_of(self.document):
            if section.id not in {"verdicts", "every-pair"} or not isinstance(block, List) or block.style != "verdicts":
                continue
            for item in block.items:
                before, word, after = around_the_word(item.text)
                level, _, rest = before.removesuffix(" is ").partition(" against ")
                ends = [label for label in self.ids if _begins(rest or after, label)]
                if level in self.ids and ends:
                    pair = (self.ids[level], self.ids[max(ends, key=len)])
                    yield Statement(pair, word, f"{section.id} (sentences)")

    def _of_charts(self) -> Iterator[Statement]:
        """Yield what the effect chart says of each comparison to whom points at it."""
        for section, block in blocks_of(self.document):
            if section.id == "effect" and isinstance(block, Chart):
                drawn = html.unescape(str(block.drawn("wide")))
                for one in self.versus:
                    if found := re.search(rf">{re.escape(one.name)}: ({'|'.join(WORDS)}), ", drawn):
                        yield Statement((one.verdict.level_id, one.verdict.baseline_id), found[1], "effect chart")

    def _of_simple_effects(self) -> Iterator[Statement]:
        """Yield what an interaction says of its two ends: of two factors each is a comparison of two treatments."""
        by_levels = {tuple(sorted(one.levels.items())): id_ for id_, one in self.treatments.items()}
        for one in self.values["factors"]["interactions"]:
            for end in one["simple_effects"]:
                sides = ({one["factor"]: level, one["other"]: end["at"]} for level in (one["level"], one["baseline"]))
                pair = tuple(by_levels.get(tuple(sorted(side.items())), "") for side in sides)
                if all(pair):  # of more factors it is an average over the others
                    yield Statement((pair[0], pair[1]), str(end["verdict"]), "interactions", end["low"], end["high"])

    def _of_outcome(self) -> Iterator[Statement]:
        for one in compared(self.document):
            level, _, baseline = one.name.partition(" against ")
            yield Statement((self.ids[level], self.ids[baseline]), str(one.word), "outcome (JUnit, --fail-if)")

    def _of_prometheus(self) -> Iterator[Statement]:
        for line in prometheus([Exported("run", self.run, self.analysis)]).splitlines():
            if line.startswith("dbdyno_comparison_verdict{") and line.endswith("} 1.0"):
                labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', line))
                pair = (self.ids[labels["level"]], self.ids[labels["baseline"]])
                yield Statement(pair, labels["verdict"], "Prometheus")

    def _of_lines_so_far(self) -> Iterator[Statement]:
        lines = so_far(self.analysis.verdicts, self.run.design.treatments)[:LINES_MAX]
        for one, line in zip(self.analysis.verdicts, lines, strict=False):
            word = next((word for word in WORDS if line.endswith(word)), "undecided")  # which goes without saying
            yield Statement((one.level_id, one.baseline_id), word, "lines so far")


def opening(document: Document) -> str:
    """Return what a terminal shows without --details, in one line."""
    return " ".join(text.render(document, 4000, brief=True).split())


def blocks_of(document: Document) -> Iterator[tuple[Section, Block]]:
    """Yield every block that any format shows, with the section it stands in."""
    for section in document.sections:
        for block in section.blocks:
            yield from ((section, each) for each in _inside(block))


def _inside(block: Block) -> Iterator[Block]:
    yield block
    inner: tuple[Block, ...] = ()
    if isinstance(block, Abridged):
        inner = (*block.full, *block.short, *(block.brief or ()))
    elif isinstance(block, Details | Section):
        inner = block.blocks
    for each in inner:
        yield from _inside(each)


def around_the_word(said: str | tuple[str | Strong, ...]) -> tuple[str, str, str]:
    """Return a sentence in three parts: what stands before the word that has a tone, the word, what comes after it."""
    parts = (said,) if isinstance(said, str) else said
    place = next((place for place, one in enumerate(parts) if isinstance(one, Strong) and one.tone), len(parts))
    word = next((str(one.tone) for one in parts[place:] if isinstance(one, Strong)), "")
    return plain(parts[:place]), word, re.sub(r"^ (than|to|with) ", "", plain(parts[place + 1 :]))


def _begins(said: str, label: str) -> bool:
    return re.match(rf"{re.escape(label)}(?= within |: | is |, |\.|$)", said) is not None


def sentences(said: str) -> list[str]:
    """Return the sentences of a paragraph, and what opens it with a colon; a point inside a figure ends none."""
    return [one for one in re.split(r"(?<=[.:]) (?=[A-Z])|(?<=\.) ", said) if one]
