"""Where a report contradicts itself or says more than was found.

Any two statements about the same pair of treatments must agree (``tests/statements.py`` finds them). A headline or an
advice says no more than the findings (``tests/overstatements.py``); an interval is on the side of 0 that its word says;
interference is named where it matters, and not where the design could not have decided.
"""

import math
import re
from collections.abc import Iterator
from itertools import combinations

from dbdyno.analysis.analyse import Analysis, analyse
from dbdyno.analysis.planned_looks import smallest_p
from dbdyno.analysis.two_runs import compare
from dbdyno.analysis.verdict.finding import Finding, either_way
from dbdyno.model.design import ALPHA
from dbdyno.model.wording import percent, percent_range
from dbdyno.report import comparison
from dbdyno.report.document import List, plain
from dbdyno.report.outcome import compared
from dbdyno.report.reasons import reason_text
from dbdyno.store.records import Run
from tests.overstatements import in_advice, in_headline, in_safety
from tests.statements import (
    DECIDED,
    DIFFERENT,
    TURNED,
    Contradiction,
    Pair,
    Report,
    Statement,
    around_the_word,
    blocks_of,
    opening,
)

_OPEN = {"undecided", "not comparable"}
_KNEE_SHARE = 0.05  # of its best that a curve leaves at a knee


def contradictions(run: Run, analysis: Analysis | None = None) -> list[Contradiction]:
    """Return what contradicts itself in the report of a run, or says more than was found; each once."""
    return contradictions_in(Report(run, analysis or analyse(run)))


def contradictions_in(report: Report) -> list[Contradiction]:
    """Return the same of a report that is there."""
    found = [
        *_between_statements(report),
        *_beside_intervals(report.statements),
        *_in_results(report),
        *_in_reasons(report),
        *_in_factors(report),
        *_in_ranking(report),
        *_in_curves(report),
        *_in_cost(report),
        *in_headline(report),
        *in_advice(report),
        *in_safety(report),
        *_in_interference(report),
        *_in_evidence(report),
        *_in_doubt(report),
    ]
    return list(dict.fromkeys(found))


def contradictions_of_two(before: Run, after: Run) -> list[Contradiction]:
    """Return what contradicts itself where two runs are compared, or blames a treatment for what the host did."""
    document = comparison.document(before, after, compare(before, after))
    values = document.values()
    said, found, headline = compared(document), [], values["headline"]
    for one in values["changes"]:
        statement = Statement((one["after"], "before"), one["verdict"], "changes (JSON)", one["low"], one["high"])
        found += _beside_intervals([statement])
    for one in () if values["against_control"] else values["changes"]:
        clause = re.search(rf"(?<![\w/] ){re.escape(one['after'])} is [^;,]*?(faster|slower|times as fast)", headline)
        if clause and one["verdict"] not in DIFFERENT:
            found.append(Contradiction("compare, headline: says more than a finding", f"{clause[0]} {one['verdict']}"))
    everywhere = any(not one["of"] for one in values["differences"])
    changed = {label for one in values["differences"] for label in one["of"]}
    for one in said:
        label = one.name.partition(" against ")[0]
        if one.word.is_different and not everywhere and label not in changed:
            found.append(Contradiction("compare: a difference where nothing changed", one.sentence))
    busy = any(2 * sum(trial.disturbed for trial in run.trials) >= len(run.trials) for run in (before, after))
    if busy and any(one.word.is_different for one in said) and "interference" not in opening(document):
        found.append(Contradiction("compare, opening: a word without the interference it met", headline))
    return found


# 1. What is said of the same pair in two places.


def _between_statements(report: Report) -> Iterator[Contradiction]:
    """Yield what clashes with the first that is said of a pair, the finding where there is one; each claim once."""
    by_pair: dict[Pair, list[Statement]] = {}
    for one in report.statements:
        by_pair.setdefault(one.in_order.pair, []).append(one.in_order)
    for pair, (first, *others) in by_pair.items():
        claims = {other.claim: other for other in reversed(others) if first.clashes_with(other)}
        for other in claims.values():
            said = f"{report.called(pair)} is {first.claim}, {other.claim}"
            yield Contradiction(f"{first.where} / {other.where}", said)


