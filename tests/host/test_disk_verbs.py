"""``dbdyno disk``: a disk for anybody, that outlives its command and is never taken from under a mount."""

import csv
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.disks import attached, direct
from tests.loops import lent_loop
from tests.support import dbdyno, kill, number_of, put_back, start_dbdyno, study_text, wait_for, what_is_left

pytestmark = pytest.mark.host


def knob(device, name):
    return Path(f"/sys/block/{Path(device).name}/queue/{name}").read_text(encoding="ascii").strip()


def test_attached_used_and_detached(state, tmp_path):
    attached = dbdyno("disk", "attach", "hdd-7200", "--size", "256M", state=state)
    assert attached.returncode == 0, attached.stderr
    device = attached.stdout.strip()
    assert (knob(device, "rotational"), knob(device, "wbt_lat_usec")) == ("1", "75000")
    assert dbdyno("restore", state=state).stdout.startswith("left alone: disk attach hdd-7200")
    place = tmp_path / "place"
    place.mkdir()
    subprocess.run(["mkfs.ext4", "-q", device], check=True)
    subprocess.run(["mount", device, str(place)], check=True)
    try:
        refused = dbdyno("disk", "detach", device, state=state)
        assert refused.returncode == 2
        assert f"{device} is in use" in refused.stderr
        (place / "file").write_bytes(b"still there")
        os.sync()
    finally:
        subprocess.run(["umount", str(place)], check=True)
    # Where mounts are private, as here, a run that had begun before holds it until it ends.
    wait_for(lambda: dbdyno("disk", "detach", device, state=state).stdout == f"detached {device}\n")
    assert what_is_left(state) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_disk_that_was_killed_is_restored(state, number):
    device = dbdyno("disk", "attach", "ssd-sata", "--size", "64M", state=state).stdout.strip()
    os.kill(number_of(state, "dbdyno-disk serve"), number)
    wait_for(lambda: number_of(state, "dbdyno-disk serve") is None)
    put_back(state)
    # Another test may have been given the same loop device by now.
    backing = Path(f"/sys/block/{Path(device).name}/loop/backing_file")
    assert not backing.exists() or str(state) not in backing.read_text()


@pytest.fixture
def disk(state):
    """The verbs on one attached disk, ``ideal`` of 64 MiB called d."""
    with attached(state, "ideal") as found:
        yield found


def test_list_shows_every_disk_and_a_dead_one(state):
    for argv in (["hdd-7200"], ["hdd-7200"], ["ssd-sata", "--name", "fast", "--sector", "512"]):
        assert dbdyno("disk", "attach", *argv, "--size", "64M", state=state).returncode == 0
    listed = json.loads(dbdyno("disk", "list", "--json", state=state).stdout)
    names = ["hdd-7200", "hdd-7200-2", "fast"]
    assert [disk["name"] for disk in listed] == names
    assert [disk["model"] for disk in listed] == ["hdd-7200", "hdd-7200", "ssd-sata"]
    assert [disk["size_bytes"] for disk in listed] == [64 * 1024**2] * 3
    assert all(disk["locked_memory"] is True and disk["io_flusher"] in {True, False} for disk in listed)
    assert [knob(disk["device"], "logical_block_size") for disk in listed] == ["4096", "4096", "512"]
    taken = dbdyno("disk", "attach", "ideal", "--size", "64M", "--name", "fast", state=state)
    assert (taken.returncode, "attached already" in taken.stderr) == (2, True)
    os.kill(listed[0]["pid"], signal.SIGKILL)
    wait_for(lambda: not Path(f"/proc/{listed[0]['pid']}/exe").exists())
    table = dbdyno("disk", "list", state=state).stdout
    assert [line.split()[0] for line in table.splitlines()[1:4]] == names
    assert "ended" in table.splitlines()[1]
    assert "dbdyno restore" in table
    for name in names:
        assert dbdyno("disk", "detach", name, state=state).returncode == 0
    assert dbdyno("disk", "list", state=state).stdout.startswith("no disk is attached")
    assert what_is_left(state) == []


