"""``[suite]``: a folder of loads becomes the first factor; they begin with the same data and are not compared."""

from pathlib import Path

import pytest

from dbdyno.cli.plan import planned_images
from dbdyno.cli.suite import suite_file
from dbdyno.errors import UserError
from dbdyno.plan.plan import make_plan
from dbdyno.study.load import load_study
from tests.unit.conftest import changed
from tests.unit.study.conftest import refusal

ROOT = Path(__file__).parents[3]
MICROBENCH = ROOT / "studies/suites/microbench.toml"
INSERT = ROOT / "studies/suites/insert.toml"
LOADS = {
    "point/one.sql": ":id = uniform(1, :rows)\nSELECT :id;",
    "point/two.sql": "SELECT 2;",
    "write/three.sql": "SELECT 3;",
    "setup.sql": ":rows = 5\n-- setup:\nCREATE TABLE t SELECT :rows;",
}
STUDY = """\
version = 1
[study]
title = "two settings"
[suite]
loads = "small"
[stack]
device = "ideal"
size = "1GiB"
filesystem = "ext4"
[server.settings]
innodb_flush_log_at_trx_commit = [1, 2]
[workload]
duration = "5s"
[design]
blocks = 6
"""


@pytest.fixture
def suite(tmp_path):
    """Write a suite with changes to its study and to its files; return the study's path."""

    def written(*changes, **files):
        for name, text in {**LOADS, **files}.items():
            if text is not None:
                path = tmp_path / "small" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        (tmp_path / "s.toml").write_text(changed(*changes, text=STUDY), encoding="utf-8")
        return tmp_path / "s.toml"

    return written


def test_each_file_is_a_level_of_the_first_factor(suite):
    study = load_study(suite())
    load, setting = study.factors
    assert (load.name, load.labels(), load.groups) == (
        "load",
        ["one", "two", "three"],
        {"one": "point", "two": "point", "three": "write"},
    )
    assert setting.name == "innodb_flush_log_at_trx_commit"
    for levels, spec in study.combinations():
        assert Path(spec.workload.file).stem == levels["load"]
        assert Path(spec.workload.setup).name == "setup.sql"


def test_loads_are_compared_each_with_itself(suite):
    design = make_plan(load_study(suite())).design
    levels = {treatment.id: treatment.levels for treatment in design.treatments}
    pairs = [(levels[pair.baseline], levels[pair.level]) for pair in design.comparisons]
    assert [(one["load"], other["load"]) for one, other in pairs] == [("one",) * 2, ("two",) * 2, ("three",) * 2]
    assert {tuple(level["innodb_flush_log_at_trx_commit"] for level in pair) for pair in pairs} == {("1", "2")}
    assert design.factors[0].groups == {"one": "point", "two": "point", "three": "write"}
    assert design.factors[0].is_load


def test_a_block_holds_every_load_in_random_order(suite):
    plan = make_plan(load_study(suite()), seed=3)
    orders = [tuple(slot.treatment for slot in plan.slots(block, 1)) for block in (1, 2, 3)]
    assert len(set(orders)) == 3
    assert {tuple(sorted(order)) for order in orders} == {tuple(f"t{number}" for number in range(1, 7))}


def test_loads_share_the_data_that_their_setup_makes(suite):
    assert [len(image) for image in planned_images(make_plan(load_study(suite())))] == [6]
    without = suite(**{"setup.sql": None})
    (without.parent / "small/setup.sql").unlink()
    assert [len(image) for image in planned_images(make_plan(load_study(without)))] == [2, 2, 2]


def test_another_load_needs_nothing_but_its_file(suite):
    study = load_study(suite(**{"write/four.sql": "SELECT 4;"}))
    assert study.factors[0].labels() == ["one", "two", "four", "three"]


def test_only_some_of_the_loads(suite):
    study = load_study(suite(('loads = "small"', 'loads = "small"\nonly = ["t*"]')))
    assert study.factors[0].labels() == ["two", "three"]


