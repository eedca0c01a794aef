"""Folders in a tar file whose zeros take no room: the same bytes of the same content, and read by any tar."""

import hashlib
import io
import os
import stat
import subprocess
import tarfile
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbdyno.run import sparse_tar

MIB = 1024**2


def packed(folder, path, **more):
    with tarfile.open(path, "w") as tar:
        sparse_tar.add(tar, folder, "state", **more)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def unpacked(path, into):
    into.mkdir()
    sparse_tar.extract(path, into)
    return into / "state"


def contents(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture
def folder(tmp_path):
    """A disk of 64 MiB with two pieces, one at an odd offset; a file of zeros alone, one without any, an empty one."""
    made = tmp_path / "made"
    (made / "deep").mkdir(parents=True)
    with (made / "base.img").open("wb") as file:
        file.seek(5 * MIB + 17)
        file.write(os.urandom(70_000))
        file.seek(50 * MIB)
        file.write(b"x")
        file.truncate(64 * MIB)
    (made / "deep/zeros").write_bytes(bytes(3 * MIB))
    (made / "deep/full").write_bytes(os.urandom(10_001))
    (made / "empty").touch()
    return made


def test_holes_stay_holes_and_take_no_room_on_the_way(folder, tmp_path):
    packed(folder, tmp_path / "state.tar")
    assert (tmp_path / "state.tar").stat().st_size < 200_000
    found = unpacked(tmp_path / "state.tar", tmp_path / "out")
    assert contents(found) == contents(folder)
    assert sum(path.stat().st_blocks * 512 for path in found.rglob("*") if path.is_file()) < 200_000


def test_the_system_s_tar_reads_it(folder, tmp_path):
    packed(folder, tmp_path / "state.tar")
    subprocess.run(["tar", "-xf", tmp_path / "state.tar", "-C", tmp_path], check=True)
    assert contents(tmp_path / "state") == contents(folder)
    assert (tmp_path / "state/base.img").stat().st_blocks < 400


def test_the_same_content_has_the_same_bytes_whatever_its_holes_times_and_modes(folder, tmp_path):
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", "--sparse=never", folder / "deep", copy], check=True)
    (copy / "zeros").chmod(0o640)
    os.utime(copy / "full", (1, 1))
    with (copy / "zeros").open("r+b") as file:  # a hole where it had zeros
        os.ftruncate(file.fileno(), 0)
        os.ftruncate(file.fileno(), 3 * MIB)
    sums = {packed(one, tmp_path / f"{place}.tar", plain=True) for place, one in enumerate((folder / "deep", copy))}
    assert len(sums) == 1
    (copy / "full").write_bytes(b"other")
    assert packed(copy, tmp_path / "other.tar", plain=True) not in sums


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_is_unpacked_is_the_unpacker_s_and_nobody_else_can_change_it(folder, tmp_path):
    os.chown(folder / "deep/full", 65534, 65533)
    (folder / "deep/full").chmod(0o6777)
    packed(folder, tmp_path / "state.tar")
    found = (unpacked(tmp_path / "state.tar", tmp_path / "out") / "deep/full").stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o7022) == (0, 0, 0)


def member(name, content=b"", **more):
    about = tarfile.TarInfo(name)
    about.size = len(content)
    for field, value in more.items():
        setattr(about, field, value)
    return about, content


def sparse(name, size, where, content=b"x", **more):
    where = where.encode() + bytes(-len(where) % 512)
    given = {"major": "1", "minor": "0", "name": name, "realsize": str(size), **more}
    return member(name, where + content, pax_headers={f"GNU.sparse.{key}": value for key, value in given.items()})


def tar_of(path, *members, end=b""):
    with tarfile.open(path, "w") as tar:
        for about, content in members:
            tar.addfile(about, io.BytesIO(content))
        tar.fileobj.write(end)
    return path


