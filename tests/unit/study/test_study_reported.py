"""``[[reported]]``: what rows and claims must fit, and what a plan makes of them."""

import pytest

from dbdyno.errors import UserError
from dbdyno.model.design import Comparison
from dbdyno.plan.plan import aa_plan, make_plan
from dbdyno.store.documents import document_of, value_of
from dbdyno.store.reported import ReportedTable
from dbdyno.study.load import load_study
from tests.unit.study.conftest import refusal

END = "blocks = 6\n"
TABLE = """\
[[reported]]
source = "a table"
metric = "seconds_real"
rows = [
  { levels = { device = "hdd-7200", clients = 10 }, as = "spinning", value = 4.4, min = 4, max = 5.5 },
  { levels = { device = "ssd-sata", clients = 10 }, value = 2 },
  { levels = { device = "ssd-sata", clients = 50 }, value = 3 },
]
[[reported.claims]]
text = "the SSD is twice as fast"
treatment = { device = "ssd-sata" }
baseline = { device = "hdd-7200" }
direction = "faster"
times_max = 2
[[reported.claims]]
text = "buy two"
[scale.full.workload]
clients = [10, 50]
queries = 9000
"""


def test_rows_and_claims_find_their_treatments_at_each_scale(write_study):
    path = write_study((END, END + TABLE))
    (small,), (full,) = (make_plan(load_study(path, scale)).reported for scale in ("", "full"))
    assert [(row.label, row.called, row.treatment) for row in small.rows] == [
        ("hdd-7200", "spinning", "t1"),
        ("ssd-sata", "", "t2"),
        ("ssd-sata / clients 50", "", ""),  # not at this scale
    ]
    assert [(row.label, row.treatment) for row in full.rows] == [
        ("hdd-7200 / clients 10", "t1"),
        ("ssd-sata / clients 10", "t3"),
        ("ssd-sata / clients 50", "t4"),
    ]
    assert small.claims[0].pairs == [Comparison("t1", "t2")]
    assert full.claims[0].pairs == [Comparison("t1", "t3"), Comparison("t2", "t4")]
    assert (full.claims[0].direction, full.claims[0].times_min, full.claims[0].times_max) == ("faster", None, 2.0)
    assert [claim.checked for claim in full.claims] == [True, False]


def test_a_run_folder_holds_the_table_as_it_was_planned(write_study):
    (table,) = make_plan(load_study(write_study((END, END + TABLE)), "full")).reported
    assert value_of(ReportedTable, document_of(table)) == table


def test_an_aa_run_has_none(write_study):
    assert aa_plan(load_study(write_study((END, END + TABLE)))).reported == []


def row(levels, rest="value = 1"):
    return f'[[reported]]\nsource = "x"\nrows = [\n  {{ levels = {levels}, {rest} }},\n]\n'


def claim(text):
    return f'[[reported]]\nsource = "x"\n[[reported.claims]]\ntext = "y"\n{text}\n'


MISTAKES = {
    "no such factor": (
        row("{ devise = 1 }"),
        ':25: reported.rows.levels.devise: is neither a factor nor a field of this study. Did you mean "device"?',
    ),
    "no such level": (
        row('{ device = "ssd" }'),
        ':25: reported.rows.levels.device: is "ssd", not a level of device; levels are hdd-7200, ssd-sata',
    ),
    "another value of a fixed field": (
        row('{ device = "ssd-sata", clients = 9 }'),
        ":25: reported.rows.levels.clients: is 9, not a level of clients; levels are 10",
    ),
    "two treatments": (
        row("{ clients = 10 }"),
        ":25: reported.rows.levels: fits 2 treatments; give also the level of device",
    ),
    "no value": (row('{ device = "ssd-sata" }', 'as = "x"'), ":25: reported.rows.value: is missing"),
    "a value of nothing": (row('{ device = "ssd-sata" }', "value = 0"), ":25: reported.rows.value: is 0; it must be"),
    "a key that there is not": (
        row('{ device = "ssd-sata" }', "value = 1, val = 1"),
        ":25: reported.rows.val: is unknown here; known are levels, as, value, min, max",
    ),
    "limits": (row('{ device = "ssd-sata" }', "value = 2, min = 3"), ":25: reported.rows.min: is 3, more than value"),
    "no metric": ('[[reported]]\nsource = "x"\nmetric = "seconds"\n', ':24: reported.metric: is "seconds"; allowed'),
    "no source": ("[[reported]]\nrows = []\n", ":22: reported.source: is missing"),
    "one table": ('[reported]\nsource = "x"\n', ":22: reported: must be written as [[reported]]"),
    "half a claim": (
        claim('treatment = { device = "ssd-sata" }'),
        ":24: reported.claims: gives one of treatment and baseline",
    ),
    "a claim of nothing": (
        claim('treatment = { device = "ssd-sata" }\nbaseline = { device = "hdd-7200" }'),
        ":24: reported.claims: gives treatment and baseline, but neither direction nor times_min or times_max",
    ),
    "a claim on nothing": (claim('direction = "faster"'), ":24: reported.claims: gives nothing to check it on"),
    "a claim on itself": (
        claim('treatment = { device = "ssd-sata" }\nbaseline = { clients = 10, device = "ssd-sata" }\ntimes_min = 2'),
        ":26: reported.claims.treatment: and baseline fit no pair of treatments that are otherwise alike",
    ),
    "steadiness that is not judged": (
        claim('treatment = { device = "ssd-sata" }\nbaseline = { device = "hdd-7200" }\ndirection = "steadier"'),
        ':28: reported.claims.direction: is "steadier"; that is judged only with design.steadiness = true',
    ),
    "a direction that there is not": (
        claim('treatment = { device = "ssd-sata" }\nbaseline = { device = "hdd-7200" }\ndirection = "better"'),
        ':28: reported.claims.direction: is "better"; allowed are faster, slower, equivalent, steadier, less steady',
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_its_line(write_study, name):
    text, said = MISTAKES[name]
    path = write_study((END, f"{END}{text}"))
    assert refusal(path).startswith(f"{path}{said}")


def test_the_same_row_twice_is_refused(write_study):
    twice = row('{ device = "ssd-sata" }').replace("\n]", '\n  { levels = { device = "ssd-sata" }, value = 3 },\n]')
    with pytest.raises(UserError, match=r":26: reported.rows.levels: is the same as row 1 of this table$"):
        load_study(write_study((END, END + twice)))
