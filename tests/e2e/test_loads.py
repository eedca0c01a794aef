"""Kinds of load from a study file to its report: a script, an open loop that nobody keeps up with, phases."""

import json
import shutil
from pathlib import Path

import pytest

from dbdyno.store.run_folder import read_header, read_run
from dbdyno.store.series import read_series
from tests.support import dbdyno, study_text, what_is_left

pytestmark = [pytest.mark.host, pytest.mark.long, pytest.mark.drawn(2, group="loads"), pytest.mark.timeout(600)]

EXAMPLES = Path(__file__).parents[2] / "studies/examples"
HERE = """\
version = 1
[study]
title = "a load, here"
[stack]
device = "here"
[server.settings]
innodb_buffer_pool_size = "32M"
innodb_log_file_size = "8M"
"""


@pytest.fixture
def finished(state, tmp_path):
    """Run a study to its end; returns the run folder, the process and the JSON report."""

    def run(text):
        (tmp_path / "study.toml").write_text(text, encoding="utf-8")
        done = dbdyno("run", tmp_path / "study.toml", "--into", tmp_path / "run", "--details", state=state, timeout=300)
        assert done.returncode == 0, done.stderr
        assert what_is_left(state) == []
        report = dbdyno("report", tmp_path / "run", "--format", "json", state=state)
        return tmp_path / "run", done, json.loads(report.stdout)

    return run


def test_the_example_of_a_script(finished, tmp_path):
    shutil.copy(EXAMPLES / "shop.sql", tmp_path)
    example = (EXAMPLES / "script.toml").read_text(encoding="utf-8")
    short = [("items=100000", "items=500"), ('"4s"', '"500ms"'), ('"2s"', '"100ms"'), ("blocks = 8", "blocks = 2")]
    for old, new in short:
        assert old in example
        example = example.replace(old, new)
    run, _, report = finished(example)
    found = read_run(run)
    assert {trial.treatment for trial in found.trials} == {"t1", "t2"}
    assert "file shop.sql" in found.setup
    assert str(tmp_path) not in found.setup
    for trial in found.trials:
        assert {"look.look", "buy.pay"} & set(trial.load["operations"]) or len(trial.load["operations"]) > 3
        assert trial.observed["tables"]["engine"] == "InnoDB"
        assert {error["code"] for error in trial.load["errors"]} <= {1205, 1213}
    assert report["metric"] == "latency_ms_p99"
    assert (run / "run.toml").read_text(encoding="utf-8").count("CREATE TABLE items") == 1


def test_a_rate_that_the_server_does_not_keep_is_told_beside_the_verdict(finished, state):
    load = 'kind = "oltp"\nload = "read_write"\ntable_size = 500\nclients = 4\nduration = "1s"\nwarmup = "0s"\n'
    design = "[design]\ninterference = 'note'\nblocks = 2\n"
    # A commit that waits for no disk, which others may keep busy.
    run, _, report = finished(
        f"{HERE}innodb_flush_log_at_trx_commit = 2\n[workload]\n{load}rate = [30, 50000]\n{design}"
    )
    (verdict,) = report["verdicts"]
    remark = verdict["remarks"][-1]
    assert remark.startswith("rate 50000 was offered 50,000/s, achieved ")
    assert remark.endswith("latencies are those of an overloaded server.")
    brief = dbdyno("report", run, state=state).stdout
    assert " ".join(brief.split()).count(remark) == 1
    slow, fast = report["treatments"]
    assert slow["overload"] is None
    assert slow["events_per_second"] < 60 < fast["events_per_second"]
    assert fast["overload"]["backlog_max"] > 1000
    for series in read_series(run, [trial.id for trial in read_run(run).trials if trial.treatment == "t2"]).values():
        assert series["load"]["backlog"].max() > 1000


def test_a_bulk_load_is_about_its_rows_and_shows_its_phases(finished):
    load = 'kind = "bulk"\ntables = 2\nclients = [1, 2]\ntable_size = 3000\n'
    run, done, report = finished(f"{HERE}[workload]\n{load}[design]\ninterference = 'note'\nblocks = 2\n")
    assert report["metric"] == "rows_per_second"
    assert "rows/s" in done.stdout
    for trial in read_run(run).trials:
        assert trial.load["rows"] == 6000
        assert [phase["name"] for phase in trial.load["phases"]] == ["create", "load", "index"]
        assert trial.observed["tables"]["engine"] == "InnoDB"
    for series in read_series(run, [trial.id for trial in read_run(run).trials]).values():
        assert {part for text in series["load"]["phase"] for part in text.split("+")} >= {"load"}


