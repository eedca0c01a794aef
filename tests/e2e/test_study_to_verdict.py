"""One small study from its file to its verdict, on real parts: the line that everything else serves."""

import json
import re
import shutil

import pytest

from dbdyno.store.run_folder import read_run
from dbdyno.store.series import read_series
from tests.browser import browser, in_browser
from tests.support import dbdyno, study_text, what_is_left

pytestmark = [pytest.mark.host, pytest.mark.long, pytest.mark.timeout(600)]

LINES_MAX = 25
FIELDS = {"metric", "baseline", "level", "effect", "low", "high", "p", "verdict", "blocks", "reason"}

WATCHED = {
    "load",
    "block_device",
    "host_cpu",
    "server_process",
    "server_status",
    "client_process",
    "writeback",
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory, shared_state):
    """A finished run: a disk against an SSD, six blocks, so that one comparison can be decided."""
    folder = tmp_path_factory.mktemp("e2e")
    study = folder / "study.toml"
    fields = {"device": '["hdd-7200", "nvme"]', "scheduler": '"mq-deadline"', "amount": "queries = 120"}
    study.write_text(study_text(**fields, blocks=6).replace("seed = 7", "seed = 1"), encoding="utf-8")
    done = dbdyno("run", study, "--into", folder / "run", "--html", state=shared_state, timeout=400)
    return folder / "run", done, shared_state


def test_done_and_nothing_left(finished):
    _, done, state = finished
    assert done.returncode == 0, done.stderr
    assert what_is_left(state) == []
    assert "\x1b" not in done.stdout + done.stderr
    assert "trial 12/12, block 6: " in done.stderr


def test_the_ssd_is_faster_and_the_sentence_says_so(finished):
    run, done, state = finished
    report = json.loads(dbdyno("report", run, "--format", "json", state=state).stdout)
    (verdict,) = report["verdicts"]
    assert set(verdict) >= FIELDS
    assert (verdict["baseline"], verdict["level"]) == ("hdd-7200", "nvme")
    assert verdict["verdict"] == "faster"
    assert 0 < verdict["low"] < verdict["effect"] < verdict["high"]
    assert 0 < verdict["p"] < 0.05
    assert " times as fast as hdd-7200." in done.stdout.splitlines()[2]
    assert len(done.stdout.splitlines()) < LINES_MAX  # and a line that says where the rest is
    whole = dbdyno("report", run, "--details", state=state).stdout
    assert "nvme is faster than hdd-7200" in whole
    assert "client real/user/sys" in whole


def test_a_copied_folder_gives_the_same_bytes_twice(finished, tmp_path):
    run, _, state = finished
    copy = tmp_path / "elsewhere"
    shutil.copytree(run, copy)
    for form in ("json", "text", "markdown"):
        told = [dbdyno("report", place, "--format", form, state=state).stdout for place in (run, copy)]
        assert told[0] == told[1] != ""


def test_every_trial_shows_what_was_observed(finished):
    found = read_run(finished[0])
    for trial in found.trials:
        assert trial.observed["queue"]["scheduler"] == "mq-deadline"
        assert "noatime" in trial.observed["filesystem"]["mount_options"]
        assert trial.observed["memory"]["limit_bytes"] == 1024**3
        assert trial.observed["server"]["innodb_buffer_pool_size"] == str(32 * 1024**2)
        assert trial.observed["tables"]["engine"] == "InnoDB"
        assert trial.load["queries"] == 120
        assert trial.load["errors"] == []
        assert trial.device["flushes"] > 10
        assert trial.metrics["latency_ms_p50"] <= trial.metrics["latency_ms_p99"] <= trial.metrics["latency_ms_max"]


def test_the_order_is_random_by_the_seed_and_each_block_is_whole(finished):
    found = read_run(finished[0])
    orders = [tuple(t.treatment for t in found.trials if t.block == block) for block in range(1, 7)]
    assert {frozenset(order) for order in orders} == {frozenset({"t1", "t2"})}
    assert len(set(orders)) == 2, "six blocks all in the same order"


def test_every_trial_started_from_the_same_bytes(finished):
    """The slap load inserts; were the data not restored, each trial's table would begin with the last one's rows."""
    found = read_run(finished[0])
    held = {trial.device["content_bytes"] // 2**20 for trial in found.trials if trial.treatment == "t1"}
    assert max(held) - min(held) <= 2


def test_the_client_s_queries_are_the_device_s_writes(finished):
    run = finished[0]
    each = read_series(run, [trial.id for trial in read_run(run).trials[:2]])
    for trial_id, series in each.items():
        # Not every kernel tells pressure or counts for others, and some are read so seldom that a trial may be shorter.
        assert set(series) - {"pressure", "drive", "server_switches", "server_counters"} == WATCHED, trial_id
        assert series["load"]["queries_per_second"].max() > 0
        assert all(len(column) == len(series["load"]["t_s"]) for column in series["load"].values())
    assert any("drive" in series for series in each.values())


@browser
def test_the_page_opens_in_a_browser_without_errors(finished, tmp_path):
    page = (finished[0] / "report.html").read_text(encoding="utf-8")
    dom, console = in_browser(page, tmp_path)
    assert console == []
    assert int(re.search(r'data-drawn="(\d+)"', dom)[1]) >= 6
    assert "nvme" in dom
