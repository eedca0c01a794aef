"""``[suite]``: a folder of loads becomes the first factor; they begin with the same data and are not compared."""

from pathlib import Path

import pytest

from dbdyno.cli.plan import planned_images
from dbdyno.cli.suite import suite_file
from dbdyno.errors import UserError
from dbdyno.plan.plan import make_plan
from dbdyno.study.load import load_study

ROOT = Path(__file__).parents[3]
MICROBENCH = ROOT / "studies/suites/microbench.toml"
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
        study = STUDY
        for before, after in changes:
            assert before in study
            study = study.replace(before, after)
        (tmp_path / "s.toml").write_text(study, encoding="utf-8")
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
        (('loads = "small"', 'loads = "small"\nonly = ["on"]'), ':6: suite.only: names no load: "on". Did you mean'),
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
    with pytest.raises(UserError) as refused:
        load_study(path)
    assert said in str(refused.value).replace(str(path), ""), str(refused.value)


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