def link_past_the_length_that_is_followed(out):
    """Links below each other until what they come to is too long to be followed by who checks it: CVE-2025-4517."""
    step, path = "d" * 247, ""
    for link in "abcdefghijklmnop":
        yield member(f"{path}{step}", type=tarfile.DIRTYPE)
        yield member(f"{path}{link}", type=tarfile.SYMTYPE, linkname=step)
        path += f"{step}/"
    long = f"{'/'.join('abcdefghijklmnop')}/{'l' * 254}"
    yield member(long, type=tarfile.SYMTYPE, linkname="../" * 16)
    yield member("escape", type=tarfile.SYMTYPE, linkname=f"{long}{'/..' * 12}{out}")
    yield member("escape/file", b"x")


FOLDER, FILE = {"type": tarfile.DIRTYPE}, "it is there"
BAD = {
    "long links": link_past_the_length_that_is_followed,
    "a link": lambda out: [member("l", type=tarfile.SYMTYPE, linkname=str(out)), member("l/file", b"x")],
    "a hard link": lambda out: [member("l", type=tarfile.LNKTYPE, linkname=str(out / "there"))],
    "a hard link to itself": lambda _: [member("f", b"x"), member("g", type=tarfile.LNKTYPE, linkname="f")],
    "a device": lambda _: [member("d", type=tarfile.CHRTYPE, devmajor=1, devminor=8)],
    "a disk": lambda _: [member("d", type=tarfile.BLKTYPE, devmajor=8)],
    "a pipe": lambda _: [member("p", type=tarfile.FIFOTYPE)],
    "a kind that is unknown": lambda _: [member("k", type=b"Z")],
    "GNU's own long name": lambda out: [
        member("././@LongLink", f"{out}/file\0".encode(), type=b"L"),
        member("f", b"x"),
    ],
    "a header for all": lambda _: [member("g", b"", type=b"g")],
    "old sparse": lambda _: [member("s", type=tarfile.GNUTYPE_SPARSE)],
    "above": lambda _: [member("../out/file", b"x")],
    "above in the middle": lambda _: [member("a/../../out/file", b"x")],
    "from the root": lambda out: [member(f"{out}/file", b"x")],
    "the folder itself": lambda _: [member(".", **FOLDER)],
    "an empty step": lambda _: [member("a//b", b"x")],
    "a path of its own": lambda out: [member("f", b"x", pax_headers={"path": f"{out}/file"})],
    "a path with a zero byte": lambda _: [member("f", b"x", pax_headers={"path": "f\0g"})],
    "a name that is no text": lambda _: [member("f\udcff", b"x")],
    "a name with an escape": lambda _: [member("f\x1b[2J", b"x")],
    "a hidden name": lambda _: [member(".part", b"x")],
    "a name too long": lambda _: [member("f" * 129, b"x")],
    "too deep": lambda _: [member("/".join("abcdefgh"), b"x")],
    "a name twice": lambda _: [member("f", b"x"), member("f", b"y")],
    "a folder twice": lambda _: [member("f", **FOLDER), member("f", **FOLDER)],
    "a folder for a file": lambda _: [member("f", b"x"), member("f", **FOLDER)],
    "a file for a folder": lambda _: [member("f", **FOLDER), member("f", b"x")],
    "a file below a file": lambda _: [member("f", b"x"), member("f/g", b"x")],
    "a folder with content": lambda _: [member("f", b"x" * 512, **FOLDER)],
    "too large": lambda _: [sparse("s", 2**50, "1\n0\n1\n")],
    "larger than a number": lambda _: [sparse("s", 10**30, "1\n0\n1\n")],
    "less than nothing": lambda _: [sparse("s", -1, "1\n0\n1\n")],
    "pieces past the end": lambda _: [sparse("s", 10, "1\n10\n1\n")],
    "pieces over each other": lambda _: [sparse("s", 10, "2\n5\n1\n5\n1\n", b"xx")],
    "pieces backwards": lambda _: [sparse("s", 10, "2\n5\n1\n1\n1\n", b"xx")],
    "fewer bytes than pieces": lambda _: [sparse("s", 10, "1\n0\n9\n")],
    "more bytes than pieces": lambda _: [sparse("s", 10, "0\n")],
    "a negative piece": lambda _: [sparse("s", 10, "1\n-5\n1\n")],
    "pieces without number": lambda _: [sparse("s", 10, "99999999999\n0\n1\n")],
    "pieces that are no numbers": lambda _: [sparse("s", 10, "x\n")],
    "pieces without end": lambda _: [sparse("s", 10, "1" * 5000)],
    "another sparse format": lambda _: [sparse("s", 10, "1\n0\n1\n", minor="1")],
    "a half sparse header": lambda _: [member("s", b"x", pax_headers={"GNU.sparse.realsize": "5"})],
    "a size of its own": lambda _: [member("f", b"x", pax_headers={"size": "-5"})],
    "a header too long": lambda _: [member("f", b"x", pax_headers={"comment": "x" * 100_000})],
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_plain_file_below_the_folder_is_refused_and_nothing_is_outside(kind, tmp_path):
    out, into = tmp_path / "out", tmp_path / "in"
    out.mkdir()
    into.mkdir()
    (out / "there").write_text(FILE)
    bad = tar_of(tmp_path / "bad.tar", *BAD[kind](out))
    with pytest.raises(tarfile.ReadError, match=r"bad\.tar: ") as refused:
        sparse_tar.extract(bad, into)
    assert str(refused.value).isprintable()
    assert {path.name: path.read_text() for path in out.iterdir()} == {"there": FILE}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.tar", "in", "out"]
    assert all(stat.S_ISREG(path.lstat().st_mode) or stat.S_ISDIR(path.lstat().st_mode) for path in into.rglob("*"))
    assert (out / "there").stat().st_nlink == 1


@settings(max_examples=150, deadline=None)
@given(flips=st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), max_size=4), end=st.integers(0, 8000))
def test_a_damaged_file_is_refused_or_read_and_never_anything_else(flips, end, tmp_path_factory):
    folder = tmp_path_factory.mktemp("flipped")
    tar_of(folder / "in.tar", member("a", **FOLDER), sparse("a/s", 5000, "1\n10\n1\n"), member("a/f", b"x" * 600))
    content = bytearray((folder / "in.tar").read_bytes())
    for at, value in flips:
        content[at] = value
    (folder / "in.tar").write_bytes(content[:end] if end < 6000 else content)
    (folder / "in").mkdir()
    with suppress(tarfile.TarError):
        sparse_tar.extract(folder / "in.tar", folder / "in")
    assert sorted(path.name for path in folder.iterdir()) == ["in", "in.tar"]