def test_the_kernel_flushes_only_what_needs_it(state):
    for model in ("hdd-7200", "ideal"):
        device = dbdyno("disk", "attach", model, "--size", "64M", state=state).stdout.strip()
        volatile = json.loads(dbdyno("disk", "stats", model, "--json", state=state).stdout)["write_cache"] == "volatile"
        assert knob(device, "write_cache") == ("write back" if volatile else "write through")
        assert volatile == (model == "hdd-7200")
        assert dbdyno("disk", "detach", device, state=state).returncode == 0


def test_snapshots_and_modes(disk):
    assert direct(disk.device, 0, 1) == 1
    disk("mode", "instant")
    disk("snapshot", "one")
    assert direct(disk.device, 0, 2) == 2
    disk("restore", "one")
    assert direct(disk.device, 0) == 1
    stats = disk("stats", "--json")
    assert (stats["mode"], stats["snapshots"], stats["reads"] > 0) == ("instant", ["one"], True)
    disk("forget", "one")
    assert "snapshots: none" in disk("stats")


def test_faults_are_felt_and_listed(disk):
    disk("fault eio", "--range", "4096-8192", "--write")
    assert [direct(disk.device, 4096, 1), direct(disk.device, 0, 1), direct(disk.device, 4096)] == ["errno 5", 1, 0]
    disk("fault latency", "--extra", "80ms", "--for", "30s")
    began = time.monotonic()
    direct(disk.device, 0)
    assert time.monotonic() - began >= 0.08
    said = disk("stats")
    assert "fault: eio on writes in bytes 4096-8192: hit 1 of 1" in said
    assert "fault: latency +80 ms on all requests: hit" in said
    assert "s left" in said
    disk("fault clear")
    assert direct(disk.device, 4096, 1) == 1
    disk("fault gone")
    assert direct(disk.device, 0) == "errno 5"
    disk("fault clear")
    assert direct(disk.device, 0) == 1


def test_a_stuck_request_holds_up_no_other(disk):
    disk("fault stuck", "--read", "--range", "0-4096")
    stuck = subprocess.Popen(["dd", f"if={disk.device}", "of=/dev/null", "bs=4096", "count=1", "iflag=direct"])
    wait_for(lambda: disk("stats", "--json")["in_flight"] >= 1)  # another test's look at all disks may wait too
    assert direct(disk.device, 4096) == 0
    assert stuck.poll() is None
    disk("fault clear")
    assert stuck.wait(timeout=180) == 0


def test_a_trace_tells_of_every_request(disk, tmp_path):
    file = tmp_path / "trace.csv"
    disk("trace", str(file))
    for place in range(50):
        direct(disk.device, place * 4096, 1)
    said = disk("trace", "--stop")
    rows = list(csv.DictReader(file.read_text(encoding="ascii").splitlines()))
    ours = [row for row in rows if row["kind"] == "write"]
    assert f"{len(rows)} requests in {file}, none dropped" in said
    assert [(int(row["lba"]), row["size_bytes"], row["error"]) for row in ours] == [
        (8 * n, "4096", "0") for n in range(50)
    ]
    times = ("arrival_ns", "dispatch_ns", "due_ns", "completion_ns")
    assert all(sorted(values) == values for row in ours if (values := [int(row[name]) for name in times]))
    disk("trace", str(file), "--format", "binary", "--for", "100ms")
    assert file.read_bytes().startswith(b"dbdyno-trace-1\n")


def test_a_power_cut_until_power_on(disk):
    assert direct(disk.device, 0, 1) == 1
    assert "nothing acknowledged is lost (write cache: none)" in disk("power-cut")
    assert direct(disk.device, 0) == "errno 5"
    assert disk("stats", "--json")["power"] == "off"
    disk("power-on")
    assert direct(disk.device, 0) == 1


