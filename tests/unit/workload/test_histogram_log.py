"""Logs of HdrHistogram as dbdyno-load writes them: what was counted is read again, and what is none is refused."""

import base64
import json
import struct
import zlib
from array import array
from itertools import count, takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno._native import histogram, histogram_log


def events_of(log):
    values, times, _ = histogram_log(log.read_text())
    return array("d", values).tolist(), array("d", times).tolist()


LATENCY = st.integers(0, 24 * 3600 * 10**9)  # ns
HEADING = '#[Histogram log format version 1.3]\n"StartTimestamp","Interval_Length","Interval_Max","Interval_..."\n'


def bucket(value):
    """The number of a value's bucket: 2048 of their own, then 1024 for each further power of two."""
    octave = max(0, value.bit_length() - 11)
    return 1024 * octave + (value >> octave)


def upper_end(value):
    octave = max(0, value.bit_length() - 11)
    return (((value >> octave) + 1) << octave) - 1


def leb128(number):
    zigzag = (number << 1) ^ (number >> 63)
    groups = [*takewhile(bool, (zigzag >> 7 * place for place in count()))] or [0]
    return bytes((group & 0x7F) | 0x80 * (place < len(groups) - 1) for place, group in enumerate(groups))


def packed(counts, digits=3):
    """A histogram of value -> how often, by the format's own description."""
    buckets = {}
    for value, times in counts.items():
        buckets[bucket(value)] = buckets.get(bucket(value), 0) + times
    numbers, before = b"", -1
    for place, times in sorted(buckets.items()):
        gap = place - before - 1
        numbers += (leb128(-gap) if gap else b"") + leb128(times)
        before = place
    plain = struct.pack(">iiiiqqd", 0x1C849313, len(numbers), 0, digits, 1, 2**50, 1.0) + numbers
    small = zlib.compress(plain)
    return base64.b64encode(struct.pack(">ii", 0x1C849314, len(small)) + small).decode()


def line(counts, tag="", **how):
    return f"{tag}0.000,0.100,9.9,{packed(counts, **how)}\n"


@given(st.lists(st.dictionaries(LATENCY, st.integers(1, 2**40), min_size=1, max_size=30), max_size=4))
def test_what_was_counted_is_read_again(tmp_path_factory, intervals):
    log = tmp_path_factory.getbasetemp() / "latency.hlog"
    lines = [line(counts) + line({7: 9}, tag="Tag=commit,") for counts in intervals]
    log.write_text(HEADING + "".join(lines))
    met = {}
    for counts in intervals:
        for value, times in counts.items():
            met[upper_end(value)] = met.get(upper_end(value), 0) + times
    values, times = events_of(log)
    assert dict(zip(values, times, strict=True)) == met
    assert values == sorted(values)


@given(LATENCY)
def test_a_bucket_ends_within_a_thousandth(value):
    assert value <= upper_end(value) <= 1.001 * value


def without_end(payload):
    return base64.b64encode(base64.b64decode(payload)[:-9]).decode()


@pytest.mark.parametrize(
    "payload",
    ["", "no base64!", "AAAA", packed({5: 1}, digits=2), without_end(packed({5: 1, 10**9: 1}))],
)
def test_what_is_no_histogram_is_named_with_its_line(tmp_path, payload):
    log = tmp_path / "latency.hlog"
    log.write_text(HEADING + line({5: 1}) + f"0.1,0.1,5.0,{payload}\n")
    with pytest.raises(ValueError, match=r"line 4 has no valid histogram"):
        events_of(log)


def test_more_buckets_than_there_are_are_refused(tmp_path):
    numbers = leb128(-(2**40)) + leb128(1)
    plain = struct.pack(">iiiiqqd", 0x1C849313, len(numbers), 0, 3, 1, 2**50, 1.0) + numbers
    small = zlib.compress(plain)
    payload = base64.b64encode(struct.pack(">ii", 0x1C849314, len(small)) + small).decode()
    (tmp_path / "log").write_text(f"0.1,0.1,5.0,{payload}\n")
    with pytest.raises(ValueError, match="cut off or damaged"):
        events_of(tmp_path / "log")


def test_histograms_are_added_up_and_summarised_as_everywhere():
    values, times, summary = histogram([packed({5: 2}), packed({5: 1, 10**6: 1})], 10**6)
    assert (array("d", values).tolist(), array("d", times).tolist()) == ([5.0, 10.0**6], [3.0, 1.0])
    found = json.loads(summary)
    assert (found["count"], found["p50"], found["p99"], found["max"]) == (4, 5, 10**6, 10**6)
    assert json.loads(histogram([])[2])["p99"] is None
