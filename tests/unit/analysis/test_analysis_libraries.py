"""Where a library has the same estimator, ours gives the same figure."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from dbdyno.analysis.statistics import (
    benjamini_hochberg,
    exact_p,
    exact_p_above,
    exact_p_below,
    holm,
    signed_rank_cdf,
    walsh_averages,
)

P = st.lists(st.floats(0, 1), min_size=1, max_size=20)
# scipy's exact test wants neither zeros nor ties.
DISTINCT = st.lists(st.integers(-500, 500).filter(bool), min_size=2, max_size=40, unique_by=abs).map(np.array)


@settings(max_examples=25)  # the library collects garbage at each call, which takes long after many tests
@given(P)
def test_holm(p):
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1], abs=1e-9)


@given(P)
def test_benjamini_hochberg(p):
    assert benjamini_hochberg(p) == pytest.approx(multipletests(p, method="fdr_bh")[1], abs=1e-9)


@given(DISTINCT)
def test_signed_rank(values):
    d = values / 1000
    averages = walsh_averages(d)
    for alternative, ours in (
        ("two-sided", exact_p(averages, signed_rank_cdf(len(d)))),
        ("greater", exact_p_above(averages, 0, signed_rank_cdf(len(d)))),
        ("less", exact_p_below(averages, 0, signed_rank_cdf(len(d)))),
    ):
        expected = stats.wilcoxon(d, alternative=alternative, method="exact").pvalue
        assert float(ours) == pytest.approx(expected, abs=1e-9)


@given(st.integers(1, 4), DISTINCT)
def test_many_at_once_are_each_by_itself(copies, values):
    d = np.stack([values * (i + 1) / 1000 for i in range(copies)])
    together = exact_p(walsh_averages(d), signed_rank_cdf(d.shape[-1]))
    each = [(walsh_averages(row), signed_rank_cdf(len(row))) for row in d]
    alone = [float(exact_p(*one)) for one in each]
    assert together.tolist() == alone
