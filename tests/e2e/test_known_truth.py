"""Two questions whose answers are known, on real parts: a treatment against itself, and a disk that is 10 % slower."""

import json
import statistics
from pathlib import Path

import pytest

from dbdyno.store.run_folder import read_run
from tests.support import dbdyno

pytestmark = [pytest.mark.host, pytest.mark.long, pytest.mark.timeout(600)]

SELFTEST = Path(__file__).parents[2] / "studies/selftest"
DISK_MS, LONGER_MS = 8.0, 0.8  # latency of the first disk of ten-percent.toml, and how much longer the second takes


def shorter(study_file, name, given, seconds):
    """A self-test with shorter trials."""
    text = (SELFTEST / name).read_text(encoding="utf-8")
    assert f'"{given}"' in text
    return study_file(text.replace(f'"{given}"', f'"{seconds}"'))


@pytest.mark.drawn(1, group="truths")
def test_a_treatment_is_not_different_from_itself(state, study_file):
    into = state / "aa"
    study = shorter(study_file, "nothing-differs.toml", "2s", "500ms")
    done = dbdyno("aa", study, "--into", into, "--blocks", 6, "--json", "--html", state=state, timeout=300)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    (verdict,) = told["verdicts"]
    assert (verdict["baseline"], verdict["level"], verdict["blocks"]) == ("A", "B", 6)
    if verdict["verdict"] not in {"equivalent", "undecided"}:  # so it is in up to 3 of 100 runs: 2 / 2^6
        once_more = dbdyno("aa", study, "--into", state / "aa-2", "--blocks", 6, "--seed", 2, "--json", state=state)
        (second,) = json.loads(once_more.stdout)["verdicts"]
        assert second["verdict"] in {"equivalent", "undecided"}, (verdict, second)
    floor = told["aa"]
    assert (floor["treatment"], floor["comparisons"]) == ("max_connect_errors 100", 1)
    assert 0 < floor["spread"]["low"] < floor["spread"]["value"] < floor["spread"]["high"]
    named = [one["difference"] for one in floor["reach"]]
    assert named == sorted(named, reverse=True)
    assert [one["order"] for one in floor["orders"]] == ["halves", "turns", "random"]
    again = dbdyno("report", into, "--format", "json", state=state)
    assert again.stdout == done.stdout
    assert "Noise floor of this host" in (into / "report.html").read_text(encoding="utf-8")
    settings = [trial.observed["server"]["max_connect_errors"] for trial in read_run(into).trials]
    assert settings == ["100"] * 12


def verdict_and_truth(state, study, seed):
    """Run the study; returns its verdict and the true effect.

    The median commit waits for the disk once, and for a rest that is the same on both disks: what the first one's takes
    longer than the disk does. So the second one's is longer by 800 us of 8,000 us and the rest.
    """
    into = state / f"ten-percent-{seed}"
    done = dbdyno("run", study, "--into", into, "--seed", seed, state=state, timeout=300)
    assert done.returncode == 0, done.stderr
    (verdict,) = json.loads(dbdyno("report", into, "--format", "json", state=state).stdout)["verdicts"]
    trials = [trial for trial in read_run(into).trials if trial.treatment == "t1"]
    commit_ms = statistics.median(trial.metrics["latency_ms_p50"] for trial in trials)
    assert DISK_MS < commit_ms < 1.2 * DISK_MS, "a commit waits for more than the disk"
    return verdict, LONGER_MS / commit_ms


@pytest.mark.alone
@pytest.mark.drawn(1, group="truths")
def test_a_known_difference_is_found_as_large_as_it_is(state, study_file):
    """An interval of 95 % misses in up to 5 of 100 runs, and a busy host leaves it open: once is no fault, twice is."""
    study, seen = shorter(study_file, "ten-percent.toml", "1500ms", "800ms"), []
    for seed in (1, 2):
        verdict, truth = verdict_and_truth(state, study, seed)
        assert verdict["verdict"] in {"slower", "undecided"}
        if verdict["verdict"] == "slower" and verdict["low"] <= truth <= verdict["high"]:
            return
        seen.append(f"{verdict['verdict']}: {truth:+.2%} and {verdict['low']:+.2%} to {verdict['high']:+.2%}")
    pytest.fail("; ".join(seen))
