"""``dbdyno disk fit`` on devices that may be written: what it gives back, refuses, and leaves when it is killed."""

import json
import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.disks import attached
from tests.support import dbdyno, start_dbdyno, wait_for, what_is_left

pytestmark = [pytest.mark.host, pytest.mark.alone]

LATE_US = 150.0  # above, at the 95th percentile, times of a solid-state drive are the host's


def serial(disk):
    """What stands for an emulated disk's serial."""
    return Path(f"/sys/block/{disk.device.name}/loop/backing_file").read_text(encoding="utf-8").strip()


def run_fit(state, disk, seconds, *more):
    """The command, and the drive file that it writes."""
    out = state / "fitted.toml"
    argv = ("disk", "fit", str(disk.device), "--time", f"{seconds}s", "--out", str(out), "--json", *more)
    return dbdyno(*argv, state=state, timeout=300), out


def result_of(done, out):
    """What it printed, and the drive file as values."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), tomllib.loads(out.read_text(encoding="utf-8"))


def fitting(parent):
    """The program that measures for a process, or None."""
    found = subprocess.run(["pgrep", "-P", str(parent), "-f", "dbdyno-disk fit"], capture_output=True, check=False)
    return int(found.stdout) if found.stdout else None


def figures(found):
    return {figure["field"]: figure for figure in found["figures"]}


@pytest.mark.drawn(1, group="given back")
def test_a_solid_state_drive_that_may_be_erased_is_given_back(state):
    with attached(state, "ssd-sata", size="1G") as disk:
        before = os.urandom(1 << 20)
        disk.device.write_bytes(before)
        refused = dbdyno("disk", "fit", str(disk.device), "--write", "--time", "5s", state=state)
        assert refused.returncode == 1
        assert f"{disk.device} holds data" in refused.stderr
        assert f"dbdyno disk fit ... --erase '{serial(disk)}'" in refused.stderr
        other = dbdyno("disk", "fit", str(disk.device), "--erase", "another", "--time", "5s", state=state)
        assert (other.returncode, "not touched" in other.stderr) == (1, True)
        with disk.device.open("rb") as device:
            assert device.read(len(before)) == before
        found, file = result_of(*run_fit(state, disk, 10, "--erase", serial(disk)))
        with disk.device.open("rb") as device:
            assert device.read(len(before)) != before
        assert "solid-state drive" in file["title"].lower()
        assert (file["ssd"]["capacity_bytes"], file["ssd"]["power_loss_protected"]) == (1 << 30, False)
        known = figures(found)
        for field in ("flush_us", "link_mb_s", "write_firmware_us", "write_command_us"):
            assert known[field]["source"] == "measured", known[field]
        # What the model has, or that the host was in the way: never a wrong figure without a word.
        late = found["host"]["late_us_p95"]
        heard = any("measure again when nothing else runs" in note for note in found["notes"])
        if not heard:
            assert late < LATE_US
            checks = {check["what"]: check["drive"]["value"] for check in found["checks"]}
            assert 400 < checks["sequential read MB/s"] < 600
            assert 80 < checks["read of 4 KiB, us"] < 94 + 3 * LATE_US
            assert 1400 < checks["FLUSH after a write, us"] < 1549 + 3 * LATE_US
        assert f"{late:.0f} us" in found["drive_file"]
        again = dbdyno("disk", "fit", str(disk.device), "--write", "--time", "5s", state=state)
        assert (again.returncode, "holds data" in again.stderr) == (1, True), "random data are left"
    assert what_is_left(state) == []


@pytest.mark.long
@pytest.mark.drawn(1, group="given back")
def test_a_hard_disk_that_is_proved_empty_is_given_back(state):
    with attached(state, "hdd-7200", size="2G") as disk:
        done, out = run_fit(state, disk, 25, "--write")
        if done.returncode:  # a busy host shows no tracks, and the command says so
            assert "addresses show no tracks" in done.stderr
            assert "Measure again when nothing" in done.stderr
            assert not out.exists()
            return
        found, file = result_of(done, out)
        if "ssd" in file:
            assert any("response times show no revolution" in note for note in found["notes"])
            return
        assert file["hdd"]["capacity_bytes"] == 2 << 30
        rpm = figures(found)["rpm"]
        assert rpm["source"] == "measured"
        assert file["hdd"]["rpm"] == pytest.approx(7200, rel=1e-3)
        assert rpm["estimate"]["low"] <= 7200.0 * (1 + 1e-4)
        assert rpm["estimate"]["high"] >= 7200.0 * (1 - 1e-4)
        assert file["hdd"]["overhead_ms"] < 0.1 + 5 * found["host"]["late_us_p95"] / 1e3 + 0.2
        sequential = {check["what"]: check["drive"]["value"] for check in found["checks"]}["sequential MB/s, beginning"]
        assert 150 < sequential < 260
    assert what_is_left(state) == []


def test_a_killed_fit_leaves_nothing_attached(state):
    with attached(state, "ssd-sata", size="512M") as disk:
        with start_dbdyno("disk", "fit", str(disk.device), "--write", "--time", "60s", state=state) as fit:
            try:
                program = wait_for(lambda: fitting(fit.pid))
            finally:
                fit.kill()
        wait_for(lambda: not Path(f"/proc/{program}/exe").exists())
        os.close(os.open(disk.device, os.O_RDWR | os.O_EXCL))
        restored = dbdyno("restore", state=state)
        assert restored.returncode == 0, restored.stdout + restored.stderr
        subprocess.run(["mkfs.ext4", "-q", "-F", str(disk.device)], check=True)
        mounted = dbdyno("disk", "list", "--json", state=state)
        assert [found["name"] for found in json.loads(mounted.stdout)] == ["d"]
    assert what_is_left(state) == []
