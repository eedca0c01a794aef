"""What the money question comes to, with intervals: prices are the study's and exact, rates and writes were measured.

Each figure is computed for every block from what was measured in it. Its estimate and interval then come from these
values by the procedures of docs/statistics/verdicts.md, as those of any other metric: of one treatment from its
logarithms, of two from the log ratios inside blocks.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.load_checks import shows_capacity
from dbdyno.analysis.statistics import Estimate, log_ratios, logarithms
from dbdyno.analysis.verdict.evidence import Rule, evidence, relative_effect
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.model.design import Comparison, Design, Treatment
from dbdyno.model.metrics import value_of
from dbdyno.store.records import Trial
from dbdyno.store.reported import DevicePrice, Prices

# The demand at which the dearer of two devices becomes the cheaper one.


CostOfDemand = Callable[[float], float]  # queries per second -> money over the life

SETS_MOST = 50  # further ones of the slower device: beyond that the price of a query decides, which is given as well
HALVINGS = 60


@dataclass(frozen=True)
class BreakEven:
    """Demands in queries per second. ``None``: not up to ``searched``."""

    first: float | None  # at which the second device costs less for the first time
    for_good: float | None  # above this demand it always does
    searched: float


@dataclass(frozen=True)
class CostCurve:
    """What a device costs by demand."""

    cost: CostOfDemand
    serves: float  # queries per second of one set
    fewest: int  # sets, whatever the demand


def break_even(first: CostCurve, second: CostCurve) -> BreakEven:
    """Return the demand above which ``second`` costs less than ``first``.

    Costs jump where another set is needed and run smoothly between. So each stretch between two jumps of either is
    looked at by its ends, and where the order changes inside, by halving.
    """
    curves = (first, second)
    searched = max(curve.fewest * curve.serves for curve in curves) + SETS_MOST * min(curve.serves for curve in curves)
    jumps = {k * curve.serves for curve in curves for k in range(curve.fewest, math.floor(searched / curve.serves) + 1)}
    edges = [0.0, *sorted(jumps | {searched})]
    cost_a, cost_b = first.cost, second.cost
    first_demand: float | None = None
    for_good: float | None = None
    for low, high in pairwise(edges):
        start = low + (high - low) * 1e-9
        cheaper_at_start, cheaper_at_end = cost_b(start) < cost_a(start), cost_b(high) < cost_a(high)
        if cheaper_at_start and for_good is None:
            for_good = low
        if not cheaper_at_start and cheaper_at_end:
            for_good = _crossing(cost_a, cost_b, start, high)
        if not cheaper_at_end:
            for_good = None
        crossing = low if cheaper_at_start else for_good
        if first_demand is None and crossing is not None:
            first_demand = crossing
    return BreakEven(first_demand, for_good, searched)


def _crossing(cost_a: CostOfDemand, cost_b: CostOfDemand, low: float, high: float) -> float:
    """Return where between them ``cost_b`` becomes the smaller one."""
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if cost_b(middle) < cost_a(middle):
            high = middle
        else:
            low = middle
    return high


# What one set of drives costs and how long it lasts: arithmetic over a price and a load, no estimates.
#
# A *set* is all drives of a device with all its copies. Every copy takes all writes; queries are served by one of them.


HOURS_PER_YEAR = 365.25 * 24
SECONDS_PER_YEAR = HOURS_PER_YEAR * 3600
MILLION = 1e6


@dataclass(frozen=True)
class MeasuredRate:
    """What one set did, as measured: means over a trial. Whether it can do more is not known here."""

    queries_per_second: float
    written_bytes_per_query: float  # that reach the block device; NaN where that was not counted
    write_amplification: float  # of the drive; 1 where that is unknown


def purchase(device: DevicePrice) -> float:
    """Return the price of one set; NaN where it is not known."""
    return math.nan if device.price is None else device.price * device.drives * device.copies


def wear_years(device: DevicePrice, offered: MeasuredRate, busy: float) -> float:
    """Return after how long the drives have taken what they may be written; NaN where it is not known.

    ``busy`` is the share of all time in which a set does ``offered``. Copies don't help: each takes all writes.
    """
    if device.endurance_bytes is None:
        return math.nan
    writable_bytes = device.endurance_bytes * device.data_drives * device.rated_write_amplification
    per_second = offered.queries_per_second * offered.written_bytes_per_query * offered.write_amplification * busy
    return math.inf if per_second == 0 else writable_bytes / per_second / SECONDS_PER_YEAR


def power_per_year(device: DevicePrice, prices: Prices, busy: float) -> float:
    """Return what the power of one set costs in a year; 0 where the study gives no price of it, NaN where no watts."""
    if prices.price_per_kwh is None:
        return 0.0
    if device.watts is None or device.watts_idle is None:
        return math.nan
    watts = device.watts * busy + device.watts_idle * (1 - busy)
    return watts * device.drives * device.copies / 1000 * HOURS_PER_YEAR * prices.price_per_kwh


def cost_of_set(device: DevicePrice, prices: Prices, offered: MeasuredRate, busy: float) -> float:
    """Return what one set costs over the stated life: as many as wear makes necessary, pro rata, and power.

    Unknown endurance counts as no wear, unknown watts as no power: the report says which is missing.
    """
    worn = wear_years(device, offered, busy)
    sets = max(1.0, prices.life_years / worn) if math.isfinite(worn) else 1.0
    power = power_per_year(device, prices, busy)
    return purchase(device) * sets + (power if math.isfinite(power) else 0.0) * prices.life_years


def cost_per_million(device: DevicePrice, prices: Prices, offered: MeasuredRate) -> float:
    """Return what a million queries cost where a set does all it can while it is in use."""
    queries = offered.queries_per_second * prices.used * prices.life_years * SECONDS_PER_YEAR
    return cost_of_set(device, prices, offered, prices.used) / queries * MILLION if queries > 0 else math.nan


def sets_for_speed(offered: MeasuredRate, demand_per_second: float) -> float:
    """Return how many sets serve a demand, if the load can be spread over them evenly."""
    return max(1.0, math.ceil(demand_per_second / offered.queries_per_second * (1 - 1e-12)))


def sets_for_data(device: DevicePrice, data_bytes: float | None) -> float:
    """Return how many sets hold so much data; NaN where the capacity is not known, 1 where no data is stated."""
    if data_bytes is None:
        return 1.0
    if not device.capacity_bytes:
        return math.nan
    return max(1.0, math.ceil(data_bytes / (device.capacity_bytes * device.data_drives)))


def cost_of_demand(device: DevicePrice, prices: Prices, offered: MeasuredRate, demand_per_second: float) -> float:
    """Return what serving a demand for the stated life costs, in as many sets as speed and data ask for."""
    for_data = sets_for_data(device, prices.data_bytes)
    sets = max(sets_for_speed(offered, demand_per_second), for_data if math.isfinite(for_data) else 1.0)
    busy = prices.used * demand_per_second / (sets * offered.queries_per_second)
    return sets * cost_of_set(device, prices, offered, min(1.0, busy))


@dataclass(frozen=True)
class Demand:
    """What serving the stated demand takes, at the mean of what was measured."""

    sets: int
    bound: str  # "speed" or "capacity": what asks for so many; "one" where one does it
    total: float  # money over the life


@dataclass(frozen=True)
class TreatmentCost:
    """One treatment whose device has a price entry. What can't be known is NaN.

    Where its rate is what the load offered and not all it can do, what needs the latter is unknown.
    """

    id: str
    label: str
    device: DevicePrice
    purchase: float  # of one set
    offered: MeasuredRate  # means over trials
    amplification_known: bool
    capacity_known: bool  # whether ``offered`` is the most that it can do
    per_second_per_money: Estimate  # queries per second for each unit of the purchase
    per_million: Estimate  # money for a million queries
    wear_years: Estimate
    power_per_year: float  # of one set, while used as stated
    demand: Demand | None


@dataclass(frozen=True)
class CostComparison:
    """Two treatments whose devices have different entries. ``dearer`` costs more to buy."""

    level: str  # label
    baseline: str  # label
    level_id: str
    baseline_id: str
    per_million: Estimate  # relative difference, level to baseline
    dearer: str = ""  # label: costs more to have ready; empty where both cost the same or a price is unknown
    cheaper: str = ""  # label
    break_even: BreakEven | None = None  # at the means
    # The demand above which the dearer one is always cheaper.
    break_even_per_second: Estimate = field(default_factory=Estimate.unknown)
    # What the dearer set costs more to buy, over what it saves in power at the demand; NaN where that is not known.
    pays_back_years: float = math.nan

    @property
    def is_shown(self) -> bool:
        """Whether a query is shown to cost more, or less: the interval excludes no difference."""
        return self.per_million.bounded and not self.per_million.low <= 0 <= self.per_million.high


@dataclass(frozen=True)
class Cost:
    """All of it."""

    prices: Prices
    treatments: list[TreatmentCost]
    comparisons: list[CostComparison]


def cost(
    design: Design,
    blocks: UsableBlocks,
    prices: Prices | None,
    rule: Callable[[int], Rule],
    findings: Sequence[Finding],
) -> Cost | None:
    """Return what the study's devices come to in money; ``None`` where it gives no prices.

    ``findings`` are those of the planned comparisons: no interval of a cost is narrower than that of its comparison.
    """
    if prices is None:
        return None
    offered = {
        treatment.id: {
            block: offered_by(row[treatment.id]) for block, row in blocks.trials.items() if treatment.id in row
        }
        for treatment in design.treatments
        if treatment.id not in blocks.dropped and prices.of(treatment.id)
    }
    offered = {
        id_: {b: load for b, load in loads.items() if load.queries_per_second > 0} for id_, loads in offered.items()
    }
    costs = []
    for treatment in design.treatments:
        device = prices.of(treatment.id)
        if device and offered.get(treatment.id):
            costs.append(_treatment(treatment, device, prices, offered[treatment.id], blocks.of(treatment.id), rule))
    by_id = {treatment_cost.id: treatment_cost for treatment_cost in costs}
    by_pair = {(finding.baseline_id, finding.level_id): finding for finding in findings}
    compared = [
        _as_wide_as(
            by_pair[pair.baseline, pair.level],
            _comparison(by_id[pair.level], by_id[pair.baseline], prices, offered, rule),
        )
        for pair in _comparisons(design, by_id)
    ]
    return Cost(prices, costs, compared)


def _comparisons(design: Design, by_id: Mapping[str, TreatmentCost]) -> list[Comparison]:
    return [
        pair
        for pair in design.comparisons
        if {pair.level, pair.baseline} <= by_id.keys() and by_id[pair.level].device != by_id[pair.baseline].device
    ]


def amplification(trial: Trial) -> float | None:
    """Return the write amplification by the drive's own counters in this trial; ``None`` where it has none."""
    gauges = trial.device.get("gauges")
    if not isinstance(gauges, Mapping):
        return None
    flash, host = value_of(gauges, "flash_written_bytes"), value_of(gauges, "host_written_bytes")
    return flash / host if host > 0 and flash > 0 else None


