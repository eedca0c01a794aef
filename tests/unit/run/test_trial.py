"""What a trial's scalars take from the probes: what was counted inside the measured window."""

import pytest

from dbdyno.probe.sampler import Series
from dbdyno.run.trial import cluster_metrics, metrics
from dbdyno.workload.load import LoadResult

SECOND = 1_000_000_000


def a_load(*, start=10 * SECOND, end=12 * SECOND, queries=400):
    result = {
        "queries": queries,
        "events": queries,
        "rows": 0,
        "seconds_real": (end - start) / 1e9,
        "seconds_user": 0.1,
        "seconds_sys": 0.1,
        "errors": [],
        "reconnects": 0,
        "offered_per_second": None,
        "latency_ns": dict.fromkeys(("mean", "p50", "p95", "p99", "p999", "max"), 1e6),
        "clock": {"measure_start_ns": start, "measure_end_ns": end},
    }
    return LoadResult(result, {}, [])


def counted(column, *samples):
    """Return a series of (second, value)."""
    series = Series()
    for second, value in samples:
        series.add(round(second * SECOND), {column: float(value)})
    return series


def test_what_the_disk_wrote_before_and_after_the_window_is_not_of_the_load():
    disk = counted("written_bytes", (9, 1_000_000), (10, 2_000_000), (11, 5_000_000), (12, 6_000_000), (13, 9_000_000))
    for t in range(len(disk.t_ns)):
        disk.columns.setdefault("read_bytes", []).append(100.0 * t)
    found = metrics(a_load(), {"block_device": disk})
    assert found["written_bytes_per_query"] == 4_000_000 / 400
    assert found["read_bytes_per_query"] == 200 / 400
    assert "server_cpu_us_per_query" not in found


def test_a_window_that_ends_between_samples_takes_its_share():
    server = counted("cpu_seconds", (9.9, 1.0), (10.1, 2.0), (11.9, 4.0), (12.1, 5.0))
    assert metrics(a_load(), {"server_process": server})["server_cpu_us_per_query"] == pytest.approx(3.0 * 1e6 / 400)


def test_a_folder_of_this_machine_has_no_bytes_of_a_disk():
    assert "written_bytes_per_query" not in metrics(a_load(), {})


def test_a_window_that_begins_with_the_first_interval_loses_nothing_of_it():
    server = counted("cpu_seconds", (10.1, 1.5), (12.1, 4.0))
    server.began = (10 * SECOND, {"cpu_seconds": 1.0})
    found = metrics(a_load(end=round(12.1 * SECOND)), {"server_process": server})
    assert found["server_cpu_us_per_query"] == pytest.approx(3.0 * 1e6 / 400)


def test_costs_are_of_the_window_and_of_every_disk():
    switches = counted("voluntary", (10, 100), (12, 900))
    switches.columns["involuntary"] = [5.0, 25.0]
    disks = {name: counted("writes_done", (10, 50), (12, 450)) for name in ("block_device", "block_device_log")}
    status = counted("Innodb_data_fsyncs", (10, 7), (12, 207))
    found = metrics(a_load(), {"server_switches": switches, "server_status": status, **disks})
    assert found["voluntary_switches_per_query"] == pytest.approx(800 / 400)
    assert found["involuntary_switches_per_query"] == pytest.approx(20 / 400)
    assert found["writes_per_query"] == pytest.approx(2 * 400 / 400)
    assert found["fsyncs_per_query"] == pytest.approx(200 / 400)
    assert "instructions_per_query" not in found, "no counters: unknown"
    assert "reads_per_query" not in found, "a column that the series lacks"


def test_a_counter_that_was_set_back_is_unknown():
    status = counted("Innodb_data_fsyncs", (10, 900), (12, 3))
    assert "fsyncs_per_query" not in metrics(a_load(), {"server_status": status})


def test_cpu_by_the_scheduler_s_clock_is_preferred_to_ticks():
    ticks, finer = (counted("cpu_seconds", (10, 1.0), (12, end)) for end in (1.02, 1.013))
    finer.columns |= {"voluntary": [0.0, 1.0], "involuntary": [0.0, 1.0]}
    found = metrics(a_load(), {"server_process": ticks, "server_switches": finer})
    assert found["server_cpu_us_per_query"] == pytest.approx(0.013 * 1e6 / 400)


def test_a_cluster_s_figures_are_of_the_measured_window_alone():
    watched = counted("sent_done", (9, 100), (10, 200), (12, 800), (13, 5000))
    of_seconds = {
        "ordered_done": [0, 100, 700, 900],
        "ordering_seconds": [0, 1, 4, 9],
        "paused_seconds": [0, 1, 1.5, 9],
        "failed_done": [0, 2, 5, 50],
        "receive_queue": [90, 90, 6, 90],
    }
    watched.columns |= {name: [float(value) for value in values] for name, values in of_seconds.items()}
    assert cluster_metrics(a_load(), {"cluster": watched}) == {
        "cluster_commits_per_second": 300.0,
        "ordering_ms_mean": pytest.approx(5.0),
        "flow_control_paused_ratio": 0.25,
        "receive_queue_mean": 6.0,
        "certification_failures": 3.0,
    }
    assert cluster_metrics(a_load(), {}) == {}
