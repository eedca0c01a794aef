"""A study on btrfs over two disks: its image is kept and loaded, and a killed run leaves nothing of either."""

import json
import os
import signal

import pytest

from tests.sampled import drawn, stride
from tests.support import dbdyno, journal_lines, start_dbdyno, study_text, wait_for, what_is_left

pytestmark = [pytest.mark.host, pytest.mark.long, pytest.mark.timeout(900)]


def told(run):
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(run.glob("trials/*/trial.json"))]


def test_kept_and_loaded_on_both_and_killed_at_steps_nothing_is_left(state, study_file, tmp_path):
    text = study_text(
        filesystem='"btrfs"', stack="devices = 2", mount='noatime"\nmkfs = "-d raid1 -m raid1', amount="queries = 50",
        scheduler='"none"', blocks=1,
    )  # fmt: skip
    study = study_file(text)
    first = dbdyno("run", study, "--into", tmp_path / "first", state=state)
    assert first.returncode == 0, first.stderr
    assert "preparing data: mariadb, innodb, btrfs on 2 disks, slap" in first.stderr
    (kept,) = json.loads(dbdyno("images", "--json", state=state).stdout)["images"]
    contents = {path.name: path.stat().st_blocks for path in (state / "images" / kept["key"]).iterdir()}
    assert contents.keys() == {"content", "content-2", "image.json"}
    assert min(contents["content"], contents["content-2"]) * 512 > 16 * 1024**2, "the mirror has all of it twice"

    rng, steps = drawn("two disks"), 0
    while True:
        steps += stride(rng, 11)  # a step is a line of the undo journal: before each change, and after each undoing
        run = tmp_path / f"run{steps}"
        process = start_dbdyno("run", study, "--into", run, state=state)
        wait_for(lambda p=process, n=steps: p.poll() is not None or journal_lines(state) >= n, every=0.001)
        if process.poll() is not None:
            break
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=180)
        restored = dbdyno("restore", state=state)
        assert restored.returncode == 0, restored.stdout + restored.stderr
        assert what_is_left(state) == []
    output = process.communicate(timeout=180)[0]
    assert process.returncode == 0, output
    assert "using prepared data" in output
    assert "preparing data" not in output
    assert steps > 20, "too few steps: the journal no longer shows them"
    (before,), (after,) = told(tmp_path / "first"), told(run)
    assert before["observed"]["tables"] == after["observed"]["tables"]
    assert after["observed"]["filesystem"]["profiles"] == {"data": "raid1", "metadata": "raid1", "system": "raid1"}
    assert all(disk["write_bytes"] > 0 for disk in after["device"]["disks"])
    assert what_is_left(state) == []
