"""What connecting says before it reaches for any host."""

import pytest

from dbdyno.errors import UserError
from dbdyno.hosts.connect import connected

FILE = 'version = 1\n[host.a]\nssh = "nobody@127.0.0.1"\nroles = ["client"]\n'


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("DBDYNO_STATE_DIR", str(tmp_path / "state"))
    made = tmp_path / "hosts.toml"
    made.write_text(FILE)
    return made


def refused(file):
    with pytest.raises(UserError) as error, connected(file):
        pass
    return str(error.value)


def test_hosts_that_are_not_up_are_brought_up_by_name(file):
    assert refused(file) == f"{file}: its hosts are not up; run dbdyno hosts up {file}"


def test_a_mistake_in_the_file_has_its_line(file):
    file.write_text(FILE.replace("client", "clint"))
    assert refused(file).startswith(f"{file}:4: host.a.roles")
