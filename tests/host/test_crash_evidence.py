"""A state that a crash study keeps: copied out, mounted by hand, examined again; the run folder stays as it was."""

import json
import subprocess

import pytest

from tests.crash_studies import KEPT
from tests.support import dbdyno, what_is_left

pytestmark = [pytest.mark.host, pytest.mark.timeout(400)]

STUDY = KEPT.format(hosts="", cuts_per_run=4)


def contents(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_a_kept_state_can_be_mounted_by_hand_and_examined_again(state, study_file, tmp_path):
    run = tmp_path / "run"
    done = dbdyno("run", study_file(STUDY), "--into", run, "--seed", "1", state=state)
    assert done.returncode == 0, done.stderr
    kept = json.loads(dbdyno("crash", "list", run, "--kept", "--json", state=state).stdout)["cuts"]
    assert kept, "with the log synced once a second, a cut loses something"
    assert {one["outcome"] for one in kept} == {"tail"}
    before = contents(run)

    copied = dbdyno("crash", "keep", run, kept[0]["name"], tmp_path / "out", state=state)
    assert copied.returncode == 0, copied.stderr
    image, mount = tmp_path / "out" / "disk.img", tmp_path / "mnt"
    assert f"mount -o loop,ro,noload {image} /mnt" in copied.stdout
    assert image.stat().st_size == 512 * 1024**2 > 2 * 512 * image.stat().st_blocks
    mount.mkdir()
    content = image.read_bytes()
    subprocess.run(["mount", "-o", "loop,ro,noload", image, mount], check=True)
    try:
        assert (mount / "server" / "ibdata1").is_file()
    finally:
        subprocess.run(["umount", mount], check=True)
    assert image.read_bytes() == content
    again = dbdyno("crash", "keep", run, kept[0]["name"], tmp_path / "out", state=state)
    assert (again.returncode, "disk.img exists; name another folder" in again.stderr) == (2, True)

    for one in kept:
        found = json.loads(dbdyno("crash", "examine", run, one["name"], "--json", state=state).stdout)
        assert found["same_outcome"]
        assert [found["again"][name] for name in ("lost", "acked")] == [one["lost"], one["acked"]]
    assert contents(run) == before
    assert what_is_left(state) == []