def _in_results(report: Report) -> Iterator[Contradiction]:
    """Yield effects and intervals of tables that are others than those of the findings."""
    baseline = report.run.design.baseline
    for row in report.values["treatments"]:
        found = report.planned.get((row["id"], baseline))
        if found is None or not (math.isfinite(row["effect"]) and math.isfinite(found["effect"])):
            continue
        if percent(row["effect"]) != percent(found["effect"]):
            said = f"{row['label']}: {percent(row['effect'])}, in its verdict {percent(found['effect'])}"
            yield Contradiction("results (table): another effect than the verdict's", said)
        pair = (row["id"], baseline)
        yield from _beside_intervals([Statement(pair, found["verdict"], "results (table)", row["low"], row["high"])])
    for one, row in report.rows():
        found = report.planned[one.verdict.level_id, one.verdict.baseline_id]
        shown = percent_range(found["low"], found["high"])
        if math.isfinite(found["low"]) and shown not in str(row[2]):
            yield Contradiction("comparisons (table): another interval than the verdict's", f"{row[0]}: {row[2]}")


def _in_reasons(report: Report) -> Iterator[Contradiction]:
    """Yield comparisons whose row in the table says another next step than the verdict's reason."""
    for one, row in report.rows():
        found = report.planned[one.verdict.level_id, one.verdict.baseline_id]
        if found["verdict"] != "undecided":
            continue
        because, reason = str(row[-1]), found["reason"]
        more = [re.search(r"about ([\d,]+) (?:more|further) block", said) for said in (because, reason)]
        said = f"{row[0]}: {because!r}, {reason!r}"
        if all(more) and more[0][1] != more[1][1]:
            yield Contradiction("because / reason: another number of blocks", said)
        if (more[0] and "too close" in reason) or (more[1] and "too close" in because):
            yield Contradiction("because / reason: more blocks, and too close for more blocks", said)


def _in_factors(report: Report) -> Iterator[Contradiction]:
    """Yield averages over cells that say otherwise than every cell, or decide what all of them leave open."""
    for one in report.values["factors"]["main_effects"]:
        word, ends = one["verdict"], (one["level"], one["baseline"])
        yield from _beside_intervals([Statement(ends, word, "main effects", one["low"], one["high"])])
        each = [report.claim(*pair) for pair in _cells(report, one["factor"], *ends)]
        words = {*each} - {""}
        said = f"{one['factor']} {ends[0]} against {ends[1]} is {word}, its cells {', '.join(sorted(words))}"
        if not words or word not in DECIDED:
            continue
        if words <= _OPEN and not _worded_as_average(report, one):
            yield Contradiction("factors: decides what its cells leave open", said)
        # A mean may well be otherwise than the cells that are spoken of, where there are others.
        if all(each) and len(words) == 1 and words <= DECIDED and words != {word} and not one["depends_on"]:
            yield Contradiction("factors: otherwise than every cell", said)
        if TURNED.get(word) in words and not one["depends_on"]:
            yield Contradiction("factors: hides a cell that goes the other way", said)
    for one in report.values["factors"]["interactions"]:
        words = {end["verdict"] for end in one["simple_effects"]}
        word = {"differs": "faster", "does not differ": "equivalent"}.get(one["verdict"], one["verdict"])
        if word == "equivalent" and words == DIFFERENT:
            said = f"{one['factor']} {one['level']} by {one['other']}"
            yield Contradiction("interactions: opposite ends do not differ", said)
        ratio = Statement((one["level"], one["baseline"]), word, "interactions", one["low"] - 1, one["high"] - 1)
        yield from _beside_intervals([ratio])


def _worded_as_average(report: Report, effect: dict) -> bool:
    """Whether the sentence on a main effect says that it is an average before it says anything else."""
    for section, block in blocks_of(report.document):
        for item in block.items if section.id == "factors" and isinstance(block, List) else ():
            before, word, _ = around_the_word(item.text)
            if f"{effect['factor']} {effect['level']}" in plain(item.text) and word == effect["verdict"]:
                return re.search(r"average|mean", before, re.IGNORECASE) is not None
    return False


def _cells(report: Report, factor: str, level: str, baseline: str) -> list[Pair]:
    """Return the pairs that differ in nothing but these two levels of a factor."""
    by_levels = {tuple(sorted(one.levels.items())): id_ for id_, one in report.treatments.items()}
    found = []
    for id_, one in report.treatments.items():
        other = by_levels.get(tuple(sorted({**one.levels, factor: baseline}.items())), "")
        if one.levels.get(factor) == level and other:
            found.append((id_, other))
    return found


