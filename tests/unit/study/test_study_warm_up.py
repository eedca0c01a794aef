"""``warmup``: a time, or until the rate is steady."""

import pytest

from dbdyno.errors import UserError
from dbdyno.workload.kinds import workload_of

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
