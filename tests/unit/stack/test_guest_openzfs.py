"""OpenZFS of a booted kernel: which kernels it is for, when it is there, and what a study may say of it."""

import json

import pytest

from dbdyno.errors import HostError, UserError
from dbdyno.servers.sources import debian
from dbdyno.stack.guest import kernels, openzfs
from dbdyno.stack.kinds import booted
from dbdyno.study.load import load_study
from dbdyno.study.rules import mkfs_mistake

RELEASE = "6.1.0-50-amd64"
META = "Name: zfs\nVersion: 2.3.9\nLinux-Maximum: 6.14\nLinux-Minimum: 4.18\n"
STUDY = """\
version = 1
[study]
title = "zfs"
[stack]
kernel = "debian-6.1"
device = "ssd-sata"
size = "512MiB"
filesystem = "zfs"
[filesystem]
mkfs = ["-O compression=lz4", "-O compression=zstd-3 -O sync=disabled -o autotrim=on"]
arc_max = "128MiB"
[workload]
kind = "slap"
load = "write"
clients = 2
queries = 60
"""


@pytest.fixture
def modules(state):
    """The folder of modules of a kernel that is on this host."""
    folder = state / "kernels/debian-6.1"
    modules = folder / "lib/modules" / RELEASE
    (modules / "kernel").mkdir(parents=True)
    (modules / "modules.dep").write_text("kernel/fs/ext4/ext4.ko:\n")
    image = folder / "boot" / f"vmlinuz-{RELEASE}"
    image.parent.mkdir()
    image.touch()
    files = {f"linux-image-{RELEASE}_6.1.176-1%2bb1_amd64.deb": "0" * 64}
    paths = {"image": str(image.relative_to(folder)), "modules": str(modules.relative_to(folder))}
    (folder / "kernel.json").write_text(json.dumps({"release": RELEASE, "files": files, **paths}))
    return modules


@pytest.mark.parametrize(
    ("release", "is_known"), [(RELEASE, True), ("6.14.3", True), ("6.15.0", False), ("4.9", False)]
)
def test_it_is_for_the_kernels_that_its_source_names(release, is_known):
    if is_known:
        assert openzfs._check_version("debian-6.1", release, META) == "2.3.9"
        return
    said = rf"OpenZFS 2\.3\.9 of Debian's trixie is for kernels from 4\.18 to 6\.14, and debian-x is {release}"
    with pytest.raises(UserError, match=said):
        openzfs._check_version("debian-x", release, META)


def test_what_is_not_whole_is_not_there(modules):
    found = lambda: openzfs.openzfs_of(kernels.find_kernel("debian-6.1").modules)  # noqa: E731
    assert found() is None
    (modules / "openzfs").mkdir()
    (modules / "openzfs/zfs.ko").touch()
    assert found() is None
    (modules / "openzfs/openzfs.json").write_text('{"version": "2.3.9"}')
    assert found() is None  # modprobe does not find it yet
    lacking = booted.openzfs("debian-6.1")
    assert (lacking.ok, lacking.remedy) == (False, "dbdyno kernels add debian-6.1 --zfs")
    with (modules / "modules.dep").open("a") as listed:
        listed.write("openzfs/zfs.ko: openzfs/spl.ko\n")
    assert found().version == "2.3.9"
    assert booted.openzfs("debian-6.1").ok
    # Where no C library came along, a tool runs by the host's.
    assert found().tool("zpool") == [str(modules / "openzfs/tools/sbin/zpool")]


def test_its_tools_run_by_the_library_that_came_along(modules):
    tree = modules / "openzfs/tools"
    (tree / "usr/lib64").mkdir(parents=True)
    (tree / "usr/lib").mkdir()
    (tree / "usr/lib64/ld-linux-x86-64.so.2").touch()
    loader, *rest = openzfs.OpenZfs("2.3.9", modules / "openzfs").tool("zfs")
    assert loader == str(tree / "usr/lib64/ld-linux-x86-64.so.2")
    assert rest == ["--library-path", str(tree / "usr/lib"), str(tree / "sbin/zfs")]