def test_what_is_measured_depends_on_the_text_of_the_loads(suite):
    before = make_plan(load_study(suite())).study_sha256()
    assert make_plan(load_study(suite())).study_sha256() == before
    assert make_plan(load_study(suite(**{"point/two.sql": "SELECT 22;"}))).study_sha256() != before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('loads = "small"', 'loads = "none"'), ':5: suite.loads: is "none", in which there is no load: give a folder'),
        (('loads = "small"', 'loads = "small"\nonly = ["on"]'), ':6: suite.only: names no load: "on"; there are '),
        (('loads = "small"', "loads = 3"), ":5: suite.loads: "),
        (('loads = "small"', ""), ":4: suite.loads: is missing"),
        (("[1, 2]", "1"), ":4: suite: needs something to compare its loads by: give a list, such as server in [stack]"),
        (("[workload]", '[workload]\nkind = "slap"'), ':13: workload.kind: is "slap", but the loads of a suite are'),
        (("[workload]", '[workload]\nfile = "a.sql"'), ":13: workload.file: can't be given with [suite], which names"),
        (("[design]", "[levels.a]\nclients = 1\n[design]"), "levels: can't be given with [suite]"),
        (("[design]", '[design]\ncompare = "every-pair"'), ":15: design.compare: can't be given with [suite]"),
        (("[design]", '[design]\ncompare_factors = ["load"]'), ":15: design.compare_factors: names the loads"),
    ],
)  # fmt: skip
def test_mistakes_are_named_with_their_place(change, said, suite):
    path = suite(change)
    assert said in refusal(path).replace(str(path), "")


def test_two_loads_of_one_name_are_refused(suite):
    with pytest.raises(UserError, match='has two loads called "one"; rename one of the files'):
        load_study(suite(**{"write/one.sql": "SELECT 1;"}))


def test_microbench_is_42_loads_that_fit_into_four_hours():
    study = load_study(MICROBENCH)
    load, servers = study.factors
    assert (len(load.levels), servers.name) == (42, "server")
    assert dict.fromkeys(load.groups.values()).keys() == {"point", "range", "aggregate", "write"}
    plan = make_plan(study)
    assert len(planned_images(plan)) == len(servers.levels), "one of each server, whatever the load"
    three_versions = plan.seconds_per_trial() * 42 * 3 * 6
    assert three_versions < 4 * 3600


def test_a_suite_is_found_by_its_name():
    assert suite_file("microbench").resolve() == MICROBENCH
    assert suite_file("a/b.toml") == Path("a/b.toml")
    with pytest.raises(UserError, match=r"microbensh is no suite; there are .*Did you mean"):
        suite_file("microbensh")


# Loads that say more than their SQL, and that go on from one another.

STEPS = {
    "write/four.sql": '-- load: after = "three", events = 100, warmup = "0s"\nINSERT INTO t VALUES (1);',
    "write/five.sql": '-- load: after = "four"\n-- beside: file = "go-on.sql", rate = 9\nSELECT 5;',
    "write/go-on.sql": "INSERT INTO t VALUES (:rows);",
}
NO_DURATION = ('duration = "5s"', 'warmup = "1s"')
OF_THREE = {"write/three.sql": '-- load: duration = "3s"\nSELECT 3;'}
LONG = {"point/one.sql": '-- load: duration = "2s"\nSELECT 1;', "point/two.sql": '-- load: duration = "2s"\nSELECT 2;'}
FIVE = {"write/five.sql": STEPS["write/five.sql"].replace('"four"', '"four", duration = "4s"')}


@pytest.fixture
def steps(suite):
    def written(*changes, **files):
        return suite(NO_DURATION, *changes, **{**STEPS, **OF_THREE, **LONG, **FIVE, **files})

    return written


def specs_of(study):
    return {levels["load"]: spec for levels, spec in study.combinations()}


