"""What is said of virtual machines without one: the archive, the channel, the kernels, what a guest may ask."""

import json
import lzma
import math
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.errors import HostError, TrialError, UserError
from dbdyno.model.cut import Cut
from dbdyno.run.guest import _Conversation, _GuestDisk, _window_ns, check_numbers, in_guest, python_bundle
from dbdyno.run.guest_side import GuestClocks
from dbdyno.stack.guest import kernels, machine
from dbdyno.stack.guest.channel import LINE_BYTES_MAX, GuestChannel, GuestLostError
from dbdyno.stack.guest.kernels import archive, write_initramfs
from dbdyno.stack.guest.machine import DiskOfGuest, Machine, arguments
from dbdyno.stack.kinds import booted
from dbdyno.store.records import Trial
from tests.support import dbdyno


@pytest.fixture
def ends():
    """Both ends of a channel, as handles."""
    host, guest = socket.socketpair()
    with host, guest:
        yield host, guest


def test_an_archive_is_what_cpio_reads(tmp_path):
    """By another program's reader, and with content of every length around its grain of 4 bytes."""
    files = {f"folder/file{length}": os.urandom(length) for length in range(9)}
    packed = tmp_path / "archive"
    packed.write_bytes(b"".join(archive(["folder"], files)))
    with packed.open("rb") as file:
        subprocess.run(["busybox", "cpio", "-id"], stdin=file, cwd=tmp_path, check=True, capture_output=True)
    assert {name: (tmp_path / name).read_bytes() for name in files} == files


def test_each_driver_comes_after_those_that_it_needs(tmp_path):
    modules = tmp_path / "lib/modules/6.6"
    needs = {"kernel/net/9p.ko": ["kernel/net/9pnet.ko", "kernel/fs/netfs.ko"], "kernel/virtio-pci.ko": []}
    needs |= {"kernel/net/9pnet.ko": [], "kernel/fs/netfs.ko": [], "kernel/sound/loud.ko": []}
    for name in needs:
        (modules / name).parent.mkdir(parents=True, exist_ok=True)
        (modules / name).write_bytes(name.encode())
    (modules / "modules.dep").write_text("".join(f"{name}: {' '.join(each)}\n" for name, each in needs.items()))
    write_initramfs(tmp_path / "archive", modules, "6.6", "echo 'it runs'", {"a/b.pyc": b"code"})
    with (tmp_path / "archive").open("rb") as packed:
        subprocess.run(["busybox", "cpio", "-id"], stdin=packed, cwd=tmp_path, check=True, capture_output=True)
    order = (tmp_path / "drivers/order").read_text().split()
    assert order == ["virtio-pci.ko", "netfs.ko", "9pnet.ko", "9p.ko"]
    assert (tmp_path / "python/a/b.pyc").read_bytes() == b"code"
    init = (tmp_path / "init").read_text()
    assert "command='echo '\"'\"'it runs'\"'\"''\n" in init
    subprocess.run(["busybox", "sh", "-n", tmp_path / "init"], check=True)


def test_a_bundle_imports_by_itself(tmp_path):
    """As a guest does: no look into the host's folders, and without site."""
    for name, content in python_bundle("dbdyno.stack.guest.channel").items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    say = "import dbdyno.stack.guest.channel as module; print(module.__file__)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", say], env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(tmp_path / "dbdyno/stack/guest/channel.pyc")


def test_lines_and_files_arrive_whole(ends, tmp_path):
    host, guest = (GuestChannel(end.fileno()) for end in ends)
    content = os.urandom(3_000_000)
    (tmp_path / "sent").write_bytes(content)

    def speak():
        guest.send("done", {"bytes": len(content)})
        guest.send_file(tmp_path / "sent")
        guest.send("say", "after it")

    speaking = threading.Thread(target=speak)
    speaking.start()
    assert host.receive(60) == ("done", {"bytes": len(content)})
    host.receive_file(tmp_path / "came", len(content), 60)
    assert (tmp_path / "came").read_bytes() == content
    assert host.receive(60) == ("say", "after it")
    speaking.join()


