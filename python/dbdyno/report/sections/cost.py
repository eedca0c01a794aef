"""What the devices come to in money, in words and as a table."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.cost import Cost, CostComparison, TreatmentCost
from dbdyno.analysis.statistics import Estimate
from dbdyno.model.wording import TWICE, UNKNOWN, count, number, percent, percent_range
from dbdyno.report.document import Section, Table, bullets
from dbdyno.report.sentences import Named, estimate_text, treatments_named, with_interval
from dbdyno.report.source import Source

SECONDS_PER_DAY = 86_400
YEARS_SHOWN_MOST = 100.0  # no drive is kept for longer


def section(source: Source) -> Section:
    """Return the table and its sentences; for programs alone where the study gives no prices."""
    cost, data = source.analysis.cost, {"cost": cost_json(source.analysis)}
    if cost is None or not cost.treatments:
        return Section("cost", "Cost", data=data)
    money = cost.prices.currency
    figures = (f"{money} to buy", f"queries/s per {money}", f"{money} per million queries", "years until worn")
    headings = ("treatment", "drives", *figures)
    table = Table("Cost of each treatment", headings, tuple(map(_row, cost.treatments)))
    return Section("cost", "Cost", (table, *bullets(cost_lines(source.analysis))), data=data)


def _row(treatment: TreatmentCost) -> tuple[str, ...]:
    return (
        treatment.label,
        str(treatment.device.drives * treatment.device.copies),
        _amount(treatment.purchase),
        estimate_text(treatment.per_second_per_money),
        estimate_text(treatment.per_million),
        _years(treatment.wear_years),
    )


def cost_lines(analysis: Analysis) -> list[str]:
    """Return a sentence for each comparison and each demand, and what the figures rest on."""
    if analysis.cost is None or not analysis.cost.treatments:
        return []
    cost = analysis.cost
    lines = [_comparison_sentence(comparison, cost) for comparison in cost.comparisons]
    offered = _unknown_capacities(cost, analysis.treatments)
    return [*lines, *offered, *_demands(cost, analysis.treatments), *_footing(cost, analysis.treatments)]


def _comparison_sentence(comparison: CostComparison, cost: Cost) -> str:
    effect = comparison.per_million
    if not effect.known:
        priced = all(
            math.isfinite(treatment.purchase)
            for treatment in cost.treatments
            if treatment.id in {comparison.level_id, comparison.baseline_id}
        )
        why = "their highest rate was not measured" if priced else "a price is missing"
        return f"{comparison.level} against {comparison.baseline}: cost per query {UNKNOWN}, because {why}."
    if not comparison.is_shown:
        sides = f"with {comparison.level} than with {comparison.baseline}"
        return (
            f"Whether a query costs more or less {sides} is undecided: {with_interval(effect)}, both used to the full."
        )
    interval = f" (95 % interval {percent_range(effect.low, effect.high)})"
    size = percent(effect.value if effect.value >= TWICE else abs(effect.value), sign=effect.value >= TWICE)
    by = f"{size} as much" if effect.value >= TWICE else f"{size} {'more' if effect.value > 0 else 'less'}"
    than = "as" if effect.value >= TWICE else "than"
    sides = f"with {comparison.level} {than} with {comparison.baseline}"
    sentence = f"A query costs {by} {sides}{interval}, both used to the full."
    return " ".join([sentence, *_break_even(comparison), *_pays_back(comparison, cost)])


def _unknown_capacities(cost: Cost, treatments: Sequence[Named]) -> Iterator[str]:
    """Yield of which treatments nothing is said that needs the most they can do, and what would measure it."""
    kept_up = [treatment for treatment in cost.treatments if not treatment.capacity_known]
    if kept_up:
        yield (
            f"The load limits the rate of {_labels(kept_up, treatments)}, by a fixed rate or pauses, so their highest"
            f" rate is {UNKNOWN}, and so are the cost of a query, the sets for a demand and the break-even. Measure it"
            " in a closed loop without pauses, or at a rate that no treatment keeps up with."
        )


def _break_even(comparison: CostComparison) -> Iterator[str]:
    if comparison.break_even is None:
        return
    break_even, estimate = comparison.break_even, comparison.break_even_per_second
    if break_even.for_good is None:
        some = (
            f", though {comparison.dearer} is in between, first at {_rate(break_even.first)}"
            if break_even.first is not None
            else ""
        )
        yield f"{comparison.cheaper} is cheaper at {_rate(break_even.searched)} and above{some}."
    elif break_even.for_good == 0:
        yield f"{comparison.dearer} is cheaper over the years at any load, though it costs more to buy."
    else:
        low, high = estimate.low, estimate.high
        interval = f"; 95 % interval {number(low)} to {number(high)}/s" if estimate.bounded else ""
        a_day = f"{_many(break_even.for_good * SECONDS_PER_DAY)} a day"
        yield f"{comparison.dearer} is cheaper at {_rate(break_even.for_good)} or more ({a_day}{interval})."


def _pays_back(comparison: CostComparison, cost: Cost) -> Iterator[str]:
    if math.isfinite(comparison.pays_back_years):
        demand = _rate(cost.prices.demand_per_second or 0.0)
        years = number(comparison.pays_back_years)
        yield f"At {demand}, its higher price is recovered in power after {years} years."


def _demands(cost: Cost, treatments: Sequence[Named]) -> Iterator[str]:
    prices = cost.prices
    demands = [_rate(prices.demand_per_second)] if prices.demand_per_second is not None else []
    demands += [f"{prices.data_bytes / 1e9:,.4g} GB"] if prices.data_bytes is not None else []
    unknown = [treatment for treatment in cost.treatments if treatment.demand is None and treatment.capacity_known]
    if demands and unknown:
        yield f"{' and '.join(demands)} with {_labels(unknown, treatments)}: {UNKNOWN}, because no capacity is given."
    alike: dict[tuple[str, int, str], list[TreatmentCost]] = {}
    for treatment in cost.treatments:
        if treatment.demand is not None:
            key = (treatment.device.name, treatment.demand.sets, treatment.demand.bound)
            alike.setdefault(key, []).append(treatment)
    why = {"one": "one is enough", "speed": "for the speed", "capacity": "for the capacity"}
    for (_, sets, bound), group in alike.items():
        drives = sets * group[0].device.drives * group[0].device.copies
        totals = sorted(treatment.demand.total for treatment in group if treatment.demand is not None)
        total = " to ".join(dict.fromkeys((_amount(totals[0]), _amount(totals[-1]))))
        what = f"{count(sets, 'set')} of {_labels(group, treatments, ' or ')}, {count(drives, 'drive')} ({why[bound]})"
        yield f"{' and '.join(demands)} take {what}: {total} {prices.currency} over {prices.life_years:g} years."


def _footing(cost: Cost, treatments: Sequence[Named]) -> Iterator[str]:
    """Yield what the figures take for granted."""
    prices = cost.prices
    yield (
        f"Over {prices.life_years:g} years, {100 * prices.used:g} % of them under this load; prices are the study's and"
        " taken as exact, intervals cover the measurement only. Sets are assumed to add up: two serve twice as much."
    )
    if prices.price_per_kwh is None:
        yield "Power is not included: the study gives no price_per_kwh."
    missing = [
        treatment
        for treatment in cost.treatments
        if prices.price_per_kwh is not None and treatment.device.watts is None
    ]
    if missing:
        yield f"Without power, as no watts are given: {_labels(missing, treatments)}."
    guessed = [
        treatment
        for treatment in cost.treatments
        if treatment.device.endurance_bytes is not None and not treatment.amplification_known
    ]
    if guessed:
        yield (
            f"Write amplification is unknown for {_labels(guessed, treatments)} and taken as 1, so the years until worn"
            " are an upper bound."
        )
    counted = [
        treatment
        for treatment in cost.treatments
        if treatment.device.endurance_bytes is not None and treatment.amplification_known
    ]
    if counted:
        each = "; ".join(
            f"{treatment.label} {number(treatment.offered.write_amplification)} times" for treatment in counted
        )
        yield f"Write amplification by the drives' own counters: {each}."
    sources = "; ".join(f"{device.name}: {device.source}" for device in prices.devices)
    yield f"Prices and data: {sources}."


def _labels(priced: Sequence[TreatmentCost], treatments: Sequence[Named], between: str = ", ") -> str:
    return treatments_named([treatment.id for treatment in priced], treatments, between)


def _amount(value: float) -> str:
    if not math.isfinite(value):
        return UNKNOWN
    return f"{value:,.2f}" if value < 1000 else f"{value:,.0f}"  # noqa: PLR2004 - cents of thousands are noise


def _years(estimate: Estimate) -> str:
    if estimate.value > YEARS_SHOWN_MOST:
        return f"more than {YEARS_SHOWN_MOST:g}"
    return estimate_text(estimate)


def _rate(per_second: float | None) -> str:
    return UNKNOWN if per_second is None else f"{number(per_second)} queries per second"


def _many(value: float) -> str:
    """Return a large count in words: ``"26.4 million"``."""
    for size, name in ((1e12, " trillion"), (1e9, " billion"), (1e6, " million"), (1.0, "")):
        if value >= size:
            return f"{value / size:,.3g}{name}" if name else f"{value:,.0f}"
    return number(value)


def cost_json(analysis: Analysis) -> dict[str, Any] | None:
    """Return all figures; ``None`` where the study gives no prices."""
    cost = analysis.cost
    if cost is None:
        return None
    return {
        "prices": asdict(cost.prices),
        "treatments": [{**asdict(treatment), "device": treatment.device.name} for treatment in cost.treatments],
        "comparisons": [asdict(comparison) for comparison in cost.comparisons],
        "lines": cost_lines(analysis),
    }
