"""What is never erased, and by what name a disk is known."""

from pathlib import Path

import pytest

from dbdyno.errors import HostError
from dbdyno.stack.emptiness import Identity, identify
from dbdyno.stack.erase import Erasing, check_erasable


def test_what_is_no_block_device_is_never_erased(tmp_path):
    file = tmp_path / "file"
    file.write_text("data")
    link = tmp_path / "disk-by-id"
    link.symlink_to(file)
    for path in (file, tmp_path, link, Path("/dev/null")):
        with pytest.raises(HostError) as refused:
            identify(path)
        assert str(refused.value) == f"{path} is not a block device"
    assert file.read_text() == "data"


def test_a_device_that_is_not_there(tmp_path):
    with pytest.raises(HostError) as refused:
        check_erasable(tmp_path / "sdz", None, Erasing())
    assert str(refused.value) == f"{tmp_path / 'sdz'}: No such file or directory"


@pytest.mark.parametrize(
    ("link", "named"),
    [
        ("/dev/disk/by-id/ata-Acme_S1_AB", True),
        ("/dev/disk/by-id/wwn-0x5000c500a1b2c3d4", True),
        ("/dev/disk/by-id/ata-Acme_S2", False),
        ("/dev/disk/by-label/S1_AB", False),
        ("/dev/sdb", False),
    ],
)
def test_a_link_names_a_disk_by_serial_or_world_wide_name(link, named):
    found = Identity(Path("/dev/sdb"), "Acme", "S1 AB", "5000c500a1b2c3d4")
    assert found.is_named_by(Path(link)) == named


def test_a_serial_that_could_be_part_of_any_name_names_nothing():
    assert not Identity(Path("/dev/sdb"), "Acme", "S1").is_named_by(Path("/dev/disk/by-id/ata-Acme_S1"))


def test_what_a_run_may_erase_it_may_erase_once():
    erasing = Erasing(frozenset({"S1"}))
    assert (erasing.allows("S1"), erasing.allows("S2")) == (True, False)
    erasing.begun["S1"] = Identity(Path("/dev/sdb"), "Acme", "S1")
    assert not erasing.allows("S1")
