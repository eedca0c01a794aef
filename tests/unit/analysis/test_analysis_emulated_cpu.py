"""How much of a comparison a CPU may account for that QEMU emulates."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dbdyno.analysis.lateness import cpu_share, emulated_cpu, ratios_without_cpu
from dbdyno.analysis.verdict.finding import OtherRatios, Paired, judge
from dbdyno.analysis.verdict.reasons import Lack
from dbdyno.model.metrics import METRICS
from dbdyno.model.word import Word
from dbdyno.report.reasons import reason_text
from dbdyno.store.records import Trial
from tests.unit.analysis.test_analysis_lateness import level_and_baseline

RATE, LATENCY = METRICS["queries_per_second"], METRICS["latency_ms_mean"]
CLIENTS = 10


def trial(rate=300.0, *, cpu_us=900.0, accelerator="tcg", cpu_some=0.0, **load):
    """Ten clients, each with one query at a time; a third of it on the server's CPU is the client's."""
    metrics = {
        "queries_per_second": rate,
        "events_per_second": rate,
        "seconds_real": 10.0,
        "latency_ms_mean": CLIENTS / rate * 1e3,
        "device_ms_mean": 2.0,
        "server_cpu_us_per_query": cpu_us * 2 / 3,
        "client_cpu_us_per_query": cpu_us / 3,
    }
    observed = {"guest": {"accelerator": accelerator, "cpus": 2}}
    disturbance = {"in_guest": {"foreign_cpu": 0.05, "cpu_some": cpu_some}}
    return Trial("b1", 1, 1, 1, "t1", "", metrics, observed=observed, disturbance=disturbance, load=load)


def test_the_part_of_the_cpu_is_its_time_beside_all_events_in_flight_and_the_waits_for_it():
    assert cpu_share(trial(), RATE) == pytest.approx((300 * 900e-6 + 0.05 * 2) / CLIENTS)
    assert cpu_share(trial(cpu_some=0.3), LATENCY) == pytest.approx(0.3 + (300 * 900e-6 + 0.05 * 2) / CLIENTS)
    assert cpu_share(trial(300, cpu_us=9e6), RATE) == 0.99


def test_a_saturated_cpu_counts_whole_where_the_guest_does_not_say_who_waited_for_it():
    without = trial(2000, cpu_us=1000)
    without = replace(without, disturbance={})
    assert cpu_share(without, RATE) == 0.99
    assert cpu_share(replace(without, metrics={**without.metrics, "server_cpu_us_per_query": math.nan}), RATE) == 0.99


def test_a_real_cpu_is_no_reason_to_doubt():
    for other in (trial(accelerator="kvm"), replace(trial(), observed={})):
        assert cpu_share(other, RATE) == 0
        assert emulated_cpu(level_and_baseline(("a", "b"), [other], [other]), RATE, 0.03) is None


def test_of_times_of_the_cpu_all_is_emulated_and_of_the_devices_nothing():
    assert cpu_share(trial(), METRICS["server_cpu_us_per_query"]) == 0.99
    assert cpu_share(trial(), METRICS["device_ms_mean"]) == 0
    assert cpu_share(trial(loop={"kind": "open", "rate": 300.0}, offered=3000), RATE) == 0, "events come when they come"


def test_before_any_block_is_complete_there_is_nothing_to_doubt():
    assert emulated_cpu(level_and_baseline(("a", "b"), [], []), RATE, 0.03) is None


def judged(ratio, cpu_us):
    """The words on two treatments, as measured and with what the CPU may have made of it, and the second's reason."""
    ratios = math.log(ratio) + np.random.default_rng(3).normal(0, 0.005, 12)
    level, baseline = [trial(300 * math.exp(one), cpu_us=cpu_us) for one in ratios], [trial(cpu_us=cpu_us)] * 12
    pair = Paired("6.1", "7.2", "t1", "t2", dict(enumerate(map(float, ratios), start=1)))
    sides = level_and_baseline(("7.2", "6.1"), level, baseline)
    cause = emulated_cpu(sides, RATE, 0.05)
    bounds = ratios_without_cpu(ratios, sides, RATE)
    doubted = replace(pair, alternatives=tuple(OtherRatios(d, cause) for d in bounds)) if cause else pair
    findings = [judge([one], RATE, 0.05)[0] for one in (pair, doubted)]
    return [one.verdict for one in findings], findings[1]


def test_what_the_drive_decides_stands():
    assert judged(1.0, 100.0)[0] == [Word.EQUIVALENT, Word.EQUIVALENT]
    assert judged(1.2, 900.0)[0] == [Word.FASTER, Word.FASTER]
    assert judged(0.5, 900.0)[0] == [Word.SLOWER, Word.SLOWER]


@pytest.mark.parametrize("ratio", [1.0, 1.3, 0.8])
def test_what_the_cpu_decides_is_withheld_by_name(ratio):
    words, finding = judged(ratio, 15_000.0)
    assert words[0] is not Word.UNDECIDED
    assert words[1] is Word.UNDECIDED
    assert finding.lack.lack is Lack.A_REAL_CPU
    assert f"as measured it is {words[0]}, but QEMU emulated the CPU, whose work took up to" in reason_text(
        finding.reason
    )


def test_the_bound_holds_however_much_faster_a_real_cpu_is():
    """Waits, and work that a real CPU does k times as fast, of each side by itself: the ratio lies within."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        sides, truth = [], []
        for _side in range(2):
            wait_ms, work_ms = rng.uniform(1, 40), rng.uniform(0.01, 20)
            one = trial(CLIENTS / (wait_ms + work_ms) * 1e3, cpu_us=work_ms * 1e3)
            sides.append([one])
            truth.append(-math.log(wait_ms + work_ms / rng.uniform(1, 30)))
        rates = [side[0].metrics["queries_per_second"] for side in sides]
        low, high = ratios_without_cpu(np.log([rates[0] / rates[1]]), level_and_baseline(("a", "b"), *sides), RATE)
        assert low[0] - 1e-9 <= truth[0] - truth[1] <= high[0] + 1e-9
