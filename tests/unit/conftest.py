"""A study to vary, and a state folder that is not this host's."""

import os
import tempfile
from pathlib import Path

import pytest

from dbdyno.plan.plan import make_plan
from dbdyno.plan.stop_rule import StopRule
from dbdyno.study.load import load_study
from tests.scripted import Script
from tests.support import share_answers

STUDY = """\
version = 1
[study]
title = "A study"
question = "Which?"
[stack]
device = ["hdd-7200", "ssd-sata"]
size = "1GiB"
scheduler = "mq-deadline"
filesystem = "ext4"
memory = "1GiB"
[queue]
nr_requests = 64
[server.settings]
innodb_buffer_pool_size = "256M"
[workload]
kind = "slap"
clients = 10
queries = 1000
[design]
baseline = { device = "hdd-7200" }
blocks = 6
"""


def changed(*changes, text=STUDY):
    """Return the study with each ``(old, new)`` replaced; every ``old`` must be there."""
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


@pytest.fixture
def write_study(tmp_path):
    """Write the study, changed, and return its path."""

    def write(*changes, text=STUDY):
        path = tmp_path / "study.toml"
        path.write_text(changed(*changes, text=text), encoding="utf-8")
        return path

    return write


@pytest.fixture
def load(write_study):
    return lambda *changes, **options: load_study(write_study(*changes, **options))


@pytest.fixture
def plan(load):
    def make(*changes, seed=1, blocks=None, stop_rule=None, **options):
        stop_rule = StopRule("blocks", blocks) if blocks else stop_rule
        return make_plan(load(*changes, **options), seed=seed, stop_rule=stop_rule)

    return make


@pytest.fixture
def factors(plan):
    """Make the plan of a study whose factors are server settings: ``{"x": [1, 2]}`` -> levels "1", "2"."""

    def make(levels, design=""):
        settings = "".join(f"{name} = {list(values)}\n" for name, values in levels.items())
        body = ('["hdd-7200", "ssd-sata"]', '"ideal"'), ('innodb_buffer_pool_size = "256M"\n', settings)
        return plan(*body, ('baseline = { device = "hdd-7200" }\nblocks = 6\n', design))

    return make


@pytest.fixture
def state(monkeypatch):
    """Keep undo logs and scratch folders away from this host's own; the path is short, since sockets lie below it."""
    with tempfile.TemporaryDirectory(prefix="dd") as name:
        Path(name).chmod(0o755)  # a server runs as another user, whom it lets through
        folder = Path(name) / "state"
        monkeypatch.setenv("DBDYNO_STATE_DIR", str(folder))
        share_answers(monkeypatch)
        yield folder


@pytest.fixture
def script(monkeypatch, state):
    made = Script()
    monkeypatch.setattr(os, "fsync", lambda _: None)  # a kill is played by cutting the journal, so no disk need wait
    yield made
    assert list((state / "journals").glob("*")) == []
