"""What a plan says beforehand of claims that its hosts can't bear."""

import pytest

from dbdyno.cli.plan import order_lines
from dbdyno.model.design import Comparison, Design, Fleet, Treatment
from dbdyno.plan.plan import hosts_warnings, make_plan
from dbdyno.study.load import load_study

TREATMENTS = [Treatment("t1", {"scheduler": "none"}), Treatment("t2", {"scheduler": "bfq"})]


def warnings(hosts, levels=None, blocks=40):
    names = [f"db{number}" for number in range(1, hosts + 1)]
    drives = {"drive": dict(zip(names, levels, strict=True))} if levels else {}
    compared, fleet = [Comparison("t1", "t2")], Fleet(names, drives)
    return list(hosts_warnings(Design(TREATMENTS, "t1", compared, blocks, 0.03, "iops", 1, fleet=fleet)))


@pytest.mark.parametrize(
    ("hosts", "levels", "blocks", "warned"),
    [
        (1, None, 40, ""),
        (2, None, 40, "2 hosts can show what holds on them, not on hosts like them; name at least 3"),
        (3, None, 40, ""),
        (6, None, 5, "5 blocks leave hosts without any"),
        (3, ("hdd", "ssd", "nvme"), 40, "each level of drive has only one host"),
        (3, ("ssd", "ssd", "ssd"), 40, "all hosts have the same level of drive"),
        (7, ("hdd",) * 3 + ("ssd",) * 4, 40, "4 of each at least; fewer: hdd (3)"),
        (8, ("hdd", "ssd") * 4, 40, ""),
    ],
)
def test_what_so_few_hosts_can_not_show_is_said_beforehand(hosts, levels, blocks, warned):
    found = warnings(hosts, levels, blocks)
    assert len(found) == bool(warned)
    assert warned in "".join(found)


STUDY = """\
version = 1
[study]
title = "on two hosts"
[hosts]
under_test = ["db1", "db2"]
[stack]
device = "here"
[server.settings]
innodb_flush_log_at_trx_commit = [1, 2]
[workload]
kind = "oltp"
clients = 4
duration = "1s"
{more}
[design]
blocks = 6
"""


@pytest.mark.parametrize(("more", "at_once", "how"), [("", 2, "at once"), ('clients_from = ["c1"]', 1, "in turn")])
def test_hosts_that_are_loaded_by_the_same_clients_take_turns(tmp_path, more, at_once, how):
    path = tmp_path / "study.toml"
    path.write_text(STUDY.format(more=more))
    made = make_plan(load_study(path))
    assert made.blocks_at_once == at_once
    assert made.seconds(6) * at_once == 6 * made.seconds(1)
    assert f"blocks run on db1, db2 {how}" in "\n".join(order_lines(made))
