"""Sizes, times, percentages, sets of processors and warm-ups: what is read, what is refused, and how they are said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import UserError
from dbdyno.model.quantity import duration_seconds, fraction, size_bytes
from dbdyno.mysql.settings import setting_bytes
from dbdyno.study.units import cpu_list, cpu_numbers, format_bytes, format_seconds
from dbdyno.workload.kinds import workload_of

SIZES = {
    "B": 1,
    "K": 1024,
    "KiB": 1024,
    "KB": 1000,
    "M": 1_048_576,
    "MiB": 1_048_576,
    "MB": 1_000_000,
    "G": 1_073_741_824,
    "GiB": 1_073_741_824,
    "GB": 1_000_000_000,
    "T": 1_099_511_627_776,
    "TiB": 1_099_511_627_776,
    "TB": 1_000_000_000_000,
}


@given(st.integers(0, 10**6), st.sampled_from(sorted(SIZES)), st.sampled_from(["", " ", "  "]), st.booleans())
def test_whole_sizes_are_exact_in_any_case(number, unit, gap, lower):
    assert size_bytes(f"{number}{gap}{unit.lower() if lower else unit}") == number * SIZES[unit]


def test_a_size_may_have_a_part():
    assert size_bytes("1.5GiB") == 1_610_612_736
    assert isinstance(size_bytes("1.3K"), int)


@given(st.integers(0, 900 * 1024**4))
def test_bytes_are_said_within_half_a_per_mille(count):
    assert abs(size_bytes(format_bytes(count)) - count) <= 5e-4 * count + 1


@given(st.integers(0, 10**6), st.sampled_from([("us", 1e-6), ("ms", 1e-3), ("s", 1), ("min", 60), ("h", 3600)]))
def test_times(number, unit):
    assert duration_seconds(f"{number}{unit[0]}") == pytest.approx(number * unit[1], rel=1e-12)


@given(st.integers(0, 10**6))
def test_percentages(number):
    assert fraction(f"{number / 100:.2f}%") == pytest.approx(number / 10**4, abs=1e-12)


SIZE = "is not a size; write a number with its unit, such as 4GiB"
TIME = "is not a time; write a number with its unit, such as 10s"


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        *((size_bytes, bad, SIZE) for bad in (4, 4.0, None, True, "", "4", "GiB", "-1G", "1,5G", "1e3M", "4GiB/s")),
        (size_bytes, "٤G", SIZE),
        (size_bytes, "4 GiP", "has the unknown unit 'GiP'; known are B, K, M, G, T, KiB .. TiB and KB .. TB"),
        (duration_seconds, "10m", "has the unknown unit 'm'; known are us, ms, s, min, h; minutes are min"),
        (size_bytes, "4%", "has the unknown unit '%'; known are B, K, M, G, T, KiB .. TiB and KB .. TB"),
        *((duration_seconds, bad, TIME) for bad in (5, "5", "-5s", "5 s s", "1:30")),
        (duration_seconds, "5 days", "has the unknown unit 'days'; known are us, ms, s, min, h"),
        (duration_seconds, "5 S", "has the unknown unit 'S'; known are us, ms, s, min, h"),
        (fraction, 0.03, "is not a percentage; write a number with its unit, such as 3%"),
        (fraction, "3", "is not a percentage; write a number with its unit, such as 3%"),
        (fraction, "3s", "has the unit 's'; write a percentage, such as 3%"),
    ],
)
def test_what_has_no_unit_or_an_unknown_one_is_refused(read, text, message):
    with pytest.raises(ValueError) as refused:  # noqa: PT011  (the whole message is compared)
        read(text)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1572864, "1.5 MiB"), (4 << 30, "4 GiB"), (5 << 50, "5120 TiB")],
)
def test_bytes_for_people(count, text):
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (185, "3 min 05 s"),
        (3599.7, "1 h 00 min"),
        (7800, "2 h 10 min"),
        (100 * 3600, "100 h 00 min"),
    ],
)
def test_seconds_for_people(seconds, text):
    assert format_seconds(seconds) == text


def test_a_size_as_a_server_takes_it_is_a_number_or_a_text():
    assert [setting_bytes(value) for value in (67108864, "67108864", "64M")] == [64 * 1024**2] * 3
    with pytest.raises(ValueError, match="is not a size"):
        setting_bytes("much")


# Sets of processors, as people and the kernel write them.


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


# ``warmup``: a time, or until the rate is steady.


AMOUNT = "queries = 1000"


def with_warm_up(load, *lines):
    return load((AMOUNT, "\n".join([AMOUNT, *lines])))


@pytest.mark.parametrize(
    ("lines", "most_seconds"),
    [
        ([], 0.5),
        (['warmup = "250ms"'], 0.25),
        (['warmup = "steady"'], 60.0),
        (['warmup = "steady"', 'warmup_max = "90s"'], 90.0),
    ],
    ids=["left out", "a time", "steady", "bounded"],
)
def test_plan_and_time_limit_count_what_it_takes_at_most_and_the_generator_takes_it(load, lines, most_seconds):
    spec = next(spec for _, spec in with_warm_up(load, *lines).combinations())
    assert spec.workload.seconds_before == most_seconds
    assert workload_of(spec).refused() == ""


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (['warmup = "steadily"'], 'is not a time; write a number with its unit in quotes, such as "10s"; or "steady"'),
        (['warmup_max = "60s"'], "has no effect without workload.warmup; give it too"),
        (['warmup = "steady"', 'warmup_max = "5s"'], "must be at least 6"),
    ],
    ids=["word", "bound alone", "short bound"],
)
def test_mistakes_are_named(load, lines, said):
    with pytest.raises(UserError) as refused:
        with_warm_up(load, *lines)
    assert said in str(refused.value)
