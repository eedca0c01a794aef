"""The money in every report: figures as measured, prices as given, what is missing said."""

import json
from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.report.sections.cost import cost_lines
from dbdyno.store.reported import DevicePrice, Prices
from tests.unit.report.rendered import as_json, as_markdown, as_page, as_text

HDD = DevicePrice("hdd-7200", ["t1", "t2"], "a shop <script>", 70.0, 2, 1, 1, 2e12, watts=6.5, watts_idle=5.0)
SSD = DevicePrice("ssd-sata", ["t3", "t4"], "b *shop*", 90.0, 2, 1, 1, 1e12, endurance_bytes=6e14)
PRICES = Prices("EUR", 5.0, 0.25, 0.3, 5000.0, 1.5e12, [HDD, SSD])


@pytest.fixture(name="priced")
def priced_run(run):
    trials = [replace(one, metrics={**one.metrics, "written_bytes_per_query": 4096.0}) for one in run.trials]
    return replace(run, trials=trials, prices=PRICES)


def test_text(priced, snapshot):
    report = as_text(priced, analyse(priced))
    assert report[report.index("\nCost\n") : report.index("\nFailed trials")] == snapshot


def test_every_format_has_it_and_a_source_stays_text(priced):
    analysis = analyse(priced)
    page, post = as_page(priced, analysis, {}), as_markdown(priced, analysis)
    assert ">Cost</h2>" in page
    assert "a shop &lt;script&gt;" in page
    assert "## Cost" in post
    assert r"b \*shop\*" in post
    document = json.loads(as_json(priced, analysis))["cost"]
    assert [one["device"] for one in document["treatments"]] == ["hdd-7200", "hdd-7200", "ssd-sata", "ssd-sata"]
    assert document["treatments"][0]["wear_years"]["value"] is None
    assert document["lines"] == cost_lines(analysis)


def test_what_is_missing_is_said(priced):
    bare = replace(PRICES, price_per_kwh=None, devices=[replace(HDD, price=None, capacity_bytes=None), SSD])
    told = "\n".join(cost_lines(analyse(replace(priced, prices=bare))))
    assert "cost per query unknown, because a price is missing" in told
    assert "with hdd-7200: unknown, because no capacity is given" in told
    assert "Power is not included" in told
    assert "unknown for ssd-sata and taken as 1" in told


def test_without_prices_no_report_speaks_of_money(run):
    assert ">Cost</h2>" not in as_page(run, analyse(run), {})  # the others are snapshots


def test_a_cost_says_no_more_than_the_comparison_that_it_rests_on(priced):
    """Of two blocks no interval is known; the second devices differ in name alone, and their rates by noise."""
    twins = replace(PRICES, devices=[HDD, replace(HDD, name="ssd-sata", treatments=["t3", "t4"])])
    rate = {"t1": 400.0, "t2": 400.0, "t3": 402.0, "t4": 399.0}
    noisy = [
        replace(one, metrics={**one.metrics, "queries_per_second": rate[one.treatment] * (1 + 0.02 * (-1) ** place)})
        for place, one in enumerate(priced.trials)
    ]
    few = [one for one in priced.trials if one.block <= 2]
    for trials, prices in ((noisy, twins), (few, PRICES)):
        analysis = analyse(replace(priced, trials=trials, prices=prices))
        costs = [line for line in cost_lines(analysis) if "a query costs" in line.lower()]
        assert costs
        for line in costs:
            assert line.startswith("Whether a query costs more or less"), line
            assert "cheaper" not in line
        assert "A query costs" not in as_text(replace(priced, trials=trials, prices=prices), analysis)
