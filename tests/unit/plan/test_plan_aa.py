"""An A/A plan: one treatment under two labels, and nothing else that differs."""

from dataclasses import asdict

import pytest

from dbdyno.errors import UserError
from dbdyno.plan.plan import aa_plan, make_plan
from dbdyno.run.execute import open_run
from dbdyno.store.run_folder import read_run

ONE_DEVICE = ('["hdd-7200", "ssd-sata"]', '"ssd-sata"'), ('baseline = { device = "hdd-7200" }\n', "")


def test_both_labels_are_the_baseline_as_the_study_runs_it(load):
    study = load()
    plan = aa_plan(study)
    whole = make_plan(study)
    assert [treatment.label for treatment in plan.design.treatments] == ["A", "B"]
    assert plan.specs["t1"] == plan.specs["t2"] == whole.specs[whole.design.baseline]
    assert [(c.baseline, c.level) for c in plan.design.comparisons] == [("t1", "t2")]
    assert (plan.design.blocks, plan.design.until, plan.design.metric) == (10, "blocks", whole.design.metric)
    assert asdict(plan.design.aa) == {"treatment": "hdd-7200", "comparisons": 1}
    assert plan.study.raw["stack"]["device"] == "hdd-7200"
    assert {slot.treatment for slot in plan.slots(1, 1)} == {"t1", "t2"}


def test_any_treatment_can_be_chosen_and_the_study_s_comparisons_are_known(load):
    study = load(('"mq-deadline"', '["mq-deadline", "none"]'))
    plan = aa_plan(study, treatment="ssd-sata / none", blocks=4, seed=9)
    stack = plan.specs["t2"].stack
    assert (stack.device, stack.scheduler) == ("ssd-sata", "none")
    assert plan.design.aa.comparisons == 3
    assert (plan.design.blocks, plan.design.seed) == (4, 9)


def test_a_study_without_factors_has_one_treatment_and_no_comparison_to_share_with(load):
    plan = aa_plan(load(*ONE_DEVICE))
    assert asdict(plan.design.aa) == {"treatment": "as written", "comparisons": 1}


def test_an_unknown_treatment_is_refused(load):
    with pytest.raises(UserError, match=r'--treatment .ssd-sat. is none of this study; .* Did you mean "ssd-sata"'):
        aa_plan(load(), treatment="ssd-sat")


def test_a_drive_file_beside_the_study_is_found(load, tmp_path):
    (tmp_path / "mine.toml").write_text('title = "mine"\n[ideal]\nlatency_us = 5.0\n', encoding="utf-8")
    study = load(('["hdd-7200", "ssd-sata"]', '["mine.toml", "ssd-sata"]'), ('"hdd-7200" }', '"mine.toml" }'))
    plan = aa_plan(study)
    assert plan.specs["t1"].stack.device == str(tmp_path / "mine.toml")
    assert list(plan.own_files["drive_files"]) == [str(tmp_path / "mine.toml")]


def test_the_run_folder_says_that_it_is_one_and_only_the_same_goes_on(load, tmp_path):
    study = load()
    plan = aa_plan(study, seed=1)
    open_run(plan, tmp_path / "run", resume=False, versions={}, host={}).close()
    run = read_run(tmp_path / "run")
    assert run.design.aa == plan.design.aa
    assert run.title == "A/A: A study"
    open_run(aa_plan(study, seed=1), tmp_path / "run", resume=True, versions={}, host={}).close()
    with pytest.raises(UserError, match="another stopping rule"):
        open_run(aa_plan(study, blocks=12, seed=1), tmp_path / "run", resume=True, versions={}, host={})
    for other in (aa_plan(study, treatment="ssd-sata"), make_plan(study)):
        with pytest.raises(UserError, match="another study"):
            open_run(other, tmp_path / "run", resume=True, versions={}, host={})


def test_the_run_of_a_study_without_factors_is_not_its_a_a_run(load, tmp_path):
    study = load(*ONE_DEVICE)
    open_run(make_plan(study, seed=1), tmp_path / "run", resume=False, versions={}, host={}).close()
    assert read_run(tmp_path / "run").design.aa is None
    with pytest.raises(UserError, match="other comparisons"):
        open_run(aa_plan(study, seed=1), tmp_path / "run", resume=True, versions={}, host={})


def test_whole_plots_are_nothing_where_nothing_varies(load):
    plan = aa_plan(load(('"mq-deadline"', '["mq-deadline", "none"]'), ("blocks = 6", 'hard_to_change = ["device"]')))
    assert plan.design.factors == []
    assert sorted(slot.treatment for slot in plan.slots(1, 1)) == ["t1", "t2"]


def test_neither_the_blocks_nor_the_budget_of_the_study_count(load):
    study = load(("blocks = 6", 'max_blocks = 30\nbudget = "25s"'))
    for asked, blocks in ((None, 10), (12, 12)):
        design = aa_plan(study, blocks=asked).design
        assert (design.until, design.blocks, design.budget_seconds) == ("blocks", blocks, None)


def test_each_of_several_hosts_has_as_many_blocks_as_one(load):
    hosts = '[hosts]\nunder_test = ["db1", "db2", "db3"]\n\n[stack]'
    plan = aa_plan(load(("[stack]", hosts)))
    assert (plan.design.blocks, plan.design.fleet.hosts) == (30, ["db1", "db2", "db3"])
    assert "from host to host" in plan.study.about.question
