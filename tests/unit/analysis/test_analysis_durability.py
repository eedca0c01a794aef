"""Whether commits are durable, by the settings that trials read back."""

from dataclasses import replace

import pytest

from dbdyno.mysql.durability import CommitRisk, Durability, added_risks, durability
from tests.unit.report.conftest import build

SAFE = {
    "device": {"kind": "real"},
    "filesystem": {"flushes_on_fsync": True},
    "server": {"innodb_flush_log_at_trx_commit": "1", "log_bin": "OFF", "sync_binlog": "0"},
    "tables": {"engine": "InnoDB"},
}


def found(**layers):
    observed = {name: {**SAFE.get(name, {}), **layers.get(name, {})} for name in {**SAFE, **layers}}
    trial = build(1, void_block=0).trials[0]
    trial.observed.clear()
    trial.observed.update(observed)
    return durability([trial.observed])


def test_a_server_that_syncs_at_each_commit_is_durable():
    assert found() == Durability(durable=True)
    assert found(server={"innodb_flush_log_at_trx_commit": "3"}).durable
    assert found(server={"log_bin": "ON", "sync_binlog": "1"}).durable


@pytest.mark.parametrize(
    ("layers", "lacking"),
    [
        ({"server": {"innodb_flush_log_at_trx_commit": "2"}}, CommitRisk("redo log", "2")),
        ({"server": {"innodb_flush_log_at_trx_commit": "0"}}, CommitRisk("redo log", "0")),
        ({"server": {"log_bin": "ON"}}, CommitRisk("binary log", "0")),
        ({"server": {"innodb_flush_method": "nosync"}}, CommitRisk("flush method", "nosync")),
        ({"tables": {"engine": "MyISAM"}}, CommitRisk("engine", "MyISAM")),
        ({"device": {"kind": "memory"}}, CommitRisk("memory", "")),
        ({"filesystem": {"flushes_on_fsync": False}}, CommitRisk("no flush", "")),
        ({"device": {"kind": "emulated", "flush_ignored": True}}, CommitRisk("drive", "")),
    ],
)
def test_one_setting_is_enough_to_lose_a_commit(layers, lacking):
    assert found(**layers) == Durability(durable=False, lacking=(lacking,))


def test_a_device_without_a_cache_to_lose_needs_no_flush():
    assert found(filesystem={"flushes_on_fsync": False}, queue={"write_cache": "write through"}).durable


def test_what_was_not_read_back_is_unknown_and_no_server_has_no_commits():
    trial = build(1, void_block=0).trials[0]
    trial.observed.clear()
    assert durability([trial.observed]) is None
    trial.observed["server"] = {"version": "10.11.14-MariaDB"}
    assert durability([trial.observed]) == Durability(durable=None)
    trial.observed["server"] |= {"innodb_flush_log_at_trx_commit": "1", "default_storage_engine": "RocksDB"}
    assert durability([trial.observed]).durable is None


@pytest.mark.parametrize(
    ("gap", "one", "other", "worse"),
    [
        ("redo log", "2", "0", False),
        ("redo log", "0", "2", True),
        ("binary log", "0", "1000", True),
        ("binary log", "1000", "100", True),
        ("binary log", "100", "0", False),
        ("flush method", "nosync", "littlesync", True),
        ("engine", "MyISAM", "MEMORY", True),  # not known which is worse: said either way
        ("engine", "MEMORY", "MyISAM", True),
        ("engine", "MyISAM", "MyISAM", False),
    ],
)
def test_by_how_much_a_setting_loses(gap, one, other, worse):
    first, second = (Durability(durable=False, lacking=(CommitRisk(gap, value),)) for value in (one, other))
    assert bool(added_risks(first, second)) == worse
    assert added_risks(first, Durability(durable=True)) == first.lacking
    assert not added_risks(Durability(durable=True), second)


def test_pages_half_written_are_no_danger_where_none_is_overwritten():
    trial = replace(
        build(1, void_block=0).trials[0],
        observed={"server": {"innodb_doublewrite": "OFF", "innodb_flush_log_at_trx_commit": "1"}, "filesystem": {}},
    )
    trial.observed["server"]["default_storage_engine"] = "InnoDB"
    assert durability([trial.observed]).lacking == (CommitRisk("doublewrite", "OFF"),)
    trial.observed["filesystem"]["kind"] = "zfs"
    assert durability([trial.observed]).durable


MYISAM = {"tables": {"engine": "MyISAM"}}


def test_dirty_limits_of_the_host_risk_only_what_is_not_synced():
    limits = {"dirty_bytes": "16777216", "swappiness": "1"}
    assert found(host_settings=limits) == Durability(durable=True)
    kept = CommitRisk("writeback", "dirty_bytes = 16777216")
    assert found(host_settings=limits, **MYISAM).lacking == (CommitRisk("engine", "MyISAM"), kept)
    assert durability([{"host_settings": limits}]) == Durability(durable=False, lacking=(kept,))
    assert durability([{"host_settings": {"swappiness": "1"}}]) is None


@pytest.mark.parametrize(
    ("first", "other", "worse"),
    [
        ({"dirty_bytes": "1073741824"}, {"dirty_bytes": "16777216"}, True),
        ({"dirty_bytes": "16777216"}, {"dirty_bytes": "1073741824"}, False),
        ({"dirty_writeback_centisecs": "0"}, {"dirty_writeback_centisecs": "500"}, True),
        ({"dirty_writeback_centisecs": "500"}, {"dirty_writeback_centisecs": "0"}, False),
        ({"dirty_bytes": "16777216"}, {"dirty_ratio": "20"}, True),
    ],
)
def test_more_or_longer_in_memory_is_the_added_risk(first, other, worse):
    of_first, of_other = (durability([{"host_settings": settings}]) for settings in (first, other))
    assert bool(added_risks(of_first, of_other)) == worse
