"""``[hosts.boot] kernel``: a factor that changes between whole plots only, and every mistake in it."""

from functools import partial

import pytest

from dbdyno.errors import UserError
from dbdyno.plan.plan import BOOT_SECONDS, make_plan

STUDY = """\
version = 1
[study]
title = "kernels"
[hosts]
under_test = ["db1", "db2"]
[hosts.boot]
kernel = ["6.1.0-28-amd64", "6.12.9-amd64"]
[stack]
device = "hdd-7200"
size = "1GiB"
filesystem = "ext4"
scheduler = ["mq-deadline", "bfq"]
[workload]
kind = "slap"
load = "write"
clients = 4
duration = "1s"
[design]
blocks = 8
seed = 1
"""


@pytest.fixture
def loaded(load):
    return partial(load, text=STUDY)


def test_kernels_are_whole_plots_and_part_of_what_is_measured(loaded):
    made = make_plan(loaded())
    assert [(one.name, one.section, one.hard_to_change) for one in made.design.factors] == [
        ("kernel", "hosts.boot", True),
        ("scheduler", "stack", False),
    ]
    assert [spec.booted_kernel for spec in made.specs.values()] == ["6.1.0-28-amd64"] * 2 + ["6.12.9-amd64"] * 2
    for host in ("db1", "db2"):
        kernels = [made.specs[slot.treatment].booted_kernel for slot in made.on_host(host).slots(1, 1)]
        assert len({*kernels[:2]}) == len({*kernels[2:]}) == 1
    other = make_plan(loaded(("6.12.9", "6.12.10")))
    assert made.study_sha256() != other.study_sha256()
    assert made.study.raw["hosts"] == {"boot": {"kernel": ["6.1.0-28-amd64", "6.12.9-amd64"]}}


def test_the_plan_says_how_often_hosts_are_started_anew_and_counts_their_time(loaded):
    made = make_plan(loaded())
    starts = made.reboots(8)
    for host, count in starts.items():
        its = made.on_host(host)
        order = [made.specs[slot.treatment].booted_kernel for n in range(1, 5) for slot in its.slots(n, 1)]
        changes = sum(order[at] != order[at - 1] for at in range(1, len(order)))
        assert count == changes + 2
        assert 4 <= changes <= 7
    one = make_plan(loaded(('kernel = ["6.1.0-28-amd64", "6.12.9-amd64"]', 'kernel = "6.1.0-28-amd64"')))
    assert one.reboots(8) == {"db1": 2, "db2": 2}
    assert [factor.name for factor in one.design.factors] == ["scheduler"]
    assert one.seconds(8) - 2 * BOOT_SECONDS == pytest.approx(
        (made.seconds(8) - BOOT_SECONDS * max(starts.values())) / 2
    )
    without = make_plan(loaded(('[hosts.boot]\nkernel = ["6.1.0-28-amd64", "6.12.9-amd64"]\n', "")))
    assert (without.reboots(8), without.kernels()) == ({}, [])


def test_a_kernel_alone_may_vary(loaded):
    made = make_plan(loaded(('["mq-deadline", "bfq"]', '"bfq"')))
    assert [one.label for one in made.design.treatments] == ["kernel 6.1.0-28-amd64", "kernel 6.12.9-amd64"]


def test_a_named_level_may_give_a_kernel(loaded):
    changes = (
        ('[hosts.boot]\nkernel = ["6.1.0-28-amd64", "6.12.9-amd64"]\n', ""),
        (
            "[design]",
            '[levels.old.hosts.boot]\nkernel = "6.1.0-28-amd64"\n[levels.new.hosts.boot]\nkernel = "6.12.9"\n[design]',
        ),
    )
    made = make_plan(loaded(*changes))
    assert made.kernels() == ["6.1.0-28-amd64", "6.12.9"]
    assert [one.name for one in made.design.factors if one.hard_to_change] == ["configuration"]
    half = (
        changes[0],
        ("[design]", '[levels.old.hosts.boot]\nkernel = "6.1"\n[levels.new.queue]\nnr_requests = 64\n[design]'),
    )
    with pytest.raises(UserError, match=r"levels\.old\.hosts\.boot\.kernel: is given in some treatments only"):
        loaded(*half)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ('"6.12.9-amd64"]', '"6.12; reboot"]'),
            'hosts.boot.kernel: is "6.12; reboot", which must be a version as uname -r says it',
        ),
        (('"6.12.9-amd64"]', '"-x"]'), 'hosts.boot.kernel: is "-x", which must be a version'),
        (('"6.12.9-amd64"]', "6.12]"), "hosts.boot.kernel"),
        (('"6.12.9-amd64"]', '"6.1.0-28-amd64"]'), "gives the level '6.1.0-28-amd64' twice"),
        (("kernel = [", "kernels = ["), "hosts.boot.kernels: is unknown here"),
        (("[hosts]\nunder_test", "[hosts]\n#"), "hosts.under_test: is missing"),
        (("seed = 1", 'settle = "trial"'), 'design.settle: can\'t be "trial" where treatments differ by kernel'),
    ],
)
def test_mistakes_are_named_with_their_place(loaded, change, said):
    with pytest.raises(UserError) as error:
        loaded(change)
    assert said in str(error.value)