@pytest.mark.parametrize(
    ("said", "why"),
    {
        "no JSON": (b"\xff\xfe nonsense\n", "an invalid message"),
        "a list": (b"[1]\n", "an invalid message"),
        "two kinds": (b'{"done": 1, "say": 2}\n', "an invalid message"),
        "nested without end": (b'{"say": ' + b"[" * 100_000 + b"\n", "an invalid message"),
        "a line without end": (b"x" * (LINE_BYTES_MAX + 1), "a line of more than"),
        "the end": (b'{"say": ', "stopped without a result"),
    }.values(),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_guest_that_talks_nonsense_is_lost(ends, said, why):
    host, guest = ends

    def speak():
        guest.sendall(said)
        guest.shutdown(socket.SHUT_WR)

    speaking = threading.Thread(target=speak)
    speaking.start()
    with pytest.raises(GuestLostError, match=why):
        GuestChannel(host.fileno()).receive(60)
    host.close()
    speaking.join()


def test_a_guest_that_is_silent_is_lost(ends):
    with pytest.raises(GuestLostError, match="no message from the guest"):
        GuestChannel(ends[0].fileno()).receive(0.01)


@pytest.mark.parametrize(
    "asked",
    [
        {"op": "save", "file": "/etc/passwd"},
        {"op": "load", "file": "/etc/shadow"},
        {"op": "cut-save", "name": "c", "folder": "/root/x"},
        {"op": "trace", "file": "/etc/cron.d/x", "format": "csv"},
        {"op": "follow", "device": "/dev/sda"},
        {"op": "model", "name": "/root/other.toml", "seed": 1},
        {"op": "restore", "name": "another"},
        {"op": "clear"},
        {"op": ["mode"]},
        {},
    ],
)
def test_a_guest_can_have_its_disk_touch_nothing_of_the_host(asked):
    answer = _GuestDisk(None, "hdd-7200", is_prepared=True).answer(asked)  # the disk is not even asked
    assert answer["ok"] is False
    assert "not allowed to a guest" in answer["error"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"op": "cut", "disk": 3, "name": "c1"}, "the guest has no disk 3"),
        ({"op": "cut", "disk": -1, "name": "c1"}, "the guest has no disk -1"),
        ({"op": "cuts-arm", "disk": 1, "next": 3}, "the guest has no disk 3"),
        ({"op": "cuts-arm", "disk": 1, "next": "/run/a.sock"}, "the guest has no disk /run/a.sock"),
        ({"op": "cuts-arm", "disk": 1, "next": 1}, "the disks 1 and 1 can't be cut in a circle"),
        ({"op": "cuts-arm", "disk": 0, "next": 2}, "the disks 0 and 2 can't be cut in a circle"),
    ],
)
def test_a_guest_names_its_own_disks_by_number_and_has_none_wait_for_itself(asked, said):
    disks = tuple(_GuestDisk(None, "hdd-7200", is_prepared=True) for _ in range(3))  # none of which is asked
    talk = _Conversation(None, disks, None, print, "tcg", line={2: 1, 1: 0})
    assert talk.answer(asked) == {"ok": False, "error": said}


def test_moments_of_the_host_become_those_of_the_guest():
    """Whatever the two clocks say, a cut lies between its two moments; a slow answer does not move them apart."""
    ahead, clocks = -995_000, GuestClocks()
    for host_ns, before, after in ((10_000, 300, 700), (20_000, 10, 40), (30_000, 9_000, 9_000)):
        clocks.meet(host_ns + ahead - before, host_ns + ahead + after, host_ns)
    assert (clocks.least_ns, clocks.most_ns) == (ahead - 10, ahead + 40)
    moved = clocks.moved({"cuts": [{"cut_ns": 25_000, "cut_end_ns": 25_010}], "fast_cache": {"ran_out_ns": 25_000}})
    cut = moved["cuts"][0]
    assert cut["cut_ns"] <= 25_000 + ahead
    assert cut["cut_end_ns"] >= 25_010 + ahead
    assert cut["cut_end_ns"] - cut["cut_ns"] == 10 + 50
    assert abs(moved["fast_cache"]["ran_out_ns"] - (25_000 + ahead)) <= 25


