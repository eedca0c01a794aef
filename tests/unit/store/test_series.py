"""Series of trials are read back as they were written."""

import numpy as np

from dbdyno.store.series import LOAD_COLUMNS, read_matching, read_series
from tests.unit.store.conftest import SERIES, run_one, trial


def test_series_are_read_back_bit_by_bit(folder):
    run_one(folder, trial(1, "t1"), SERIES)
    found = read_series(folder.path, ["b1a1-t1"])["b1a1-t1"]
    assert found.keys() == SERIES.keys()
    for name, columns in SERIES.items():
        assert list(found[name]) == list(columns)
        for column, values in columns.items():
            np.testing.assert_array_equal(found[name][column], np.asarray(values))
    assert not list(folder.path.rglob("*.part"))


def test_a_trial_without_series_has_none(folder):
    run_one(folder, trial(1, "t1"), {"load": {}})
    assert read_series(folder.path, ["b1a1-t1"]) == {"b1a1-t1": {}}


def test_the_load_of_all_trials_is_read_at_once(folder):
    done = [trial(block, treatment) for block in (1, 2, 3) for treatment in ("t1", "t2")]
    loads = {one.id: {"t_s": [0.1 * i for i in range(place + 1)]} for place, one in enumerate(done)}
    for place, one in enumerate(done):
        loads[one.id]["events_per_second"] = [float(place)] * (place + 1)
        if place == 3:
            loads[one.id] |= {"phase": ["load"] * 4, "latency_ms_p99": [1.0] * 4}
        run_one(folder, one, {"load": loads[one.id]} if place != 4 else {})
    each = read_matching(folder.path, [one.id for one in done], {"load": LOAD_COLUMNS})
    found = {id_: one["load"] for id_, one in each.items() if one}
    assert set(found) == {one.id for place, one in enumerate(done) if place != 4}
    for id_, columns in found.items():
        assert columns["t_s"].tolist() == loads[id_]["t_s"]
        assert columns["events_per_second"].tolist() == loads[id_]["events_per_second"]
        assert "latency_ms_p99" not in columns
    assert found[done[3].id]["phase"].tolist() == ["load"] * 4
    assert read_matching(folder.path, ["nobody"], {"load": LOAD_COLUMNS}) == {"nobody": {}}
