"""Files of hosts: what is read, and that every mistake has its line."""

import os
import re

import pytest

from dbdyno.errors import UserError
from dbdyno.hosts.inventory import read_inventory
from tests.documents import ROOT, blocks

GOOD = """\
version = 1

[cluster]
name = "lab"
first_port = 30000
object_store = "1GiB"

[host.db1]
ssh = "root@db1.lab"
address = "10.0.0.11"
roles = ["server"]

[host.c1]
ssh = "c1"
roles = ["client", "server"]
python = "/opt/python3.11/bin/python3"
folder = "/srv/dbdyno"
ray_folder = "/mnt/fast"
"""


@pytest.fixture
def read(tmp_path):
    def given(text):
        path = tmp_path / "hosts.toml"
        path.write_text(text, encoding="utf-8")
        return read_inventory(path)

    return given


def test_what_it_says(read):
    found = read(GOOD)
    assert list(found.hosts) == ["db1", "c1"]
    assert (found.cluster.first_port, found.cluster.object_store) == (30000, 1024**3)
    assert found.hosts["db1"].ssh == "root@db1.lab"
    assert found.hosts["c1"].roles == ["client", "server"]
    assert found.hosts["db1"].ray_folder == "/dev/shm"


def test_the_documented_one_is_read(read, tmp_path):
    (tmp_path / "lab_ssh_config").touch()
    example = next(one for one in blocks(ROOT / "docs/hosts.md") if one.language == "toml")
    assert {role for host in read(example.text).hosts.values() for role in host.roles} == {"server", "client"}


@pytest.mark.parametrize(("page", "names"), [("two-machines", ["db1", "c1"]), ("existing-ray-cluster", ["w1", "w2"])])
def test_those_of_the_tutorials_are_read(read, page, names):
    shown = [one for one in blocks(ROOT / f"docs/tutorials/{page}.md") if "\n[host." in one.text]
    assert [list(read(one.text).hosts) for one in shown] == [names]


def test_a_configuration_of_ssh_is_found_beside_it(read, tmp_path):
    named = GOOD.replace('name = "lab"', 'ssh_config = "lab.conf"')
    with pytest.raises(UserError, match=rf":4: cluster.ssh_config: is .*; there is no file {tmp_path}/lab.conf"):
        read(named)
    (tmp_path / "lab.conf").touch()
    found = read(named)
    assert found.ssh_config == tmp_path / "lab.conf"
    assert read(GOOD).ssh_config is None


MISTAKES = [
    ("version = 1", "version = 2", 1, "version: is 2; this dbdyno reads version = 1"),
    ("[cluster]", "[clutser]", 3, "clutser: is unknown here; known are version, cluster, host. Did you"),
    ("first_port = 30000", "first_port = 80", 5, "cluster.first_port: is 80; it must be at least 1024"),
    ("first_port = 30000", "first_port = 65400", 5, "it must be at most 65335"),
    ('"1GiB"', '"1MiB"', 6, 'cluster.object_store: is "1MiB"; it must be at least 76.29 MiB'),
    ('"1GiB"', '"1 potato"', 6, 'cluster.object_store: is "1 potato", which has the unknown unit'),
    ('"root@db1.lab"', '"-oProxyCommand=x"', 9, "host.db1.ssh: is"),
    ('"root@db1.lab"', '"db1 rm"', 9, "must be a machine as ssh takes it, such as root@db1.lab"),
    ('ssh = "root@db1.lab"\n', 'shh = "db1"\n', 9, "host.db1.shh: is unknown here"),
    ('roles = ["server"]', 'roles = ["sever"]', 11, 'allowed are server, client. Did you mean "server"?'),
    ('roles = ["server"]', "roles = []", 11, "host.db1.roles: "),
    ('roles = ["server"]\n', "", 8, "host.db1.roles: is missing"),
    ('["client", "server"]', '["client", "client"]', 15, "host.c1.roles: names a role twice"),
    ('"/srv/dbdyno"', '"srv"', 17, "must be a path from the root, such as /srv/dbdyno"),
    ('"/mnt/fast"', '"/mnt/a/very/long/one"', 18, "must be a path of at most 18 characters"),
    ("[host.db1]", "[host.db_1]", 8, "must be called by letters, digits and hyphens, at most 40"),
    ('ssh = "c1"', 'ssh = "root@db1.lab"', 14, 'host.c1.ssh: is "root@db1.lab", as of db1'),
]  # fmt: skip


@pytest.mark.parametrize("row", MISTAKES, ids=[row[1] or row[0] for row in MISTAKES])
def test_every_mistake_has_its_line(read, tmp_path, row):
    right, wrong, line, said = row
    assert right in GOOD
    with pytest.raises(UserError) as raised:
        read(GOOD.replace(right, wrong, 1))
    assert re.search(
        rf"^{re.escape(str(tmp_path))}/hosts.toml:{line}: .*{re.escape(said)}", str(raised.value), re.MULTILINE
    )


def test_no_host_and_a_host_that_nobody_can_find(read):
    with pytest.raises(UserError, match=r"hosts.toml: host: names no host"):
        read("version = 1\n")
    with pytest.raises(UserError, match=r"hosts.toml:2: host.a.ssh: is missing; give whom ssh is to reach, or address"):
        read('version = 1\n[host.a]\nroles = ["client"]\n')
    assert read('version = 1\n[host.a]\naddress = "10.0.0.2"\nroles = ["client"]\n').hosts["a"].ssh is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_another_user_could_change_is_not_taken_for_ones_own(read, tmp_path):
    path, config = tmp_path / "hosts.toml", tmp_path / "lab.conf"
    named = GOOD.replace('name = "lab"', 'ssh_config = "lab.conf"')
    config.touch(mode=0o644)
    read(named)
    config.chmod(0o646)
    with pytest.raises(UserError, match=rf":4: cluster.ssh_config: is .*; {config} can be written by others; chmod"):
        read(named)
    config.chmod(0o644)
    os.chown(config, 65534, 0)
    with pytest.raises(
        UserError, match=rf":4: cluster.ssh_config: is .*; {config} belongs to another user \(uid 65534\)"
    ):
        read(named)
    config.unlink()
    config.symlink_to("/etc/passwd")
    read(named)
    path.chmod(0o666)
    with pytest.raises(
        UserError, match=rf"^{path}: says what runs here and on every host, but {path} can be written by"
    ):
        read(named)
    path.chmod(0o644)
    os.chown(path, 65534, 65534)
    with pytest.raises(
        UserError, match=rf"^{path}: says .*, but {path} belongs to another user \(uid 65534\); have it"
    ):
        read(named)
