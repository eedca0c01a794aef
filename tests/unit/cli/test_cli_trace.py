"""``dbdyno trace``: what it says of a trace, and of a recording. On a real device: tests/host/test_trace_record.py."""

import json
from dataclasses import replace

import pytest

from dbdyno.cli.trace import recorded_text, remarks
from dbdyno.probe.block_trace import TraceRecording

LINES = """\
# lost_events: 3
8,0 0 1 0.000000000 7 Q WS 8 + 8 [mariadbd]
8,0 0 2 0.000100000 7 M WS 8 + 8 [mariadbd]
8,0 0 3 0.000500000 0 C WS 8 + 8 [0]
8,0 0 4 0.5 9 Q R 16 + 16 [a b]
8,0 0 5 x 9 Q R 16 + 16 [a b]
8,0 0 6 0.4 9 Q FF 0 + 0 [a b]
"""


@pytest.fixture
def trace(tmp_path):
    file = tmp_path / "a.blkparse"
    file.write_text(LINES, encoding="utf-8")
    return file


def test_what_is_in_a_trace(dbdyno, trace):
    code, out, err = dbdyno("trace", "show", str(trace), "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["schema"], found["format"], found["writes"]["sync"], found["reads"]["bytes"]) == (
        1,
        "blkparse",
        1,
        8192,
    )
    assert (found["flushes"], found["response_ms_mean"], found["span_s"]) == (1, 0.5, 0.5)
    assert [(one["name"], one["requests"]) for one in found["processes"]] == [("a b", 2), ("mariadbd", 1)]


def test_the_same_in_words(dbdyno, trace):
    code, out, _ = dbdyno("trace", "show", str(trace))
    assert code == 0
    assert "3 requests in 0.500 s, 6 a second (read as blkparse)" in out
    for said in (
        "3 events were lost",
        "1 damaged line: line 6 has no time and process",
        "time goes backwards 1 time, by 100.000 ms",
        "2 requests without an end",
        "M 1",
    ):
        assert said in out, out


def test_a_trace_of_nothing_is_one(dbdyno, tmp_path):
    (tmp_path / "none").write_text("", encoding="utf-8")
    assert dbdyno("trace", "show", str(tmp_path / "none")) == (0, f"{tmp_path / 'none'}: no request\n", "")


def test_what_is_packed_is_to_be_unpacked(dbdyno, tmp_path):
    (tmp_path / "a.gz").write_bytes(b"\x1f\x8b\x08\x00")
    code, out, err = dbdyno("trace", "show", str(tmp_path / "a.gz"))
    assert (code, out) == (2, "")
    assert "it is compressed by gzip; unpack it first: gzip -dc FILE > trace" in err


MQSIM = (
    "938513000 0 264719034 16 0\n938828000 0 197570570 16 1\n938944000 0 93230992 32 0\n939010000 0 230420970 16 1\n"
)


def test_how_a_trace_was_read_is_said(dbdyno, tmp_path):
    file = tmp_path / "trace"
    file.write_text(f"Input file sda.blktrace.0 added\n{LINES}", encoding="utf-8")
    code, out, _ = dbdyno("trace", "show", str(file))
    assert (code, "1 line of text before the first event, passed over" in out) == (0, True), out
    file.write_text(MQSIM, encoding="utf-8")
    code, out, _ = dbdyno("trace", "show", str(file))
    assert (code, "4 requests in 497 us, 8,048 a second (read as disksim)" in out) == (0, True), out
    assert "read as nanoseconds, because the format's milliseconds would mean 0.00604 requests a second" in out
    code, out, _ = dbdyno("trace", "show", str(file), "--time-unit", "us", "--json")
    assert (code, json.loads(out)["span_s"], json.loads(out)["findings"]["notes"]) == (0, 0.497, [])


def test_a_unit_that_is_open_is_asked_for(dbdyno, tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("timestamp,op,offset,size\n0,r,0,4096\n1,r,0,4096\n2,w,0,4096\n4,w,0,4096\n", encoding="utf-8")
    code, out, err = dbdyno("trace", "show", str(file))
    assert (code, out) == (2, "")
    assert f"{file}: its times, which are whole numbers, may be milliseconds (750 requests a second)" in err
    assert "state which with --time-unit ms or us, or with a heading such as time_us" in err
    assert dbdyno("trace", "show", str(file), "--time-unit", "ms")[0] == 0
    code, _, err = dbdyno("trace", "show", str(file), "--time-unit", "days")
    assert (code, 'there is no unit of time "days"; choose one of s, ms, us, 100ns, ns' in err) == (2, True)


DONE = TraceRecording(events=9, requests=3, bytes=2_000_000, seconds=1.0, lost=0, ended="time", cpu_us_per_request=0.5)


def test_what_a_recording_must_be_read_with(tmp_path, monkeypatch):
    below = {tmp_path: ["sda"]}
    monkeypatch.setattr("dbdyno.host.storage.disks_under", lambda path: below.get(path, ["sdb"]))
    assert remarks("sdb", tmp_path / "t", DONE) == []
    said = remarks("sdb", tmp_path / "t", replace(DONE, lost=2, ended="full"))
    assert [one.split()[:4] for one in said] == [["the", "file", "is", "full,"], ["2", "events", "did", "not"]]
    below[tmp_path] = ["sdb"]
    assert "is on sdb itself" in remarks("sdb", tmp_path / "t", DONE)[0]
    assert recorded_text(tmp_path, DONE, ["a"]).endswith("0.50 us of CPU a request\nnote: a")
    assert "us of CPU" not in recorded_text(tmp_path, replace(DONE, cpu_us_per_request=None), [])
