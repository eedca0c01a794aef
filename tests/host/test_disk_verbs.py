"""``dbdyno disk``: a disk for anybody, that outlives its command and is never taken from under a mount."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.contract.test_layers import lent_loop
from tests.support import dbdyno, start_dbdyno, study_text, wait_for, what_is_left

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
    detached = dbdyno("disk", "detach", device, state=state)
    assert (detached.returncode, detached.stdout) == (0, f"detached {device}\n"), detached.stderr
    assert what_is_left(state) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_disk_that_was_killed_is_restored(state, number):
    device = dbdyno("disk", "attach", "ssd-sata", "--size", "64M", state=state).stdout.strip()
    pid = next(line.split()[1].rstrip(":") for line in what_is_left(state) if "dbdyno-disk serve" in line)
    os.kill(int(pid), number)
    wait_for(lambda: not any("dbdyno-disk serve" in line for line in what_is_left(state)))
    restored = dbdyno("restore", state=state)
    assert restored.returncode == 0, restored.stdout + restored.stderr
    assert what_is_left(state) == []
    assert not Path(f"/sys/block/{Path(device).name}/loop").exists()


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("attach", "hdd-7201", "--size", "1G"), "hdd-7200"),
        (("attach", "hdd-7200", "--size", "1"), "is not a size"),
        (("attach", "hdd-7200", "--size", "1000B"), "multiple of 4096"),
        (("detach", "/dev/loop999"), "is not a disk that dbdyno disk attach made"),
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
        wait_for(lambda: any("phase=run" in line for line in what_is_left(state)))
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=30)
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
        resumed = dbdyno("run", study, "--into", run, "--resume", "--blocks", "2", state=state)
        assert resumed.returncode == 0, resumed.stdout + resumed.stderr
        report = json.loads(dbdyno("report", run, "--format", "json", state=state).stdout)
        assert any("raised from 1 to 2" in note for note in report["notes"])
