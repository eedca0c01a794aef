"""``workload.clients_from``: hosts that offer a load together, and what can't be said beside them."""

import pytest

from dbdyno.errors import UserError
from dbdyno.study.load import load_study

STUDY = """\
version = 1
[study]
title = "from other hosts"
[stack]
{stack}
[server.settings]
innodb_flush_log_at_trx_commit = [1, 2]
[workload]
{workload}
clients_from = {hosts}
{more}
"""
OLTP = 'kind = "oltp"\nclients = 4\nduration = "1s"'


def loaded(tmp_path, *, workload=OLTP, hosts='["c1", "c2"]', stack='device = "here"', more=""):
    path = tmp_path / "study.toml"
    path.write_text(STUDY.format(workload=workload, hosts=hosts, stack=stack, more=more), encoding="utf-8")
    return load_study(path)


def test_they_are_one_value_and_no_factor(tmp_path):
    study = loaded(tmp_path)
    assert [factor.name for factor in study.factors] == ["innodb_flush_log_at_trx_commit"]
    assert [spec.workload.clients_from for _, spec in study.combinations()] == [["c1", "c2"]] * 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"hosts": '["c1", "c1"]'}, 'names "c1" twice'),
        ({"hosts": '["a", "b", "c", "d", "e"]'}, r"has 5 hosts, more than there are clients \(4\)"),
        ({"hosts": '["no host"]'}, "must be letters, digits and hyphens"),
        ({"hosts": '"c1"'}, "clients_from"),
        ({"workload": 'kind = "oltp"\nclients = 4\nevents = 100'}, "needs workload.duration"),
        ({"workload": OLTP + "\nio_threads = 3"}, r"io_threads.* a host of workload.clients_from has clients \(2\)"),
        ({"workload": OLTP + '\nload = "insert"\nauto_inc = false'}, "auto_inc.* makes up ids"),
        (
            {"workload": 'kind = "smack"\nload = "delete"\nclients = 4\nduration = "1s"'},
            "whose keys are each used once",
        ),
        ({"workload": 'kind = "ledger"\nclients = 4\nduration = "1s"'}, "can't be given with the load ledger"),
        ({"stack": 'device = "here"\nclient_cpus = "0"'}, "client_cpus.* binds a client on this machine"),
        ({"stack": 'server = "mysql://me@/bench?socket=/run/x.sock"'}, "a socket, which other hosts can't reach"),
        (
            {"more": '[hosts]\nunder_test = ["db1", "c2"]'},
            r'hosts.under_test.* names "c2", which workload.clients_from names too',
        ),
    ],
)
def test_what_does_not_go_together_is_named(tmp_path, given, said):
    with pytest.raises(UserError, match=said):
        loaded(tmp_path, **given)