def offered_by(trial: Trial) -> MeasuredRate:
    """Return what a trial's set did."""
    return MeasuredRate(
        queries_per_second=value_of(trial.metrics, "queries_per_second"),
        written_bytes_per_query=value_of(trial.metrics, "written_bytes_per_query"),
        write_amplification=amplification(trial) or 1.0,
    )


def _treatment(  # noqa: PLR0913, PLR0917  (a treatment and what it is priced by)
    named: Treatment,
    device: DevicePrice,
    prices: Prices,
    by_block: Mapping[int, MeasuredRate],
    trials: Sequence[Trial],
    rule: Callable[[int], Rule],
) -> TreatmentCost:
    mean, price, capacity_known = _mean(list(by_block.values())), purchase(device), shows_capacity(trials)
    at_most = by_block if capacity_known else {}
    per_money = {block: load.queries_per_second / price for block, load in at_most.items()} if price > 0 else {}
    return TreatmentCost(
        id=named.id,
        label=named.label,
        device=device,
        purchase=price,
        offered=mean,
        amplification_known=all(amplification(trial) is not None for trial in trials),
        capacity_known=capacity_known,
        per_second_per_money=estimate_of(per_money, rule),
        per_million=estimate_of({b: cost_per_million(device, prices, load) for b, load in at_most.items()}, rule),
        wear_years=estimate_of({b: wear_years(device, load, prices.used) for b, load in by_block.items()}, rule),
        power_per_year=power_per_year(device, prices, prices.used) if prices.price_per_kwh is not None else math.nan,
        demand=_demand(device, prices, mean) if capacity_known or not prices.demand_per_second else None,
    )


