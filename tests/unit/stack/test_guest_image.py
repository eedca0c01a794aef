"""Machines of the user's own without booting one: which images are taken, and what QEMU and ssh are told."""

import socket

import pytest

from dbdyno.errors import UserError
from dbdyno.stack.guest.image import ImageMachine, free_ports, image_format
from dbdyno.stack.guest.machine import DiskOfGuest
from dbdyno.stack.kinds.image import KIND, forwarded
from dbdyno.study.schema import TrialSpec


@pytest.mark.parametrize(
    ("head", "outcome"),
    {
        "qcow2": (b"QFI\xfb\0\0\0\3", "qcow2"),
        "a disk with a boot sector": (b"\0" * 510 + b"\x55\xaa", "raw"),
        "VMware's": (b"KDMV\1", "is a VMDK image; convert it: qemu-img convert -O qcow2"),
        "packed": (b"\xfd7zXZ\0", "is packed; unpack it: xz -d"),
        "a filesystem without a boot sector": (b"\0" * 2048, "is neither qcow2 nor a raw disk that a BIOS can boot"),
        "nothing": (b"", "is neither qcow2 nor a raw disk"),
    }.values(),
)
def test_an_image_is_known_by_how_it_begins(tmp_path, head, outcome):
    path = tmp_path / "system"
    path.write_bytes(head)
    if outcome in {"qcow2", "raw"}:
        assert image_format(path) == outcome
    else:
        with pytest.raises(UserError, match=outcome):
            image_format(path)


def test_a_folder_is_no_image(tmp_path):
    with pytest.raises(UserError, match="is no file; name a disk image"):
        image_format(tmp_path)


@pytest.fixture
def machine(tmp_path):
    """A machine that nobody boots."""
    image = tmp_path / "my,system.qcow2"
    image.write_bytes(b"QFI\xfb")
    return ImageMachine(image, "root", tmp_path / "key", 1 << 30, 3307, (40_022, 43_307))


@pytest.mark.parametrize("bus", ["virtio", "scsi", "ahci", "nvme"])
def test_qemu_does_not_write_the_image_and_gives_the_machine_no_way_out(machine, tmp_path, bus):
    words = machine.arguments(DiskOfGuest(tmp_path / "disk", bus, rotational=True, write_cache=True, port=1), "tcg")
    drive = next(word for word in words if word.startswith("id=system"))
    assert drive == f"id=system,if=none,format=qcow2,snapshot=on,file={tmp_path}/my,,system.qcow2"
    network = words[words.index("-netdev") + 1]
    assert network == ("user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:40022-:22,hostfwd=tcp:127.0.0.1:43307-:3307")
    assert ("ide-hd,bus=ide.1,drive=disk" in " ".join(words)) == (bus == "ahci")  # the system is on the first port
    assert "-virtfs" not in words


def test_ssh_asks_nobody_and_takes_no_key_but_the_one_that_is_named(machine, tmp_path):
    words = machine.ssh("zfs list")
    assert words[-3:] == ["--", "root@127.0.0.1", "zfs list"]
    assert {"BatchMode=yes", "IdentitiesOnly=yes", "ForwardAgent=no"} <= set(words)
    assert words[words.index("-i") + 1] == str(tmp_path / "key")
    assert words[words.index("-F") + 1] == "none"


def test_two_free_ports_are_two_and_free():
    ports = free_ports(2)
    assert len(set(ports)) == 2
    for port in ports:
        with socket.create_server(("127.0.0.1", port)):
            pass


def test_a_server_is_reached_where_qemu_forwards_it():
    url = "mysql://me%40b@localhost:3306/bench?ssl-mode=required"
    assert forwarded(url, 40_001) == "mysql://me%40b@127.0.0.1:40001/bench?ssl-mode=required"
    assert forwarded("mysql://me@localhost/bench", 7) == "mysql://me@127.0.0.1:7/bench"


def spec(**stack):
    given = {"image": "/no/image", "key": "/no/key", "server": "mysql://me@localhost/bench", "device": "ideal"}
    return TrialSpec.model_validate(
        {
            "stack": {**given, "size": "128MiB", **stack},
            "workload": {"kind": "slap", "load": "write", "queries": 10},
        }
    )


def test_what_is_not_there_is_named_with_the_remedy():
    lacking = {need.name: need.said for need in KIND.needs_of_ground(spec(), frozenset()) if not need.ok}
    assert lacking["image"] == "image: /no/image is no file; name a disk image, qcow2 or raw"
    assert "/no/key can't be read; name the private key whose public half is in the image" in lacking["ssh key"]


def test_prepared_data_depend_on_the_machine_and_not_on_the_drive(tmp_path):
    image = tmp_path / "system"
    image.write_bytes(b"QFI\xfb")
    key = KIND.image_key(spec(image=str(image)))
    assert KIND.image_key(spec(image=str(image), device="hdd-7200")) == key
    assert KIND.image_key(spec(image=str(image), setup="newfs /dev/vtbd0")) != key
    image.write_bytes(b"QFI\xfb, another")
    assert KIND.image_key(spec(image=str(image))) != key
