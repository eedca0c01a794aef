"""The paragraph beside a verdict: it says what the figures say, and no more."""

import json
import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.explanation import PARTS, Changed, Limit, TimeSpent
from dbdyno.analysis.statistics import Estimate
from dbdyno.report.reasons import duration
from dbdyno.report.why import (
    _what_changed,
    explanation,
    opening_of_difference,
    opening_where_alike,
    parted,
    short_reason,
)
from tests.unit.report.rendered import as_json, as_markdown, as_page, as_text

CLIENTS = 10
FLUSH_MS = {"t1": 8.0, "t2": 8.0, "t3": 1.8, "t4": 1.8}  # each; the fixture's rates are 410, 398, 1690, 1702


def closed(run, **metrics):
    """Return the run as one of ten clients without pauses, a block's trials all at the same rate."""
    rates = {"t1": 400.0, "t2": 400.0, "t3": 1650.0, "t4": 1650.0}
    trials = []
    for one in run.trials:
        rate = rates[one.treatment] * (1 + 0.002 * one.block)
        own = {
            "queries_per_second": rate,
            "events_per_second": rate,
            "latency_ms_mean": 1000 * CLIENTS / rate,
            **metrics,
        }
        observed = {
            **one.observed,
            "queue": {**one.observed["queue"], "rotational": "01"[one.treatment in {"t1", "t2"}]},
        }
        trials.append(replace(one, metrics={**one.metrics, **own}, observed=observed))
    return replace(run, trials=trials)


def flushed(run, series_of):
    """Return series in which a flush is in flight nearly all the time, three queries to each."""
    seen = series_of(run)
    for one in run.trials:
        device, host = seen[one.id]["block_device"], seen[one.id]["host_cpu"]
        each = FLUSH_MS[one.treatment]
        device |= {"f/s": 0 * device["t_s"] + 950 / each, "f_await": 0 * device["t_s"] + each}
        device |= {"%util": 0 * device["t_s"] + 97, "w/s": 0 * device["t_s"] + 10, "w_await": 0 * device["t_s"] + 1}
        host["%idle"] = 0 * host["t_s"] + 70
    return seen


@pytest.fixture(scope="module")
def told(build, series_of):
    run = closed(build())
    seen = flushed(run, series_of)
    return run, analyse(run, watched=seen), seen


def paragraph(analysis, level, baseline):
    verdicts = {(one.level_id, one.baseline_id): one for one in analysis.verdicts}
    return explanation(verdicts[level, baseline], analysis)


def test_a_difference_is_told_by_the_parts_it_consists_of(told):
    found = paragraph(told[1], "t3", "t1")
    assert found.startswith(
        "Why: About ten queries at a time wait for one shared flush of the device, 1.80 ms instead of 8.00 ms for each."
        " A query takes 6.01 ms instead of 24.8 ms on average, 18.8 ms less."
    )
    assert "17.8 ms are time under a flush of the device" in found
    assert "each 1.80 ms instead of 8.00 ms, while 10 are in flight at a time" in found
    assert "Both are limited by the device's flushes, with one in flight 95 % of the time." in found


def test_a_block_trace_adds_the_queue_and_the_order_of_requests(told):
    run, _, seen = told
    seen = {id_: {**each, "block_device": {**each["block_device"]}} for id_, each in seen.items()}
    trials = []
    for one in run.trials:
        device = seen[one.id]["block_device"]
        slow = one.treatment in {"t1", "t2"}
        device |= {"f/s": 0 * device["t_s"], "r/s": 0 * device["t_s"] + one.metrics["queries_per_second"]}
        device |= {"r_await": 0 * device["t_s"] + (20.0 if slow else 4.0)}
        traced = {"queue_ms_mean": 15.0 if slow else 1.0, "device_ms_mean": 5.0 if slow else 3.0}
        traced |= {"seek_bytes_mean": 4e8 if slow else 1e8, "sorted_run_requests_mean": 2.0 if slow else 16.0}
        trials.append(replace(one, metrics={**one.metrics, **traced}))
    found = paragraph(analyse(replace(run, trials=trials), watched=seen), "t3", "t1")
    assert (
        "1.00 per query, each 4.00 ms instead of 20.0 ms, of a request's time 25 % instead of 75 % in the queue"
        in found
    )
    assert "The device moved 100 MB instead of 400 MB between requests" in found
    assert "in sorted runs of 16 instead of 2 requests." in found


