"""``dbdyno watch``: what it writes, and what it refuses. On a real device: tests/host/test_watch.py."""

import csv
import fcntl
import io
import json
import math
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.cli.watch import BARS, HEADED_EVERY, WRITERS, sparkline, traced_line, watch
from dbdyno.errors import UserError
from dbdyno.probe.block_trace import LIVE_COLUMNS
from dbdyno.probe.iostat import COLUMNS, as_iostat
from dbdyno.stack import attached as watchable
from dbdyno.store import events
from dbdyno.store.run_folder import LOCK, RunFolder

FIGURES = {device: {name: place + 0.125 for place, name in enumerate(COLUMNS)} for device in ("sda", "nvme0n1")}
KEPT = Path(__file__).parents[2] / "kept"
positive = st.floats(0, 1e12)


def written(kind, capsys, intervals=1):
    write = WRITERS[kind](list(FIGURES), COLUMNS)
    for _ in range(intervals):
        write(FIGURES)
    return capsys.readouterr().out


def test_the_columns_are_iostat_s_in_its_order():
    assert COLUMNS[:6] == ("r/s", "rkB/s", "rrqm/s", "%rrqm", "r_await", "rareq-sz")
    assert COLUMNS[-4:] == ("f/s", "f_await", "aqu-sz", "%util")
    ours = {name.replace("kB", "MB"): 1.0 for name in COLUMNS}
    assert as_iostat(ours)["wkB/s"] == 1e6 / 1024
    assert list(as_iostat(ours)) == list(COLUMNS)


def test_lines_stand_under_a_heading_that_comes_back(capsys):
    lines = written("lines", capsys, HEADED_EVERY + 1).splitlines()
    headings = [place for place, line in enumerate(lines) if line.split()[:2] == ["time", "Device"]]
    assert headings == [0, 1 + 2 * HEADED_EVERY]
    assert lines[0].split()[2:] == list(COLUMNS)
    assert lines[1].split()[1:4] == ["sda", "0.12", "1.12"]
    assert {len(line) for line in lines} == {len(lines[0])}
    assert "\x1b" not in "".join(lines)


def test_comma_separated_values_and_json_hold_the_same(capsys):
    rows = list(csv.DictReader(io.StringIO(written("csv", capsys, 2))))
    objects = [json.loads(line) for line in written("json", capsys, 2).splitlines()]
    assert len(rows) == len(objects) == 4
    for row, one in zip(rows, objects, strict=True):
        assert list(row) == list(one) == ["time", "device", *COLUMNS]
        assert row["device"] == one["device"]
        assert [float(row[name]) for name in COLUMNS] == [one[name] for name in COLUMNS]


@given(st.lists(positive), st.integers(-3, 80), positive)
def test_a_sparkline_is_as_wide_as_there_is_room_and_shows_whatever_is_above_nought(values, width, most):
    drawn = sparkline(values, width, most)
    assert len(drawn) == min(len(values), max(0, width))
    last = values[len(values) - len(drawn) :]
    assert [bar == " " for bar in drawn] == [value == 0 for value in last]
    heights = [BARS.index(bar) for _, bar in sorted(zip(last, drawn, strict=True))]
    assert heights == sorted(heights)


def test_what_is_not_known_of_an_interval_is_a_dash_an_empty_cell_and_null(capsys):
    figures = {"sda": {"r/s": 0.0, "queue_ms_mean": math.nan}}
    for kind in ("lines", "csv", "json"):
        WRITERS[kind](["sda"], ("r/s", "queue_ms_mean"))(figures)
    _, line, _, row, one = capsys.readouterr().out.splitlines()
    assert line.split()[1:] == ["sda", "0.00", "-"]
    assert row.split(",")[1:] == ["sda", "0", ""]
    assert json.loads(one)["queue_ms_mean"] is None