@pytest.mark.usefixtures("modules")
def test_the_headers_are_those_of_the_very_kernel(monkeypatch):
    compiler = openzfs._compiler(kernels.product_named("debian-6.1"), RELEASE)
    assert compiler.packages[0] == f"linux-headers-{RELEASE}=6.1.176-1+b1"
    assert compiler.suites == ("bookworm",)
    monkeypatch.setattr(debian, "_mirrors", lambda: {"main": "http://mirror/"})
    assert compiler._sources().endswith("http://mirror/ bookworm main\n")
    assert openzfs._SOURCE._sources().endswith("http://mirror/ trixie main contrib\n")


class OtherKernels:
    """A source that is for kernels of the past."""

    suites, coordinates, newest = ("trixie",), "zfs-dkms", "5.4"

    def fetch(self, downloads, progress):
        (downloads / "zfs.deb").touch()
        return {"zfs.deb": "0" * 64}

    def unpack(self, downloads, files, tree):
        source = tree / "usr/src/zfs-2.3.9"
        source.mkdir(parents=True)
        (source / "META").write_text(META.replace("6.14", self.newest))


@pytest.mark.parametrize(
    ("apt_says", "said"),
    [
        ("E: Version '6.1.176-1' for 'linux-headers-6.1.0-50-amd64' was not found", "kernels remove debian-6.1, then"),
        ("E: Unable to locate package linux-headers-6.1.0-50-amd64", "has the headers of 6.1.0-50-amd64 no more"),
        ("E: Could not resolve", "E: Could not resolve"),
    ],
)
@pytest.mark.usefixtures("modules")
def test_headers_that_a_suite_has_replaced_are_told_from_no_mirror(monkeypatch, apt_says, said):
    class NoHeaders:
        def fetch(self, downloads, progress):
            raise HostError(apt_says)

    monkeypatch.setattr(OtherKernels, "newest", "6.1")
    monkeypatch.setattr(openzfs, "_SOURCE", OtherKernels())
    monkeypatch.setattr(openzfs, "_compiler", lambda *_: NoHeaders())
    with pytest.raises(HostError, match=said):
        openzfs.add_openzfs("debian-6.1", Watched())


class Watched:
    """A progress that nobody looks at."""

    def step(self, text):
        """Nothing."""


def test_a_kernel_that_it_does_not_know_is_refused_before_a_compiler_is_fetched(modules, monkeypatch):
    monkeypatch.setattr(openzfs, "_SOURCE", OtherKernels())
    monkeypatch.setattr(openzfs, "_compiler", lambda *_: pytest.fail("a compiler was asked for"))
    with pytest.raises(UserError, match=r"is for kernels from 4\.18 to 5\.4, and debian-6\.1 is 6\.1\.0-50-amd64"):
        openzfs.add_openzfs("debian-6.1", Watched())
    assert not (modules / "openzfs").exists()


def test_a_study_may_say_of_it_what_zfs_fuse_has_not(tmp_path):
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    (factor,) = load_study(study).factors
    assert factor.levels[1].endswith("autotrim=on")
    for of_openzfs in ("-O compression=lz4", "-O compression=zstd-3", "-O sync=always", "-o autotrim=on"):
        assert mkfs_mistake("zfs", of_openzfs, is_booted=True) is None
        assert "which only the kernel's OpenZFS has" in mkfs_mistake("zfs", of_openzfs)
    assert mkfs_mistake("zfs", "-O compression=gzip-1") is None
    assert "holds 'mountpoint=x'" in mkfs_mistake("zfs", "-O mountpoint=x", is_booted=True)
    assert "holds 'keylocation=x'" in mkfs_mistake("zfs", "-O keylocation=x", is_booted=True)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([('"zfs"', '"ext4"'), ("mkfs", "# mkfs")], "filesystem.arc_max: is for ZFS of a booted kernel"),
        ([('"128MiB"', '"1GiB"')], "filesystem.arc_max: is 1 GiB, and the machine has 1 GiB; give less, or more stack"),
    ],
)
def test_its_cache_is_bounded_where_it_runs_and_within_the_machine(tmp_path, changes, said):
    study, text = tmp_path / "study.toml", STUDY
    for old, new in changes:
        text = text.replace(old, new)
    study.write_text(text)
    with pytest.raises(UserError) as refused:
        load_study(study)
    assert said in str(refused.value)
