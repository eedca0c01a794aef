"""A suite's findings: by load and column, what lost most first; and how often a suite without differences is wrong."""

from dataclasses import replace

import numpy as np
import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.looks import Looks
from dbdyno.analysis.suite import suite_findings
from dbdyno.analysis.verdict.evidence import Relation, evidence, relations
from dbdyno.model.design import Factor
from dbdyno.model.word import Word
from tests.unit.report.suites import GROUPS, RATES, suite_run


def found(run):
    analysis = analyse(run)
    return suite_findings(run.design, analysis.verdicts, more_is_better=analysis.metric.more_is_better)


def test_groups_and_loads_stand_by_their_largest_loss():
    suite = found(suite_run())
    assert suite.columns == (("v2", "v1"), ("v3", "v1"))
    assert [(load.group, load.name) for load in suite.loads] == [
        ("write", "insert"), ("write", "update"), ("point", "hot"), ("point", "cold"),
    ]  # fmt: skip
    losses = [load.largest_loss(more_is_better=True) for load in suite.loads]
    assert losses[0] == pytest.approx(-np.log(RATES["insert"][2] / RATES["insert"][0]), abs=0.03)
    assert losses[3] < 0, "what only gained has no loss"


def test_steps_on_the_same_tables_stand_in_their_order():
    """``update`` lost less than ``insert``, which goes on with its tables."""
    run = suite_run()
    after = {"insert": "update", "hot": "cold"}
    loads, *others = run.design.factors
    factors = [replace(loads, levels=["update", "insert", "cold", "hot"], after=after), *others]
    suite = found(replace(run, design=replace(run.design, factors=factors)))
    assert [load.name for load in suite.loads] == ["update", "insert", "cold", "hot"]


def test_each_cell_is_the_comparison_of_its_load():
    run = suite_run()
    levels = {treatment.id: treatment.levels for treatment in run.design.treatments}
    for load in found(run).loads:
        for (level, baseline), cell in zip(found(run).columns, load.cells, strict=True):
            assert levels[cell.finding.level_id] == {"load": load.name, "server": level}
            assert levels[cell.finding.baseline_id] == {"load": load.name, "server": baseline}
            assert cell.finding.effect.value == pytest.approx(
                RATES[load.name][["v1", "v2", "v3"].index(level)] / RATES[load.name][0] - 1, abs=0.04
            )


def test_a_load_may_differ_alone_and_not_among_all():
    """What its own two comparisons show is not enough for eight."""
    cells = [cell for load in found(suite_run(noise=0.03, seed=2)).loads for cell in load.cells]
    assert any(cell.differs_alone for cell in cells), "found by its seed"
    assert all(cell.finding.verdict is Word.UNDECIDED for cell in cells if cell.differs_alone)


def test_a_study_without_groups_is_no_suite():
    run = suite_run()
    plain = [replace(factor, groups=None) for factor in run.design.factors]
    assert found(replace(run, design=replace(run.design, factors=plain))) is None
    assert replace(run.design, factors=[Factor("load", "workload", ["a"])]).factor_of_loads is None
    assert run.design.factor_of_loads.groups == GROUPS


@pytest.mark.parametrize("tails", [None, 3])
def test_of_suites_without_a_difference_one_in_twenty_is_wrong_at_most(tails):
    """42 loads of three versions, six blocks: any of 84 words *faster* or *slower* is wrong. Seeded."""
    rng, suites = np.random.default_rng(20261129), 2000
    noise = rng.standard_normal((suites, 42, 3, 6)) if tails is None else rng.standard_t(tails, (suites, 42, 3, 6))
    d = 0.02 * (noise[:, :, 1:] - noise[:, :, :1]).reshape(suites, 84, 6)
    words = relations(evidence(d, Looks.single(6), 0.03), 0.03)
    wrong = np.isin(words, (Relation.HIGHER, Relation.LOWER)).any(axis=-1).mean()
    assert wrong <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / suites)


def test_six_blocks_find_a_large_loss_among_42_loads():
    rng = np.random.default_rng(1)
    d = 0.01 * rng.standard_normal((500, 84, 6))
    d[:, 0] += np.log(0.8)
    words = relations(evidence(d, Looks.single(6), 0.03), 0.03)
    assert (words[:, 0] == Relation.LOWER).mean() > 0.9
