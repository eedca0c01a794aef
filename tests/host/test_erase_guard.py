"""A real device is erased only if the study names it, its serial matches and it holds nothing."""

import subprocess

import pytest

from dbdyno.errors import HostError
from dbdyno.stack.erase_guard import check_erasable
from tests.contract.test_layers import lent_loop
from tests.support import dbdyno, study_text

pytestmark = pytest.mark.host


@pytest.fixture
def file(tmp_path):
    return tmp_path / "disk"


def check(device, serial, erase=frozenset()):
    return check_erasable(device, serial, frozenset(erase))


def test_an_empty_disk_with_the_right_serial_may_be_erased(file):
    with lent_loop(file) as device:
        assert check(device, str(file)).serial == str(file)


def test_another_serial_is_refused(file):
    with lent_loop(file) as device, pytest.raises(HostError, match="not 'WD-1234' as the study says"):
        check(device, "WD-1234")


def test_a_name_without_a_serial_is_refused(file):
    with lent_loop(file) as device, pytest.raises(HostError, match="which its name does not hold"):
        check(device, None)


@pytest.mark.parametrize("make", [["mkfs.ext4", "-q"], ["mkfs.xfs", "-q"], ["mkswap"]])
def test_a_signature_is_refused_unless_erasing_is_asked_for(file, make):
    with lent_loop(file) as device:
        subprocess.run([*make, str(device)], check=True, capture_output=True)
        with pytest.raises(HostError, match=r"holds data: .*--erase"):
            check(device, str(file))
        with pytest.raises(HostError, match="holds data"):
            check(device, str(file), {"another"})
        assert check(device, str(file), {str(file)})


def test_a_partition_table_is_refused(file):
    with lent_loop(file) as device:
        entry = bytes([0x80, 0, 2, 0, 0x83, 0, 2, 0]) + (2048).to_bytes(4, "little") + (4096).to_bytes(4, "little")
        device.write_bytes(bytes(446) + entry + bytes(48) + b"\x55\xaa")  # a DOS partition table with one partition
        with pytest.raises(HostError, match="dos"):
            check(device, str(file))


def test_a_mounted_disk_is_refused_even_with_erase(file, tmp_path):
    with lent_loop(file) as device:
        subprocess.run(["mkfs.ext4", "-q", str(device)], check=True)
        place = tmp_path / "place"
        place.mkdir()
        subprocess.run(["mount", str(device), str(place)], check=True)
        try:
            with pytest.raises(HostError, match="is mounted at"):
                check(device, str(file), {str(file)})
        finally:
            subprocess.run(["umount", str(place)], check=True)


def test_a_study_on_a_real_device_runs_and_leaves_it_empty(state, study_file, tmp_path, file):
    with lent_loop(file) as device:
        text = study_text(device=f'"{device}"', stack=f'serial = "{file}"', scheduler='"mq-deadline"', blocks=1)
        text = text.replace('size = "512MiB"\n', "")
        planned = dbdyno("plan", study_file(text), state=state)
        assert f"ERASED: {device}" in planned.stdout
        done = dbdyno("run", study_file(text), "--into", tmp_path / "run", state=state)
        assert done.returncode == 0, done.stdout + done.stderr
        found = subprocess.run(["wipefs", "--no-act", str(device)], check=True, capture_output=True, text=True)
        assert found.stdout == ""