def _mean(loads: Sequence[MeasuredRate]) -> MeasuredRate:
    n = len(loads)
    return MeasuredRate(
        math.fsum(load.queries_per_second for load in loads) / n,
        math.fsum(load.written_bytes_per_query for load in loads) / n,
        math.fsum(load.write_amplification for load in loads) / n,
    )


def estimate_of(by_block: Mapping[int, float], rule: Callable[[int], Rule]) -> Estimate:
    """Return a figure's usual value over blocks with its interval; unknown where any block lacks it."""
    logs = logarithms(by_block)
    if not logs or len(logs) < len(by_block):
        same = set(by_block.values())
        return Estimate(math.inf, math.inf, math.inf, len(by_block)) if same == {math.inf} else Estimate.unknown()
    figures = evidence(np.fromiter(logs.values(), dtype=np.float64), rule(len(logs)), margin=1.0)
    low, high = (float(np.exp(end)) if np.isfinite(end) else float(end) for end in (figures.low, figures.high))
    return Estimate(float(np.exp(figures.value)), low, high, len(logs))


def _demand(device: DevicePrice, prices: Prices, mean: MeasuredRate) -> Demand | None:
    if prices.demand_per_second is None and prices.data_bytes is None:
        return None
    demand = prices.demand_per_second or 0.0
    speed, data = sets_for_speed(mean, demand), sets_for_data(device, prices.data_bytes)
    if not math.isfinite(data):
        return None
    bound = "one" if speed == data == 1 else "speed" if speed >= data else "capacity"
    return Demand(int(max(speed, data)), bound, cost_of_demand(device, prices, mean, demand))


