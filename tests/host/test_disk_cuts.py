"""What a crash study stands on: states after power cuts, taken while filesystems are written to, each looked into.

With ``DBDYNO_TEST_LONG`` set, more of them.
"""

import subprocess
import threading
import time
from contextlib import contextmanager

import pytest

from dbdyno.model.cut import SURVIVORS
from dbdyno.stack.attached import find_disk
from tests.disks import LONG, Recorder, attached, await_release, direct, fio, fsck, make_filesystem, mounted
from tests.support import wait_for

pytestmark = pytest.mark.host

CUTS = 40 if LONG else 10
HONEST = [survivors for survivors in SURVIVORS if survivors != "lying"]
HOLD_NS = 300_000_000
PROTECTED = ["ebs-gp3(iops=16000)", "hdd-15k(write_cache_bytes=0)"]


@contextmanager
def loaded(place):
    """Fio at work in a filesystem, and a recorder that forces record by record to the disk."""
    options = {"directory": place, "filename": None, "rw": "randwrite", "ioengine": "psync", "fsync": 200}
    options |= {
        "size": "4M",
        "numjobs": 2,
        "thread": 1,
        "create_on_open": 1,
        "nrfiles": 4,
        "time_based": 1,
        "runtime": 120,
    }
    load = subprocess.Popen(fio(None, **options), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    recorder = Recorder(place / "records", 64)
    writer = threading.Thread(target=recorder.run)
    writer.start()
    try:
        wait_for(lambda: recorder.acknowledged > 5)
        yield recorder
    finally:
        recorder.is_ended = True
        writer.join()
        load.kill()
        load.wait()


def cuts_under_load(disk, client, place, options):
    """Take cuts at any time, in a FLUSH and in a write, while the load goes on."""
    with mounted(disk.device, place, options) as here:
        client.arm_cuts(HOLD_NS)
        with loaded(here) as recorder:
            client.cut_on("in a write", "write", 40, [(0, 1 << 40)])
            if options != "nobarrier":
                client.cut_on("in a FLUSH", "flush", 3, seed=1)
            for number in range(CUTS):
                time.sleep(0.13)
                client.cut(f"at {number}")
            wait_for(lambda: client.stats()["cuts"]["waiting"] == 0)
    return recorder, client.cuts()


def damage(disk, client, place, kind, found):
    """What is wrong with the state after a cut, once it is mounted again; empty if nothing."""
    recorder, cut, survivors, seed = found
    await_release(disk.device)
    client.restore_cut(cut.name, survivors, seed)
    subprocess.run(["blockdev", "--flushbufs", str(disk.device)], check=True)
    try:
        with mounted(disk.device, place):
            lost = recorder.missing_records(cut)
    except subprocess.CalledProcessError:
        return "it can't be mounted any more"
    return f"lost records {lost}" if lost else fsck(kind, disk.device)


@contextmanager
def cut_disk(state, tmp_path, model, kind, options="defaults"):
    """A disk with cuts, and what looks into one of them with the survivors of a model."""
    with attached(state, model, size="512M") as disk:
        disk("mode", "instant")
        make_filesystem(kind, disk.device)
        disk("mode", "model")
        client, place = find_disk(disk.name).client(), tmp_path / "place"
        recorder, cuts = cuts_under_load(disk, client, place, options)
        disk("mode", "instant")
        client.disarm_cuts()

        def look(cut, survivors, seed=1):
            return damage(disk, client, place, kind, (recorder, cut, survivors, seed))

        yield cuts, look
        await_release(disk.device)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_nothing_forced_to_the_disk_is_lost_with_barriers(state, tmp_path, kind):
    with cut_disk(state, tmp_path, "ssd-sata", kind) as (cuts, look):
        for number, cut in enumerate(cuts):
            survivors = HONEST[number % len(HONEST)]
            assert cut.flushes_in_flight >= 1 or cut.name != "in a FLUSH"
            assert look(cut, survivors) == "", f"{cut}, {survivors}"
        assert not any(cut.limit_reached for cut in cuts)
        assert {"in a FLUSH", "in a write"} <= {cut.name for cut in cuts}
        at_risk = [cut for cut in cuts if cut.unflushed_writes]
        assert len(at_risk) >= 3, "cuts that could take nothing prove nothing"


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("options", "survivors"), [("nobarrier", "none"), ("defaults", "lying")])
def test_a_loss_is_found_without_barriers_and_on_a_drive_that_lies(state, tmp_path, options, survivors):
    """That the test above can fail."""
    with cut_disk(state, tmp_path, "ssd-sata", "ext4", options) as (cuts, look):
        assert any(look(cut, survivors, seed) for seed, cut in enumerate(cuts)), "nothing was lost"


@pytest.mark.drawn(1)
@pytest.mark.parametrize("model", PROTECTED)
def test_a_protected_drive_loses_nothing_even_without_barriers(state, tmp_path, model):
    with cut_disk(state, tmp_path, model, "ext4", "nobarrier") as (cuts, look):
        for number, cut in enumerate(cuts[::2]):
            survivors = SURVIVORS[number % len(SURVIVORS)]
            assert look(cut, survivors) == "", f"{cut}, {survivors}"
        assert any(cut.unflushed_writes for cut in cuts), "no write was in flight at any cut"


def test_a_state_stays_when_others_are_looked_at_and_cuts_follow_cuts(state, tmp_path):
    with attached(state, "ssd-sata", size="64M") as disk:
        client = find_disk(disk.name).client()
        client.arm_cuts()
        direct(disk.device, 8192, 1)
        client.cut("first")
        direct(disk.device, 8192, 2)
        client.cut("second")
        client.save_cut("second", tmp_path / "kept")
        client.forget_cut("second")
        assert client.restore_cut("first", "none", 1).writes_lost == 1
        direct(disk.device, 12288, 3)
        client.cut("during recovery")
        seen = []
        client.load_cut("second again", tmp_path / "kept")
        for name in ("first", "during recovery", "second again"):
            client.restore_cut(name, "prefix", 3 if name == "first" else 1)
            seen.append((direct(disk.device, 8192), direct(disk.device, 12288)))
        assert seen[0][1] == 0
        assert [cut.name for cut in client.cuts()] == ["first", "second again", "during recovery"]
        assert client.stats()["cuts"]["taken"] == 3


@pytest.mark.drawn(1)
@pytest.mark.parametrize("model", ["ssd-sata", "ebs-gp3"])
def test_no_acknowledgement_slips_between_a_cut_and_its_time(state, model):
    """A writer without a filesystem on a disk that answers at once: as tight a race as there is."""
    with attached(state, model, size="64M") as disk:
        disk("mode", "instant")
        client, numbers = find_disk(disk.name).client(), 1000 if LONG else 100
        recorder = Recorder(disk.device, 64)
        recorder.pause_seconds = 0
        client.arm_cuts()
        writer = threading.Thread(target=recorder.run)
        writer.start()
        for number in range(numbers):
            time.sleep(0.003)
            client.cut(str(number))
        wait_for(lambda: recorder.acknowledged > numbers)
        recorder.is_ended = True
        writer.join()
        client.disarm_cuts()
        for cut in client.cuts():
            client.restore_cut(cut.name, "none", 1)
            subprocess.run(["blockdev", "--flushbufs", str(disk.device)], check=True)
            assert recorder.missing_records(cut) == [], cut
