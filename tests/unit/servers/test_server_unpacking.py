"""What a registry serves is unpacked to where a server has its parts."""

import io
import os
import pwd
import subprocess
import tarfile
import zipfile

import pytest

from dbdyno.errors import HostError
from dbdyno.servers.sources.maven import Maven
from dbdyno.servers.sources.npm import Npm
from tests.support import Quiet


def test_an_npm_tarball_is_unpacked_to_where_a_server_has_its_parts(tmp_path):
    (tmp_path / "package/share").mkdir(parents=True)
    (tmp_path / "package/mysqld").write_text("daemon")
    (tmp_path / "package/share/x").write_text("x")
    (tmp_path / "package/other").write_text("not wanted")
    subprocess.run(["tar", "-czf", tmp_path / "t.tgz", "-C", tmp_path, "package"], check=True)
    tree = tmp_path / "tree"
    tree.mkdir()
    places = {"package/mysqld": "bin/mysqld", "package/share": "share"}
    Npm("a-server", "1.0", "", places).unpack(tmp_path, {"t.tgz": ""}, tree)
    assert sorted(str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()) == [
        "bin/mysqld",
        "share/x",
    ]


def _packed(name, content):
    """A compressed tar archive of one file."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def test_an_archive_is_unpacked_by_file_by_folder_and_from_an_archive_within(tmp_path):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("share/english/errmsg.sys", "messages")
    with zipfile.ZipFile(tmp_path / "a.jar", "w") as archive:
        archive.writestr("v/Linux/mysqld", "daemon")
        archive.writestr("v/Linux/mysqld_multi", "not wanted")
        archive.writestr("v/Win/mysqld", "not wanted")
        archive.writestr("v/lib/plugin/a.so", "module")
        archive.writestr("v/share.jar", inner.getvalue())
        archive.writestr("v/more.tar.gz", _packed("share/charsets/Index.xml", b"charsets"))
    places = {"v/Linux/mysqld": "bin/mysqld", "v/lib/": "lib", "v/share.jar": ".", "v/more.tar.gz": "."}
    tree = tmp_path / "tree"
    tree.mkdir()
    Maven("g", "a", "1", "", places).unpack(tmp_path, {"a.jar": ""}, tree)
    found = {str(path.relative_to(tree)): path.read_text() for path in tree.rglob("*") if path.is_file()}
    assert found == {
        "bin/mysqld": "daemon",
        "lib/plugin/a.so": "module",
        "share/english/errmsg.sys": "messages",
        "share/charsets/Index.xml": "charsets",
    }
    with pytest.raises(HostError, match=r"a\.jar can't be unpacked"):
        Maven("g", "a", "1", "", {"absent": "x"}).unpack(tmp_path, {"a.jar": ""}, tree)


FAKE_MVN = r"""#!/bin/sh
for word in "$@"; do case $word in
    -Dmaven.repo.local=*) repository=${word#*=};;
    -Daether.trustedChecksumsSource.summaryFile.basedir=*) sums=${word#*=};;
esac; done
[ ! -w "$sums" ] && [ ! -w "$sums/checksums.sha256" ] || exit 1
grep -q '^[0-9a-f]\{64\}  org/apache/maven/plugins/maven-dependency-plugin/.*[.]jar$' "$sums/checksums.sha256" || exit 1
folder=$repository/com/example/server/1
mkdir -p "$folder"
if [ -e LINK ]; then ln -s /etc/passwd "$folder/server-1.zip"; else id -u > "$folder/server-1.zip"; fi
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has another user to run it as")
def test_maven_runs_as_no_root_and_no_link_of_its_is_followed(tmp_path, monkeypatch):
    """Its plugin is code that was downloaded: it may write its own folder alone, and what it leaves is not trusted."""
    tmp_path.chmod(0o755)
    for folder in tmp_path.parents[:-2]:
        folder.chmod(folder.stat().st_mode | 0o011)
    (tmp_path / "bin").mkdir()
    mvn = tmp_path / "bin/mvn"
    mvn.write_text(FAKE_MVN.replace("LINK", str(tmp_path / "link")))
    mvn.chmod(0o755)
    monkeypatch.setenv("PATH", f"{mvn.parent}:{os.environ['PATH']}")
    part = tmp_path / "part"
    part.mkdir(mode=0o755)
    source = Maven(group="com.example", artifact="server", version="1", sha256="", places={}, packaging="zip")
    assert source._get(part, Quiet()).read_text().strip() == str(pwd.getpwnam("nobody").pw_uid)
    assert [path.name for path in part.iterdir()] == ["server-1.zip"]
    (tmp_path / "link").touch()
    with pytest.raises(HostError, match=r"mvn left no server-1\.zip"):
        source._get(part, Quiet())
