"""Money: units, what must grow with what, break-even against brute force, and intervals carried over."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.cost import (
    SECONDS_PER_YEAR,
    CostCurve,
    MeasuredRate,
    amplification,
    break_even,
    cost_of_demand,
    cost_of_set,
    cost_per_million,
    power_per_year,
    purchase,
    sets_for_data,
    sets_for_speed,
    wear_years,
)
from dbdyno.report.sections.cost import cost_lines
from dbdyno.store.reported import DevicePrice, Prices

PRICES = Prices("EUR", life_years=5.0, used=0.5, price_per_kwh=0.25)
DRIVE = DevicePrice("d", ["t"], "a shop", price=100.0, watts=10.0, watts_idle=4.0, capacity_bytes=1e12)
LOAD = MeasuredRate(1000.0, 4096.0, 1.0)

drives = st.builds(
    DevicePrice,
    name=st.just("d"),
    treatments=st.just(["t"]),
    source=st.just("s"),
    price=st.floats(1, 1e4),
    drives=st.integers(1, 8),
    copies=st.integers(1, 3),
    capacity_bytes=st.floats(1e10, 1e14),
    endurance_bytes=st.none() | st.floats(1e12, 1e16),
    watts=st.floats(1, 20),
    watts_idle=st.floats(0, 1),
)
loads = st.builds(MeasuredRate, st.floats(1, 1e6), st.floats(0, 1e5), st.floats(1, 10))
prices = st.builds(Prices, st.just("EUR"), st.floats(0.5, 10), st.floats(0.01, 1), st.none() | st.floats(0, 1))


def test_units():
    assert purchase(replace(DRIVE, drives=2, copies=3)) == 600.0
    # Half of 8,766 hours at 10 W, half at 4 W: 61.362 kWh at .25 each.
    assert power_per_year(DRIVE, PRICES, 0.5) == pytest.approx(15.3405)
    assert cost_of_set(DRIVE, PRICES, LOAD, 0.5) == pytest.approx(100 + 5 * 15.3405)
    # 1,000 queries a second for half of five years are 78.9 thousand million.
    assert cost_per_million(DRIVE, PRICES, LOAD) == pytest.approx((100 + 5 * 15.3405) / 78_894)
    # 4,096,000 bytes a second for half of the time: 64.6 TB a year.
    worn = wear_years(replace(DRIVE, endurance_bytes=600e12), LOAD, 0.5)
    assert worn == pytest.approx(600e12 / (4_096_000 * 0.5 * SECONDS_PER_YEAR))
    assert worn == pytest.approx(9.283, abs=1e-3)
    assert (sets_for_speed(LOAD, 1000.0), sets_for_speed(LOAD, 1001.0), sets_for_speed(LOAD, 0.0)) == (1, 2, 1)
    assert sets_for_data(replace(DRIVE, data_drives=2), 5e12) == 3


def test_a_mirror_lasts_as_long_as_one_drive_and_a_stripe_twice_as_long():
    mirror = replace(DRIVE, endurance_bytes=1e14, drives=2, data_drives=1)
    one = wear_years(replace(DRIVE, endurance_bytes=1e14), LOAD, 1.0)
    assert wear_years(mirror, LOAD, 1.0) == pytest.approx(one)
    assert wear_years(replace(mirror, data_drives=2), LOAD, 1.0) == pytest.approx(2 * one)
    assert wear_years(replace(mirror, copies=3), LOAD, 1.0) == pytest.approx(one)


def test_worn_drives_are_bought_again():
    worn = replace(DRIVE, endurance_bytes=4_096_000 * 0.5 * SECONDS_PER_YEAR * 2.0)  # two years
    assert cost_of_set(worn, PRICES, LOAD, 0.5) == pytest.approx(250 + 5 * 15.3405)


def test_what_is_unknown_stays_unknown():
    assert math.isnan(purchase(replace(DRIVE, price=None)))
    assert math.isnan(cost_per_million(replace(DRIVE, price=None), PRICES, LOAD))
    assert math.isnan(wear_years(DRIVE, LOAD, 1.0))
    lasting = replace(DRIVE, endurance_bytes=1e14)
    assert math.isnan(wear_years(lasting, replace(LOAD, written_bytes_per_query=math.nan), 1.0))
    assert wear_years(lasting, replace(LOAD, written_bytes_per_query=0.0), 1.0) == math.inf
    assert math.isnan(sets_for_data(replace(DRIVE, capacity_bytes=None), 1e12))


@given(drives, prices, loads, st.floats(0.01, 1e6), st.floats(1, 100))
def test_more_demand_never_costs_less_and_a_dearer_drive_never_more_cheaply(device, money, load, demand, times):
    assume(demand * times / load.queries_per_second < 1e9)
    one = cost_of_demand(device, money, load, demand)
    assert cost_of_demand(device, money, load, demand * times) >= one * (1 - 1e-9)
    assert cost_of_demand(replace(device, price=device.price * times), money, load, demand) >= one * (1 - 1e-9)
    lasting = replace(device, endurance_bytes=device.endurance_bytes and device.endurance_bytes * times)
    assert cost_of_demand(lasting, money, load, demand) <= one * (1 + 1e-9)


@given(drives, prices, loads, st.floats(0.01, 100))
def test_money_scales_with_money_and_time_with_writes(device, money, load, times):
    dearer = replace(device, price=device.price * times)
    power = None if money.price_per_kwh is None else money.price_per_kwh * times
    assert cost_per_million(dearer, replace(money, price_per_kwh=power), load) == pytest.approx(
        cost_per_million(device, money, load) * times
    )
    if device.endurance_bytes and load.written_bytes_per_query > 1e-6:
        more = replace(load, written_bytes_per_query=load.written_bytes_per_query * times)
        assert wear_years(device, more, money.used) == pytest.approx(wear_years(device, load, money.used) / times)


curves = st.tuples(st.integers(1, 1000), st.integers(1, 50), st.integers(1, 3))  # money, served, fewest sets


def stepped(money, serves, fewest):
    return CostCurve(lambda demand: money * max(fewest, math.ceil(demand / serves * (1 - 1e-12))), serves, fewest)


@given(curves, curves)
def test_break_even_is_that_of_trying_every_demand(first, second):
    a, b = stepped(*first), stepped(*second)
    found = break_even(a, b)
    tried = np.arange(0.25, found.searched, 0.5)  # costs jump at whole numbers only
    cheaper = np.array([b.cost(x) < a.cost(x) for x in tried])
    if cheaper.any():
        assert found.first == pytest.approx(tried[cheaper.argmax()], abs=0.26)
    else:
        assert found.first is None
    if cheaper[-1]:
        start = 0 if cheaper.all() else len(cheaper) - cheaper[::-1].argmin()
        assert found.for_good == pytest.approx(tried[start], abs=0.26)
    else:
        assert found.for_good is None


def test_break_even_inside_a_stretch_is_found_where_power_decides():
    a, b = CostCurve(lambda x: 10 + 2 * x, 1000.0, 1), CostCurve(lambda x: 110 + x, 1000.0, 1)
    found = break_even(a, b)
    assert found.first == found.for_good == pytest.approx(100.0)


def priced(run, **device):
    """Return the run with prices: t2's device costs ten times that of t1."""
    cheap = DevicePrice("a", ["a"], "shop", price=50.0)
    dear = replace(DevicePrice("b", ["b"], "shop", price=500.0), **device)
    return replace(run, prices=Prices("EUR", 5.0, 1.0, devices=[cheap, dear]))


