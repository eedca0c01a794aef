"""A study with a real server on several hosts, which are network namespaces with a Ray node in each."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from dbdyno.analysis.blocks import usable_blocks
from dbdyno.run.image_cache import digest
from dbdyno.store.run_folder import read_run
from tests.lab import lab, lab_lacking
from tests.support import DBDYNO, dbdyno, wait_for

STUDY = """\
version = 1
[study]
title = "On two hosts"
[hosts]
under_test = ["a", "b"]
[stack]
device = "memory"
filesystem = "tmpfs"
size = "512MiB"
[server.settings]
innodb_buffer_pool_size = ["32M", "64M"]
[workload]
kind = "slap"
load = "write"
clients = 2
duration = "1s"
[design]
blocks = 6
interference = "note"
"""

pytestmark = [
    pytest.mark.host,
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(lab_lacking()), reason=lab_lacking()),
]


def test_a_study_is_planned_run_killed_and_ended_on_two_hosts(tmp_path):
    with lab("a", "b") as made:
        made.folder.chmod(0o755)
        inventory, state = made.inventory(), made.folder / "here"
        inventory.write_text(inventory.read_text().replace('["client"]', '["server"]'))
        study, into = tmp_path / "study.toml", tmp_path / "run"
        study.write_text(STUDY)
        assert dbdyno("hosts", "up", inventory, state=state).returncode == 0
        try:
            planned = dbdyno("plan", study, "--hosts", inventory, state=state)
            assert planned.returncode == 0, planned.stderr + planned.stdout
            assert "all hosts can run it:\n  a: " in planned.stdout
            command = [*DBDYNO, "run", str(study), "--hosts", str(inventory), "--into", str(into)]
            with (tmp_path / "said").open("wb") as said:
                environment = {**os.environ, "DBDYNO_STATE_DIR": str(state)}
                run = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=said)
            journal = into / "journal.jsonl"
            wait_for(
                lambda: run.poll() is not None or (journal.exists() and b'"finished"' in journal.read_bytes()),
                seconds=200,
            )
            assert run.poll() is None
            run.send_signal(signal.SIGKILL)
            run.wait()
            before = [trial.id for trial in read_run(into).trials]
            done = dbdyno("run", study, "--hosts", inventory, "--into", into, "--resume", state=state)
            assert done.returncode == 0, done.stderr
            found = read_run(into)
            assert found.ended == "done"
            assert [trial.id for trial in found.trials][: len(before)] == before
            assert len(usable_blocks(found).trials) == 6
            assert sorted({trial.host for trial in found.trials}) == ["a", "b"]
            assert "on a" in done.stderr
            assert "on b" in done.stderr
            assert set(found.hosts) == {"a", "b"}
            [sha256] = {trial.image_sha256 for trial in found.trials}  # made on one host, and sent to the other
            [one, other] = made.folder.glob("there/hosts/*/state/images/*")
            assert digest(one) == digest(other) == sha256
            assert (tmp_path / "said").read_text().count("preparing data") == 1
        finally:
            down = dbdyno("hosts", "down", inventory, state=state)
        assert down.returncode == 0, down.stderr
        assert not list(Path(made.folder).glob("there/hosts/*/state/journals/*"))
