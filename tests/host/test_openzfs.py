"""OpenZFS, built for a kernel and booted with it: what a study asks of it is what its own tools say."""

import json

import pytest

from dbdyno.stack.guest import openzfs
from dbdyno.store.run_folder import read_run
from tests.guest_kernels import KEPT, fetch_kernel, kept_kernels
from tests.support import Quiet, dbdyno, what_is_left

pytestmark = [pytest.mark.host, pytest.mark.long, pytest.mark.timeout(3000), pytest.mark.drawn(0)]

KERNEL = "debian-6.1"
STUDY = f"""\
version = 1
[study]
title = "OpenZFS"
[stack]
kernel = "{KERNEL}"
device = "ssd-sata"
size = "512MiB"
filesystem = "zfs"
[filesystem]
mkfs = ["-O compression=lz4 -O recordsize=16k -O sync=disabled", "-O compression=zstd -o autotrim=on"]
arc_max = "128MiB"
[server.settings]
innodb_buffer_pool_size = "32M"
[workload]
kind = "slap"
load = "write"
clients = 2
queries = 60
warmup = "0s"
[design]
blocks = 1
"""


@pytest.fixture(scope="module", autouse=True)
def kept():
    """The kernel, which all tests here boot."""
    with kept_kernels():
        yield


def test_what_a_study_asks_of_a_pool_is_read_back_from_the_kernels_own(state, monkeypatch, tmp_path):
    study, into = tmp_path / "study.toml", tmp_path / "run"
    study.write_text(STUDY)
    kernel = fetch_kernel(KERNEL, state, monkeypatch)
    if openzfs.openzfs_of(kernel.modules) is None:
        refused = dbdyno("plan", str(study), state=state)
        assert f"stack.filesystem: is not built; dbdyno kernels add {KERNEL} --zfs" in refused.stdout + refused.stderr
    monkeypatch.setenv("DBDYNO_STATE_DIR", str(KEPT))
    record = openzfs.add_openzfs(KERNEL, Quiet())
    assert openzfs.add_openzfs(KERNEL, Quiet()) == record
    assert not (KEPT / "kernels" / f"{KERNEL}.part").exists()
    monkeypatch.setenv("DBDYNO_STATE_DIR", str(state))
    listed = json.loads(dbdyno("kernels", "--json", state=state).stdout)
    assert {one["name"]: one["openzfs"] for one in listed}[KERNEL] == record["version"]
    done = dbdyno("run", str(study), "--into", str(into), state=state, timeout=2400)
    assert done.returncode == 0, done.stderr
    by_treatment = {trial.treatment: trial.observed["filesystem"] for trial in read_run(into).trials}
    lz4, zstd = by_treatment["t1"], by_treatment["t2"]
    for observed in (lz4, zstd):
        assert observed["kind"] == "zfs"
        assert observed["version"].startswith(record["version"])
        assert observed["arc_max_bytes"] == 128 * 1024**2
    assert [lz4[name] for name in ("compression", "recordsize", "sync")] == ["lz4", "16K", "disabled"]
    assert [zstd[name] for name in ("compression", "recordsize", "sync", "autotrim")] == [
        "zstd",
        "128K",
        "standard",
        "on",
    ]
    assert [lz4["flushes_on_fsync"], zstd["flushes_on_fsync"]] == [False, True]
    assert not what_is_left(state)