def test_content_is_bounded(state, tmp_path):
    for more in ([], ["--content", str(tmp_path / "image")]):
        argv = ["attach", "ideal", "--size", "64M", "--limit", "1MiB", *more]
        device = dbdyno("disk", *argv, state=state).stdout.strip()
        outcomes = [direct(device, place * 65536, 1) for place in range(80)]
        assert outcomes == [1] * 64 + ["errno 28"] * 16
        assert "16 writes found no space" in dbdyno("disk", "stats", "ideal", state=state).stdout
        assert dbdyno("disk", "detach", "ideal", state=state).returncode == 0
    assert (tmp_path / "image").stat().st_size == 64 * 1024**2


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("attach", "hdd-7201", "--size", "1G"), "hdd-7200"),
        (("attach", "hdd-7200", "--size", "1"), "is not a size"),
        (("attach", "hdd-7200", "--size", "1000B"), "multiple of 4096"),
        (("attach", "hdd-7200", "--size", "1G", "--sector", "513"), "--sector is 512 or 4096, not 513"),
        (("attach", "hdd-7200", "--size", "1G", "--state", "old"), "--state is fresh or steady, not old"),
        (("attach", "hdd-7200", "--size", "1G", "--name", "a/b"), "no slash"),
        (("detach", "/dev/loop999"), "is not a disk that dbdyno disk attach made; attached are: none"),
        (("stats", "d"), "attached are: none"),
        (("power-cut", "d", "--sector", "1"), "attached are: none"),
        (("mode", "d", "fast"), "instant or model, not fast"),
        (("trace", "d"), "give a FILE"),
        (("trace", "d", "f", "--for", "0s"), "above 0"),
        (("fault", "eio", "d", "--range", "5"), "is not a range of bytes"),
        (("fault", "eio", "d", "--range", "1M-4096"), "is empty"),
        (("fault", "eio", "d", "--every", "2", "--probability", "0.5"), "exclude each other"),
        (("fault", "latency", "d", "--extra", "50"), "--extra '50' is not a time"),
    ],
)
def test_mistakes_are_named(argv, words, state):
    done = dbdyno("disk", *argv, state=state)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_killed_study_leaves_a_real_device_as_it_was(state, study_file, tmp_path):
    with lent_loop(tmp_path / "disk") as device:
        queue = Path("/sys/block") / device.name / "queue"
        (queue / "scheduler").write_text("kyber", encoding="ascii")
        (queue / "iosched/read_lat_nsec").write_text("3000000", encoding="ascii")
        text = study_text(
            device=f'"{device}"',
            stack=f'serial = "{tmp_path / "disk"}"',
            scheduler='"mq-deadline"',
            amount='duration = "1s"',
            blocks=1,
        ).replace('size = "512MiB"\n', "")
        study, run = study_file(text), tmp_path / "run"
        process = start_dbdyno("run", study, "--into", run, state=state)
        wait_for(lambda: number_of(state, "phase=run"))
        kill(process)
        assert "[mq-deadline]" in knob(device, "scheduler")
        assert dbdyno("restore", state=state).returncode == 0
        assert "[kyber]" in knob(device, "scheduler")
        assert knob(device, "iosched/read_lat_nsec") == "3000000"
        found = subprocess.run(["wipefs", "--no-act", str(device)], check=True, capture_output=True, text=True)
        assert found.stdout == ""
        subprocess.run(["mkfs.ext4", "-q", "-L", "somebody", str(device)], check=True)
        refused = dbdyno("run", study, "--into", run, "--resume", state=state)
        assert "holds data" in refused.stderr
        subprocess.run(["wipefs", "--all", "--quiet", str(device)], check=True)
        refused = dbdyno("run", study, "--into", run, "--resume", state=state)
        assert "holds data: content without a known signature" in refused.stderr
        serial = str(tmp_path / "disk")
        resumed = dbdyno("run", study, "--into", run, "--resume", "--erase", serial, state=state)
        assert resumed.returncode == 0, resumed.stdout + resumed.stderr
        report = json.loads(dbdyno("report", run, "--format", "json", state=state).stdout)
        assert (report["stopped"], report["blocks_usable"]) == ("blocks", 1)