def test_the_cost_per_query_has_the_interval_of_the_throughput(a_run):
    rng = np.random.default_rng(3)
    rates = {"a": 300 * np.exp(rng.normal(0, 0.02, 10)), "b": 2000 * np.exp(rng.normal(0, 0.02, 10))}
    analysis = analyse(priced(a_run({name: list(values) for name, values in rates.items()})))
    effect, (found,) = analysis.verdicts[0].effect, analysis.cost.comparisons
    # Ten times the price at so many times the rate, and at least as unsure as that.
    assert 1 + found.per_million.value == pytest.approx(10 / (1 + effect.value))
    assert 1 + found.per_million.low <= 10 / (1 + effect.high) * (1 + 1e-9)
    assert 1 + found.per_million.high >= 10 / (1 + effect.low) * (1 - 1e-9)
    assert found.per_million.high < 1.3 * found.per_million.low
    assert (found.dearer, found.cheaper) == ("level b", "level a")
    # Ten drives of the cheaper kind cost as much as one of the dearer, so beyond ten the eleventh decides ...
    mean = float(np.mean(rates["a"]))
    assert found.break_even.first is None  # ... but by then one dear drive is not enough either: 2000 < 10 x 300
    assert found.break_even.for_good is None
    one = analysis.cost.treatments[0]
    assert one.per_second_per_money.value == pytest.approx(mean / 50, rel=0.02)
    assert one.per_second_per_money.low < one.per_second_per_money.value < one.per_second_per_money.high


