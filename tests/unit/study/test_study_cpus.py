"""Sets of processors, as people and the kernel write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.study.units import cpu_list, cpu_numbers


@given(st.frozensets(st.integers(0, 300), min_size=1))
def test_a_list_and_its_set_are_the_same(numbers):
    assert cpu_numbers(cpu_list(numbers)) == numbers


@pytest.mark.parametrize(
    ("text", "short"), [("0", "0"), ("0,1,2", "0-2"), ("3,0-1", "0-1,3"), ("5-5", "5"), ("1-3,2-4", "1-4")]
)
def test_a_list_is_written_as_short_as_it_can_be(text, short):
    assert cpu_list(cpu_numbers(text)) == short


@pytest.mark.parametrize("text", ["", ",", "a", "-1", "1-", "1-2-3", "0x1", "1 ,2", "99999999999", "2-1", "\u0661"])
def test_what_is_no_list_is_refused(text):
    with pytest.raises(ValueError, match=r"is not a list|ends before"):
        cpu_numbers(text)
