"""Named levels on a real stack: the server and the queue have what each level gives, as they themselves say."""

import json

import pytest

from dbdyno.store.run_folder import read_run
from tests.support import dbdyno, study_text

pytestmark = [pytest.mark.host, pytest.mark.timeout(300)]

LEVELS = """\
[levels.ours]
[levels.vendor]
innodb_io_capacity = 1500
innodb_flush_neighbors = 0
scheduler = "mq-deadline"
[levels.vendor.queue]
nr_requests = 32
"""


def test_each_level_is_set_whole_and_read_back(state, study_file, tmp_path):
    study = study_file(study_text(scheduler='"none"') + LEVELS)
    done = dbdyno("run", study, "--into", tmp_path / "run", "--details", state=state)
    assert done.returncode == 0, done.stderr
    assert "vendor: innodb_io_capacity 1500, innodb_flush_neighbors 0, scheduler mq-deadline, nr_requests 32" in (
        " ".join(done.stdout.split())
    )
    run = read_run(tmp_path / "run")
    seen = {trial.treatment: trial.observed for trial in run.trials}
    levels = {treatment.levels["configuration"]: seen[treatment.id] for treatment in run.design.treatments}
    assert {name: one["queue"]["scheduler"] for name, one in levels.items()} == {
        "ours": "none",
        "vendor": "mq-deadline",
    }
    assert int(levels["vendor"]["queue"]["nr_requests"]) == 32
    settings = json.dumps(levels["vendor"]["server"])
    assert '"innodb_io_capacity": "1500"' in settings
    assert '"innodb_flush_neighbors": "0"' in settings
    assert '"innodb_io_capacity": "1500"' not in json.dumps(levels["ours"]["server"])
