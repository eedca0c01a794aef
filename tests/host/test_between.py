"""Layers between disks and filesystem, in a virtual machine whose kernel has md and device mapper."""

import json
import shlex
import sys
from contextlib import closing
from pathlib import Path

import pytest

from dbdyno.stack.between import has_module, modules_here
from dbdyno.stack.guest.machine import DiskOfGuest, Machine, accelerator, booted
from dbdyno.stack.tools import tool_path
from dbdyno.stack.undo_log import Journal
from dbdyno.store.run_folder import read_run
from tests.guest_kernels import fetch_kernel, kept_kernels
from tests.layers_guest import CASES
from tests.support import dbdyno, what_is_left

pytestmark = [pytest.mark.host, pytest.mark.long, pytest.mark.timeout(3000)]

KERNEL, DISKS, DISK_BYTES, KILLS = "debian-6.12", 4, 128 * 1024**2, 2 * len(CASES)
SILENCE_SECONDS = 600.0

STUDY = """\
version = 1
[study]
title = "layers"
[stack]
kernel = "debian-6.12"
device = "ssd-sata"
devices = 4
size = "256MiB"
filesystem = "ext4"
array = "raid5"
[encryption]
cipher = "aes-xts-plain64"
[levels]
factor = "how"
[levels.encrypted]
encryption = "luks"
state = "clean"
[levels.rebuilding]
encryption = "luks"
state = "rebuilding"
sync_speed_max = 1000
[workload]
kind = "fio"
profile = "RND4K Q1T1"
load = "write"
size = "32MiB"
duration = "3s"
[design]
blocks = 1
interference = "note"
"""


@pytest.fixture
def kernel(state, monkeypatch):
    """The kernel, in the state folder of the test."""
    lacking = [
        name for name in ("mdadm", "cryptsetup", "dmsetup", "lvcreate", "make-bcache", "fio") if tool_path(name) is None
    ]
    if lacking:
        pytest.skip(f"not installed: {', '.join(lacking)}")
    with kept_kernels():
        yield fetch_kernel(KERNEL, state, monkeypatch)


def observe_in_guest(kernel, folder, module, *words):
    """What a module of the tests saw in a machine with four empty disks."""
    disks = []
    for number in range(DISKS):
        file = folder / f"disk{number}.img"
        with file.open("wb") as disk:
            disk.truncate(DISK_BYTES)
        disks.append(DiskOfGuest(file, "virtio", rotational=False, write_cache=True, number=number))
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin",
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": ":".join(filter(None, [str(Path(__file__).parents[2]), *sys.path])),
        "PYTHONDONTWRITEBYTECODE": "1",
        "DBDYNO_STATE_DIR": "/run/dbdyno",
        "DM_DISABLE_UDEV": "1",
    }
    given = [f"{name}={value}" for name, value in environment.items()]
    command = ["env", "-i", *given, sys.executable, "-S", "-m", module, *words]
    machine = Machine(kernel, 1024**3, shlex.join(command), disks=disks)
    with closing(Journal("layers in a guest")) as journal, booted(machine, journal, accelerator(kernel)) as guest:
        kind = "saw"
        while kind == "saw":
            kind, seen = guest.channel.receive(SILENCE_SECONDS)
    return seen


@pytest.mark.drawn(0)  # a boot, and each layer under an emulated CPU, takes minutes: with DBDYNO_TEST_LONG alone
def test_each_layer_is_read_back_holds_its_data_and_leaves_nothing_however_it_ends(kernel, tmp_path):
    seen = observe_in_guest(kernel, tmp_path, "tests.layers_guest", str(KILLS), "/".join(CASES))
    assert "error" not in seen, seen["error"]
    for case, outcome in seen["cases"].items():
        assert outcome.get("same") is True, f"{case}: {outcome}"
        assert outcome["left"] == [], case
        assert outcome["observed"]["filesystem"]["flushes_on_fsync"] is True, case
    observed = {case: outcome["observed"] for case, outcome in seen["cases"].items()}
    assert observed["luks, 512"]["encryption"] == {
        "kind": "luks", "cipher": "aes-cbc-essiv:sha256", "key_bits": 256, "sector_bytes": 512, "workqueues": True,
    }  # fmt: skip
    assert observed["luks, no queues"]["encryption"]["workqueues"] is False
    assert observed["raid5"]["array"]["chunk_size"] == "65536"
    assert (observed["raid5"]["array"]["bitmap"], observed["raid6"]["array"]["bitmap"]) == ("none", "internal")
    assert observed["raid5 degraded"]["array"]["disks"] == 3
    assert 0 <= seen["cases"]["raid5 rebuilding"]["figures"]["rebuilt_share"] < 1
    assert observed["striped"]["volume"]["stripe_bytes"] == 32768
    assert observed["thin"]["volume"]["pool_chunk_bytes"] == 131072
    assert observed["writecache"]["cache"] == {
        "kind": "writecache", "high_watermark": 60, "low_watermark": 20, "max_age": 60_000,
        "size_bytes": pytest.approx(DISK_BYTES, rel=0.02),
    }  # fmt: skip
    assert 0 < seen["cases"]["writecache"]["figures"]["cache"]["waiting_share"] < 1
    assert (observed["dm-cache"]["cache"]["cache_mode"], observed["dm-cache"]["cache"]["policy"]) == (
        "writethrough", "smq",
    )  # fmt: skip
    assert seen["cases"]["dm-cache"]["figures"]["cache"]["waiting_share"] == 0, "what is written is on both"
    assert observed["bcache"]["cache"] == {
        "kind": "bcache", "state": "clean", "cache_mode": "writeback", "sequential_cutoff_bytes": 0,
        "bucket_bytes": 128 * 1024, "congested_read_threshold_us": 2000, "congested_write_threshold_us": 20_000,
    }  # fmt: skip
    assert 0 < seen["cases"]["bcache"]["figures"]["cache"]["waiting_share"] < 1
    assert observed["bcache over raid1"]["cache"]["cache_mode"] == "writethrough"
    assert seen["cases"]["bcache over raid1"]["figures"]["cache"]["waiting_share"] == 0
    assert any(kill["there"] for kill in seen["kills"]), "no kill came while anything was raised"
    for kill in seen["kills"]:
        assert kill["left"] == [], kill


