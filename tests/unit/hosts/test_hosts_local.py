"""``Hosts`` on this machine alone; ``tests/host/test_hosts.py`` asks the same of Ray."""

import contextlib

from dbdyno.hosts.local import LocalHosts
from tests.unit.hosts.contract import keeps_the_contract


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