def test_a_load_says_its_own_fields_and_what_runs_beside_it(steps):
    study = load_study(steps())
    specs = specs_of(study)
    assert list(specs) == ["one", "two", "three", "four", "five"], "each after what it goes on from"
    assert (specs["four"].workload.events, specs["four"].workload.warmup, specs["four"].workload.duration) == (
        100,
        0,
        None,
    )
    assert [specs[name].workload.duration for name in ("one", "three", "five")] == [2, 3, 4]
    (beside,) = specs["five"].loads_beside.values()
    assert (beside.name, beside.rate, Path(beside.file).name) == ("go_on", 9, "go-on.sql")
    assert specs["five"].with_own_tables == {}, "it works on the tables of the judged load"
    assert not specs["four"].loads_beside
    plan = make_plan(study)
    assert [len(image) for image in planned_images(plan)] == [10]
    assert plan.design.factors[0].is_load
    assert plan.design.factors[0].chains() == [["three", "four", "five"]]


def test_only_brings_along_what_a_load_goes_on_from(steps):
    study = load_study(steps(('loads = "small"', 'loads = "small"\nonly = ["four"]')))
    assert study.factors[0].labels() == ["three", "four"]


def test_times_as_many_events(steps):
    study = load_study(steps(('loads = "small"', 'loads = "small"\ntimes = 2.5')))
    assert specs_of(study)["four"].workload.events == 250


@pytest.mark.parametrize(
    ("changes", "files", "said"),
    [
        ((), {"write/four.sql": "-- load: after = thre\nSELECT 1;"},
         ":5: suite.loads: small/write/four.sql:1: load: can't be read; write fields as in: after = "),
        ((), {"write/four.sql": '-- load: after = "thre"\nSELECT 1;'},
         'small/write/four.sql: after: is "thre", which is no load; there are one, two, five, four, three. Did'),
        ((), {"write/five.sql": '-- load: after = "three"\nSELECT 1;'},
         "small/write/four.sql: after: is three, and so is that of five; one load goes on from each"),
        ((), {"write/three.sql": '-- load: after = "five"\nSELECT 1;'}, "after: leads round to itself"),
        ((), {"write/four.sql": '-- A load.\n-- load: after = "three", clients = "2"\nSELECT 1;'},
         ':5: suite.loads: small/write/four.sql:2: clients: is "2" but must be'),
        ((), {"write/four.sql": '-- load: after = "three", set = "rows=1"\nSELECT 1;'},
         "small/write/four.sql:1: load: set is one for all loads of a suite; leave it out"),
        ((), {"write/five.sql": '-- load: after = "four", duration = "1s"\n-- beside: file = "no.sql", rate = -1'},
         "small/write/five.sql:2: beside.no.rate: is -1; it must be"),
        ((("blocks = 6", 'blocks = 6\nsettle = "trial"'),), {}, 'settle: can\'t be "trial" with loads that go'),
        ((("blocks = 6", 'blocks = 6\nhard_to_change = ["load"]'),), {}, "can't name the loads with loads that"),
        ((("[design]", '[hosts]\nunder_test = ["a", "b", "c"]\n[design]'),), {}, "hosts: can't be given with loads"),
        ((('size = "1GiB"', 'size = "1GiB"\nkernel = "debian-6.1"'),), {}, "stack.kernel: names a virtual machine"),
    ],
)  # fmt: skip
def test_mistakes_of_a_load_s_own_lines_are_named_with_their_place(changes, files, said, steps):
    path = steps(*changes, **files)
    assert said in refusal(path).replace(str(path), "")


def test_the_insert_benchmark_is_one_chain_of_seven_steps():
    study = load_study(INSERT)
    names = ["fill", "index", "insert-50", "insert-5", "range-100", "range-500", "range-1000"]
    assert study.factors[0].labels() == names
    plan = make_plan(study)
    assert plan.design.factors[0].chains() == [names]
    assert len(planned_images(plan)) == len(study.factors[1].levels)
    rates = [[load.rate for load in spec.loads_beside.values()] for spec in list(plan.specs.values())[::3]]
    assert rates == [[], [], [], [], [100], [500], [1000]]


def test_a_single_load_is_a_suite_too(suite):
    design = make_plan(load_study(suite(('loads = "small"', 'loads = "small"\nonly = ["one"]')))).design
    assert [treatment.levels["load"] for treatment in design.treatments] == ["one", "one"]
    assert len(design.comparisons) == 1
