"""Studies whose answer is known, by the thousand: the honesty benchmark at small scale, and that it judges as we do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benches.honesty import designs, rules, split_plot, verdicts
from dbdyno.analysis.looks import Looks
from dbdyno.analysis.planned_looks import planned_looks
from dbdyno.analysis.verdict.evidence import AlwaysValid, Relation
from dbdyno.analysis.verdict.finding import Paired, judge
from dbdyno.model.metrics import METRICS

REPLICATES = 500
WORDS = {
    Relation.HIGHER: "faster",
    Relation.LOWER: "slower",
    Relation.EQUIVALENT: "equivalent",
    Relation.UNDECIDED: "undecided",
}


@pytest.mark.parametrize("group", [rules, verdicts, split_plot])
@pytest.mark.simulation
def test_every_row_is_met(group):
    assert [row for row in group.rows(REPLICATES, 7) if row.met is False] == []


def test_the_benchmark_looks_when_the_product_does_and_by_its_rules(monkeypatch):
    """The rules of its studies are those of ``Allowance``, at the blocks at which a run looks."""
    seen = []
    monkeypatch.setattr(designs, "_stopping", lambda *args, **_: seen.append(args[1]))
    d = np.zeros((1, 1, 40))
    designs.sequential(d)
    designs.sequential(d, 12)
    designs.always_valid(d, 8)
    designs.fixed(d, 10)
    assert seen[0] == {n: Looks(planned_looks(40)[: k + 1], 40) for k, n in enumerate(planned_looks(40))}
    assert seen[1] == {n: Looks(planned_looks(12)[: k + 1], 12) for k, n in enumerate((6, 7, 8, 10, 12))}
    assert seen[2] == dict.fromkeys((6, 7, 8), AlwaysValid())
    assert seen[3] == {10: Looks.single(10)}


@pytest.mark.simulation
def test_a_method_that_peeks_would_fail():
    """The rows can fail: looking at a fixed design's interval after every block finds what is not there."""
    d = verdicts.blocked(np.random.default_rng(1), verdicts.reference, REPLICATES, 2, 40)
    found = [designs.fixed(d, n).found for n in range(6, 41)]
    peeking = np.any([(one == Relation.HIGHER) | (one == Relation.LOWER) for one in found], axis=0)
    assert peeking.mean() > 0.10


@pytest.mark.simulation
def test_counting_trials_of_whole_plots_would_fail():
    rows = [row for row in split_plot.rows(REPLICATES, 7) if "paired" in row.name]
    assert len(rows) == len(split_plot.BLOCKS)
    assert all(row.measured > 15 for row in rows)


@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(2, 40), st.floats(-0.06, 0.06))
def test_the_benchmark_judges_as_the_product_does(seed, comparisons, blocks, effect):
    d = np.random.default_rng(seed).normal(effect, 0.03, (1, comparisons, blocks))
    pairs = [Paired("a", "b", "t0", f"t{i}", dict(enumerate(d[0, i].tolist()))) for i in range(comparisons)]
    said = [found.verdict for found in judge(pairs, METRICS["queries_per_second"], designs.MARGIN)]
    assert said == [WORDS[Relation(one)] for one in designs.fixed(d, blocks).found[0]]