def _in_ranking(report: Report) -> Iterator[Contradiction]:
    """Yield stacks that a ranking sets apart or not, unlike the comparisons of every test."""
    ranking = report.values["ranking"] or {"stacks": ()}
    of_stack: dict[str, list[str]] = {}
    for id_, one in report.treatments.items():
        label = " / ".join(level for name, level in one.levels.items() if name not in report.loads)
        of_stack.setdefault(label, []).append(id_)
    for one, other in combinations(ranking["stacks"], 2):
        both = [(a, b) for a in of_stack.get(one["stack"], ()) for b in of_stack.get(other["stack"], ())]
        words = {report.claim(*pair) for pair in both if report.load_of(pair[0]) == report.load_of(pair[1])}
        letters = [set(each["letters"]) for each in (one, other)]
        if not words or "" in words or not all(letters):  # nothing is said of one test: it may well be otherwise
            continue
        said = f"{one['stack']} {one['letters']}, {other['stack']} {other['letters']}: {', '.join(sorted(words))}"
        if not letters[0] & letters[1] and words == {"equivalent"}:
            yield Contradiction("ranking: apart, though equivalent in every test", said)
        if letters[0] & letters[1] and words in ({"faster"}, {"slower"}):
            yield Contradiction("ranking: tied, though apart in every test", said)


def _in_curves(report: Report) -> Iterator[Contradiction]:
    """Yield knees, and curves called flat or rising, that the comparisons of their levels don't bear out."""
    for curves in report.values.get("curves", ()):
        for line in curves["lines"] if curves["metric"] == report.values["metric"] else ():
            yield from _in_line(report, line)


def _in_line(report: Report, line: dict) -> Iterator[Contradiction]:
    ids = {point["level"]: point["treatment"] for point in line["points"]}
    levels, said = list(ids), line["text"]
    first = levels.index(line["knee"]["low"]) if line["knee"] else 0
    last = levels.index(line["worse_beyond"]["high"]) if line["worse_beyond"] else len(levels) - 1
    for level in [*levels[:first], *line["worse_between"], *levels[last + 1 :]]:
        words = {report.claim(ids[level], ids[best]) for best in levels[first : last + 1]} - {""}
        if words and "slower" not in words:
            yield Contradiction("curves: off its best, at a level that is not slower", f"{level} {words}: {said}")
    if "no knee: from" in said.lower():
        for pair in combinations(levels, 2):
            found = report.findings.get((ids[pair[1]], ids[pair[0]])) or report.findings.get(
                (ids[pair[0]], ids[pair[1]])
            )
            if found and found["verdict"] in DIFFERENT and _surely_beyond(found, _KNEE_SHARE):
                yield Contradiction("curves: flat, though two levels differ by more", f"{pair}: {said}")
    if re.search(r"no knee in the range measured: \S+ \S+ still (raises|lowers)", said, re.IGNORECASE):
        words = {report.claim(ids[levels[-1]], ids[level]) for level in levels[:-1]} - {""}
        if words - {"faster"}:
            yield Contradiction("curves: rising, though the last level is not ahead", f"{words}: {said}")


def _surely_beyond(found: dict, share: float) -> bool:
    low, high = found["low"], found["high"]
    return math.isfinite(low) and (math.log1p(low) > math.log1p(share) or math.log1p(high) < -math.log1p(share))


def _in_cost(report: Report) -> Iterator[Contradiction]:
    """Yield costs whose interval is narrower than what the comparison's own comes to in money."""
    for one in (report.values["cost"] or {}).get("comparisons", ()):
        found, money = report.planned.get((one["level_id"], one["baseline_id"])), one["per_million"]
        if not found or not all(
            map(math.isfinite, (*(money[name] for name in ("value", "low", "high")), found["low"]))
        ):
            continue
        times = (1 + money["value"]) * (1 + found["effect"])  # a cost is the price of a second over its queries
        low, high = sorted(times / (1 + found[end]) - 1 for end in ("low", "high"))
        if money["low"] > low + 1e-6 or money["high"] < high - 1e-6:
            said = f"{percent_range(money['low'], money['high'])}, by its verdict {percent_range(low, high)}"
            yield Contradiction("cost: a narrower interval than the verdict's", f"{one['level']}: {said}")


