"""Whether a server's setting took, in whatever spelling it is read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.model.quantity import same_value

SAME = [
    (True, "ON"),
    (True, "1"),
    (True, "YES"),
    (False, "OFF"),
    (False, "0"),
    ("on", "ON"),
    ("ON", "1"),
    (1, "ON"),
    (0, "OFF"),
    (2, "2"),
    ("256M", "268435456"),
    ("1G", "1073741824"),
    ("1.5k", "1536"),
    (268435456, "268435456"),
    (0.5, "0.500000"),
    ("75", "75.000000"),
    (" O_DIRECT ", "o_direct"),
    ("", ""),
    (-1, "-1"),
]
OTHER = [
    (True, "OFF"),
    (True, "2"),
    (False, "1"),
    (2, "ON"),
    (1, "OFF"),
    ("256M", "256"),
    ("256M", "256000000"),
    ("256M", "134217728"),
    (64, "65"),
    ("O_DIRECT", "fsync"),
    ("", "0"),
    ("OFF", ""),
    (100, "1000"),
]


@pytest.mark.parametrize(("asked", "observed"), SAME)
def test_a_setting_that_took_is_known_in_any_spelling(asked, observed):
    assert same_value(asked, observed)


@pytest.mark.parametrize(("asked", "observed"), OTHER)
def test_a_setting_that_did_not_take_is_found(asked, observed):
    assert not same_value(asked, observed)


@given(
    st.integers(2, 2**40), st.integers(2, 2**40), st.sampled_from([("", 1), ("K", 2**10), ("M", 2**20), ("g", 2**30)])
)
def test_numbers_are_the_same_only_where_they_are_equal(asked, observed, unit):
    assert same_value(f"{asked}{unit[0]}", str(asked * unit[1]))
    assert same_value(f"{asked}{unit[0]}", str(observed)) is (asked * unit[1] == observed)
