"""``--profile`` on a real server: sampled beside no judged trial, shown in the report, and not taken twice."""

import json

import pytest

from dbdyno.run.profile import perf_need
from dbdyno.store.profiles import read_profiles
from dbdyno.store.run_folder import read_run
from tests.support import dbdyno, study_text, what_is_left

pytestmark = [pytest.mark.host, pytest.mark.timeout(600)]


def test_profiles_are_taken_after_the_judged_trials_and_once(study_file, state, tmp_path):
    text = study_text(amount='duration = "2s"', blocks=1).replace('load = "write"', 'load = "read"')
    study, run = study_file(text), tmp_path / "run"
    planned = dbdyno("plan", study, "--profile", state=state)
    if not (need := perf_need()).ok:
        assert planned.returncode == 2
        assert need.remedy in " ".join((planned.stdout + planned.stderr).split())
        return
    assert "then profiles by perf: 2 trials, not judged, about " in planned.stdout
    done = dbdyno("run", study, "--into", run, state=state)
    assert done.returncode == 0, done.stderr
    judged = (run / "journal.jsonl").read_text()
    again = dbdyno("run", study, "--into", run, "--resume", "--profile", "--html", state=state)
    assert again.returncode == 0, again.stderr
    assert "profile 2 of 2, not judged: " in again.stderr
    assert what_is_left(state) == []
    events = [
        json.loads(line)["event"] for line in (run / "journal.jsonl").read_text().removeprefix(judged).splitlines()
    ]
    assert events == ["resumed", "ended"], "they are no trials of the run"
    assert sorted(path.name for path in (run / "profiles").iterdir()) == ["t1.json", "t2.json"]
    found = read_profiles(run, ["t1", "t2"])
    trials = {trial.treatment: trial for trial in read_run(run).trials}
    for id_, profile in found.items():
        assert profile.queries > 100
        assert profile.samples > 50, "threads that the load's connections start are sampled, too"
        assert any("handle_one_connection" in stack or "do_command" in stack for stack in profile.stacks)
        us_per_query = profile.samples * profile.us_per_sample
        assert us_per_query == pytest.approx(trials[id_].metrics["server_cpu_us_per_query"], rel=0.7)
    page = (run / "report.html").read_text(encoding="utf-8")
    assert page.count('aria-label="functions of the server by time, of both treatments"') == 2, "wide and narrow"
    report = json.loads(dbdyno("report", run, "--format", "json", state=state).stdout)
    assert report["profiles"][0]["unit"] == "us_per_query"
    times = [(run / f"profiles/{id_}.json").stat().st_mtime_ns for id_ in found]
    third = dbdyno("run", study, "--into", run, "--resume", "--profile", state=state)
    assert third.stderr.startswith("nothing to do"), third.stderr
    assert [(run / f"profiles/{id_}.json").stat().st_mtime_ns for id_ in found] == times