def test_where_nothing_differs_both_sides_are_told_and_why_it_cannot_matter(told):
    found = paragraph(told[1], "t2", "t1")
    assert found.startswith("Why: About ten queries at a time wait for one shared flush of the device with either.")
    assert "A query takes 24.8 ms on average, with hdd-7200 / mq-deadline 24.8 ms" in found
    assert "little to sort" not in found  # the fixture's study names no factors
    assert "instead" not in found


def test_a_busy_processor_is_told_and_that_the_device_can_hardly_matter(build, series_of):
    run = closed(build(), server_cpu_us_per_query=900.0)
    factors = [one for one in _factors() if one.name in {"device", "scheduler"}]
    run = replace(run, design=replace(run.design, factors=factors))
    seen = series_of(run)
    for each in seen.values():
        each["host_cpu"]["%idle"] = 0 * each["host_cpu"]["t_s"] + 2
        each["host_cpu"]["%iowait"] = 0 * each["host_cpu"]["t_s"] + 1
        each["block_device"]["%util"] = 0 * each["block_device"]["t_s"] + 3
    found = paragraph(analyse(run, watched=seen), "t2", "t1")
    assert "Both are limited by the processors, 97 % busy." in found
    assert "The device is busy for 3 % of the time: it can hardly matter to this load." in found
    assert "flush" not in found


def test_the_processors_of_another_host_than_the_servers_limit_nothing(build, series_of):
    run = closed(build())
    away = {"server": {"local": False}}
    run = replace(run, trials=[replace(one, observed={**one.observed, **away}) for one in run.trials])
    seen = {id_: {"host_cpu": each["host_cpu"]} for id_, each in series_of(run).items()}
    for each in seen.values():
        each["host_cpu"]["%idle"] = 0 * each["host_cpu"]["t_s"] + 2
        each["host_cpu"]["%iowait"] = 0 * each["host_cpu"]["t_s"] + 1
    assert "limited by the processors" not in paragraph(analyse(run, watched=seen), "t2", "t1")


def _factors():
    from dbdyno.model.design import Factor

    return [
        Factor("device", "stack", ["hdd-7200", "ssd-sata"]),
        Factor("scheduler", "stack", ["mq-deadline", "none"]),
    ]


def test_without_a_device_to_watch_what_server_and_kernel_tell_stands_in(told):
    run, _, seen = told
    trials = [replace(one, disturbance={"pressure": {"io_some": 0.8, "cpu_some": 0.2}}) for one in run.trials]
    status = {
        one.id: {"host_cpu": seen[one.id]["host_cpu"], "server_status": {**seen[one.id]["server_status"]}}
        for one in trials
    }
    for one in trials:
        columns = status[one.id]["server_status"]
        rate = one.metrics["events_per_second"]
        columns["Innodb_data_fsyncs/s"] = 0 * columns["t_s"] + rate * (0.5 if one.treatment == "t1" else 0.25)
        columns["Innodb_log_waits/s"] = 0 * columns["t_s"] + rate * (0.1 if one.treatment == "t3" else 0.0)
    found = paragraph(analyse(replace(run, trials=trials), watched=status), "t3", "t1")
    assert "are the rest (the device, locks, waiting for a processor, network, client)" in found
    assert "InnoDB synced its files 0.250 instead of 0.500 times per query." in found
    assert "Some task of the host waited for I/O during 80 % of the time." in found
    assert "InnoDB waited for room in the log buffer 0.100 instead of 0 times per query." in found
    assert "flush" not in found


