"""Nodes of a cluster: their options, what a build or a host lacks, and what a node says of itself."""

from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.probe.cluster import ClusterSource
from dbdyno.servers.contract import ClusterTerms, Membership, NodeStatus, ServerError
from dbdyno.servers.mysql import galera
from dbdyno.servers.mysql.galera import cluster_mistake, cluster_options, node_status, provider_options
from tests.unit.servers.test_servers import INSTALLATION, MYSQL

TERMS = ClusterTerms(3, {"gcs.fc_limit": 40})
STATUS = {
    "replicated": "120",
    "last_committed": "123",
    "local_cert_failures": "2",
    "flow_control_paused_ns": "2500000000",
    "local_recv_queue": "7",
    "evs_repl_latency": "0.01/0.02/0.5/0.001/200",
}


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A server's tree with the library in it, on a host that has none."""
    monkeypatch.setattr(galera, "_HOST", tmp_path / "host")
    folder = tmp_path / "tree/lib/galera-4"
    folder.mkdir(parents=True)
    (folder / galera.LIBRARY).touch()
    return replace(INSTALLATION, basedir=tmp_path / "tree")


def options_of(tree, **fields):
    options = cluster_options(tree, Membership(TERMS, 2, "127.0.51.2", 4001, "name", **fields))
    return dict(option.removeprefix("--").partition("=")[::2] for option in options)


def test_the_first_node_begins_a_cluster_and_others_join_it_without_any_transfer(tree):
    first, other = options_of(tree), options_of(tree, peer="127.0.51.1:4000")
    assert "wsrep-new-cluster" in first.keys() - other.keys()
    assert first["wsrep-cluster-address"] == "gcomm://"
    assert other["wsrep-cluster-address"] == "gcomm://127.0.51.1:4000"
    assert Path(other["wsrep-provider"]) == tree.basedir / "lib/galera-4/libgalera_smm.so"
    assert other["wsrep-sst-method"] == "none"
    assert (other["binlog-format"], other["innodb-autoinc-lock-mode"]) == ("ROW", "2")
    provider = provider_options(other["wsrep-provider-options"])
    assert provider["gmcast.listen_addr"] == "tcp://127.0.51.2:4001"
    assert provider["gcs.fc_limit"] == "40"


def test_what_a_build_or_a_host_lacks_is_said_with_the_remedy(tree, monkeypatch):
    assert cluster_mistake(tree) == ""
    assert "MySQL 9.7.4 has no Galera 4" in cluster_mistake(MYSQL)
    assert "MariaDB 10.3.39 has no Galera 4" in cluster_mistake(replace(tree, version="10.3.39-MariaDB"))
    (tree.basedir / "lib/galera-4/libgalera_smm.so").unlink()
    assert "nor this host has libgalera_smm.so; apt-get install galera-4" in cluster_mistake(tree)
    monkeypatch.setattr(galera, "library_of", lambda _: Path("/usr/lib/galera/libgalera_smm.so"))
    said = b"/usr/lib/galera/libgalera_smm.so: /t/libc.so.6: version `GLIBC_2.34' not found (required by it)\n"
    monkeypatch.setattr(galera, "answer", lambda *_: said)
    foreign = replace(tree, runner=("/t/lib/ld-linux-x86-64.so.2", "--library-path", "/t"))
    assert "does not fit MariaDB 11.4.2 (mariadb): " in cluster_mistake(foreign)
    assert "version `GLIBC_2.34' not found" in cluster_mistake(foreign)


def test_a_node_s_status_in_numbers_and_latency_as_a_sum():
    assert node_status(STATUS) == NodeStatus(120.0, 123.0, 2.0, 2.5, 7.0, 200.0, 4.0)
    for broken in ({**STATUS, "evs_repl_latency": ""}, {name: STATUS[name] for name in list(STATUS)[1:]}):
        with pytest.raises(ServerError, match="is not that of Galera 4"):
            node_status(broken)


class PlayedCluster:
    """Three nodes, of which the second is behind."""

    def reader(self):
        return self

    def statuses(self):
        first = node_status(STATUS)
        return [first, replace(first, applied=100.0, queue=20.0), replace(first, failed=1.0)]

    def close(self):
        pass


def test_samples_are_of_the_first_node_but_for_who_is_furthest_behind():
    source = ClusterSource(PlayedCluster())
    sample = source.sample()
    assert (sample["sent_done"], sample["not_applied"], sample["receive_queue"]) == (120.0, 23.0, 20.0)
    assert sample["failed_done"] == 5.0
    assert source.interval({**sample, "sent_done": 60.0}, sample, 0.5)["sent/s"] == 120.0
