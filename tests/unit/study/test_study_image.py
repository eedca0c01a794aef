"""A machine of the user's own, in a study: what it needs, and what its own system decides."""

import pytest

from dbdyno.errors import UserError
from dbdyno.plan.plan import make_plan
from dbdyno.study.load import load_study
from tests.unit.study.conftest import refusal

STUDY = """\
version = 1
[study]
title = "filesystems of another system"
[stack]
image = "/srv/freebsd.qcow2"
{key}
setup = ["newfs /dev/vtbd0", "zpool create data vtbd0"]
{server}
device = "hdd-7200"
size = "1GiB"
{stack}
[workload]
kind = "slap"
{load}
clients = 2
queries = 60
{more}
"""
GIVEN = {
    "key": 'key = "/root/key"',
    "server": 'server = "mysql://bench@localhost:3306/bench"',
    "stack": "",
    "load": 'load = "write"',
    "more": "",
}


def test_a_command_in_the_machine_can_be_a_factor(study_file):
    study = load_study(study_file(STUDY.format(**GIVEN)))
    stacks = [spec.stack for spec in make_plan(study).specs.values()]
    assert [stack.setup for stack in stacks] == ["newfs /dev/vtbd0", "zpool create data vtbd0"]
    assert {(stack.kind, stack.login, stack.model) for stack in stacks} == {("image", "root", "hdd-7200")}


@pytest.mark.parametrize(
    ("fields", "why"),
    {
        "no key": ({"key": ""}, "stack.key: is missing; an image needs the ssh key of its login"),
        "a relative key": ({"key": 'key = "k"'}, 'stack.key: is "k"; give an absolute path'),
        "a login that is an option": ({"stack": 'login = "-oX"'}, "which is no name of a user"),
        "no server": (
            {"server": ""},
            'is "mariadb"; name the server that is in stack.image, such as "mysql://user@localh',
        ),
        "a server elsewhere": (
            {"server": 'server = "mysql://bench@db1/bench"'},
            'as a program in the machine does, by TCP: "mysql://user@localhost:3306/database"',
        ),
        "a kernel": ({"stack": 'kernel = "debian-6.1"'}, "stack.kernel: can't be set with stack.image"),
        "a filesystem": ({"stack": 'filesystem = "ext4"'}, "the machine's own system decides it"),
        "a queue": ({"more": "[queue]\nnr_requests = 64"}, "queue.nr_requests: can't be set with stack.image"),
        "a cut of another load": ({"more": "[crash]"}, 'workload.kind: is "slap"; only kind = "ledger" knows of each'),
        "hosts": ({"more": '[hosts]\nunder_test = ["a", "b"]'}, "can't be given with stack.image, which lies on this"),
        "clients elsewhere": (
            {"load": 'load = "write"\nclients_from = ["a"]'},
            "its server can be reached from this host alone",
        ),
    }.values(),
)
def test_what_can_not_be_said_of_it_is_refused_with_the_remedy(study_file, fields, why):
    assert why in refusal(study_file(STUDY.format(**{**GIVEN, **fields})))


CUTS = {"load": 'duration = "5s"\naccounts = 10'}


def ledger(fields):
    text = STUDY.format(**{**GIVEN, **CUTS, **fields}).replace('kind = "slap"', 'kind = "ledger"')
    return text.replace("queries = 60\n", "")


@pytest.mark.parametrize(
    ("fields", "why"),
    {
        "a kill": ({"more": '[crash]\nmode = "kill"'}, "dbdyno knows no process of the server in stack.image"),
        "a cut in a page": (
            {"more": '[crash]\nwhen = ["page-write"]'},
            "only the system in stack.image knows where a page lies",
        ),
        "a cut in a recovery that nobody starts": (
            {"more": '[crash]\nwhen = ["recovery"]'},
            "without stack.start is over before dbdyno logs in",
        ),
    }.values(),
)
def test_cuts_that_need_to_know_its_system_are_refused(study_file, fields, why):
    assert why in refusal(study_file(ledger(fields)))


def test_its_power_can_be_cut(study_file):
    fields = {"more": '[crash]\nwhen = ["ack", "flush", "recovery"]', "stack": 'start = "service mysql-server start"'}
    plan = make_plan(load_study(study_file(ledger(fields))))
    assert plan.control.treatment.levels == {"control": "control (innodb_flush_log_at_trx_commit = 0)"}


def test_its_fields_are_refused_without_it(study_file):
    text = STUDY.format(**{**GIVEN, "server": "", "stack": 'filesystem = "ext4"'}).replace("image =", "#")
    with pytest.raises(
        UserError, match=r"stack\.key: is for a machine of your own; leave it out, or give stack\.image"
    ):
        load_study(study_file(text))
