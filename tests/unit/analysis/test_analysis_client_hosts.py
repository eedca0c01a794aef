"""Loads from other hosts: which host was the limit, which makes the tail, and what that does to a verdict."""

from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.client_hosts import limiting_hosts
from dbdyno.analysis.verdict.reasons import LimitedClients
from dbdyno.report.reasons import reason_code, reason_text
from dbdyno.report.sections.client_hosts import limited_lines, start_sentence
from dbdyno.report.why import short_reason
from tests.unit.analysis.conftest import a_run

GOOD = {
    "clients": 2,
    "events_per_second": 500.0,
    "queries_per_second": 500.0,
    "latency_ms_p99": 2.0,
    "latency_ms_p99_of_others": 2.0,
    "start_off_us": 40.0,
    "clock_bound_us": 30.0,
    "thread_cpu_share": 0.79,
    "thread_wait_share": 0.049,
    "start_lateness_ms_p99": 0.99,
    "rtt_ms_min": 0.2,
    "rtt_ms_median": 0.9,
    "retransmits": 1,
    "interface": "eth0",
    "interface_share": 0.79,
}
OVER = [
    {"thread_cpu_share": 0.81},
    {"thread_wait_share": 0.051},
    {"start_lateness_ms_p99": 1.01},
    {"interface_share": 0.81},
]


def load_of(p50_ms=0.5, **of_c2):
    hosts = [{"host": "c1", **GOOD}, {"host": "c2", **GOOD, **of_c2}]
    return {"client_hosts": hosts, "latency_ns": {"p50": p50_ms * 1e6, "p99": 2e6}}


def a_run_from_hosts(loads):
    """A run of two treatments; ``loads`` are those of the second one, by block."""
    run = a_run({"a": [100.0] * len(loads), "b": [120.0 + block for block in range(len(loads))]})
    by_place = {("b", block): load for block, load in enumerate(loads, 1)}
    return replace(run, trials=[replace(t, load=by_place.get((t.treatment, t.block), load_of())) for t in run.trials])


@pytest.mark.parametrize("over", OVER)
def test_a_client_at_its_limit_makes_a_treatment_not_comparable(over):
    analysis = analyse(a_run_from_hosts([load_of(**over)] * 6))
    verdict = analysis.verdicts[0]
    assert verdict.verdict == "not comparable"
    assert verdict.reason == LimitedClients("level b", ("c2",))
    assert reason_code(verdict.reason) == "LIMITED_CLIENTS"
    assert "level b was limited by client c2" in reason_text(verdict.reason)
    assert short_reason(verdict, analysis) == "limited by client c2"
    lines = list(limited_lines(analysis.client_hosts))
    assert len(lines) == 1
    assert lines[0].startswith("level b: limited by client c2: ")
    assert "in 6 of 6 trials" in lines[0]


def test_a_client_below_its_limits_is_never_named():
    unknown = dict.fromkeys(("thread_wait_share", "start_lateness_ms_p99", "interface_share", "rtt_ms_min"))
    # What starts late by a tenth of the median or less is no limit, however long that is.
    loads = [load_of(), load_of(**unknown), load_of(p50_ms=20.0, start_lateness_ms_p99=1.9)] * 2
    analysis = analyse(a_run_from_hosts(loads))
    assert analysis.verdicts[0].verdict == "faster"
    assert list(limited_lines(analysis.client_hosts)) == []
    assert start_sentence(analysis.client_hosts).startswith("The hosts started within 70.00 us of one moment")


def test_one_bad_trial_is_no_limit_and_most_are():
    trials = a_run_from_hosts([load_of(**OVER[0])] * 3 + [load_of()] * 3).trials
    of_b = [trial for trial in trials if trial.treatment == "b"]
    assert limiting_hosts(of_b) == ()
    assert limiting_hosts(of_b[:5]) == ("c2",)
    assert limiting_hosts([]) == ()


def test_a_host_that_makes_the_tail_is_named():
    analysis = analyse(a_run_from_hosts([load_of(latency_ms_p99_of_others=1.7)] * 6))
    assert analysis.verdicts[0].verdict == "faster"
    lines = list(limited_lines(analysis.client_hosts))
    assert len(lines) == 1
    assert "without client c2" in lines[0]
    assert "+18 %" in lines[0]


def test_a_load_from_here_has_no_hosts():
    analysis = analyse(a_run({"a": [1.0] * 6, "b": [2.0] * 6}))
    assert analysis.client_hosts == []