# 2. An interval is on the side of 0 that its word says.


def _beside_intervals(statements: list[Statement]) -> Iterator[Contradiction]:
    for one in statements:
        if not (math.isfinite(one.low) and math.isfinite(one.high)):
            continue
        excludes, said = one.low > 0 or one.high < 0, f"{' vs '.join(one.pair)}, {percent_range(one.low, one.high)}"
        if one.claim == "undecided" and excludes:
            yield Contradiction(f"{one.where}: undecided beside an interval that excludes 0", said)
        if one.claim in DIFFERENT and not excludes:
            yield Contradiction(f"{one.where}: different beside an interval that includes 0", said)


# 3. Interference is said where it matters, and is no cause where the design could not have decided.


def _in_interference(report: Report) -> Iterator[Contradiction]:
    for pair, found in report.planned.items():
        if found["verdict"] in DECIDED and report.mostly_disturbed(pair) and "interference" not in report.opening:
            yield Contradiction("opening: a word without the interference it met", report.called(pair))
    for one, row in report.rows():
        found = report.planned[one.verdict.level_id, one.verdict.baseline_id]
        family = sum(each["verdict"] != "not comparable" for each in report.planned.values())
        best = smallest_p(found["blocks"]) * family
        out_of_reach = report.run.design.until == "blocks" and best > ALPHA
        is_hopeless = found["verdict"] == "undecided" and (out_of_reach or found["reason_code"] == "P_OUT_OF_REACH")
        if is_hopeless and "interference" in f"{row[-1]} {found['reason']}":
            said = f"{row[0]}: {row[-1]}; {found['reason']}"
            yield Contradiction("because: interference, where the design could not decide", said)


# 4. A word has the p that it asks for; what is withheld has none, nor a number of blocks that would bring one.


def _in_evidence(report: Report) -> Iterator[Contradiction]:
    factors = report.analysis.factors
    effects = [*factors.main_effects, *factors.simple_effects, *factors.interactions]
    for one in [*report.analysis.verdicts, *report.analysis.every_pair, *(effect.verdict for effect in effects)]:
        said = f"{one.level_id} against {one.baseline_id}: {one.verdict}, p {one.p_adjusted}, {one.p_equivalence}"
        if one.verdict.is_different and not one.p_adjusted <= ALPHA:
            yield Contradiction("evidence: different beside a large p", said)
        if one.verdict == "equivalent" and not one.p_equivalence <= ALPHA:
            yield Contradiction("evidence: equivalent beside a large p", said)
        if one.effect.bounded and not one.effect.low <= one.effect.value <= one.effect.high:
            yield Contradiction("evidence: an estimate outside its interval", f"{said}, {one.effect}")
        yield from _withheld_beside_claims(one)


def _withheld_beside_claims(one: Finding) -> Iterator[Contradiction]:
    said = f"{one.level_id} against {one.baseline_id}: {one.verdict}, {one.doubted_for}"
    if one.doubted_for is None:
        return
    if not one.verdict.is_open:
        yield Contradiction("evidence: withheld, and a word is given", said)
    text = reason_text(one.reason)
    more = re.search(r"\d+ (more|further) block|blocks are needed|to resolve", text)
    if more or one.blocks_needed is not None or (one.lack and one.lack.blocks):
        yield Contradiction("evidence: withheld beside a number of blocks", f"{said}: {text}")


def _in_doubt(report: Report) -> Iterator[Contradiction]:
    """Yield averages that have a word though every one of their cells is in doubt, and advice to run more blocks."""
    findings = either_way([*report.analysis.verdicts, *report.analysis.every_pair])
    for one in report.analysis.factors.main_effects:
        cells = [findings.get(pair) for pair in _cells(report, one.factor, one.level, one.baseline)]
        if cells and all(each and _is_doubted(each) for each in cells) and not one.verdict.verdict.is_open:
            yield Contradiction("factors: a word though every cell is in doubt", f"{one.factor} {one.level}")
    planned = report.analysis.verdicts
    said = f"{report.values['headline']} {report.advice}"
    if planned and all(map(_is_doubted, planned)) and re.search(r"\d+ more block|more blocks, or|oo noisy", said):
        yield Contradiction("headline, advice: more blocks or noise, though all is in doubt", said)


def _is_doubted(one: Finding) -> bool:
    return one.verdict == "undecided" and one.doubted_for is not None