def test_what_the_trace_tells_is_one_line():
    figures = dict.fromkeys(LIVE_COLUMNS, math.nan) | {"device_ms_mean": 4.07, "seek_bytes_mean": 12.5e6}
    told = "in queue - ms (p99 -), in device 4.07 ms (p99 -), 12.5 MB apart, sorted runs of -"
    assert traced_line(figures) == told


def test_a_sparkline_of_a_share_is_full_at_all():
    assert sparkline([0, 50, 100], 3, most=100) == " ▄█"
    assert sparkline([10], 1, most=100) == "▁"


@pytest.mark.usefixtures("state")
def test_what_there_is_not_is_answered_with_what_there_is(monkeypatch, tmp_path):
    for name, sectors in (("sdb", 100), ("loop7", 0), ("sda", 5)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "size").write_text(f"{sectors}\n", encoding="ascii")
    monkeypatch.setattr(watchable, "_WHOLE", tmp_path)
    with pytest.raises(UserError, match=r"sdq is not a device, .*; there are sda, sdb$"):
        watchable.watchables("sdq")
    with pytest.raises(UserError, match=r"/proc stands on no block device; there are sda, sdb$"):
        watchable.watchables("/proc")


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"json_": True, "csv": True}, "give --json or --csv, not both"),
        ({"interval": "20ms"}, "too short"),
        ({"interval": "soon"}, "--interval 'soon'"),
    ],
)
def test_flags_that_make_no_sense(flags, told):
    with pytest.raises(UserError, match=told):
        watch(["x"], **{"interval": "1s", "count": None, "json_": False, "csv": False, "trace": False, **flags})


def test_a_run_is_followed_to_its_end(dbdyno):
    code, out, err = dbdyno("watch", KEPT / "clients")
    assert (code, err) == (0, "")
    assert out.startswith("begun: at most ")
    assert out.endswith("block 8, clients 1: finished, with interference\nended: done\n")
    events = [json.loads(line)["event"] for line in dbdyno("watch", KEPT / "clients", "--json")[1].splitlines()]
    assert (events[0], events[-1], len(events)) == ("planned", "ended", len(out.splitlines()))


@pytest.fixture
def unended(tmp_path):
    """A run that has no end, and the event that would be its last."""
    run = shutil.copytree(KEPT / "clients", tmp_path / "run")
    log = run / "journal.jsonl"
    *lines, last = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines))
    return run, last


def test_a_run_that_no_process_runs_is_not_waited_for(dbdyno, unended, tmp_path):
    run, _ = unended
    other = tmp_path / "elsewhere" / "run"  # of the same name, and run at this moment
    other.mkdir(parents=True)
    folder = RunFolder(other)
    code, _, err = dbdyno("watch", run, "--interval", "100ms")
    folder.close()
    assert code == 1
    assert err == f"dbdyno: no process runs {run}; resume it: dbdyno run STUDY --into {run} --resume\n"


def test_a_run_is_followed_by_whatever_name_it_is_called_and_its_log_read_only_when_it_grows(
    dbdyno, unended, tmp_path, monkeypatch
):
    run, last = unended
    (tmp_path / "link").symlink_to(run)
    folder = os.open(run / LOCK, os.O_WRONLY | os.O_CREAT)
    fcntl.flock(folder, fcntl.LOCK_EX)
    reads, pauses = [], []
    read_events = events.read_events
    monkeypatch.setattr(events, "read_events", lambda path: reads.append(path) or read_events(path))

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 3:
            with (run / "journal.jsonl").open("ab") as log:
                log.write(last)
            os.close(folder)

    monkeypatch.setattr("dbdyno.cli.watch.time.sleep", pause)
    code, out, _ = dbdyno("watch", tmp_path / "link", "--interval", "100ms")
    assert (code, len(reads), pauses) == (0, 2, [0.1] * 3)
    assert out == dbdyno("watch", KEPT / "clients")[1]


def test_a_run_is_followed_alone(dbdyno):
    code, _, err = dbdyno("watch", KEPT / "clients", "--csv")
    assert (code, "is a run; watch it alone" in err) == (2, True)
