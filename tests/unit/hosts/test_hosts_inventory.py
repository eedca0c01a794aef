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
address = "10.0.0.1"

[host.db1]
ssh = "root@db1.lab"
address = "10.0.0.11"
roles = ["server"]

[host.c1]
ssh = "c1"
roles = ["client", "server"]
python = "/opt/python3.11/bin/python3"
folder = "/srv/dbdyno"
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
    assert found.cluster.address == "10.0.0.1"
    assert found.hosts["db1"].ssh == "root@db1.lab"
    assert found.hosts["c1"].roles == ["client", "server"]
    assert found.hosts["db1"].folder is None


def test_the_documented_one_is_read(read, tmp_path):
    (tmp_path / "lab_ssh_config").touch()
    example = next(one for one in blocks(ROOT / "docs/hosts.md") if one.language == "toml")
    assert {role for host in read(example.text).hosts.values() for role in host.roles} == {"server", "client"}


def test_that_of_the_tutorial_is_read(read):
    shown = [one for one in blocks(ROOT / "docs/tutorials/two-machines.md") if "\n[host." in one.text]
    assert [list(read(one.text).hosts) for one in shown] == [["db1", "c1"]]


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
    ('"root@db1.lab"', '"root@db1.lab"\nboot = "reboot"', 9, 'must be "grub", "kexec", or the path of a program'),
    ('"root@db1.lab"', '"root@db1.lab"\nboot = "./boot-it"', 9, "boot-it"),
    ('"root@db1.lab"', '"root@db1.lab"\nboot_within = "1d"', 9, "host.db1.boot_within: "),
    ('"root@db1.lab"', '"-oProxyCommand=x"', 8, "host.db1.ssh: is"),
    ('"root@db1.lab"', '"root@-oProxyCommand"', 8, "host.db1.ssh: is"),
    ('"root@db1.lab"', '"-l@db1"', 8, "host.db1.ssh: is"),
    ('"root@db1.lab"', '"$(id)@db1"', 8, "host.db1.ssh: is"),
    ('"root@db1.lab"', '"db1 rm"', 8, "must be a target of ssh, such as root@db1.lab"),
    ('ssh = "root@db1.lab"\n', 'shh = "db1"\n', 8, "host.db1.shh: is unknown here"),
    ('ssh = "root@db1.lab"\n', "", 7, "host.db1.ssh: is missing"),
    ('roles = ["server"]', 'roles = ["sever"]', 10, 'allowed are server, client. Did you mean "server"?'),
    ('roles = ["server"]', "roles = []", 10, "host.db1.roles: "),
    ('roles = ["server"]\n', "", 7, "host.db1.roles: is missing"),
    ('["client", "server"]', '["client", "client"]', 14, "host.c1.roles: names a role twice"),
    ('"/srv/dbdyno"', '"srv"', 16, "must be a path from the root, such as /srv/dbdyno"),
    ('"/opt/python3.11/bin/python3"', '"python3 -c x"', 15, "must be a program or its path"),
    ('"/opt/python3.11/bin/python3"', '"-c"', 15, "must be a program or its path"),
    ("[host.db1]", "[host.db_1]", 7, "must have at most 40 letters, digits and hyphens"),
    ("[host.db1]", '[host."-db1"]', 7, "must have at most 40 letters, digits and hyphens"),
    ('ssh = "c1"', 'ssh = "root@db1.lab"', 13, 'host.c1.ssh: is "root@db1.lab", as of db1'),
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


def test_a_file_that_names_no_host(read):
    with pytest.raises(UserError, match=r"hosts.toml: host: names no host"):
        read("version = 1\n")


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
        UserError, match=rf"^{path}: it decides which programs run here and on every host, but {path} can be written by"
    ):
        read(named)
    path.chmod(0o644)
    os.chown(path, 65534, 65534)
    with pytest.raises(
        UserError, match=rf"^{path}: it decides .*, but {path} belongs to another user \(uid 65534\); have it"
    ):
        read(named)
