"""``Hosts`` on this machine alone; ``test_hosts_ssh.py`` asks the same of agents."""

import contextlib
import errno
from collections import namedtuple

import pytest

from dbdyno.errors import HostError
from dbdyno.hosts import host_side
from tests.local_hosts import LocalHosts
from tests.unit.hosts.contract import ROOM_BYTES, a_folder, keeps_the_contract


def test_the_contract(tmp_path):
    with contextlib.closing(LocalHosts(["a", "b"])) as hosts:
        keeps_the_contract(hosts, "a", "b", tmp_path)


def test_a_file_that_did_not_come_whole_is_not_there(tmp_path):
    hosts = LocalHosts(["a"])
    (tmp_path / "it").write_text("before")

    class UnpluggedError(Exception):
        pass

    def unplugged(*_):
        raise UnpluggedError

    hosts._sides["a"].append = unplugged
    (tmp_path / "new").write_text("after")
    with contextlib.suppress(UnpluggedError):
        hosts.put("a", tmp_path / "new", str(tmp_path / "it"))
    assert (tmp_path / "it").read_text() == "before"


@pytest.fixture
def far(tmp_path):
    """A folder to be copied, on two hosts; where to."""
    a_folder(tmp_path / "it")
    (tmp_path / "far").mkdir()
    return tmp_path / "far"


def copied(hosts, far):
    hosts.copy("a", str(far.parent / "it"), "b", str(far / "it"), ROOM_BYTES, lambda *_: None)


def test_a_folder_that_does_not_come_whole_is_not_there(far):
    hosts, sent = LocalHosts(["a", "b"]), []

    def unplugged(*piece):
        sent.append(piece)
        if len(sent) == 3:
            raise OSError(errno.EIO, "Input/output error", piece[0])
        return host_side.FolderSide.piece(hosts._sides["a"], *piece)

    hosts._sides["a"].piece = unplugged
    with pytest.raises(HostError, match=r"a to b: .*/it: Input/output error"):
        copied(hosts, far)
    assert list(far.iterdir()) == []


def test_a_folder_for_which_there_is_no_room_is_not_begun(far, monkeypatch):
    usage = namedtuple("usage", "total used free")  # noqa: PYI024  (as shutil's)
    monkeypatch.setattr(host_side.shutil, "disk_usage", lambda _: usage(10**9, 10**9, 10**6))
    with pytest.raises(HostError, match=r"b: .*/far/it: \d+ bytes are needed, 1000000 are free"):
        copied(LocalHosts(["a", "b"]), far)
    assert list(far.iterdir()) == []


def test_a_folder_whose_files_change_meanwhile_does_not_count(far):
    hosts = LocalHosts(["a", "b"])
    finish = hosts._sides["b"].finish_folder

    def meddled(token, path):
        (hosts._sides["b"]._folders[token].path / "more").touch()
        finish(token, path)

    hosts._sides["b"].finish_folder = meddled
    with pytest.raises(HostError, match=r"b: .*it: the copy differs from the source"):
        copied(hosts, far)
    assert list(far.iterdir()) == []
