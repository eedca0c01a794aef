"""What a simulation found, and what it predicts for a run that was measured."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, inf
from typing import Any, Protocol, TypeVar

from dbdyno.model.wording import count, listed
from dbdyno.report.charts import simulation as charts
from dbdyno.report.document import Abridged, Block, Details, Document, Paragraph, Section, Strong, Table

# The answer of a simulation: which combination does best, and which factors matter to that.


MATTERS = 1.01  # times; what changes less is no difference to speak of


class Combination(Protocol):
    """Levels of a simulated point, and what they are called."""

    @property
    def levels(self) -> Mapping[str, str]:
        """The level of each factor."""

    def name(self, names: Sequence[str]) -> str:
        """Return the levels of these factors in words."""


R = TypeVar("R", bound=Combination)


def answer(rows: Sequence[R], varied: Sequence[str], value: Callable[[R], float], unit: str, *, low: bool) -> str:
    """Return which combination has most of ``value`` (least, if ``low``), and by how much each factor changes it."""
    changes = {name: largest_change(rows, name, value) for name in varied}
    matter = [name for name in varied if changes[name] >= MATTERS]
    rest = [plain(name) for name in varied if name not in matter]
    same = listed(rest) if rest else ""
    if not matter:
        return f"no noticeable difference by {same}; all reach about {figure(value(rows[0]))} {unit}."
    best, *_, last = sorted(rows, key=value, reverse=not low)
    text = f"{best.name(matter)}: {figure(value(best))} {unit}, {'the lowest' if low else 'the most'}"
    alike = [row for row in rows if ratio(value(row), value(best)) < MATTERS]
    names = list(dict.fromkeys(name for row in alike if (name := row.name(matter)) != best.name(matter)))
    text += f" (no noticeable difference to {listed(names, LINES_NAMED)})" if names else ""
    text += f"; {last.name(matter)}: {figure(value(last))}{times(value(best), value(last))}."
    by = [f"{figure(changes[name])} times by {plain(name)}" for name in matter if changes[name] < inf]
    if len(by) > 1:
        text += f" Up to {listed(by)}."
    return text + (f" {same} {'makes' if len(rest) == 1 else 'make'} no noticeable difference." if same else "")


def largest_change(rows: Sequence[R], name: str, value: Callable[[R], float]) -> float:
    """Return the largest ratio of ``value`` between two rows that differ in this factor alone."""
    alike: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        others = tuple(level for factor, level in row.levels.items() if factor != name)
        alike.setdefault(others, []).append(value(row))
    return max(ratio(max(values), min(values)) for values in alike.values())


def ratio(first: float, second: float) -> float:
    """Return how many times the smaller the larger one is; infinite if one alone is 0."""
    least, most = sorted((first, second))
    return most / least if least > 0 else (inf if most > 0 else 1.0)


def times(first: float, second: float) -> str:
    """Return the ratio in parentheses, or nothing where there is none."""
    factor = ratio(first, second)
    return f" ({figure(factor)} times)" if factor < inf else ""


def figure(value: float) -> str:
    """Return a value of a simulation, to three digits or its whole part."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:,.3g}"  # noqa: PLR2004


def plain(name: str) -> str:
    """Return a factor's name without what it belongs to."""
    return name.partition(":")[2] or name


# What the results of a simulation must be read with.


LATE_NS = 100_000_000  # from which a request of an open replay came notably late
BACKLOG_S = 1.0
LINES_NAMED = 3


def warnings(outcomes: Sequence[Mapping[str, Any]], replay: str) -> list[str]:
    """Return what is wrong with the load or unlike its record, a sentence each."""
    loads = [outcome["load"] for outcome in outcomes]
    sentences = []
    if replay == "open":
        late = [
            outcome
            for outcome in outcomes
            if outcome["load"]["late_ns_max"] > LATE_NS
            or max(outcome[way]["latency"]["p50_ns"] for way in ("reads", "writes")) > BACKLOG_S * 1e9
        ]
        if late:
            sentences.append(
                f"The device can't keep up with the recorded times in {len(late)} of {len(outcomes)} results:"
                f" latency there shows how the queue grew, not how fast the device is. Use --replay closed, or a"
                f" lower --speed."
            )
    if replay == "closed" and loads[0]["without_wait"]:
        sentences.append(
            f"{loads[0]['without_wait']:,} requests have no recorded end: the gaps between requests give a guess at"
            f" what they waited for."
        )
    return sentences + (_of_trace(loads[0]["findings"]) if replay else [])