def test_a_rate_that_is_kept_up_with_and_a_busy_load_generator_are_told_as_limits(told):
    run, _, seen = told
    calm = {id_: {**each, "block_device": {**each["block_device"]}} for id_, each in seen.items()}
    for each in calm.values():
        each["block_device"]["%util"] = 0 * each["block_device"]["t_s"] + 50
    kept_up = [replace(one, metrics={**one.metrics, "achieved_ratio": 1.0}) for one in run.trials]
    found = paragraph(analyse(replace(run, trials=kept_up), watched=calm), "t2", "t1")
    assert "Both keep up with the offered rate." in found
    short = [replace(one, metrics={**one.metrics, "client_cpu_us_per_query": 2400.0}) for one in run.trials]
    found = paragraph(analyse(replace(run, trials=short), watched=calm), "t2", "t1")
    assert "Both are limited by the load generator, which keeps its thread 97 % busy." in found


def test_an_undecided_verdict_tells_where_its_noise_is(build, series_of):
    run = closed(build())
    noisy = [
        replace(one, metrics={**one.metrics, "latency_ms_mean": one.metrics["latency_ms_mean"] * (1 + 0.1 * (i % 3)),
                              "queries_per_second": one.metrics["queries_per_second"] / (1 + 0.1 * (i % 3))})
        for i, one in enumerate(run.trials)
    ]  # fmt: skip
    run = replace(run, trials=noisy)
    analysis = analyse(run, watched=flushed(run, series_of))
    verdict = next(one for one in analysis.verdicts if (one.level_id, one.baseline_id) == ("t2", "t1"))
    assert verdict.verdict == "undecided"
    found = explanation(verdict, analysis)
    assert "From block to block the difference varies by" in found
    assert "of that variance" in found


def test_without_series_nothing_is_explained(run):
    analysis = analyse(run)
    assert all(explanation(one, analysis) == "" for one in analysis.verdicts)
    assert "Why:" not in as_text(run, analysis)
    assert "Time by part" not in as_page(run, analysis, {})


def test_every_report_has_it_and_a_hostile_label_stays_text(told):
    run, _, seen = told
    treatments = [replace(one, levels={**one.levels, "device": f"<b>*x*</b>{one.id}"}) for one in run.design.treatments]
    run = replace(run, design=replace(run.design, treatments=treatments))
    analysis = analyse(run, watched=seen)
    page = as_page(run, analysis, {})
    assert "Time by part" in page
    assert "<b>*x*" not in page
    assert r"\<b\>\*x\*" in as_markdown(run, analysis)
    document = json.loads(as_json(run, analysis))["why"]
    assert len(document["treatments"]) == 4
    first = document["treatments"][0]["figures"]
    whole = sum(first[name] for name in PARTS if name in first)
    assert whole == pytest.approx(first["latency_ms"], rel=1e-4)
    assert document["comparisons"][0]["text"] == explanation(analysis.verdicts[0], analysis)


@pytest.mark.parametrize(
    ("ms", "expected"),
    [(33.14, "33.1 ms"), (0.0624, "62.4 us"), (1234.5, "1,234 ms"), (0.0, "0 us"), (-28.04, "-28.0 ms")],
)
def test_durations_have_three_digits(ms, expected):
    assert duration(ms) == expected


def changed_by(baseline, level, limits=("device", "rest_ms"), **figures):
    """A change of an event's parts, in ms; ``figures`` of both sides."""
    sides = []
    for place, one in enumerate((baseline, level)):
        known = {"latency_ms": sum(one.values()), **one, **{name: pair[place] for name, pair in figures.items()}}
        limit = Limit(limits[place], 0.95, full=limits[place] == "device")
        sides.append(TimeSpent(f"t{place}", ("hdd-7200", "ssd-sata")[place], 8, known, limit))
    estimates = {name: Estimate(0, 0, 0, 8) for name in ("latency_ms", *baseline)}
    return Changed("t0", "t1", *sides, estimates, {}, {}, math.nan, ())


def times(draw):
    parts = draw(st.lists(st.sampled_from(PARTS[:-1]), min_size=1, unique=True))
    return [{"rest_ms": 0.001, **{name: draw(st.floats(0, 1000)) for name in parts}} for _ in range(2)]


