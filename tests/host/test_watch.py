"""``dbdyno watch`` of an emulated disk under load: into a pipe, and on a terminal."""

import csv
import io
import json
import os
import pty
import select
import statistics
import subprocess
import time
from contextlib import contextmanager

import pytest

from tests.disks import attached, fio, make_filesystem, mounted
from tests.support import DBDYNO, dbdyno, wait_for, without_tracefs

pytestmark = pytest.mark.host

RATE_MIN, RATE_MAX = 20, 5000  # of 300 reads a second, on a busy host late and then made up for


@pytest.fixture
def disk(state):
    with attached(state, "ssd-sata", name="mine") as found:
        yield found


@contextmanager
def loaded(disk):
    """Reads at a steady rate: 300 a second of 8 KiB."""
    command = fio(disk.device, rw="randread", bs="8k", rate_iops=300, time_based="1", runtime=600, size="32m")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as load:
        try:
            before = disk("stats", "--json")["reads"]
            wait_for(lambda: disk("stats", "--json")["reads"] > before + 200)
            yield
        finally:
            load.terminate()


def test_into_a_pipe(disk, state):
    with loaded(disk):
        lines = dbdyno("watch", "mine", "--count", "2", "--interval", "500ms", state=state)
        objects = dbdyno("watch", disk.device, "--count", "1", "--json", state=state)
        values = dbdyno("watch", disk.device.name, "mine", "--count", "1", "--csv", state=state)
    heading, *rows = lines.stdout.splitlines()
    assert [row.split()[1] for row in rows] == [disk.device.name] * 2
    place = heading.split().index("r/s")
    assert all(RATE_MIN < float(row.split()[place]) < RATE_MAX for row in rows)
    assert "\x1b" not in lines.stdout
    [one] = [json.loads(line) for line in objects.stdout.splitlines()]
    assert (one["device"], one["rareq-sz"]) == (disk.device.name, pytest.approx(8.0, rel=0.02))  # others may read, too
    assert one["rkB/s"] == pytest.approx(8 * one["r/s"])
    [row] = csv.DictReader(io.StringIO(values.stdout))  # the device was named twice
    assert RATE_MIN < float(row["r/s"]) < RATE_MAX
    assert lines.stderr == objects.stderr == values.stderr == ""


def test_a_trace_beside_the_counters(disk, state):
    with loaded(disk):
        told = dbdyno("watch", "mine", "--trace", "--count", "3", "--interval", "500ms", "--json", state=state)
    intervals = [json.loads(line) for line in told.stdout.splitlines()]
    assert len(intervals) == 3
    for one in intervals:  # of a disk with one request at a time
        assert 0 < one["device_ms_mean"] <= one["device_ms_p99"]
        assert 1 <= one["sorted_run_requests_mean"] < 4
        assert 1e6 < one["seek_bytes_mean"] < 32e6  # random over 32 MB
    # The two look at moments of their own, and a request that waited for a processor is on one side of one of them.
    apart = (one["device_ms_mean"] + one["queue_ms_mean"] - one["r_await"] for one in intervals)
    assert statistics.median(map(abs, apart)) < 0.3 + 0.3 * max(one["r_await"] for one in intervals)
    assert told.stderr == ""


def test_two_traces_at_once_and_none_of_what_cannot_be_traced(disk, state, tmp_path):
    with attached(state, "hdd-7200", name="other"):
        told = dbdyno("watch", "mine", "other", "--trace", "-n", "1", "--csv", state=state)
    assert [row["device_ms_mean"] for row in csv.DictReader(io.StringIO(told.stdout))] == ["", ""]
    hidden = without_tracefs(tmp_path)
    refused = dbdyno("watch", "mine", "--trace", "-n", "1", state=state, prefix=hidden)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"there is no block trace of {disk.device.name}: this kernel has no tracefs" in refused.stderr
    assert "watch it without --trace" in refused.stderr


def test_a_folder_stands_for_the_disk_below_it(disk, state, tmp_path):
    make_filesystem("ext4", disk.device)
    with mounted(disk.device, tmp_path / "mnt"):
        told = dbdyno("watch", tmp_path / "mnt", "--count", "1", "--interval", "100ms", "--json", state=state)
    assert json.loads(told.stdout)["device"] == disk.device.name


def test_a_disk_that_goes_away_ends_it_with_a_message(disk, state):
    with subprocess.Popen(
        [*DBDYNO, "watch", "mine", "-i", "100ms", "--csv"],
        env={**os.environ, "DBDYNO_STATE_DIR": str(state)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as watch:
        assert watch.stdout.readline().startswith("time,device,")
        disk("detach")
        told = watch.communicate(timeout=180)
    assert watch.returncode == 1
    assert "has gone" in told[1]
    dbdyno("disk", "attach", "ssd-sata", "--size", "64M", "--name", "mine", state=state)  # for the fixture to detach


def on_a_terminal(state, *argv, keys, columns=100):
    """What is drawn until the program ends; ``keys`` are pressed once a figure was shown."""
    pid, terminal = pty.fork()
    if pid == 0:
        environment = {**os.environ, "DBDYNO_STATE_DIR": str(state), "TERM": "xterm-256color", "COLUMNS": str(columns)}
        os.execvpe(DBDYNO[0], [*DBDYNO, "watch", *argv], environment)
    drawn, pressed, deadline = b"", False, time.monotonic() + 240
    while time.monotonic() < deadline and select.select([terminal], [], [], 240)[0]:
        try:
            drawn += os.read(terminal, 65536)
        except OSError:  # the other end was closed
            break
        if not pressed and b"aqu-sz" in drawn:
            os.write(terminal, keys)
            pressed = True
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return drawn.decode(), os.waitstatus_to_exitcode(status)


def test_on_a_terminal_with_a_history_until_q_is_pressed(disk, state):
    with loaded(disk):
        drawn, code = on_a_terminal(state, "mine", "-i", "200ms", keys=b"xq")
    assert code == 0
    assert "mine, emulated ssd-sata" in drawn
    assert all(word in drawn for word in ("read", "flush", "%util", "history", "q quits"))
    assert "█" in drawn
    assert drawn.index("\x1b[?1049h") < drawn.index("mine") < drawn.index("\x1b[?1049l")  # the screen is given back


def test_a_terminal_is_given_back_after_a_signal(disk, state):
    drawn, code = on_a_terminal(state, str(disk.device), "-i", "100ms", keys=b"\x03")
    assert code == 130
    assert drawn.rstrip().endswith("\x1b[?1049l") or "\x1b[?1049l" in drawn[-100:]