def test_the_break_even_lies_where_the_cheaper_needs_one_drive_too_many(a_run):
    run = priced(a_run({"a": [100.0] * 8, "b": [5000.0] * 8}))
    (found,) = analyse(run).cost.comparisons
    assert found.break_even.first == found.break_even.for_good == pytest.approx(1000.0)
    assert found.break_even_per_second.value == pytest.approx(1000.0)


def test_without_a_price_or_prices_nothing_is_made_up(a_run):
    run = a_run({"a": [100.0] * 8, "b": [110.0] * 8})
    assert analyse(run).cost is None
    (found,) = analyse(priced(run, price=None)).cost.comparisons
    assert not found.per_million.known
    assert found.break_even is None


OPEN = {"kind": "open", "rate": 100.0, "spacing": "fixed"}


def under(run, loop, *, of=("a", "b"), behind=False):
    """The run with a loop of that kind for some treatments; ``behind``: they did not keep up with it."""
    load = {"loop": loop, "offered": 10_000, "achieved_per_second": 90.0, "backlog_max": 2_000 if behind else 3}
    ratio = {"achieved_ratio": 0.9 if behind else 1.0}
    trials = [
        replace(one, load=load, metrics={**one.metrics, **ratio}) if one.treatment in of else one for one in run.trials
    ]
    return replace(run, trials=trials)


@pytest.mark.parametrize("loop", [OPEN, {"kind": "closed", "think_seconds": 0.5}])
def test_a_rate_that_was_asked_for_is_no_capacity(a_run, loop):
    run = priced(a_run({"a": [100.0] * 8, "b": [100.0] * 8}), endurance_bytes=1e14)
    run = replace(run, prices=replace(run.prices, demand_per_second=1000.0, price_per_kwh=0.3))
    run = replace(
        run,
        trials=[replace(one, metrics={**one.metrics, "written_bytes_per_query": 4096.0}) for one in run.trials],
    )
    found = analyse(under(run, loop)).cost
    for one in found.treatments:
        assert not one.capacity_known
        assert not one.per_second_per_money.known
        assert not one.per_million.known
        assert one.demand is None
    assert found.treatments[1].wear_years.known, "wear under this very load is known"
    (compared,) = found.comparisons
    assert not compared.per_million.known
    assert compared.break_even is None
    assert not compared.break_even_per_second.known
    assert math.isnan(compared.pays_back_years)
    told = "\n".join(cost_lines(analyse(under(run, loop))))
    assert "cost per query unknown, because their highest rate was not measured" in told
    assert "Measure it in a closed loop without pauses, or at a rate that no treatment keeps up with." in told
    assert "is cheaper" not in told
    assert "1,000 queries per second take" not in told


def test_one_that_fell_behind_its_rate_did_all_it_can(a_run):
    run = priced(a_run({"a": [100.0] * 8, "b": [5000.0] * 8}))
    found = analyse(under(run, OPEN, behind=True)).cost
    assert [one.capacity_known for one in found.treatments] == [True, True]
    assert found.comparisons[0].break_even.first == pytest.approx(1000.0)
    mixed = analyse(under(under(run, OPEN, behind=True), OPEN, of=("b",))).cost
    assert [one.capacity_known for one in mixed.treatments] == [True, False]
    assert mixed.treatments[0].per_million.known
    assert not mixed.comparisons[0].per_million.known


def test_how_much_data_the_sets_hold_needs_no_rate(a_run):
    run = priced(a_run({"a": [100.0] * 8, "b": [100.0] * 8}), capacity_bytes=1e12)
    run = replace(run, prices=replace(run.prices, data_bytes=3e12))
    assert analyse(under(run, OPEN)).cost.treatments[1].demand.sets == 3


def test_write_amplification_is_what_the_drive_counted(a_trial):
    told = {"gauges": {"flash_written_bytes": 300.0, "host_written_bytes": 100.0}}
    assert amplification(replace(a_trial("a", 1, 5.0), device=told)) == 3.0
    for device in ({}, {"gauges": {"queue_depth": 1.0}}, {"gauges": {**told["gauges"], "host_written_bytes": 0.0}}):
        assert amplification(replace(a_trial("a", 1, 5.0), device=device)) is None