def test_what_could_not_be_unpacked_is_not_packed(folder, tmp_path):
    (folder / "link").symlink_to("/etc")
    with pytest.raises(OSError, match="neither a file nor a folder"):
        packed(folder, tmp_path / "state.tar")
    (folder / "link").unlink()
    (folder / "two words").touch()
    with pytest.raises(OSError, match="its name can't be sent"):
        packed(folder, tmp_path / "state.tar")
    (folder / "two words").unlink()
    os.link(folder / "empty", folder / "again")
    packed(folder, tmp_path / "state.tar")
    assert contents(unpacked(tmp_path / "state.tar", tmp_path / "out")) == contents(folder)


PIECES = st.lists(st.tuples(st.integers(0, 40_000), st.binary(min_size=1, max_size=9000)), max_size=6)


@settings(max_examples=60, deadline=None)
@given(pieces=PIECES, size=st.integers(0, 60_000))
def test_any_file_comes_back_as_it_was(pieces, size, tmp_path_factory):
    folder = tmp_path_factory.mktemp("any")
    (folder / "made").mkdir()
    with (folder / "made/file").open("wb") as file:
        for offset, content in pieces:
            file.seek(offset)
            file.write(content)
        file.truncate(size)
    packed(folder / "made", folder / "state.tar")
    assert contents(unpacked(folder / "state.tar", folder / "out")) == contents(folder / "made")
