"""A source and its replica: their options, what of the data is copied, and positions as bytes."""

import math
from dataclasses import replace

import pytest

from dbdyno.probe.replica import ReplicaSource
from dbdyno.servers.contract import ReplicaPosition, ReplicaTerms, Replicating
from dbdyno.servers.mysql.replication import is_copied, replication_mistake, replication_options
from tests.unit.servers.test_servers import INSTALLATION, MYSQL

SEMISYNC = ReplicaTerms("semisync", "after_commit", 2.5)
ASYNC = ReplicaTerms("async")


def test_a_source_and_a_replica_differ_in_id_and_a_replica_waits_to_be_told():
    assert replication_options(INSTALLATION, Replicating("source", ASYNC)) == ["--server-id=1"]
    options = replication_options(INSTALLATION, Replicating("replica", ASYNC))
    assert options == ["--server-id=2", "--relay-log=relay-bin", "--read-only=ON", "--skip-slave-start"]


def test_each_product_has_its_own_words_for_commits_that_wait():
    assert replication_options(INSTALLATION, Replicating("source", SEMISYNC))[1:] == [
        "--rpl-semi-sync-master-enabled=ON",
        "--rpl-semi-sync-master-wait-point=AFTER_COMMIT",
        "--rpl-semi-sync-master-timeout=2500",
    ]
    assert replication_options(MYSQL, Replicating("replica", SEMISYNC))[3:] == [
        "--skip-replica-start=ON",
        "--plugin-load-add=semisync_replica.so",
        "--rpl-semi-sync-replica-enabled=ON",
    ]


@pytest.mark.parametrize(
    ("installation", "mode", "said"),
    [
        (INSTALLATION, "semisync", ""),
        (replace(INSTALLATION, version="10.4.3-MariaDB"), "async", "MariaDB 10.4.3 is too old for it: dbdyno"),
        (
            replace(MYSQL, version="5.7.44"),
            "async",
            "MySQL 5.7.44 is too old for it: dbdyno replicates MariaDB since 10",
        ),
        (replace(MYSQL, version="8.0.36"), "async", ""),
        (replace(MYSQL, version="8.0.36"), "semisync", "comes without semisync_source.so and semisync_replica.so"),
    ],
)
def test_what_a_build_lacks_is_said(installation, mode, said):
    mistake = replication_mistake(installation, mode)
    assert said in mistake if said else not mistake


def test_a_replica_has_no_log_and_no_name_of_its_source():
    kept = ["ibdata1", "ib_logfile0", "dbdyno_slap", "mysql", "aria_log_control", "#innodb_redo"]
    left = ["binlog.000001", "binlog.index", "auto.cnf", "relay-bin.000002", "master.info"]
    assert [name for name in [*kept, *left] if is_copied(name)] == kept


class PlayedReplication:
    """Positions of a source that writes and a replica that follows it, as they are given."""

    def reader(self):
        return self

    def position(self):
        return ReplicaPosition(100.0, 90.0, 80.0, math.nan)

    def close(self):
        pass


def test_lag_is_the_age_of_what_was_applied_last():
    source = ReplicaSource(PlayedReplication())
    second = 1_000_000_000
    assert math.isnan(source.lag_ms(0, 1000.0, 400.0)), "that was written before anybody looked"
    assert source.lag_ms(second, 2000.0, 1000.0) == 1000.0
    assert source.lag_ms(2 * second, 3000.0, 1500.0) == 1500.0, "half way between two samples"
    assert source.lag_ms(3 * second, 3000.0, 2000.0) == 2000.0
    assert source.lag_ms(4 * second, 3000.0, 3000.0) == 0.0


def test_a_replica_that_has_all_is_not_behind_however_long_nothing_is_written():
    source = ReplicaSource(PlayedReplication())
    for at_ns in (0, 10**9, 5 * 10**9):
        assert source.lag_ms(at_ns, 1000.0, 1000.0) == 0.0
    assert source.lag_ms(6 * 10**9, 1100.0, 1000.0) <= 1000.0, "what it lacks was written since the last look"


def test_intervals_have_rates_and_what_is_still_to_come():
    source = ReplicaSource(PlayedReplication())
    before = {"written_bytes": 0.0, "received_bytes": 0.0, "applied_bytes": 0.0, "lag_ms": 0.0, "seconds_behind": 0.0}
    after = {**before, "written_bytes": 2e6, "received_bytes": 1.5e6, "applied_bytes": 1e6, "lag_ms": 40.0}
    assert source.interval(before, after, 0.5) == {
        "written_MB/s": 4.0,
        "applied_MB/s": 2.0,
        "not_received_bytes": 0.5e6,
        "not_applied_bytes": 1e6,
        "lag_ms": 40.0,
        "seconds_behind": 0.0,
    }
