"""What is said of a measured host: no figure is overlooked, none is made up, worse figures never sound better."""

import math
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analysis.quick import HostMeasurement
from dbdyno.report.host_advice import GOOD, NO, NOT_KNOWN, WITH_CARE, advice, figure_lines, fitness
from tests.unit.cli.test_doctor_text import QUIET

# What makes a host worse; to what it may be said.
WORSE = {
    "wake_up_us_p99": (723.0, "[host] awake = true"),
    "timer_late_us_p99": (299.0, "[host] awake = true"),
    "stolen_share": (0.1, "vmstat"),
    "busy_share": (0.9, "top"),
    "clock_read_ns": (900.0, "available_clocksource"),
    "swap_bytes": (1e9, "swapoff"),
    "governor": ("powersave", "cpupower"),
    "cores": (2, "server_cpus"),
    "memory_bytes": (2.0**30, "size"),
    "memory_bytes_per_second": (5e8, "lscpu"),
}
RANK = [GOOD, NOT_KNOWN, WITH_CARE, NO]
SHARES = st.just(math.nan) | st.floats(0, 1)
AMOUNTS = st.just(math.nan) | st.floats(0, 1e15)
WORDS = st.sampled_from(["unknown", "tsc", "hpet", "kvm-clock", "performance", "powersave, performance"])


def drawn(field):
    special = {
        "cores": st.integers(1, 4096),
        "clock_sources": st.lists(WORDS, max_size=3).map(tuple),
        "stolen_share": SHARES,
        "busy_share": SHARES,
    }
    by_type = {"float": AMOUNTS, "bool": st.booleans(), "str": WORDS}
    kind = getattr(field.type, "__name__", field.type)
    return special[field.name] if field.name in special else by_type[kind]


HOSTS = st.builds(HostMeasurement, **{field.name: drawn(field) for field in fields(HostMeasurement)})


def test_of_a_good_host_there_is_nothing_to_change():
    assert advice(QUIET) == []
    assert {one.fit for one in fitness(QUIET)} == {GOOD}


@pytest.mark.parametrize(("name", "worse", "command"), [(name, *rest) for name, rest in WORSE.items()])
def test_each_weakness_is_answered_by_a_command(name, worse, command):
    (one,) = advice(replace(QUIET, **{name: worse}))
    assert command in one.command


def test_a_clock_that_could_be_chosen_is_named():
    (one,) = advice(replace(QUIET, clock_read_ns=900, clock_source="hpet"))
    assert one.command.startswith("echo tsc | sudo tee /sys/")


def test_where_nothing_can_keep_processors_awake_the_reason_is_said():
    host = replace(QUIET, wake_up_us_p99=500, can_be_awake=False, why_not_awake="so it is", awake_remedy="do that")
    (one,) = advice(host)
    assert "so it is" in one.why
    assert one.command == "do that"


def test_what_is_unknown_is_neither_praised_nor_blamed():
    nothing = HostMeasurement(cores=8, guest=False, no_disk="root: this is an ordinary user; run it with sudo")
    assert advice(nothing) == []
    assert fitness(nothing)[0].fit == NOT_KNOWN
    assert "run it with sudo" in fitness(nothing)[0].why
    assert sum("unknown" in value for _, value in figure_lines(nothing)) == 6


@given(HOSTS)
def test_all_that_is_said_is_a_line_with_a_remedy(host):
    for one in advice(host):
        assert all("\n" not in text and "nan" not in text.split() for text in (one.what, one.why, one.command))
        assert one.command
    for one in fitness(host):
        assert (one.fit == GOOD) == (one.why == "")
        assert one.fit in RANK


@given(HOSTS, st.sampled_from([name for name in WORSE if name not in {"governor", "cores"}]), st.floats(1, 1e6))
def test_what_gets_worse_never_sounds_better(host, name, factor):
    value = getattr(host, name)
    if math.isnan(value):
        return
    less = name in {"memory_bytes", "memory_bytes_per_second"}
    worse = replace(host, **{name: value / factor if less else min(value * factor, 1 if "share" in name else 1e18)})
    assert {one.what for one in advice(worse)} >= {one.what for one in advice(host)}
    for before, after in zip(fitness(host), fitness(worse), strict=True):
        assert RANK.index(after.fit) >= RANK.index(before.fit)
