"""Emulated disks that are killed, many, or attached over and over: errors, but nothing hangs and nothing leaks."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.disks import LONG, attached, direct, fio, make_filesystem, mounted
from tests.support import dbdyno, wait_for, what_is_left

pytestmark = pytest.mark.host

ROUNDS = 200 if LONG else 3


def start(argv):
    return subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("model", ["ideal", "hdd-7200"])
def test_sigkill_under_load_gives_errors_and_hangs_nobody(state, model):
    with attached(state, model) as disk:
        load = start(fio(disk.device, rw="randrw", iodepth=32, size="32M", time_based=1, runtime=600))
        wait_for(lambda: disk("stats", "--json")["writes"] > 10)
        os.kill(disk.pid, signal.SIGKILL)
        assert load.wait(timeout=180) != 0
        assert direct(disk.device, 0) == "errno 5"
    assert what_is_left(state) == []


@pytest.mark.drawn(1)
@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_sigkill_under_a_filesystem_leaves_it_to_be_unmounted(state, tmp_path, kind):
    with attached(state, "ideal", size="512M") as disk:
        make_filesystem(kind, disk.device)
        with mounted(disk.device, tmp_path / "place") as place:
            load = start(fio(place / "file", rw="randwrite", fsync=4, size="16M", time_based=1, runtime=600))
            before = disk("stats", "--json")["writes"]
            wait_for(lambda: disk("stats", "--json")["writes"] > before + 100)
            os.kill(disk.pid, signal.SIGKILL)
            assert load.wait(timeout=180) != 0
    assert what_is_left(state) == []


def test_a_stuck_request_does_not_outlive_the_process(state):
    with attached(state, "ideal") as disk:
        disk("fault stuck", "--read")
        reader = start(["dd", f"if={disk.device}", "of=/dev/null", "bs=4096", "count=1", "iflag=direct"])
        wait_for(lambda: disk("stats", "--json")["in_flight"] >= 1)  # another test's look at all disks may wait too
        os.kill(disk.pid, signal.SIGKILL)
        assert reader.wait(timeout=180) != 0


def test_many_disks_at_once(state):
    models = ["ideal", "hdd-7200", "ssd-sata", "nvme", "hdd-15k"] * (2 if LONG else 1)
    with contextlib.ExitStack() as stack:
        disks = [
            stack.enter_context(attached(state, model, size="64M", name=f"d{number}"))
            for number, model in enumerate(models)
        ]
        loads = [
            start(
                fio(disk.device, rw="write", bs="64k", size="4M", verify="crc32c", verify_fatal=1, verify_state_save=0)
            )
            for disk in disks
        ]
        assert [load.wait(timeout=240) for load in loads] == [0] * len(models)
        assert len({disk.device for disk in disks}) == len(models)
        table = dbdyno("disk", "list", state=state).stdout
        assert [line.split()[1] for line in table.splitlines()[1:]] == models
    assert what_is_left(state) == []


def test_attached_and_detached_over_and_over(state):
    for round_ in range(ROUNDS):
        device = dbdyno("disk", "attach", "ideal", "--size", "16M", state=state).stdout.strip()
        assert direct(device, 0, round_ % 256) == round_ % 256
        assert dbdyno("disk", "detach", device, state=state).returncode == 0
        assert what_is_left(state) == []


def test_a_disk_that_is_asked_over_and_over_keeps_nothing(state):
    with attached(state, "ideal") as disk:
        process = Path(f"/proc/{disk.pid}")

        def kept():
            return len(list((process / "fd").iterdir())), len(list((process / "task").iterdir()))

        before = kept()
        for _ in range(max(2, ROUNDS // 8)):
            direct(disk.device, 0, 1)
            disk("snapshot", "one")
            direct(disk.device, 0, 2)
            disk("restore", "one")
            disk("forget", "one")
            disk("trace", str(state / "trace"))
            disk("trace", "--stop")
            disk("power-cut")
            disk("power-on")
        held = disk("stats", "--json")["held_bytes"]
        wait_for(lambda: all(now <= then for now, then in zip(kept(), before, strict=True)))
        assert held == 16384
    (state / "trace").unlink()
