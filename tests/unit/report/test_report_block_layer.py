"""What is said of the block layer, and of traces that are not there."""

import json
from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.report.sections.block_layer import block_layer_lines, block_layer_rows, size
from tests.unit.report.conftest import build
from tests.unit.report.rendered import as_json, as_markdown, as_page, as_text


def trace(*, queue=2.0, run=9.5, waiting=30.0, lost=0):
    """Figures as a trial holds them."""
    device, writes = 5.0, 1200

    def times(mean, p99):
        return {"count": writes, "mean": mean, "p50": mean, "p95": p99, "p99": p99, "max": p99}

    return {
        "requests": {"read": 0, "write": writes, "flush": 40, "discard": 0, "other": 0},
        "queue_ms": {"all": times(queue, 4 * queue), "flush": times(0.1, 0.2)},
        "device_ms": {"all": times(device, 3 * device), "flush": times(8.0, 16.0)},
        "bios": 2 * writes, "seek_bytes_mean": 10_590_618.0, "sequential_ratio": 0.1,
        "sorted_run_requests_mean": run, "device_depth": {"mean": 8.3, "max": 32},
        "waiting_bios": {"mean": waiting, "max": 100}, "lost": lost,
    }  # fmt: skip


def analysed(given):
    """A run whose treatments have these traces."""
    run = build(blocks=2, void_block=0, rates=dict.fromkeys(given, 400.0), pairs=[])
    run = replace(run, trials=[replace(trial, block_trace=given[trial.treatment]) for trial in run.trials])
    return run, analyse(run)


def test_a_run_without_a_trace_says_nothing_of_it():
    run, analysis = analysed({"t1": {}, "t2": {}})
    assert block_layer_lines(analysis) == []
    assert "In the block layer" not in as_text(run, analysis) + as_page(run, analysis, {})
    assert json.loads(as_json(run, analysis))["block_layer"] == []


def test_a_scheduler_that_sorts_and_one_that_does_not():
    _, analysis = analysed({"t1": trace(), "t2": trace(run=2.03, queue=0.0004, waiting=0.0)})
    first, second = block_layer_lines(analysis)
    assert first == (
        "hdd-7200 / mq-deadline: a request waited 2.000 ms in the queue and took 5.000 ms in the device (99 % of them"
        " at most 15.00 ms). mq-deadline sent 1,200 on in sorted runs of 9.500 (random order has runs of 2), with 30.00"
        " to choose from; they lay 10.1 MiB apart on average, 8.300 in the device at a time. 40 flushes took 8.000"
        " ms each."
    )
    assert second.startswith("hdd-7200 / none: a request waited 0.400 us in the queue and took 5.000 ms in the device")
    assert "1,200 requests went there in no order to speak of (runs of 2.030); they lay 10.1 MiB apart" in second
    assert block_layer_rows(analysis)[0] == (
        "hdd-7200 / mq-deadline", "1,200", "2.000 (8.000)", "5.000 (15.00)", "8.000 (16.00)", "10.1\u00a0MiB", "9.500",
        "8.300 (32)",
    )  # fmt: skip


def test_order_that_no_scheduler_made_is_not_said_to_be_one_s():
    _, analysis = analysed({"t2": trace()})
    assert "1,200 requests went there in sorted runs of 9.500 (random" in block_layer_lines(analysis)[0]


def test_why_there_is_none_is_told_once_with_its_treatments():
    none = {"none": "tracefs is not mounted; mount it: mount -t tracefs tracefs /sys/kernel/tracing"}
    run, analysis = analysed({"t1": none, "t2": none, "t3": trace(lost=7)})
    lines = block_layer_lines(analysis)
    assert lines[1].startswith(
        "No block trace of hdd-7200 / mq-deadline; hdd-7200 / none: tracefs is not mounted; mount"
    )
    assert lines[2].startswith("ssd-sata / mq-deadline: 14 events of the block trace were lost")
    assert block_layer_rows(analysis)[0][0] == "ssd-sata / mq-deadline"
    [first, *_] = json.loads(as_json(run, analysis))["block_layer"]
    assert (first["device_ms_mean"], first["none"]) == (None, [{"why": none["none"], "trials": 2}])


def test_kept_requests_are_said_and_those_that_are_not_whole():
    kept = {"recorded": {"events": 9, "bytes": 900, "seconds": 1.0, "full": True, "failed": None}}
    run, analysis = analysed({"t2": trace() | kept})
    assert block_layer_lines(analysis)[1].endswith(
        "the requests of 2 trials are kept, trials/*/requests.blkparse; in 2 trials the file is full or could not be"
        " written to its end."
    )
    assert json.loads(as_json(run, analysis))["block_layer"][0]["traces_cut"] == 2


def test_a_disk_s_own_trace_is_said_to_be_one():
    own = {**trace(), "queue_ms": {"all": {"mean": None}}, "why_not_kernel": "tracefs is not mounted."}
    _, analysis = analysed({"t1": own, "t2": own})
    lines = block_layer_lines(analysis)
    assert lines[0].startswith("hdd-7200 / mq-deadline: a request took 5.000 ms in the device")
    assert lines[2] == (
        "hdd-7200 / mq-deadline; hdd-7200 / none: these figures come from the emulated disk's own trace, which has no"
        " times in the queue; the kernel made no block trace: tracefs is not mounted."
    )
    assert block_layer_rows(analysis)[0][2] == "-"


@pytest.mark.parametrize("odd", [
    {"requests": 5}, {"queue_ms": {"all": "no"}, "device_ms": None, "lost": "many"},
    {"device_ms": {"all": {"mean": float("nan")}}, "seek_bytes_mean": -1, "requests": {"write": True}},
])  # fmt: skip
def test_a_damaged_record_has_no_figures_and_breaks_nothing(odd):
    run, analysis = analysed({"t1": odd})
    assert block_layer_lines(analysis) == ["hdd-7200 / mq-deadline: no data went to or from the device."]
    for rendered in (as_text(run, analysis), as_markdown(run, analysis), as_page(run, analysis, {})):
        assert "In the block layer" in rendered


def test_what_a_run_says_is_text():
    run, analysis = analysed({"t1": {"none": "<script>alert(1)</script>\x1b[31m\nx"}})
    assert "<script>alert(1)" not in as_page(run, analysis, {})
    assert "\x1b" not in as_text(run, analysis) + as_markdown(run, analysis)
    assert "<script>" not in as_markdown(run, analysis).replace("\\<", "")


def test_sizes_have_units():
    assert [size(value) for value in (0, 512, 2048, 10_590_618, 3 * 1024**4)] == [
        "0 B", "512 B", "2 KiB", "10.1 MiB", "3 TiB",
    ]  # fmt: skip
