"""``[fail_if]``: what can never be judged is refused before anything is run."""

import pytest

from dbdyno.cli.plan import plan_as_text
from dbdyno.errors import UserError
from dbdyno.model.design import FailIf
from dbdyno.plan.plan import aa_plan
from dbdyno.run.execute import open_run
from tests.unit.conftest import changed

DESIGN = "[design]\n"
FACTOR = ('device = ["hdd-7200", "ssd-sata"]', 'device = "hdd-7200"')
BASELINE = ('baseline = { device = "hdd-7200" }\n', "")
CRASH = (
    ('kind = "slap"\nclients = 10\nqueries = 1000', 'kind = "ledger"\nclients = 2\nduration = "2s"'),
    ("blocks = 6\n", ""),
    (DESIGN, "[crash]\ncuts = 300\n[design]\n"),
)


def with_limits(limits):
    return (DESIGN, f"[fail_if]\n{limits}\n[design]\n")


def test_a_study_keeps_its_thresholds(plan):
    assert plan(with_limits('slower = "5%"')).design.fail_if == FailIf(slower=0.05)
    made = plan(with_limits('faster = "10%"\nundecided = "pass"'))
    assert made.design.fail_if == FailIf(faster=0.1, undecided="pass")
    assert plan().design.fail_if is None
    assert plan(*CRASH, with_limits("unsafe = true")).design.fail_if == FailIf(unsafe=True)


@pytest.mark.parametrize(
    ("limits", "changes", "said"),
    [
        ("", (), 'fail_if: has no threshold; give slower = "5%", faster or unsafe = true'),
        ('undecided = "pass"', (), "has no threshold"),
        (
            'slower = "1%"',
            (),
            "slower: is less than the margin of 3 %, below which a difference counts as none; give 3%",
        ),
        ('slower = "5%"', (FACTOR, BASELINE), "slower: needs a comparison; give a field as a list"),
        ("unsafe = true", (), "unsafe: needs power cuts; add [crash], or leave it out"),
        ('slower = "5%"', CRASH, "slower: is about speed, [crash] about what is lost"),
        ("slower = 5", (), "slower: "),
        ('undecided = "maybe"', (), "undecided: "),
        ('slow = "5%"', (), 'Did you mean "slower"'),
    ],
)
def test_a_threshold_that_can_not_be_judged_is_refused(load, limits, changes, said):
    with pytest.raises(UserError) as refused:
        load(*changes, with_limits(limits))
    assert said in str(refused.value)
    assert "study.toml:" in str(refused.value)


def test_so_few_blocks_that_nothing_is_decided_are_refused(plan):
    changes = (with_limits('slower = "5%"'), ("blocks = 6", "blocks = 4"))
    with pytest.raises(UserError, match=r"\[fail_if\] can't be judged: 4 blocks can't decide 1 comparison"):
        plan(*changes)
    with pytest.raises(UserError, match=r"\[fail_if\] can't be judged: 3 trials of each treatment are too few"):
        plan(*CRASH, with_limits("unsafe = true"), blocks=3)
    assert plan(changes[1]).design.blocks == 4


def test_an_a_a_run_has_no_thresholds(load):
    assert aa_plan(load(with_limits('slower = "5%"'))).design.fail_if is None


def test_the_plan_says_what_fails(plan):
    text = plan_as_text(plan(with_limits('slower = "5%"')), [])
    assert (
        "fails (exit code 3) if anything is slower by 5 % or more; what can't be judged ends with exit code 4" in text
    )
    text = plan_as_text(plan(with_limits('slower = "5%"\nfaster = "10%"\nundecided = "pass"')), [])
    assert "slower by 5 % or more or faster by 10 % or more; what can't be judged passes" in text
    assert "exit code" not in plan_as_text(plan(), [])


def test_a_run_keeps_the_thresholds_it_was_begun_with(plan, tmp_path):
    into = tmp_path / "run"
    open_run(plan(with_limits('slower = "5%"')), into, resume=False, versions={}, host={}).close()
    with pytest.raises(UserError, match=r"was begun with another \[fail_if\]; a run keeps it: use a new folder"):
        open_run(plan(with_limits('slower = "9%"')), into, resume=True, versions={}, host={})
    open_run(plan(with_limits('slower = "5%"')), into, resume=True, versions={}, host={}).close()


def test_a_field_elsewhere_is_told_its_section(load):
    with pytest.raises(UserError, match=r"\[fail_if\]"):
        load(text=changed((DESIGN, '[design]\nslower = "5%"\n')))
