"""Headlines and advice that say more than the findings: of speed, of what was left out, or with a risk unsaid.

A headline or an advice may say less than the comparisons and never more. Both are read by the templates that they are
made of; what none of them fits ``tests/statements.py`` names.
"""

import math
import re
from collections.abc import Iterator

from dbdyno.model.wording import percent
from dbdyno.report.sentences import Versus
from tests.statements import APART, DECIDED, DIFFERENT, FLUSH, SIZE, Contradiction, Report, sentences

_RISK = re.compile(r"may lose|may take|power cut|not durable")
_STANDS_OUT = math.log(1.5)  # beside a rate that is the same, as a log ratio
_DIFFERS = re.compile(
    rf"(?P<level>\S.*?) is (?:{SIZE} % (?P<word>faster|slower)|{SIZE} times as fast|(?P<plain>faster|slower))"
    r"(?: (?:than|as) (?P<rest>.*))?"
)


# 2. A headline or an advice that says more than the findings.


def in_headline(report: Report) -> Iterator[Contradiction]:
    headline = report.headline
    if report.analysis.noise_floor:
        yield from _in_headline_of_the_same(report)
        return
    if "Nothing is decided yet" in headline:
        yield from _in_nothing(report)
    yield from _in_knees(report)
    for sentence in sentences(headline):
        if sentence.startswith(("The knee", "A query costs", "Over ")) or re.search(r"stead(y|ier) than", sentence):
            continue
        if found := re.search(r"(?P<best>.+?) is ahead of (?P<those>.*)", sentence):
            yield from _in_the_best(report, found)
            continue
        start = re.match(r"Against (?P<baseline>.+?), (?=\S.* (?:is|are|makes?|can't) )", sentence)
        for clause in sentence[start.end() if start else 0 :].rstrip(".").split("; "):
            yield from _in_clause(report, clause, start["baseline"] if start else "")


def _in_nothing(report: Report) -> Iterator[Contradiction]:
    """Yield what is decided beside "Nothing is decided yet"."""
    for pair, one in report.planned.items():
        if one["verdict"] in DECIDED:
            yield Contradiction("headline: nothing is decided, and a comparison is", report.called(pair))
    for one in report.values["factors"]["main_effects"]:
        if one["verdict"] in DECIDED:
            said = f"{one['factor']} {one['level']} is {one['verdict']}"
            yield Contradiction("headline: nothing is decided, and a factor is", said)
    if "The knee in" in report.headline:
        yield Contradiction("headline: nothing is decided, and a knee is", report.headline)


def _in_knees(report: Report) -> Iterator[Contradiction]:
    """Yield knees whose interval is left out."""
    said = next((one for one in sentences(report.headline) if one.startswith("The knee in")), "")
    for curves in report.values.get("curves", ()) if said else ():
        for line in curves["lines"] if curves["metric"] == report.values["metric"] else ():
            turn = line["knee"] or line["worse_beyond"]
            is_named = turn and turn["low"] != turn["high"] and f"{curves['factor']} {turn['at']}" in said
            if is_named and f"{turn['low']} to {turn['high']}" not in said:
                yield Contradiction("headline: a knee without its interval", f"{said} {line['text']}")


def _in_headline_of_the_same(report: Report) -> Iterator[Contradiction]:
    """Yield what an A/A run's headline says otherwise than its one comparison."""
    word = next((one["verdict"] for one in report.values["verdicts"]), "not comparable")
    differs = "a difference where there is none (" in report.headline
    if differs != (word in DIFFERENT) or ("no difference beyond" in report.headline) != (word == "equivalent"):
        yield Contradiction("headline: an A/A run otherwise than its verdict", f"{word}: {report.headline}")


def _in_clause(report: Report, clause: str, baseline: str) -> Iterator[Contradiction]:
    """Yield what a clause says of comparisons that these don't say; ``baseline`` is what the sentence begins with."""
    meant: list[tuple[Versus, str]] = []
    if found := re.search(
        r"(?P<level>.*) and (?P<baseline>.*?) show no difference beyond [\d.]+ %(?P<where>.*)", clause
    ):
        each = _meant(report, found["level"], found["baseline"], found["where"])
        meant += [(one, "equivalent") for one in each]
    elif found := re.search(r"(?P<of>.*?) makes? no difference beyond [\d.]+ %(?P<where>.*)", clause):
        meant += [(one, "equivalent") for one in _meant(report, found["of"], baseline, found["where"])]
    for part in re.split(r", | and (?=\S.*? is )", clause):
        if found := _DIFFERS.match(part):
            rest = found["rest"] or part[found.end() :]
            ends = [one.baseline for one in report.versus if rest.startswith(one.baseline)]
            against = baseline or max(ends, key=len, default="")
            word = found["word"] or found["plain"] or "faster"
            meant += [(one, word) for one in _meant(report, found["level"], against, rest.removeprefix(against))]
    for one, word in meant:
        finding = report.planned[one.verdict.level_id, one.verdict.baseline_id]
        if finding["verdict"] != word:
            said = f"{clause!r}, but {one.name} is {finding['verdict']}"
            yield Contradiction("headline: says more than a finding", said)
        totals, margin = finding["totals"], report.values["margin"]
        cost = totals["effect"]  # in total, of time or of what less is better of
        against_it = {"faster": cost >= 0, "slower": cost <= 0, "equivalent": not -margin <= cost <= margin}
        if totals["apart"] and against_it[word] and not re.search(r"\btotals?\b", report.headline):
            yield Contradiction("headline: a size without the total that says otherwise", f"{clause}; {percent(cost)}")


