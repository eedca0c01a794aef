"""A study on btrfs over two disks: its image is kept and loaded, and a killed run leaves nothing of either."""

import json

import pytest

from tests.sampled import kill_at_steps
from tests.support import dbdyno, study_text

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

    output = kill_at_steps(
        "two disks", 11, lambda step: ("run", study, "--into", tmp_path / f"run{step}"), state, least=20
    )
    run = max(tmp_path.glob("run*"), key=lambda path: path.stat().st_mtime_ns)
    assert "using prepared data" in output
    assert "preparing data" not in output
    (before,), (after,) = told(tmp_path / "first"), told(run)
    assert before["observed"]["tables"] == after["observed"]["tables"]
    assert after["observed"]["filesystem"]["profiles"] == {"data": "raid1", "metadata": "raid1", "system": "raid1"}
    assert all(disk["write_bytes"] > 0 for disk in after["device"]["disks"])
