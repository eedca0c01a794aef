"""What is never erased, and what is only where the study names it."""

from pathlib import Path

import pytest

from dbdyno.errors import HostError
from dbdyno.stack import erase_guard
from dbdyno.stack.erase_guard import Identity, check_erasable, identify


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
        check_erasable(tmp_path / "sdz", None, frozenset())
    assert str(refused.value) == f"{tmp_path / 'sdz'}: No such file or directory"


BY_ID = Path("/dev/disk/by-id/ata-Acme_S1_AB")
KERNEL = Path("/dev/sdb")
FOUND = Identity(KERNEL, "Acme", "S1 AB")


@pytest.mark.parametrize(
    ("device", "serial", "erase", "uses", "content", "refusal"),
    [
        (BY_ID, None, (), (), (), None),
        (BY_ID, "S1 AB", (), (), (), None),
        (KERNEL, "S1 AB", (), (), (), None),
        (KERNEL, "S1 AB", ("S1 AB",), (), ("a gpt signature",), None),
        (KERNEL, None, (), (), (), "/dev/sdb now leads to the disk with serial 'S1 AB', which its name does not hold"),
        (
            Path("/dev/disk/by-id/ata-Acme_S2"),
            None,
            ("S1 AB",),
            (),
            (),
            "/dev/disk/by-id/ata-Acme_S2 now leads to the disk with serial 'S1 AB', which its name does not hold",
        ),
        (
            KERNEL,
            "S2",
            ("S1 AB", "S2"),
            (),
            (),
            "/dev/sdb has the serial 'S1 AB', not 'S2' as the study says; it is not touched",
        ),
        (
            BY_ID,
            None,
            ("S1 AB",),
            ("/dev/sdb1 is mounted at /home", "held by dm-0"),
            (),
            f"{BY_ID} is in use: /dev/sdb1 is mounted at /home; held by dm-0. It is not touched",
        ),
        (
            BY_ID,
            None,
            ("S2",),
            (),
            ("an ext4 signature labelled 'home' at offset 0x438",),
            (
                f"{BY_ID} holds data: an ext4 signature labelled 'home' at offset 0x438. It is not touched; "
                "to erase all of it: dbdyno run ... --erase 'S1 AB'"
            ),
        ),
    ],
)
def test_a_disk_is_erased_only_where_the_study_names_it_and_it_holds_nothing(  # noqa: PLR0913, PLR0917
    monkeypatch, device, serial, erase, uses, content, refusal
):
    monkeypatch.setattr(erase_guard, "identify", lambda _: FOUND)
    monkeypatch.setattr(erase_guard, "_uses", lambda _: iter(uses))
    monkeypatch.setattr(erase_guard, "_contents", lambda _: iter(content))
    if refusal is None:
        assert check_erasable(device, serial, frozenset(erase)) == FOUND
        return
    with pytest.raises(HostError) as refused:
        check_erasable(device, serial, frozenset(erase))
    assert str(refused.value) == refusal