@pytest.mark.drawn(0)  # as above
def test_a_logical_volume_that_is_there_is_a_disk_if_it_is_empty_and_shares_nothing(kernel, tmp_path):
    seen = observe_in_guest(kernel, tmp_path, "tests.volume_guest")
    assert "error" not in seen, seen["error"]
    for name in ("linear", "striped"):
        outcome = seen[name]
        assert outcome["serial"].startswith("LVM-")
        assert outcome["model"] == f"LVM vg0-{name}"
        assert outcome["why"][0] == "it is empty (all of it was read)"
        assert [why.partition(",")[0] for why in outcome["why"][1:]] == ["it holds what a trial left"] * 3
        assert outcome["observed"]["queue"]["read_ahead_kb"] == "64"
        assert outcome["observed"]["device"]["serial"] == outcome["serial"]
        assert outcome["killed"], "there was nothing to put back"
        assert outcome["queue_is_back"]
    said = seen["refusals"]
    assert "/dev/mapper/vg0-held holds data: a ext4 signature" in said["held"]
    assert "is in use: /dev/dm-" in said["mounted"]
    assert f"not 'LVM-{'a' * 64}' as the study says; it is not touched" in said["another"]
    assert "is held by dm-" in said["disk"]
    for name in ("thin", "copied", "copy"):
        assert "is a logical volume that stands on others" in said[name], name
    assert "is suspended; resume it: dmsetup resume vg0-striped" in said["suspended"]


@pytest.mark.drawn(0)  # as above
def test_a_study_of_layers_runs_and_keeps_no_key(state, kernel, tmp_path):
    del kernel
    study, into = tmp_path / "study.toml", tmp_path / "run"
    study.write_text(STUDY)
    done = dbdyno("run", str(study), "--into", str(into), state=state, timeout=2400)
    assert done.returncode == 0, done.stderr
    by_state = {trial.observed["array"]["state"]: trial for trial in read_run(into).trials}
    assert by_state.keys() == {"clean", "rebuilding"}
    for trial in by_state.values():
        assert trial.observed["encryption"]["kind"] == "luks"
        assert len(trial.device["disks"]) == 4
        assert not trial.image_sha256, "without its key an image is of no use to the next run"
    assert 0 < by_state["rebuilding"].device["rebuilt_share"] < 1
    assert json.loads(dbdyno("images", "--json", state=state).stdout)["images"] == []
    assert not what_is_left(state)


@pytest.mark.parametrize(
    ("field", "module"),
    [
        ('array = "raid5"', "raid456"),
        ('encryption = "luks"', "dm-crypt"),
        ('volume = "thin"', "dm-mod"),
        ('cache = "writecache"\n[stack.disks.cache]\ndevice = "nvme"\nsize = "64MiB"', "dm-writecache"),
        ('cache = "bcache"\n[stack.disks.cache]\ndevice = "nvme"\nsize = "64MiB"', "bcache"),
    ],
)
def test_a_host_without_the_module_says_so_in_one_sentence_with_the_remedy(state, tmp_path, field, module):
    if has_module(modules_here(), module):
        pytest.skip(f"this host's kernel has {module}")
    study = tmp_path / "study.toml"
    text = STUDY.partition("[encryption]")[0].replace('kernel = "debian-6.12"\n', "").replace('array = "raid5"', field)
    devices = "devices = 4" if "array" in field else "devices = 1"
    study.write_text(
        text.replace("devices = 4", devices).replace('"ssd-sata"', '["ssd-sata", "nvme"]')
        + '[workload]\nkind = "fio"\nprofile = "RND4K Q1T1"\nload = "write"\n'
    )
    for verb in (("plan",), ("run", "--into", str(tmp_path / "run"))):
        done = dbdyno(verb[0], str(study), *verb[1:], state=state)
        assert done.returncode in {1, 2}
        (sentence,) = [line for line in (done.stdout + done.stderr).splitlines() if f"has no module {module}" in line]
        assert 'boot a kernel that has it, in a virtual machine: stack.kernel = "debian-6.12"' in sentence
        assert "Traceback" not in done.stderr
    assert not what_is_left(state)