def test_a_clock_that_drifts_is_met_anew():
    clocks = GuestClocks()
    clocks.meet(100, 110, 0)
    clocks.meet(1_000_200, 1_000_220, 1_000_000)
    assert (clocks.least_ns, clocks.most_ns) == (200, 220)


def unpacked(tmp_path, image="boot/vmlinuz-6.6", modules="lib/modules/6.6"):
    for path in (tmp_path / image, tmp_path / modules / "modules.dep"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / modules / "kernel").mkdir()
    return tmp_path


def test_a_kernel_of_the_users_own_is_found_by_folder_or_image(tmp_path):
    tree = unpacked(tmp_path)
    for name in (tree, tree / "boot/vmlinuz-6.6"):
        found = kernels.find_kernel(str(name))
        assert (found.release, found.image, found.modules) == (
            "6.6",
            tree / "boot/vmlinuz-6.6",
            tree / "lib/modules/6.6",
        )


NOTE = b"\x04\0\0\0\x08\0\0\0\x12\0\0\0Xen\0"  # XEN_ELFNOTE_PHYS32_ENTRY with an address of 8 bytes


def image(content):
    """An image as a boot loader takes it, with packed content behind three sectors and 16 bytes."""
    payload = content + struct.pack("<I", 99)
    head = bytearray(3 * 512 + 16)
    head[0x1F1], head[0x202:0x206], head[0x248:0x250] = 2, b"HdrS", struct.pack("<II", 16, len(payload))
    return bytes(head) + payload + b"the rest"


def test_an_image_is_unpacked_where_qemu_boots_what_is_in_it(monkeypatch):
    kernel = b"\x7fELF" + os.urandom(1000) + NOTE
    packed = subprocess.run(["zstd", "-q"], input=kernel, capture_output=True, check=True).stdout
    assert kernels.plain_image(image(lzma.compress(kernel))) == kernel
    assert kernels.plain_image(image(packed)) == kernel
    assert kernels.plain_image(image(lzma.compress(kernel[: -len(NOTE)]))) is None
    assert kernels.plain_image(image(b"packed in a way of its own")) is None
    assert kernels.plain_image(b"") is None
    with pytest.raises(HostError, match="can't be unpacked"):
        kernels.plain_image(image(lzma.compress(kernel)[:-9]))
    monkeypatch.setattr(kernels, "tool_path", lambda _: None)
    assert kernels.plain_image(image(packed)) is None, "it boots as it is, so it does not need zstd"


def test_a_kernel_whose_modules_a_guest_would_not_see_is_refused():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        need = booted.kernel(str(unpacked(Path(folder))))
    assert not need.ok
    assert "and a virtual machine has a /dev of its own; put them elsewhere" in need.said


def test_a_kernel_that_lies_beside_its_modules_is_found(tmp_path):
    tree = unpacked(tmp_path, "usr/lib/modules/7.2/vmlinuz", "usr/lib/modules/7.2")
    assert kernels.find_kernel(str(tree)).image == tree / "usr/lib/modules/7.2/vmlinuz"


class Suite:
    """What a suite of Debian's offers at one time: a kernel's package, without a registry."""

    kind, coordinates = "a test", "a suite"

    def __init__(self, release):
        self.release = release

    def fetch(self, downloads, progress):
        progress.step("downloading")
        (downloads / "kernel.deb").write_text(self.release)
        return {"kernel.deb": "0" * 64}

    def unpack(self, downloads, files, tree):
        assert [(downloads / name).read_text() for name in files] == [self.release]
        unpacked(tree, f"boot/vmlinuz-{self.release}", f"lib/modules/{self.release}")


class Watched:
    """A progress that nobody looks at."""

    def step(self, text):
        """Nothing."""


