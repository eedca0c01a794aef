"""``[cost]`` of a study: what it may say, and how it reaches the run folder."""

import tomllib
from dataclasses import replace

import pytest
import tomli_w

from dbdyno.errors import UserError
from dbdyno.model.design import Design
from dbdyno.plan.plan import make_plan, prices_for
from dbdyno.store.documents import document_of, value_of
from dbdyno.store.records import Run
from dbdyno.store.reported import Prices
from dbdyno.study.load import load_study
from tests.unit.study.conftest import refusal

STUDY = """\
version = 1
[study]
title = "t"
[stack]
device = ["hdd-7200", "ssd-sata"]
size = "1GiB"
scheduler = ["none", "bfq"]
filesystem = "ext4"
[workload]
kind = "slap"
load = "write"
queries = 10
"""
COST = """\
[cost]
currency = "EUR"
[cost."hdd-7200"]
source = "a shop"
price = 60
"""


def written(tmp_path, text):
    file = tmp_path / "study.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_prices_stand_beside_the_treatments_of_their_device(tmp_path):
    more = (
        '[cost."ssd-sata"]\nsource = "b"\nprice = 90.5\ndrives = 4\ndata_drives = 2\nreplicas = 1\ncapacity = "1TB"\n'
    )
    common = 'currency = "EUR"\nused = "40%"\nreplicas = 2\ndata = "400GB"\nqueries_per_second = 100'
    study = load_study(written(tmp_path, STUDY + COST.replace('currency = "EUR"', common) + more))
    plan = make_plan(study)
    prices = plan.prices
    assert (prices.used, prices.life_years, prices.data_bytes, prices.demand_per_second) == (0.4, 5.0, 4e11, 100.0)
    hdd, ssd = prices.devices
    labels = {one.id: one.label for one in plan.design.treatments}
    assert [labels[id_] for id_ in hdd.treatments] == ["hdd-7200 / none", "hdd-7200 / bfq"]
    assert (hdd.price, hdd.drives, hdd.data_drives, hdd.copies, hdd.capacity_bytes) == (60.0, 1, 1, 3, None)
    assert (ssd.price, ssd.drives, ssd.data_drives, ssd.copies, ssd.capacity_bytes) == (90.5, 4, 2, 2, 1e12)
    assert value_of(Prices, tomllib.loads(tomli_w.dumps(document_of(prices)))) == prices


def test_the_plan_foretells_that_an_offered_rate_has_no_cost_per_query(tmp_path):
    rated = STUDY.replace('kind = "slap"', 'kind = "slap"\nrate = 100')
    assert rated != STUDY
    told = "what a query costs, sets for a demand and the break-even will be unknown"
    assert any(told in one for one in make_plan(load_study(written(tmp_path, rated + COST))).warnings())
    for text in (rated, STUDY + COST):
        assert not any(told in one for one in make_plan(load_study(written(tmp_path, text))).warnings())


def test_a_device_that_does_not_vary_goes_by_its_name_and_prices_are_no_part_of_what_is_measured(tmp_path):
    one_device = STUDY.replace('["hdd-7200", "ssd-sata"]', '"hdd-7200"')
    priced = make_plan(load_study(written(tmp_path, one_device + COST)))
    assert priced.prices.of("t2").name == "hdd-7200"
    assert priced.study_sha256() == make_plan(load_study(written(tmp_path, one_device))).study_sha256()


def test_prices_of_another_file_fit_a_run_by_the_names_of_its_devices(tmp_path):
    study = load_study(written(tmp_path, STUDY + COST.replace("hdd-7200", "ssd-sata").replace("60", "75")))
    treatments = make_plan(study).design.treatments
    run = Run("", "", Design(treatments, "t1", [], 8, 0.03, "queries_per_second", 1), [], [], {}, {}, "done", [])
    assert prices_for(study, run).of("t3").price == 75.0
    assert prices_for(study, run).of("t1") is None
    others = [replace(one, levels={"device": "nvme"}) for one in treatments]
    with pytest.raises(UserError, match=r"names no device of this run; those are nvme"):
        prices_for(study, replace(run, design=replace(run.design, treatments=others)))
    with pytest.raises(UserError, match=r"has no \[cost\]"):
        prices_for(load_study(written(tmp_path, STUDY)), run)


@pytest.mark.parametrize(
    ("was", "becomes", "says"),
    [
        ('"hdd-7200"]\nsource', '"hdd-720"]\nsource', "study.toml:15: cost.hdd-720: is not a device or level of"),
        ('source = "a shop"\n', "", "study.toml:15: cost.hdd-7200.source: is missing"),
        ('currency = "EUR"\n', "", "study.toml:13: cost.currency: is missing"),
        ("price = 60", "price = -1", "study.toml:17: cost.hdd-7200.price: "),
        ("price = 60", "cost = 60", "study.toml:17: cost.hdd-7200.cost: is unknown"),
        ("price = 60", 'capacity = "big"', "study.toml:17: cost.hdd-7200.capacity: "),
        ("price = 60", "data_drives = 2", "study.toml:17: cost.hdd-7200.data_drives: is 2, more than its 1 drives"),
        ("price = 60", "power_watts_idle = 2", "cost.hdd-7200.power_watts_idle: needs power_watts beside it"),
        ("price = 60", '[cost.none]\nsource = "x"', 'cost.none: and "hdd-7200" are both levels of one treatment'),
        ('currency = "EUR"', 'currency = "EUR"\nused = "0%"', "study.toml:15: cost.used: "),
        (COST, '[cost]\ncurrency = "EUR"\n', "study.toml:13: cost: names no device"),
        (COST, "cost = 3\n", "cost"),
    ],
)  # fmt: skip
def test_a_mistake_names_line_field_and_remedy(tmp_path, was, becomes, says):
    text = STUDY + COST
    assert was in text
    assert says in refusal(written(tmp_path, text.replace(was, becomes)))
