"""A disk that the kernel lets nothing write to is refused before anything is done."""

import subprocess

import pytest

from tests.support import dbdyno, study_text

pytestmark = pytest.mark.host


@pytest.fixture
def write_protected(tmp_path):
    """A loop device over a file, as the kernel has it of a disk whose switch is set."""
    file = tmp_path / "disk.img"
    with file.open("wb") as opened:
        opened.truncate(320 << 20)
    argv = ["losetup", "--read-only", "--find", "--show", str(file)]
    device = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()
    yield device, file
    subprocess.run(["losetup", "--detach", device], check=True)


def test_it_is_refused_by_plan_and_run_and_nothing_is_left(write_protected, tmp_path):
    device, file = write_protected
    text = study_text(device=f'"{device}"', stack=f'serial = "{file}"').replace('size = "512MiB"\n', "")
    study, state = tmp_path / "study.toml", tmp_path / "state"
    study.write_text(text.replace('memory = "1GiB"\n', ""))
    planned = dbdyno("plan", study, state=state)
    assert f"{device} is write-protected" in planned.stdout + planned.stderr
    ran = dbdyno("run", study, "--into", tmp_path / "run", state=state)
    assert ran.returncode == 2
    assert f"blockdev --setrw {device}" in ran.stderr
    assert not [file for folder in ("journals", "scratch") for file in (state / folder).glob("*")]
    assert dbdyno("restore", state=state).returncode == 0