def _of_trace(findings: Mapping[str, Any]) -> list[str]:
    sentences = []
    if findings["damaged"]:
        named = "; ".join(
            f"line {record['line']}: {record['why']}" for record in findings["first_damaged"][:LINES_NAMED]
        )
        lines = count(findings["damaged"], "line")
        sentences.append(f"{lines} of the trace can't be read and were left out: {named}.")
    if findings["backwards"]:
        most = findings["backwards_ns_max"] / 1e6
        sentences.append(f"Time runs backwards at {findings['backwards']:,} requests, by {figure(most)} ms at most.")
    if findings["beyond_device"]:
        beyond = f"{findings['beyond_device']:,} requests end beyond the device and were left out"
        sentences.append(f"{beyond}; give --size, or --fold.")
    if findings.get("folded"):  # results that were kept before traces were folded have none
        sentences.append(
            f"{findings['folded']:,} requests end beyond the device and were folded onto it: they are closer to"
            f" other requests than recorded, and may overlap data written elsewhere."
        )
    sentences += [f"{note[:1].upper()}{note[1:]}." for note in findings.get("notes", ())]
    if findings.get("text_before"):
        sentences.append(f"{count(findings['text_before'], 'line')} of text before the first event, passed over.")
    if findings["passed_over"]:
        kinds = ", ".join(f"{name} ({times:,})" for name, times in list(findings["passed_over"].items())[:6])
        sentences.append(f"Left out, being no reads, writes or flushes: {kinds}.")
    return sentences


# What comes of simulated points, in words and rows.


COLUMNS = ("r/s", "w/s", "rkB/s", "wkB/s", "avgrq-sz", "aqu-sz", "await", "r_await", "w_await", "%util")
COUNTED = ("commits", "rows", "operations")  # what a load counts beside its I/O, in order of preference
ROWS_BRIEF = 12
PACES = {
    "closed": "Closed: each client waits for its answer, so a faster device gets more requests.",
    "open": "Open: requests come at their recorded times, however slow the device is, so latency is what differs.",
}
ROWS_CHARTED = 8


@dataclass(frozen=True)
class Row:
    """One combination: the levels that tell it from others, and its outcomes, one a seed."""

    levels: Mapping[str, str]
    outcomes: tuple[Mapping[str, Any], ...]

    def column(self, name: str) -> float:
        """Return a column of iostat, the mean over seeds."""
        return fsum(outcome["columns"][name] for outcome in self.outcomes) / len(self.outcomes)

    def requests_per_s(self) -> float:
        """Return requests completed a second, the mean over seeds."""
        return self.column("r/s") + self.column("w/s")

    def counted(self) -> list[str]:
        """Return what the load counts beside its I/O, what is asked for first."""
        return [name for name in COUNTED if name in self.outcomes[0]["counts"]]

    def per_s(self, counted: str) -> float:
        """Return how many a second of what the load counts, the mean over seeds; direct jobs count requests."""
        rates = []
        for outcome in self.outcomes:
            operations = sum(outcome[way]["latency"]["count"] for way in ("reads", "writes"))
            known = {"operations": operations} | outcome["counts"]
            rates.append(known.get(counted, 0) / (outcome["measured_s"] or 1.0))
        return fsum(rates) / len(rates)

    def latency_ms(self) -> float:
        """Return the mean latency of what was asked for, of both directions."""
        sums = [outcome[way]["latency"] for outcome in self.outcomes for way in ("reads", "writes")]
        counted = sum(latency["count"] for latency in sums)
        return fsum(latency["mean_ns"] * latency["count"] for latency in sums) / counted / 1e6 if counted else 0.0

    def p99_ms(self) -> float:
        """Return the larger p99 of the two directions, the mean over seeds."""
        worst = [max(outcome[way]["latency"]["p99_ns"] for way in ("reads", "writes")) for outcome in self.outcomes]
        return fsum(worst) / len(worst) / 1e6

    def values(self) -> dict[str, Any]:
        """Return what programs read of it: means over seeds."""
        figures = {"levels": dict(self.levels), "seeds": len(self.outcomes), "latency_ms_mean": self.latency_ms(),
                 "latency_ms_p99": self.p99_ms()}  # fmt: skip
        figures |= {f"{name}/s": self.per_s(name) for name in self.counted()}
        return figures | {name: self.column(name) for name in COLUMNS}

    def name(self, names: Sequence[str]) -> str:
        """Return the levels of these factors."""
        return ", ".join(_level(name, self.levels[name]) for name in names) or self.levels["device"]


def _level(name: str, level: str) -> str:
    return level if name in {"device", "scheduler"} else f"{plain(name)} {level}"


def document(rows: Sequence[Row], load: str, replay: str, cost: str) -> Document:
    """Return the report of a simulation of one or more combinations. ``load`` and ``cost`` are said as they are."""
    varied = [name for name in rows[0].levels if len({row.levels[name] for row in rows}) > 1]
    head: list[Block] = [Paragraph(_headline(rows, varied, replay), "headline")]
    head += [
        Paragraph(text, "warning") for text in warnings([outcome for row in rows for outcome in row.outcomes], replay)
    ]
    fixed = ", ".join(_level(name, level) for name, level in rows[0].levels.items() if name not in varied)
    table = _table(rows, varied)
    notes = (
        Paragraph(f"Simulated in virtual time, nothing was measured: {load}{'; ' + fixed if fixed else ''}.", "soft"),
        Paragraph(f"{PACES[replay or 'closed']} {cost}", "soft"),
    )
    blocks = (*head, abridged(table, ROWS_BRIEF, "combination"), *notes)
    data = {"simulated": True, "load": load, "replay": replay or None, "rows": [row.values() for row in rows]}
    return Document(
        f"Simulated: {load}", (), (Section("results", "", blocks, opening=True), *pictures(rows, varied)), data
    )


