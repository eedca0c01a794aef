"""Hosts that a study waits for are not brought down."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from dbdyno.hosts import bring_up
from dbdyno.hosts.bring_up import Restored, restore_hosts
from dbdyno.hosts.frames import PutBack
from dbdyno.hosts.inventory import read_inventory

FILE = 'version = 1\n[host.a]\nssh = "a"\nroles = ["client"]\n'


@pytest.fixture
def put_back(tmp_path, monkeypatch, state):  # noqa: ARG001  (where a cluster is known from)
    """Have a host put itself back, for which a study may be waiting; return the outcome and what it was asked."""
    (tmp_path / "hosts.toml").write_text(FILE)
    inventory, asked = read_inventory(tmp_path / "hosts.toml"), []

    def ask(question, *_):
        asked.append(question["do"])
        return PutBack(undone=[], whole=True, left_alone=[], over=True)

    def do(verb, awaited):
        monkeypatch.setattr(bring_up, "restore_kernel", lambda *_: ("", awaited))
        monkeypatch.setattr(bring_up, "reach", lambda *_: nullcontext(SimpleNamespace(ask=ask)))
        (outcome,) = verb(inventory)
        return outcome, asked

    return do


def test_a_host_is_stopped_unless_a_study_waits_for_it(put_back):
    def bring_down(inventory):
        return bring_up.bring_down(inventory, lambda _: None)

    assert put_back(bring_down, "a study waits") == (Restored("a", problem="a study waits"), [])
    assert put_back(bring_down, "") == (Restored("a"), ["stop"])


def test_a_host_is_restored_while_a_study_waits_for_it(put_back):
    assert put_back(restore_hosts, "a study waits") == (Restored("a", left_alone=("a study waits",)), ["restore"])
