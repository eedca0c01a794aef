"""Folders in a tar file whose zeros take no room: the same bytes of the same content, and read by any tar."""

import hashlib
import os
import subprocess
import tarfile

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
def test_owners_and_modes_are_kept(folder, tmp_path):
    os.chown(folder / "deep/full", 65534, 65533)
    (folder / "deep/full").chmod(0o640)
    packed(folder, tmp_path / "state.tar")
    found = (unpacked(tmp_path / "state.tar", tmp_path / "out") / "deep/full").stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (65534, 65533, 0o640)


def test_what_names_a_place_outside_is_refused(tmp_path):
    with tarfile.open(tmp_path / "bad.tar", "w") as tar:
        about = tarfile.TarInfo("../out")
        tar.addfile(about)
    (tmp_path / "in").mkdir()
    with pytest.raises(tarfile.TarError):
        sparse_tar.extract(tmp_path / "bad.tar", tmp_path / "in")


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
