"""Several treatments in few words."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.model.design import Treatment
from dbdyno.report.sentences import treatments_named

LEVELS = {"device": ("hdd-7200", "ssd-sata"), "clients": ("1", "10", "50")}
ALL = [
    Treatment(f"t{place}", dict(zip(LEVELS, levels, strict=True)))
    for place, levels in enumerate(product(*LEVELS.values()), 1)
]


def chosen(**levels):
    return [one.id for one in ALL if all(one.levels[name] in wanted for name, wanted in levels.items())]


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        ([one.id for one in ALL], "all treatments"),
        (chosen(device=["ssd-sata"]), "ssd-sata"),
        (chosen(clients=["10", "50"]), "clients 10; clients 50"),
        (chosen(clients=["10"]), "clients 10"),
        (["t1", "t2", "t4"], "hdd-7200 / clients 1; hdd-7200 / clients 10; ssd-sata / clients 1"),
        (["t1", "t5"], "hdd-7200 / clients 1; ssd-sata / clients 10"),
        ([], ""),
    ],
)
def test_as_few_words_as_there_are(ids, told):
    assert treatments_named(ids, ALL) == told


def test_where_there_are_two_both_are_named():
    assert treatments_named(["t1", "t2"], ALL[:2], ", ") == "hdd-7200 / clients 1, hdd-7200 / clients 10"


@given(st.sets(st.sampled_from([one.id for one in ALL])))
def test_the_words_mean_these_and_no_others(ids):
    words = treatments_named(ids, ALL).split("; ") if ids else []
    everyone = words == ["all treatments"]
    meant = {
        one.id
        for one in ALL
        if everyone or any(set(word.split(" / ")) <= set(one.label.split(" / ")) for word in words)
    }
    assert meant == ids
