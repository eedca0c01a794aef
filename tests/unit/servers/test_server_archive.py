"""A vendor's archive is checked before it is opened, and unpacked within its tree and its bounds."""

import hashlib
import io
import tarfile

import pytest

from dbdyno.errors import HostError, UserError
from dbdyno.servers.sources import archive as source
from dbdyno.servers.sources.archive import Archive
from tests.support import Quiet


def file(name, content=b"x"):
    member = tarfile.TarInfo(name)
    member.size = len(content)
    return member, content


def special(name, kind, link=""):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    return member, b""


def packed(folder, members, ending="tar.gz"):
    path = folder / f"server-1.2.3.{ending}"
    with tarfile.open(path, f"w:{ending.removeprefix('tar').removeprefix('.')}") as archive:
        for member, content in members:
            archive.addfile(member, io.BytesIO(content))
    return path


def unpacked(folder, path):
    tree = folder / "tree"
    tree.mkdir()
    Archive(str(path)).unpack(path.parent, {path.name: ""}, tree)
    return {str(place.relative_to(tree)): place.read_bytes() for place in tree.rglob("*") if place.is_file()}


@pytest.mark.parametrize("ending", ["tar.gz", "tar.xz", "tar"])
def test_what_a_server_needs_is_unpacked_without_the_folder_that_holds_it(tmp_path, ending):
    members = [
        file("server-1.2.3/bin/mysqld", b"daemon"),
        file("server-1.2.3/bin/mysqld-debug"),
        file("server-1.2.3/lib/libx.so.1", b"library"),
        special("server-1.2.3/lib/libx.so", tarfile.SYMTYPE, "libx.so.1"),
        special("server-1.2.3/lib/private", tarfile.LNKTYPE, "server-1.2.3/lib/libx.so.1"),
        file("server-1.2.3/lib/libx.a"),
        file("./server-1.2.3/share/english/errmsg.sys", b"messages"),
        file("server-1.2.3/mysql-test/t/a.test"),
    ]
    assert unpacked(tmp_path, packed(tmp_path, members, ending)) == {
        "bin/mysqld": b"daemon",
        "lib/libx.so.1": b"library",
        "lib/libx.so": b"library",
        "lib/private": b"library",
        "share/english/errmsg.sys": b"messages",
    }


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ([file("s/bin/../../../evil")], "leads out of it"),
        ([file("/etc/evil")], "leads out of it"),
        ([special("s/lib/out", tarfile.SYMTYPE, "../../../../etc")], "outside"),
        ([special("s/lib/out", tarfile.SYMTYPE, "/etc")], "absolute"),
        ([special("s/lib/in", tarfile.SYMTYPE, "deep"), file("s/lib/in/evil")], "through the link lib/in"),
        ([special("s/lib/passwd", tarfile.LNKTYPE, "../../etc/passwd")], "leads out of it"),
        ([special("s/lib/passwd", tarfile.LNKTYPE, "s/other/passwd")], "not unpacked"),
        ([special("s/lib/null", tarfile.CHRTYPE)], "a device or a pipe"),
        ([special("s/lib/pipe", tarfile.FIFOTYPE)], "a device or a pipe"),
    ],
)
def test_an_archive_that_leads_elsewhere_is_refused(tmp_path, members, why):
    with pytest.raises(HostError, match=why):
        unpacked(tmp_path, packed(tmp_path, members))
    assert not list(tmp_path.rglob("evil"))


def test_an_archive_is_unpacked_within_bounds(tmp_path, monkeypatch):
    path = packed(tmp_path, [file(f"s/lib/{number}", b"x" * 1000) for number in range(20)])
    monkeypatch.setattr(source, "MEMBERS_MAX", 10)
    with pytest.raises(HostError, match="more than 10 files"):
        unpacked(tmp_path, path)


def test_content_that_never_ends_is_refused(tmp_path, monkeypatch):
    path = packed(tmp_path, [file("s/lib/big", b"\0" * 1_000_000)])
    monkeypatch.setattr(source, "UNPACKED_BYTES_MAX", 100_000)
    with pytest.raises(HostError, match="GB"):
        unpacked(tmp_path, path)


def test_a_header_that_fills_the_memory_is_refused(tmp_path):
    member = tarfile.TarInfo("s/lib/x")
    member.pax_headers = {"comment": "x" * (source._PIECE_BYTES_MAX + 1)}
    path = tmp_path / "server-1.2.3.tar.gz"
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(member)
    with pytest.raises(HostError, match="a header of"):
        unpacked(tmp_path, path)


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b\x08", b"not an archive"])
def test_what_is_no_archive_is_refused(tmp_path, content):
    path = tmp_path / "server-1.2.3.tar.gz"
    path.write_bytes(content)
    with pytest.raises(HostError, match="can't be unpacked"):
        unpacked(tmp_path, path)


def test_nothing_is_opened_before_it_is_checked(tmp_path):
    path = packed(tmp_path, [file("s/bin/mysqld")])
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    assert Archive(str(path), digest).fetch(downloads, Quiet()) == {path.name: digest}
    with pytest.raises(HostError, match=f"its sha256 is {digest}"):
        Archive(str(path), "0" * 64).fetch(downloads, Quiet())
    assert not list(downloads.iterdir())
    (tmp_path / "key").write_text("no key")
    with pytest.raises(HostError):
        Archive(str(path), signature=path, key=tmp_path / "key").fetch(downloads, Quiet())
    assert not list(downloads.iterdir())
    assert path.exists()


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, "nothing shows that it is the vendor's"),
        ({"sha256": "abc"}, "is not 64 hexadecimal digits"),
        ({"signature": "x"}, "belong together"),
    ],
)
def test_an_archive_needs_something_that_it_is_checked_by(tmp_path, fields, why):
    path = packed(tmp_path, [file("s/bin/mysqld")])
    with pytest.raises(UserError, match=why):
        Archive(str(path), **fields).check()
    with pytest.raises(UserError, match="neither a file nor an address"):
        Archive("ftp://somewhere/server.tar.gz", "0" * 64).check()