def _comparison(
    level: TreatmentCost,
    baseline: TreatmentCost,
    prices: Prices,
    offered: Mapping[str, Mapping[int, MeasuredRate]],
    rule: Callable[[int], Rule],
) -> CostComparison:
    capacities_known = level.capacity_known and baseline.capacity_known
    by_block = {
        side.id: {b: cost_per_million(side.device, prices, load) for b, load in offered[side.id].items()}
        for side in (level, baseline)
    }
    d = log_ratios(by_block[level.id], by_block[baseline.id]) if capacities_known else {}
    comparison = CostComparison(
        level=level.label,
        baseline=baseline.label,
        level_id=level.id,
        baseline_id=baseline.id,
        per_million=relative_effect(np.fromiter(d.values(), dtype=np.float64, count=len(d)), rule(len(d))),
    )
    at_rest = {side.id: cost_of_demand(side.device, prices, side.offered, 0.0) for side in (level, baseline)}
    if not capacities_known or not all(map(math.isfinite, at_rest.values())) or len(set(at_rest.values())) == 1:
        return comparison
    dear, cheap = sorted((level, baseline), key=lambda side: -at_rest[side.id])
    break_evens = {
        block: break_even(_curve(cheap, prices, offered[cheap.id][block]), _curve(dear, prices, load))
        for block, load in offered[dear.id].items()
        if block in offered[cheap.id]
    }
    starts = {
        block: math.nan if of_block.for_good is None else of_block.for_good
        for block, of_block in sorted(break_evens.items())
    }
    return replace(
        comparison,
        dearer=dear.label,
        cheaper=cheap.label,
        break_even=break_even(_curve(cheap, prices, cheap.offered), _curve(dear, prices, dear.offered)),
        break_even_per_second=estimate_of(starts, rule),
        pays_back_years=_pays_back(dear, cheap, prices),
    )


def _as_wide_as(finding: Finding, compared: CostComparison) -> CostComparison:
    """Return a comparison of costs whose interval reaches at least as far to either side as that of the finding.

    A cost goes down as the rate goes up, and is as unsure.
    """
    effect, of_rate = compared.per_million, finding.effect
    if not effect.known:
        return compared
    if not (effect.bounded and of_rate.bounded):
        return replace(compared, per_million=replace(effect, low=-math.inf, high=math.inf))
    value, low, high = (math.log1p(end) for end in (of_rate.value, of_rate.low, of_rate.high))
    middle = math.log1p(effect.value)
    reach = max(high - value, value - low)
    ends = min(effect.low, math.expm1(middle - reach)), max(effect.high, math.expm1(middle + reach))
    return replace(compared, per_million=replace(effect, low=ends[0], high=ends[1]))


def _curve(side: TreatmentCost, prices: Prices, load: MeasuredRate) -> CostCurve:
    for_data = sets_for_data(side.device, prices.data_bytes)
    fewest = int(for_data) if math.isfinite(for_data) else 1
    return CostCurve(lambda demand: cost_of_demand(side.device, prices, load, demand), load.queries_per_second, fewest)


def _pays_back(dear: TreatmentCost, cheap: TreatmentCost, prices: Prices) -> float:
    """Return after how many years the power that the dearer one saves has paid for it, serving the demand."""
    if dear.demand is None or cheap.demand is None or prices.demand_per_second is None:
        return math.nan
    demand = prices.demand_per_second
    bought = dear.demand.sets * dear.purchase - cheap.demand.sets * cheap.purchase
    a_year = [
        side.demand.sets * power_per_year(side.device, prices, prices.used * demand / serves)
        for side in (dear, cheap)
        if side.demand and (serves := side.demand.sets * side.offered.queries_per_second) > 0
    ]
    saved = a_year[1] - a_year[0]
    return bought / saved if bought > 0 and saved > 0 else math.nan
