"""``dbdyno quick`` on a folder of this machine; it needs no root."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dbdyno.run.quick import look

DBDYNO = [sys.executable, "-m", "dbdyno.cli.main", "quick"]


def quick(*arguments, cwd):
    return subprocess.run([*DBDYNO, *arguments], cwd=cwd, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def folder():
    """A folder on a disk: the tests' own may lie in memory."""
    import tempfile

    with tempfile.TemporaryDirectory(dir="/var/tmp") as found:
        yield Path(found)


@pytest.mark.long
def test_a_folder_and_a_model(folder):
    done = quick("--rounds", "2", "--against", "ssd-sata", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    read = json.loads(done.stdout)
    assert [one["kind"] for one in read["targets"]] == ["directory", "model"]
    for step in read["targets"][0]["steps"]:
        assert 0 < step["latency_ns_min"] <= step["latency_ns_p50"] <= step["latency_ns_max"]
    assert read["likeness"]["factor"] >= 1
    assert "round 2 of 2" in done.stderr
    assert [path.name for path in folder.iterdir()] == ["dbdyno-quick.html"]
    assert read["headline"].split(":")[0] in (folder / "dbdyno-quick.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere is neither a folder nor a block device"),
        (["/dev/shm"], "/dev/shm lies in memory, where nothing is durable"),
        (["--against", "hdd-7201"], 'no drive model is called "hdd-7201"; known are hdd-7200, '),
        (["--html", "mine"], "mine exists and is not an HTML page"),
    ],
)
def test_a_wrong_use_is_one_clear_line(folder, arguments, message):
    (folder / "mine").write_text("mine")
    done = quick("--rounds", "2", *arguments, cwd=folder)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_in_a_chroot_that_shows_no_mount_the_filesystem_is_unknown(folder, monkeypatch):
    monkeypatch.setattr("dbdyno.host.storage.mounts", list)
    looked = look(folder, None, rounds=2, seed=1, progress=lambda *_: None)
    assert looked.facts["filesystem"] == "unknown"