def _meant(report: Report, names: str, baseline: str, where: str) -> list[Versus]:
    """Return the comparisons that a clause is about: named by a level, or by the one factor that varies."""
    names = names.strip().removeprefix("the ").removeprefix("The ")
    each = {one for one in re.split(r", | and ", names) if one} | {names}
    found = [one for one in report.versus if one.level in each or one.factors == (names,)]
    found = [one for one in found if not baseline or one.baseline == baseline]
    if re.search(r"in \d+ combinations", where):
        return []  # which these are it does not say
    places = [one for one in found if one.place and one.place.partition(" ")[2] in where]
    return places or ([] if where.strip() else found)


def _in_the_best(report: Report, found: re.Match[str]) -> Iterator[Contradiction]:
    """Yield who is said to be behind the best one though no comparison has it so."""
    best = report.ids.get(found["best"].strip(), "")
    tied = found["those"].partition("not shown to be ahead of ")[2].partition(";")[0]
    for label, id_ in report.ids.items() if best and "more" not in tied else ():
        if id_ != best and label not in tied and report.claim(best, id_) != "faster":
            said = f"{found[0]!r}, but {label} is {report.claim(id_, best) or 'not compared with it'}"
            yield Contradiction("headline: ahead of one that is not behind", said)


def in_advice(report: Report) -> Iterator[Contradiction]:
    advice = report.values["advice"]
    for part in advice.get("parts", ()):
        if part["action"] != "open":
            yield from _in_part(report, part)
    believed = advice["hold"] == "SAME_TREATMENTS" and "Nothing to change" in report.advice
    if believed and any(map(report.mostly_disturbed, report.planned)):
        yield Contradiction("advice: rests on findings that others disturbed", report.advice)


def _in_part(report: Report, part: dict) -> Iterator[Contradiction]:
    """Yield what is advised under some loads and not found."""
    advice, pool = report.advice, [*part["take"], *part["as_good"]]
    words = {one: {report.claim(one, other) for other in _beside(report, one)} for one in pool}
    for one in pool:
        if "slower" in words[one] and part["action"] != "safer":
            yield Contradiction("advice: what a comparison shows to be slower", f"{one}: {advice}")
    for one in part["take"] if part["action"] == "take" else ():
        if not words[one] & {"faster", "equivalent"}:
            yield Contradiction("advice: to take what no finding speaks for", f"{one}: {advice}")
    for one in part["as_good"]:
        if "equivalent" not in words[one]:
            yield Contradiction("advice: as good, though no finding says so", f"{one}: {advice}")
    behind = [pair for pair, one in report.planned.items() if set(pair) & set(pool) and one["verdict"] in DECIDED]
    if behind and all(map(report.mostly_disturbed, behind)):
        yield Contradiction("advice: rests on findings that others disturbed", advice)
    yield from _in_all_alike(report, set(pool), {other for one in pool for other in _beside(report, one)})


def _beside(report: Report, id_: str) -> list[str]:
    """Return the treatments under the same load, itself among them."""
    return [other for other in report.treatments if report.load_of(other) == report.load_of(id_)]


def _in_all_alike(report: Report, pool: set[str], stacks: set[str]) -> Iterator[Contradiction]:
    """Yield that any will do, where one was left out or something else stands out between them."""
    advice = report.advice
    for factor in re.findall(r"(?:either|any) (\S+)(?= (?:and|will) )", advice):
        levels = [{report.treatments[id_].levels.get(factor, "") for id_ in ids} for ids in (stacks, pool)]
        if left := levels[0] - levels[1]:
            yield Contradiction("advice: either, where a level was left out", f"{', '.join(left)}: {advice}")
    if "all are as good" in advice and stacks - pool:
        yield Contradiction("advice: all, where a treatment was left out", f"{sorted(stacks - pool)}: {advice}")
    if not re.search(r"will do|as good|as fast within", advice) or re.search(r"p99|latenc", advice):
        return
    for one in report.values["screened"]:
        far = abs(math.log1p(max(one["effect"], -0.99))) > _STANDS_OUT
        ids = {one["level_id"], one["baseline_id"]}
        same_load = len({report.load_of(id_) for id_ in ids}) == 1
        if one["stands_out"] and far and same_load and ids <= pool:
            said = f"{one['metric']} {percent(one['effect'])}: {advice}"
            yield Contradiction("advice: will do, where another figure stands out", said)


# 3. A less safe setting stands beside its risk, and a safer one is not advised against for speed alone.


def in_safety(report: Report) -> Iterator[Contradiction]:
    loses = {id_: found for id_ in report.treatments if (found := report.loses(id_)) is not None}
    for part in report.values["advice"].get("parts", ()):
        for one in (*part["take"], *part["as_good"]):
            safer = [id_ for id_ in _beside(report, one) if loses.get(id_, 9) < loses.get(one, 0)]
            if safer and not (_RISK.search(report.advice) and FLUSH in report.advice):
                yield Contradiction("advice: a less safe setting without its risk", f"{one}: {report.advice}")
    for found in re.finditer(r"leave out ([^;.]+?), which (?:is|are) slower", report.advice):
        named = {one.verdict.level_id for one in report.versus if one.level in found[1]}
        named |= {one.verdict.baseline_id for one in report.versus if one.baseline in found[1]}
        for one in {id_ for part in report.values["advice"]["parts"] for id_ in part["slower"]} & named:
            ahead = [other for other in _beside(report, one) if report.claim(one, other) == "slower"]
            if not ahead and not any(each.claim == APART and one in each.pair for each in report.statements):
                said = f"{report.treatments[one].label}: {report.advice}"
                yield Contradiction("advice: slower, though no finding says so", said)
            if ahead and all(loses.get(one, 9) < loses.get(other, 0) for other in ahead):
                yield Contradiction("advice: against a safer setting for speed alone", report.advice)
