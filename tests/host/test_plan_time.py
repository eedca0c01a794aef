"""How long a plan says that a suite takes, and how long its trials took, steps on the same tables among them."""

import json

import pytest

from dbdyno.store.run_folder import read_run
from tests.support import dbdyno

pytestmark = [pytest.mark.host, pytest.mark.timeout(600)]

STUDY = """\
version = 1
[study]
title = "time"
[suite]
loads = "loads"
[stack]
device = "ideal"
size = "512MiB"
filesystem = "ext4"
[server.settings]
innodb_buffer_pool_size = "32M"
innodb_flush_log_at_trx_commit = [2, 0]
[workload]
warmup = "0.5s"
[design]
blocks = 1
interference = "note"
"""
LOADS = {
    "setup.sql": "-- setup:\nCREATE TABLE t (n INT PRIMARY KEY AUTO_INCREMENT);\nINSERT INTO t VALUES (1);",
    "alone.sql": '-- load: duration = "4s"\nSELECT n FROM t;',
    "first.sql": '-- load: duration = "4s"\nINSERT INTO t VALUES (NULL);',
    "second.sql": '-- load: after = "first", duration = "4s"\nSELECT n FROM t LIMIT 1;',
    "third.sql": '-- load: after = "second", duration = "4s"\nDELETE FROM t LIMIT 1;',
}


def test_a_suite_takes_as_long_as_its_plan_says_within_a_fifth(state, tmp_path):
    (tmp_path / "loads").mkdir()
    for name, text in LOADS.items():
        (tmp_path / "loads" / name).write_text(text)
    study, run = tmp_path / "s.toml", tmp_path / "run"
    study.write_text(STUDY)
    planned = json.loads(dbdyno("plan", study, "--json", state=state).stdout)["seconds"]
    done = dbdyno("run", study, "--into", run, state=state)
    assert done.returncode == 0, done.stderr
    taken = sum(sum(trial.seconds.values()) for trial in read_run(run).trials)
    assert planned == pytest.approx(taken, rel=0.2)