@given(st.data())
def test_no_part_is_larger_than_the_whole_or_all_are_signed_and_add_up(data):
    changed = changed_by(*times(data.draw))
    found = parted(changed)
    in_all = sum(found.parts_ms.values())
    assert in_all + found.rest_of_it_ms == pytest.approx(found.whole_ms, abs=1e-6)
    if not found.opposed:
        assert all(delta * (1 if found.whole_ms > 0 else -1) > 0 for delta in found.parts_ms.values())
        assert abs(in_all) <= abs(found.whole_ms) * (1 + 1e-9)
    for text in _what_changed(changed):
        assert not text.startswith("Its parts: ") or not found.opposed
        assert all(float(share) <= 100 for share in re.findall(r"([0-9.]+) %", text))


def test_parts_that_work_against_each_other_are_signed_amounts():
    one = changed_by({"read_ms": 30.0, "cpu_ms": 1.0, "rest_ms": 0.8}, {"read_ms": 2.0, "cpu_ms": 9.0, "rest_ms": 0.4})
    assert list(_what_changed(one))[:2] == [
        "a query takes 11.4 ms instead of 31.8 ms on average, 20.4 ms less.",
        (
            "The parts work against each other; -20.4 ms is the sum of -28.0 ms of reads from the device, +8.00 ms of"
            " server CPU and -400 us of all others."
        ),
    ]


@pytest.mark.parametrize(
    ("part", "figures", "said"),
    [
        (
            "read_ms",
            {"reads": (1.0, 1.0), "read_each_ms": (8.0, 0.12)},
            (
                "a query waits for the device's reads, 120 us instead of 8.00 ms for each, and with hdd-7200 the disk's"
                " queue never empties."
            ),
        ),
        (
            "read_ms",
            {"reads": (3.2, 0.1), "read_each_ms": (8.0, 8.0)},
            (
                "a query waits for the device's reads (0.100 instead of 3.20 for each query), and with hdd-7200 the"
                " disk's queue never empties."
            ),
        ),
        (
            "flush_ms",
            {"flushes": (1.0, 0.02), "flush_each_ms": (8.0, 8.0), "under_way": (1.0, 1.0)},
            (
                "a query waits until the device is flushed (0.0200 instead of 1.00 for each query), and with hdd-7200"
                " the disk's queue never empties."
            ),
        ),
        ("cpu_ms", {}, "a query keeps the server's processors busy for 1.00 ms instead of 9.00 ms."),
        ("lock_ms", {}, "a query waits 1.00 ms instead of 9.00 ms for rows that others have locked."),
        ("rest_ms", {}, "most of the difference is in waits that were not measured."),
    ],
)
def test_the_first_sentence_says_what_is_waited_for(part, figures, said):
    assert opening_of_difference(changed_by({part: 9.0}, {part: 1.0}, **figures)) == said


def test_the_first_sentence_where_the_same_limits_both():
    same = {"flushes": (0.3, 0.3), "flush_each_ms": (8.0, 8.0), "under_way": (9.9, 9.9), "read_each_ms": (8.0, 8.0)}
    one = changed_by({"read_ms": 9.0}, {"read_ms": 9.0}, ("device", "device"), **same)
    assert opening_where_alike(one) == (
        "with either, the disk's queue never empties, which takes 8.00 ms for each read."
    )
    assert opening_where_alike(changed_by({"read_ms": 9.0}, {"read_ms": 9.0}, **same)) == ""


def test_a_mean_that_changed_the_other_way_is_no_reason_for_a_word(told):
    """Throughput is higher with the SSD and so is its mean latency, as where clients pause."""
    run, _, seen = told
    slow = [
        replace(one, metrics={**one.metrics, "latency_ms_mean": 60.0}) if one.treatment in {"t3", "t4"} else one
        for one in run.trials
    ]
    analysis = analyse(replace(run, trials=slow), watched=seen)
    verdict = next(one for one in analysis.verdicts if (one.level_id, one.baseline_id) == ("t3", "t1"))
    assert verdict.verdict == "faster"
    assert explanation(verdict, analysis) == ""
    assert short_reason(verdict, analysis) == f"in all {verdict.blocks} blocks"
    assert short_reason(verdict, told[1]).endswith("less in flushes")
