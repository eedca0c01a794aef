"""What a plan says beforehand of claims that its hosts can't bear."""

import pytest

from dbdyno.model.design import Comparison, Design, Fleet
from dbdyno.model.treatment import Treatment
from dbdyno.plan.hosts import hosts_warnings

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
        (3, ("hdd", "ssd", "nvme"), 40, "each level of drive has one host"),
        (3, ("ssd", "ssd", "ssd"), 40, "all hosts have the same level of drive"),
        (7, ("hdd",) * 3 + ("ssd",) * 4, 40, "4 of each at least; fewer: hdd (3)"),
        (8, ("hdd", "ssd") * 4, 40, ""),
    ],
)
def test_what_so_few_hosts_can_not_show_is_said_beforehand(hosts, levels, blocks, warned):
    found = warnings(hosts, levels, blocks)
    assert len(found) == bool(warned)
    assert warned in "".join(found)
