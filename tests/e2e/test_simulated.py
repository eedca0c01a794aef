"""A simulated study from its file to its verdict: no root, no host, a mark in every format, the same for one seed."""

import json
import os
import re
import signal
from pathlib import Path

import pytest

import dbdyno as library
from dbdyno.store.run_folder import read_run
from tests.support import dbdyno, start_dbdyno, wait_for, what_is_left

STUDY = Path(__file__).parents[2] / "studies/examples/simulated.toml"
SEED = ("--seed", "5")
pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def finished(tmp_path_factory, shared_state):
    """The example's run folder, what the command printed, and the state folder."""
    folder = tmp_path_factory.mktemp("simulated") / "run"
    done = dbdyno("run", STUDY, "--into", folder, "--html", *SEED, state=shared_state)
    assert done.returncode == 0, done.stderr
    return folder, done, shared_state


def report_of(folder, state, *options):
    done = dbdyno("report", folder, *options, state=state)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_plan_says_that_nothing_of_the_host_is_touched(shared_state):
    planned = dbdyno("plan", STUDY, state=shared_state)
    assert planned.returncode == 0, planned.stderr
    assert planned.stdout.startswith("Which scheduler on a kernel of 2006 (simulated)\n")
    assert "touches:\n  nothing of this host: kernel and drive are simulated\n  erased: nothing\n" in planned.stdout
    assert planned.stdout.endswith(" (on any host: it is simulated)\n")
    assert json.loads(dbdyno("plan", STUDY, "--json", state=shared_state).stdout)["simulated"] is True


def test_it_is_marked_in_every_format(finished):
    folder, done, state = finished
    assert done.stdout.splitlines()[2].startswith("Simulated: ")
    assert "comparison (simulated)" in done.stdout
    for form in ("text", "markdown"):
        told = report_of(folder, state, "--format", form, "--details")
        assert "Simulated: " in told
        assert "Verdicts (simulated)" in told
    values = json.loads(report_of(folder, state, "--format", "json"))
    assert values["simulated"] is True
    assert values["headline"].startswith("Simulated: ")
    assert ">Simulated: " in (folder / "report.html").read_text(encoding="utf-8")
    listed = dbdyno("runs", folder.parent, state=state).stdout
    assert "\n  Simulated: " in listed
    opened = library.open_run(folder)
    assert opened.is_simulated
    assert "(simulated)" in opened._repr_html_()


def test_its_report_is_the_same_on_every_machine(finished, snapshot):
    """All but the host, the day and the place of its page."""
    _, done, _ = finished
    told = re.sub(r"^simulated · .*$", "simulated · DAY · HOST", done.stdout, flags=re.MULTILINE)
    assert told.partition("\nHTML report: ")[0] == snapshot


def test_every_trial_has_the_series_and_settings_of_its_simulated_device(finished):
    folder, _, state = finished
    found = read_run(folder)
    assert len(found.trials) == 32
    for trial in found.trials:
        assert (trial.observed["device"]["kind"], trial.observed["queue"]["kernel"]) == ("simulated", "2.6.18")
        assert trial.metrics["seconds_real"] == 10
        assert trial.disturbance == trial.probes == trial.smart == {}
        assert sum(trial.seconds.values()) < 60  # of a wall's clock
    opened = library.open_run(folder)
    device = opened.series("block_device")
    assert {"r/s", "w/s", "aqu-sz", "w_await", "%util"} <= set(device)
    assert device["t_s"].max() == pytest.approx(10)
    assert what_is_left(state) == []


def test_the_same_seed_has_the_same_verdicts_and_another_one_other_figures(finished, tmp_path):
    folder, _, state = finished
    again, other = tmp_path / "again", tmp_path / "other"
    dbdyno("run", STUDY, "--into", again, *SEED, state=state)
    dbdyno("run", STUDY, "--into", other, "--seed", "6", state=state)
    verdicts = [json.loads(report_of(place, state, "--format", "json"))["verdicts"] for place in (folder, again, other)]
    assert verdicts[0] == verdicts[1] != verdicts[2]
    assert "Simulated before and after: " in dbdyno("compare", folder, other, state=state).stdout


def test_killed_at_any_moment_and_resumed_it_comes_to_the_same(finished, tmp_path):
    folder, _, state = finished
    into = tmp_path / "killed"
    process = start_dbdyno("run", STUDY, "--into", into, *SEED, state=state)
    wait_for(lambda: len(list(into.glob("trials/*/trial.json"))) > 2)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    if (held := len(read_run(into).trials)) < 32:  # else it was too quick for the signal
        assert held >= 2
    resumed = dbdyno("run", STUDY, "--into", into, *SEED, "--resume", state=state)
    assert resumed.returncode == 0, resumed.stderr
    told = [json.loads(report_of(place, state, "--format", "json"))["verdicts"] for place in (folder, into)]
    assert told[0] == told[1]
    dbdyno("restore", state=state)  # the killed run's undo log, in which nothing stands
    assert what_is_left(state) == []