def abridged(table: Table, rows: int, noun: str) -> Abridged:
    """Return a table of which text in brief has the first rows, and says how many more of ``noun`` there are."""
    brief = Table(table.caption, table.headings, table.rows[:rows], table.look)
    left = len(table.rows) - rows
    more = (Paragraph(f"{count(left, f'more {noun}')}: --details, --html or --json.", "soft"),) if left > 0 else ()
    return Abridged((table,), (table,), (brief, *more))


def _headline(rows: Sequence[Row], varied: Sequence[str], replay: str) -> tuple[str | Strong, ...]:
    by_latency = replay == "open"
    value, unit = (Row.latency_ms, "ms mean latency") if by_latency else _yardstick(rows)
    if len(rows) == 1 and unit not in {"requests/s", "ms mean latency"}:
        more = f"{figure(rows[0].requests_per_s())} requests/s of {figure(rows[0].latency_ms())} ms on the drive"
        text = f"{rows[0].name(varied)}: {figure(value(rows[0]))} {unit}, with {more}."
    elif len(rows) == 1:
        (only,) = rows
        more = f"{figure(only.requests_per_s())} requests/s" if by_latency else f"{figure(only.latency_ms())} ms mean"
        text = f"{only.name(varied)}: {figure(value(only))} {unit}, {more}, {figure(only.p99_ms())} ms at p99."
    else:
        text = answer(rows, varied, value, unit, low=by_latency)
    return (Strong("Simulated"), f": {text}")


def _yardstick(rows: Sequence[Row]) -> tuple[Callable[[Row], float], str]:
    """Return what a closed load is judged by: what a server does a second, or else requests."""
    done = next((name for name in _count_names(rows) if any(row.per_s(name) for row in rows)), None)
    return (lambda row: row.per_s(done), f"{done}/s") if done else (Row.requests_per_s, "requests/s")


def _count_names(rows: Sequence[Row]) -> list[str]:
    return max((row.counted() for row in rows), key=len)


def _table(rows: Sequence[Row], varied: Sequence[str]) -> Table:
    seeds = len(rows[0].outcomes)
    counted = _count_names(rows)
    body = tuple(
        (
            row.name(varied),
            *(figure(row.per_s(name)) for name in counted),
            *(figure(row.column(name)) for name in COLUMNS),
            figure(row.p99_ms()),
        )
        for row in rows
    )
    mean = f", mean of {seeds} seeds" if seeds > 1 else ""
    caption = f"iostat's columns, simulated{mean}; avgrq-sz in sectors of 512 bytes, await and p99 in ms"
    return Table(caption, ("", *(f"{name}/s" for name in counted), *COLUMNS, "p99"), body, "figures")


def _has_sample(outcome: Mapping[str, Any]) -> bool:
    return bool(outcome.get("sample", {}).get("at_s"))


def pictures(rows: Sequence[Row], varied: Sequence[str]) -> tuple[Section, ...]:
    """Return what only a page shows: distributions, distances, the queue and places over time; a surface."""
    sections = []
    value, unit = _yardstick(rows)
    surface = charts.surface([(row.levels, value(row)) for row in rows], varied, unit)
    if surface is not None:
        sections.append(Section("surface", f"{unit.capitalize()} by both factors", (Abridged((surface,)),)))
    shown = [(row.name(varied), row.outcomes[0]) for row in rows[:ROWS_CHARTED] if _has_sample(row.outcomes[0])]
    if not shown:
        return tuple(sections)
    over_time = [combination for combination in shown if unit in combination[1]["series"]["rates"]]
    if over_time:
        sections.append(Section("rate", f"{unit.capitalize()} over time", (Abridged((charts.rate(over_time, unit),)),)))
    text = f"The first {ROWS_CHARTED} of {len(rows)} combinations are drawn."
    note = (Paragraph(text, "soft"),) if len(rows) > ROWS_CHARTED else ()
    sections += [
        Section("latency", "Latency", (Abridged((*note, charts.latency(shown))),)),
        Section("queue", "Queue over time", (Abridged((charts.queue(shown),)),)),
        Section("seeks", "Distances between commands", (Abridged((charts.distances(shown),)),)),
        Section("places", "Places over time", (Abridged((Details("Places of commands", charts.places(shown)),)),)),
    ]
    return tuple(sections)
