"""What a trial's file holds of results: tables are those that are known, figures are anyone's."""

import pytest

from dbdyno.store.documents import value_of
from dbdyno.store.records import Trial

TRIAL = {"id": "b1", "block": 1, "attempt": 1, "position": 1, "treatment": "t", "started_at": "", "metrics": {}}


def test_what_another_program_or_version_says_is_kept():
    load = {"kind": "fio", "version": "fio-3.33", "directions": {"read": 1}, "latency_ns": {"p50": 5, "p12345": None}}
    assert value_of(Trial, {**TRIAL, "load": load}).load == load
    assert value_of(Trial, TRIAL).load == {}


@pytest.mark.parametrize(
    ("part", "value", "said"),
    [
        ("load", {"latency_ns": 5}, "load.latency_ns is not a table"),
        ("load", {"client_hosts": [{"host": "c1"}, "c2"]}, r"load.client_hosts\[1\] is not a table"),
        ("load", {"operations": {"select": {"p99": "slow"}}}, "load.operations.select.p99 is not a number"),
        ("device", {"disks": {"lateness_ns": {}}}, "device.disks is not a list"),
        ("disturbance", {"beyond": "stolen"}, "disturbance.beyond is not a list"),
    ],
)
def test_a_table_of_another_shape_is_named(part, value, said):
    with pytest.raises(ValueError, match=said):
        value_of(Trial, {**TRIAL, part: value})
