"""Published differences and claims held against ours: the rules, and that they are the same whichever way round."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analysis.reported import of_claim, of_difference, times_as_fast
from dbdyno.analysis.statistics import Estimate
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.analysis.verdict.reasons import TooFew
from dbdyno.model.metrics import METRICS, REPORTED_METRICS, SECONDS_PER_1000
from dbdyno.store.reported import ReportedClaim

RATE, SECONDS = METRICS["queries_per_second"], METRICS["seconds_real"]
MARGIN = 0.03


def verdict(word, value, low, high, metric="queries_per_second"):
    return Finding(
        metric=metric, baseline="a", level="b", baseline_id="t1", level_id="t2", effect=Estimate(value, low, high, 9),
        p=0.01, p_adjusted=0.01, verdict=word, blocks=9, reason=TooFew(0, 2), p_equivalence=0.5,
        by_block=(), blocks_needed=None,
    )  # fmt: skip


EQUIVALENT = verdict("equivalent", 0.001, -0.01, 0.012)
FASTER = verdict("faster", 1.0, 0.8, 1.2)
SLOWER = verdict("slower", -0.5, -0.6, -0.4)
UNDECIDED = verdict("undecided", 0.02, -0.05, 0.09)
NOT_COMPARABLE = verdict("not comparable", math.nan, -math.inf, math.inf)


@pytest.mark.parametrize(
    ("published", "ours", "agreement"),
    [
        (0.02, EQUIVALENT, "agrees"),
        (0.10, EQUIVALENT, "equivalent here"),
        (1.1, FASTER, "agrees"),
        (3.0, FASTER, "other size"),
        (0.2, FASTER, "other size"),
        (-0.2, FASTER, "contradicts"),
        (0.01, FASTER, "different here"),
        (0.02, UNDECIDED, "undecided here"),
        (9.0, UNDECIDED, "undecided here"),
        (0.5, NOT_COMPARABLE, "not comparable here"),
    ],
)
def test_published_differences(published, ours, agreement):
    assert of_difference(published, ours, MARGIN) == agreement


def claim(direction=None, least=None, most=None):
    return ReportedClaim("so", [], True, direction, least, most)


@pytest.mark.parametrize(
    ("said", "ours", "agreement"),
    [
        (claim("faster"), FASTER, "agrees"),
        (claim("faster", 1.5, 3), FASTER, "agrees"),
        (claim("faster", most=1.5), FASTER, "other size"),
        (claim("faster", least=4), FASTER, "other size"),
        (claim("faster"), SLOWER, "contradicts"),
        (claim("slower"), SLOWER, "agrees"),
        (claim("faster"), EQUIVALENT, "equivalent here"),
        (claim("faster"), UNDECIDED, "undecided here"),
        (claim("equivalent"), EQUIVALENT, "agrees"),
        (claim("equivalent"), FASTER, "different here"),
        (claim("equivalent"), UNDECIDED, "undecided here"),
        (claim(most=2), EQUIVALENT, "agrees"),
        (claim(most=2), UNDECIDED, "agrees"),  # whatever it is, it is not as much as 2
        (claim(least=2), SLOWER, "other size"),
        (claim("faster"), NOT_COMPARABLE, "not comparable here"),
    ],
)
def test_claims(said, ours, agreement):
    assert of_claim(said, ours, MARGIN, RATE) == agreement


def test_half_the_seconds_are_twice_as_fast():
    low, high = times_as_fast(Estimate(-0.5, -0.6, -0.2, 9), SECONDS)
    assert (low, high) == (pytest.approx(1.25), pytest.approx(2.5))
    assert times_as_fast(FASTER.effect, RATE) == (pytest.approx(1.8), pytest.approx(2.2))
    assert times_as_fast(NOT_COMPARABLE.effect, SECONDS) == (0, math.inf)
    assert REPORTED_METRICS[SECONDS_PER_1000].more_is_better is False


_logs = st.floats(-3, 3)
_widths = st.floats(0.001, 1)


@given(_logs, _logs, _widths, st.sampled_from(["faster", "slower", "equivalent", "undecided"]))
def test_the_rule_is_symmetric_in_level_and_baseline(published, value, half, word):
    """Turn both comparisons round, and whatever was said is said again."""
    turned_word = {"faster": "slower", "slower": "faster"}.get(word, word)
    interval = [math.expm1(value - half), math.expm1(value + half)]
    turned = [math.expm1(-value - half), math.expm1(-value + half)]
    ours, theirs = verdict(word, math.expm1(value), *interval), verdict(turned_word, math.expm1(-value), *turned)
    on_an_edge = min(
        abs(abs(published) - math.log1p(MARGIN)), abs(published - value + half), abs(published - value - half)
    )
    if on_an_edge > 1e-9 and abs(value) > 1e-9:
        assert of_difference(math.expm1(published), ours, MARGIN) == of_difference(
            math.expm1(-published), theirs, MARGIN
        )


@given(_logs, _widths)
def test_what_we_measured_ourselves_agrees_or_is_undecided(value, half):
    interval = math.expm1(value - half), math.expm1(value + half)
    word = "faster" if value > half else "slower" if value < -half else "undecided"
    expected = "undecided here" if word == "undecided" else "agrees"
    assert of_difference(math.expm1(value), verdict(word, math.expm1(value), *interval), MARGIN) == expected