@pytest.mark.usefixtures("state")
def test_a_suite_that_has_moved_on_to_another_release_gives_no_kernel(monkeypatch):
    """Else a study would run with a kernel of another name than it says."""

    class Product(kernels.KernelProduct):
        source = Suite("6.10.3")  # which begins as 6.1 does

    monkeypatch.setitem(kernels.PRODUCTS, "debian-6.1", Product("debian-6.1", "bookworm", 1, 1))
    with pytest.raises(HostError, match=r"Debian's bookworm has kernel 6\.10\.3 by now, and debian-6\.1 no more"):
        kernels.add("debian-6.1", Watched())
    with pytest.raises(UserError, match=r"debian-6\.1 is not on this host"):
        kernels.find_kernel("debian-6.1")
    Product.source = Suite("6.1.90")
    assert kernels.add("debian-6.1", Watched())["release"] == "6.1.90"
    assert kernels.find_kernel("debian-6.1").release == "6.1.90"


@pytest.mark.usefixtures("state")
def test_a_kernel_that_is_not_there_is_named_with_what_to_do(tmp_path):
    with pytest.raises(
        UserError, match=r"debian-6.1 is not on this host; get it \(71 MB\): dbdyno kernels add debian-6.1"
    ):
        kernels.find_kernel("debian-6.1")
    with pytest.raises(UserError, match="holds 0 kernels with modules; name a folder that holds one"):
        kernels.find_kernel(str(tmp_path))
    (tmp_path / "vmlinuz-6.6").touch()
    with pytest.raises(UserError, match="is not a kernel with its modules; name the folder"):
        kernels.find_kernel(str(tmp_path / "vmlinuz-6.6"))


def test_a_host_without_qemu_is_told_the_package(monkeypatch):
    monkeypatch.setattr(booted, "tool_path", lambda _: None)
    assert booted.qemu().said == (
        "virtual machines: qemu-system-x86_64, busybox, depmod not installed; "
        "apt-get install qemu-system-x86 busybox-static kmod"
    )


