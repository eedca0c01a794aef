"""What a trial takes from a block trace, and what stands in its place where there is none."""

import math
from pathlib import Path
from types import SimpleNamespace

from dbdyno.model.metrics import METRICS
from dbdyno.probe.block_trace import Traced, _columns, read_series, tracing
from dbdyno.stack.layer import BlockDevice, StackContext
from dbdyno.store.block_trace import SCALARS

FIGURES = {
    "queue_ms": {"all": {"mean": 0.5, "p99": 2.0}},
    "device_ms": {"all": {"mean": 4.0, "p99": None}, "flush": {"mean": None}},
    "seek_bytes_mean": 8192,
    "device_depth": {"mean": 3.5, "max": 4},
}


def test_every_scalar_is_a_metric_with_words():
    assert set(SCALARS) <= set(METRICS)
    assert all(METRICS[name].unit for name in SCALARS)


def test_what_is_not_known_is_no_metric():
    found = Traced(FIGURES).metrics()
    assert found == {"queue_ms_mean": 0.5, "queue_ms_p99": 2.0, "device_ms_mean": 4.0, "seek_bytes_mean": 8192.0,
                     "device_depth_mean": 3.5}  # fmt: skip
    assert Traced({"none": "tracefs is not mounted"}).metrics() == {}


def test_the_series_is_cut_to_the_measured_run():
    ends = [900_000_000, 1_000_000_000, 1_100_000_000, 1_200_000_000, 1_300_000_000]
    series = {"t_ns": ends, "queue_ms": [9.0, 9.0, 1.0, None, 9.0]}
    found = _columns(series, (1_000_000_000, 1_190_000_000))
    assert found["t_s"] == [0.1, 0.2]
    assert found["queue_ms"][0] == 1.0
    assert math.isnan(found["queue_ms"][1])


def test_the_series_of_a_file_has_gaps_where_it_has_empty_cells():
    assert read_series("t_ns,queue_ms,device_ms\n100000000,,1.5\n200000000,2,\n") == {
        "t_ns": [1e8, 2e8], "queue_ms": [None, 2.0], "device_ms": [1.5, None],
    }  # fmt: skip


def test_a_study_that_does_not_ask_has_no_trace_and_no_reason(journal, tmp_path):
    with tracing(StackContext(journal, tmp_path), wanted=False) as trace:
        assert trace.within((0, 1)) == Traced()


def test_data_without_a_device_have_a_reason(journal, tmp_path):
    with tracing(StackContext(journal, tmp_path), wanted=True) as trace:
        assert trace.within((0, 1)).figures == {"none": "the data stand on no block device of their own"}


def test_of_a_machine_of_the_users_own_the_drives_own_trace_is_taken(journal, tmp_path):
    asked = []
    client = SimpleNamespace(start_trace=lambda *words: asked.append(words), stop_trace=lambda: None)
    with tracing(StackContext(journal, tmp_path), wanted=True, disk=SimpleNamespace(client=client)) as trace:
        assert trace.why == "the requests go through the kernel of a machine, which is not traced"
    assert asked == [(tmp_path / "requests.trace", "binary")]


def test_a_reader_that_cannot_start_says_why(journal, tmp_path):
    device = BlockDevice(Path("/dev/no-such-disk"), rotational=False, disposable=True)
    with tracing(StackContext(journal, tmp_path, device), wanted=True) as trace:
        found = trace.within((0, 1))
    assert found.figures == {"none": "/dev/no-such-disk: No such file or directory (os error 2)"}
    assert found.metrics() == found.series == found.cost == {}