def test_loads_times_disks_are_ranked_and_the_bytes_written_are_those_the_disk_took(finished, state):
    fields = {"device": '["ideal", "hdd-15k"]', "scheduler": '"none"', "amount": 'duration = "1s"'}
    text = study_text(**fields).replace("clients = 4", "clients = [1, 4]").replace('"100ms"', '"0s"')
    run, done, report = finished(text)
    for trial in read_run(run).trials:
        written = trial.metrics["written_bytes_per_query"] * trial.load["queries"]
        # The disk also took what came before and after the measured second.
        assert 0.2 * trial.device["write_bytes"] < written <= 1.001 * trial.device["write_bytes"]
    assert report["ranking"]["tests"] == ["clients 1", "clients 4"]
    assert report["ranking"]["stacks"][0]["stack"] == "ideal"
    assert "written_bytes_per_query" in {one["metric"] for one in report["screened"]}
    ranked = dbdyno("rank", run, "--baseline", "hdd-15k", state=state)
    assert (ranked.returncode, ranked.stderr) == (0, "")
    assert ranked.stdout.startswith("Ranking over 2 tests")
    assert "Ranking over 2 tests" in done.stdout


def test_a_log_of_fio_is_replayed_on_the_disk_under_test_and_nowhere_else(finished, tmp_path, monkeypatch):
    actions = [f"/dev/sdb {'write' if n % 4 == 0 else 'read'} {n * 4096} 4096" for n in range(400)]
    log = ["fio version 2 iolog", "/dev/sdb add", "/dev/sdb open", *actions, "/dev/sdb trim 0 4096", "/dev/sdb close"]
    (tmp_path / "a.iolog").write_text("\n".join([*log, ""]))
    (tmp_path / "j.fio").write_text(
        "[replay]\nread_iolog=a.iolog\nioengine=libaio\ndirect=1\niodepth=${REPLAY_DEPTH}\n"
    )
    monkeypatch.setenv("REPLAY_DEPTH", "2")
    stack = '[stack]\ndevice = "ideal"\nsize = "64MiB"\nfilesystem = "ext4"\n[workload]\nkind = "fio"\n'
    job = f"job = '{tmp_path / 'j.fio'}'\n[design]\ninterference = 'note'\nblocks = 1\n"
    run, _, _ = finished(f'version = 1\n[study]\ntitle = "log"\n{stack}{job}')
    (trial,) = read_run(run).trials
    counted = {name: way["operations"] for name, way in trial.load["directions"].items()}
    assert counted == {"read": 300, "write": 100}
    assert trial.observed["files"] == {"prepared_files": 1, "prepared_bytes": 2 * 1024**2}
    assert read_header(run).variables == {"REPLAY_DEPTH": "2"}


def test_fio_on_two_emulated_disks_needs_no_server_and_no_queries(finished):
    stack = '[stack]\ndevice = ["ideal", "hdd-7200"]\nsize = "256MiB"\nfilesystem = "ext4"\nmemory = "64MiB"\n'
    load = '[workload]\nkind = "fio"\nprofile = "RND4K Q8T1"\nload = "read"\nsize = "32MiB"\nduration = "600ms"\n'
    head = 'version = 1\n[study]\ntitle = "fio"\n'
    run, done, report = finished(f"{head}{stack}{load}[design]\ninterference = 'note'\nblocks = 2\n")
    assert report["metric"] == "megabytes_per_second"
    ideal, disk = report["figures"]
    assert ideal["metrics"]["iops"] > 10 * disk["metrics"]["iops"] > 100
    assert report["versions"]["fio"].startswith("fio-")
    assert "queries" not in done.stdout
    for trial in read_run(run).trials:
        assert trial.observed["files"] == {"prepared_files": 1, "prepared_bytes": 32 * 1024**2}
        assert trial.observed["page_cache"]["data_cached_bytes"] == 0
        assert trial.observed["memory"]["limit_bytes"] == 64 * 1024**2
        assert {"server", "device"} & set(trial.observed) == {"device"}
    for series in read_series(run, [trial.id for trial in read_run(run).trials]).values():
        # What fio says that it read, the device says too.
        assert series["load"]["iops"].mean() == pytest.approx(series["block_device"]["r/s"].mean(), rel=0.7)