@pytest.fixture
def one_kernel(state, monkeypatch, tmp_path):  # noqa: ARG001  (the state folder is where it is remembered)
    """A host with QEMU and /dev/kvm, and one kernel; what is booted under KVM stands in a list."""
    tried = []
    kernel = kernels.Kernel("debian-6.1", "6.1", tmp_path / "vmlinuz", tmp_path)
    monkeypatch.setattr(booted, "tool_path", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(booted, "known_kernels", lambda: [{"name": "debian-6.1", "installed": True}])
    monkeypatch.setattr(booted, "find_kernel", lambda _: kernel)
    monkeypatch.setattr(machine.os, "access", lambda *_: True)
    monkeypatch.setattr(machine, "_this_host", lambda: "this boot")
    monkeypatch.setattr(machine, "boots", lambda *given: tried.append(given[2]) or given[2] == "tcg")
    return tried


def test_whether_kvm_works_is_tried_once_for_each_boot_of_the_host(one_kernel, monkeypatch):
    began = []
    assert booted.machines().detail.endswith("KVM was not tested")
    for _ in range(2):
        assert (
            "debian-6.1 does not boot under KVM, so QEMU emulates the CPU"
            in booted.machines(lambda: began.append(1)).detail
        )
    assert "does not boot under KVM" in booted.machines().detail
    assert (began, one_kernel) == ([1], ["kvm"])
    monkeypatch.setattr(machine, "_this_host", lambda: "the next boot")
    assert booted.machines().detail.endswith("KVM was not tested")


@pytest.mark.usefixtures("one_kernel")
def test_what_is_remembered_of_kvm_is_not_believed_where_it_is_damaged(state):
    booted.machines(lambda: None)
    for content in (b"{", b"[]", b'{"host": "this boot", "boots": [1]}', b'{"host": 1}'):
        (Path(state) / "kvm.json").write_bytes(content)
        assert booted.machines().detail.endswith("KVM was not tested")


@pytest.mark.usefixtures("state")
def test_a_host_that_has_no_kernel_yet_is_told_how_to_see(monkeypatch):
    monkeypatch.setattr(booted, "tool_path", lambda name: f"/usr/bin/{name}")
    assert booted.machines().detail.endswith("to test KVM, add a kernel: dbdyno kernels add debian-6.1")


def test_a_guest_has_its_disks_and_no_network(tmp_path):
    kernel = kernels.Kernel("k", "6.6", tmp_path / "image", tmp_path)
    disk = DiskOfGuest(tmp_path / "a,b.img", "ahci", rotational=True, write_cache=False)
    log = DiskOfGuest(tmp_path / "log.img", "ahci", rotational=False, write_cache=True, number=1)
    words = arguments(Machine(kernel, 1 << 30, "true", disks=(disk, log)), tmp_path / "archive", "tcg", 9)
    given = " ".join(words)
    assert "-nic none" in given
    assert "readonly=on" in given
    assert f"file={tmp_path}/a,,b.img" in given
    assert "ide-hd,bus=ide.0,drive=disk,serial=dbdyno,write-cache=off,rotation_rate=7200" in given
    assert "ide-hd,bus=ide.1,drive=disk1,serial=dbdyno1,write-cache=on,rotation_rate=1" in given


def test_kernels_are_listed(state):
    """Those to boot with what each takes, then those that are simulated."""
    listed = json.loads(dbdyno("kernels", "--json", state=state).stdout)
    assert [one["name"] for one in listed] == ["debian-5.10", "debian-6.1", "debian-6.12", "debian-7.2"]
    assert not any(one["installed"] for one in listed)
    words = dbdyno("kernels", state=state).stdout
    assert "simulated, nothing to download: 2.6.9, 2.6.18" in words
    wrong = dbdyno("kernels", "add", "debian-9", state=state)
    assert wrong.returncode == 2
    assert "'debian-9' is not a kernel that dbdyno can get; known are debian-5.10, debian-6.1" in wrong.stderr
    assert dbdyno("kernels", "remove", "debian-6.1", state=state).stdout.strip() == "debian-6.1: was not there"


def handed_over(**clock):
    return Trial("b1", 1, 1, 1, "t1", "", {}, load={"clock": clock})


def test_the_measured_window_is_told_by_the_clock_of_the_host():
    trial = handed_over(measure_start_ns=150, measure_end_ns=180)
    assert _window_ns(trial, {"ahead_ns": 40}, (100, 200)) == (110, 140)
    assert _window_ns(trial, {"ahead_ns": -40}, (100, 200)) == (190, 200), "not beyond what the host itself saw"


@pytest.mark.parametrize(
    ("clock", "result"),
    [
        ({"measure_start_ns": 150, "measure_end_ns": 150}, {"ahead_ns": 0}),
        ({"measure_start_ns": 150, "measure_end_ns": 180}, {"ahead_ns": 10**18}),
        ({"measure_start_ns": "a", "measure_end_ns": 2.5}, {"ahead_ns": None}),
        ({}, {}),
    ],
)
def test_a_guest_that_names_no_such_window_has_failed_its_trial(clock, result):
    with pytest.raises(TrialError, match="a measured window outside of its trial"):
        _window_ns(handed_over(**clock), result, (100, 200))


def test_a_cut_may_come_before_the_measured_window_but_has_no_time_that_is_none():
    cut = Cut("c1", "power", "uniform", "random-4096", 1, -0.8, "nothing", 7, recovery_s={"mount": 0.1})
    check_numbers(replace(handed_over(), cuts=[cut]))
    for wrong in (replace(cut, at_s=math.nan), replace(cut, acked=-1), replace(cut, recovery_s={"mount": -0.1})):
        with pytest.raises(ValueError, match="of cut c1 is"):
            check_numbers(replace(handed_over(), cuts=[wrong]))


def test_what_a_guest_says_of_itself_is_taken_as_far_as_it_is_numbers():
    said = {"foreign_cpu": 0.1, "beyond": ["foreign_cpu"], "pressure": {"cpu_some": 0.2, "io_some": "?", "x": math.nan}}
    assert in_guest(said) == {"foreign_cpu": 0.1, "cpu_some": 0.2}
    assert in_guest({}) == {}
