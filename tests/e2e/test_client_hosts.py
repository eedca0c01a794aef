"""A load from several client hosts, all of them this machine, against a real server."""

import json
import shutil

import pytest

from tests.client_hosts import connected_to, run_over, study_text
from tests.support import is_measured

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("mariadbd", path="/usr/sbin") is None, reason="no MariaDB server"),
]


@pytest.fixture(autouse=True)
def _state(state, monkeypatch):
    monkeypatch.setenv("DBDYNO_STATE_DIR", str(state))


def test_the_load_of_two_hosts_is_one_load(tmp_path):
    with connected_to(tmp_path, "c1", "c2") as hosts:
        connections, held = hosts._connections, []
        looked_at = connections.lost
        connections.lost = lambda: held.append(tuple(map(is_measured, ("c1", "c2")))) or looked_at()
        run, folder, _ = run_over(tmp_path, study_text(), hosts)
    assert set(held) == {(False, False), (True, True)}, "while they measure, a question to a host is a fault"
    assert run.ended == "done"
    assert len(run.trials) == 4
    for trial in run.trials:
        figures = trial.load["client_hosts"]
        assert [one["host"] for one in figures] == ["c1", "c2"]
        assert [one["clients"] for one in figures] == [2, 2]
        assert sum(one["queries_per_second"] for one in figures) == pytest.approx(trial.metrics["queries_per_second"])
        assert trial.load["clients"] == 4
        assert 0.5 <= trial.load["seconds_real"] < 30  # whole intervals until the first host ended
        assert all(one["start_off_us"] >= 0 for one in figures)
        # What the hosts wrote is kept, and holds what was counted.
        kept = [folder / "trials" / trial.id / "clients" / name / "load.json" for name in ("c1", "c2")]
        runs = [json.loads(path.read_text(encoding="utf-8"))["runs"][0] for path in kept]
        assert [one["share"]["part"] for one in runs] == ["1/2", "2/2"]
        assert trial.load["queries"] <= sum(one["queries"] for one in runs)
        assert trial.load["queries"] >= 0.8 * sum(one["queries"] for one in runs)
        low, high = sorted(one["latency_ms_p99"] for one in figures)
        assert low <= trial.metrics["latency_ms_p99"] <= high
