"""Between two trials: a real rest, and a real unmeasured trial of the baseline."""

import json

import pytest

from dbdyno.store.run_folder import read_run
from tests.support import dbdyno, study_text

pytestmark = [pytest.mark.host, pytest.mark.timeout(300)]


def settled(state, study_file, into, value):
    text = study_text().replace("seed = 7", f"seed = 7\nsettle = {value}")
    done = dbdyno("run", study_file(text), "--into", into, "--details", state=state)
    assert done.returncode == 0, done.stderr
    return done, read_run(into)


@pytest.mark.drawn(1, group="settled")
def test_a_rest_is_taken_while_the_stack_stands_and_nothing_is_offered(state, study_file, tmp_path):
    done, run = settled(state, study_file, tmp_path / "run", '"1500ms"')
    assert len(run.trials) == 4
    for trial in run.trials:
        phases = list(trial.seconds)
        assert phases.index("raise server") < phases.index("settle") < phases.index("measure")
        assert trial.seconds["settle"] >= 1.5
    assert "Each trial rested 1.5 s" in done.stdout


@pytest.mark.drawn(1, group="settled")
def test_before_each_trial_the_baseline_runs_and_leaves_no_figure(state, study_file, tmp_path):
    done, run = settled(state, study_file, tmp_path / "run", '"trial"')
    assert len(run.trials) == 4
    assert all(trial.seconds["settle"] > trial.seconds["measure"] / 4 for trial in run.trials)
    assert "none ran once, unmeasured: so every trial follows" in " ".join(done.stdout.split())
    assert done.stderr.count(": none, unmeasured, ") == 4
    folders = sorted(path.name for path in (tmp_path / "run" / "trials").iterdir())
    assert folders == sorted(trial.id for trial in run.trials)
    assert not list((tmp_path / "run").rglob("settle"))
    told = json.loads(dbdyno("report", tmp_path / "run", "--format", "json", state=state).stdout)
    assert told["settle"] == "trial"
