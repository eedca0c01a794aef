"""What a plan says of sizes: pools that can make no difference, and what the memory of this host can't hold."""

import psutil
import pytest

from dbdyno.plan.plan import make_plan, pools_warning
from dbdyno.run.preflight import _sets_of
from dbdyno.servers.sources.installation import find_server
from dbdyno.stack import short_start
from dbdyno.stack.capabilities import room_for_content
from dbdyno.study.load import load_study

STUDY = """\
version = 1
[study]
title = "pools"
[stack]
device = {device}
size = "2GiB"
filesystem = "ext4"
[server.settings]
innodb_buffer_pool_size = {pools}
[workload]
kind = "oltp"
tables = 1
table_size = {rows}
duration = "5s"
[design]
blocks = 8
"""


@pytest.fixture
def plan(tmp_path):
    def make(pools='["64M", "1G"]', rows=10_000, device='"ssd-sata"'):
        (tmp_path / "study.toml").write_text(STUDY.format(pools=pools, rows=rows, device=device))
        return make_plan(load_study(tmp_path / "study.toml"), seed=1)

    return make


def specs(plan):
    return list(plan.specs.values())


def test_pools_that_all_hold_the_data_are_warned_of(plan):
    assert pools_warning(specs(plan())).startswith("the data (about 1.793 MiB of rows) fit into each buffer pool")


def test_pools_are_not_warned_of_where_one_is_too_small_or_there_is_one_only(plan):
    assert pools_warning(specs(plan(rows=1_000_000))) == ""
    assert pools_warning(specs(plan(pools='"64M"'))) == ""
    assert pools_warning(specs(plan(pools='["64M", "much"]'))) == ""


def test_data_that_memory_can_t_hold_are_refused():
    free = psutil.virtual_memory().available
    assert room_for_content(1024**2).ok
    refused = room_for_content(free)
    assert not refused.ok
    assert refused.remedy == 'make the data smaller, or give device = "here" or a real disk'


@pytest.mark.parametrize(
    ("device", "pool", "said"),
    [
        (
            '["ssd-sata", "file:/tmp"]',
            "64M",
            ("refused", "is more than half of the memory of this host (100 MiB), and the disk in"),
        ),
        (
            '["file:/tmp", "ssd-sata"]',
            "64M",
            ("refused", "is more than half of the memory of this host (100 MiB), and the disk in"),
        ),
        ('"file:/tmp"', "64M", ("not tried", "is more than half of the memory of this host (100 MiB)")),
        ('"file:/tmp"', "95M", ("refused", "is more than 90 % of the memory of this host (100 MiB)")),
    ],
)
def test_half_of_the_memory_is_for_disks_in_memory(plan, monkeypatch, device, pool, said):
    monkeypatch.setattr(short_start, "memory_facts", lambda: {"bytes": 100 * 1024**2})
    (found,) = _sets_of(plan(f'"{pool}"', device=device))
    (outcome,) = short_start._oversize_outcomes(find_server("mariadb"), found.request, dict(found.request.settings))
    assert (outcome.name, outcome.how) == ("innodb_buffer_pool_size", said[0])
    assert outcome.said.startswith(said[1])
