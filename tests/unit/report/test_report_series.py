"""Making a million samples small without losing an extreme."""

import base64
import math
from dataclasses import replace
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.over_time import at_middles
from dbdyno.model.design import Treatment
from dbdyno.report.charts.svg import round_ticks
from dbdyno.report.charts.timeseries import Samples, Stacked, drawn_panels, payload, phase_starts
from tests.unit.report.rendered import as_page


def of_one_trial(t_s, values):
    return Samples(np.array([0]), np.array(t_s), np.array(values))


def test_buckets_keep_mean_and_extremes():
    ((mean,), (low,), (high,)) = of_one_trial([0.1, 0.2, 1.5, 2.5], [1.0, 3.0, -5.0, 7.0]).bucketed(1.0, 3)
    assert mean.tolist() == [2, -5, 7]
    assert low.tolist() == [1, -5, 7]
    assert high.tolist() == [3, -5, 7]


def test_short_holes_are_bridged_and_long_ones_stay():
    ((mean,), _, _) = of_one_trial([0.5, 2.5, 8.5], [1.0, 3.0, 9.0]).bucketed(1.0, 10)
    assert mean[:3].tolist() == [1, 2, 3]
    assert np.isnan(mean[[3, 7, 9]]).all()


def test_a_hole_is_not_bridged_from_one_trial_to_the_next():
    (first, second), _, _ = Samples(np.array([0, 1]), np.array([0.5, 1.5]), np.array([1.0, 3.0])).bucketed(1.0, 3)
    np.testing.assert_array_equal(first, [1, np.nan, np.nan])
    np.testing.assert_array_equal(second, [np.nan, 3, np.nan])


def test_samples_after_the_end_count_for_the_last_bucket():
    ((mean,), _, _) = of_one_trial([0.5, 5.0], [1.0, 2.0]).bucketed(1.0, 2)
    assert mean.tolist() == [1, 2]


@given(
    st.lists(
        st.lists(st.tuples(st.floats(0.0, 9.0), st.floats(-1e6, 1e6) | st.just(np.nan)), max_size=30),
        min_size=1,
        max_size=5,
    )
)
def test_all_trials_at_once_are_as_each_by_itself(trials):
    each = [{"t_s": np.array([t for t, _ in one]), "a": np.array([a for _, a in one])} for one in trials]
    alone = [found for one in each if (found := Stacked([one]).samples(["a"], 2.0))]
    together = Stacked(each).samples(["a"], 2.0)
    assert (together is None) == (not alone)
    if together is None:
        return
    np.testing.assert_array_equal(together.t_s, np.concatenate([one.t_s for one in alone]))
    np.testing.assert_allclose(
        together.bucketed(1.0, 10), np.concatenate([one.bucketed(1.0, 10) for one in alone], axis=1), rtol=1e-9
    )
    np.testing.assert_array_equal(together.share_above_0(), [one.share_above_0()[0] for one in alone])
    assert together.moves(0.02) == any(one.moves(0.02) for one in alone)


def test_a_trial_without_a_column_has_no_samples_in_its_sum():
    full, part = {"t_s": np.array([1.0]), "a": np.array([1.0]), "b": np.array([2.0])}, {"t_s": np.array([1.0])}
    found = Stacked([part | {"a": np.array([5.0])}, full]).samples(["a", "b"], 1.0)
    assert found is not None
    assert (found.starts.tolist(), found.values.tolist()) == ([0], [3])
    assert Stacked([part]).samples(["a"], 1.0) is None


def test_a_sample_stands_at_the_middle_of_its_interval():
    middles, values = at_middles(np.array([0.2, 0.1, 0.4]), np.array([2.0, 1.0, 3.0]))
    np.testing.assert_allclose(middles, [0.05, 0.15, 0.3])
    assert values.tolist() == [1, 2, 3]


@pytest.mark.parametrize(("end", "left"), [(0.30024, 3), (0.349, 3), (0.351, 4)])
def test_a_short_remainder_is_left_out(end, left):
    middles, values = at_middles(np.array([0.1, 0.2, 0.3, end]), np.ones(4))
    assert len(middles) == len(values) == left


def test_a_line_starts_in_the_first_bucket_and_does_not_drop_at_the_end(run):
    ends = np.append(0.1 * np.arange(1, 21), 2.00024)
    rate = np.append(np.full(20, 400.0), 10.0)
    series = {trial.id: {"load": {"t_s": ends, "queries_per_second": rate}} for trial in run.trials}
    (panel,) = drawn_panels(run, analyse(run), series)
    assert panel.lines[0].median.tolist() == [400.0] * 20
    assert panel.width_s == pytest.approx(0.1)


def test_a_single_sample_is_drawn_where_it_was_taken(run):
    series = {
        trial.id: {"load": {"t_s": np.array([2.0]), "queries_per_second": np.array([400.0])}} for trial in run.trials
    }
    (panel,) = drawn_panels(run, analyse(run), series)
    assert (panel.width_s, panel.lines[0].median.tolist()) == (2, [400])


def test_a_spike_in_one_trial_survives(run, series_of):
    series = series_of(run, rate_hz=1000, samples=20_000)
    counted = analyse(run).blocks.trials[1]["t1"].id
    series[counted]["load"]["latency_ms_p99"][12_345] = 9999.0
    panel = next(p for p in drawn_panels(run, analyse(run), series) if p.panel.columns == ("latency_ms_p99",))
    line = next(line for line in panel.lines if line.treatment == "t1")
    assert np.nanmax(line.high) == 9999
    assert np.nanmax(line.median) < 1000


def test_columns_without_a_single_read_are_not_drawn(run, series_of):
    titles = {panel.panel.title for panel in drawn_panels(run, analyse(run), series_of(run))}
    assert "Write throughput" in titles
    assert "Read throughput" not in titles


def test_void_attempts_are_not_drawn(run, series_of):
    used = {trial.id for row in analyse(run).blocks.trials.values() for trial in row.values()}
    void = [trial.id for trial in run.trials if trial.id not in used]
    series = {id_: found for id_, found in series_of(run).items() if id_ in void}
    assert void
    assert drawn_panels(run, analyse(run), series) == []


def test_unknown_and_missing_samples(run):
    column = np.array([1.0, np.nan, 3.0])
    times = np.array([0.1, 0.2, 0.3])
    series = {trial.id: {"load": {"t_s": times, "queries_per_second": column}} for trial in run.trials}
    (panel,) = drawn_panels(run, analyse(run), series)
    assert np.nanmax(panel.lines[0].high) == 3
    assert not (panel.lines[0].median == 2).all()


def test_payload_is_little_endian_float32(run, series_of):
    panel = drawn_panels(run, analyse(run), series_of(run))[0]
    sent = payload(panel, {"t1": 0, "t2": 1, "t3": 2, "t4": 3})
    decoded = np.frombuffer(base64.b64decode(sent["lines"][0]["median"]), dtype="<f4")
    np.testing.assert_allclose(decoded, panel.lines[0].median, rtol=1e-6)


@pytest.mark.parametrize("series", [{}, {"b1a1p1": {}}, {"b1a1p1": {"load": {"t_s": np.array([])}}}])
def test_nothing_to_draw(run, series):
    assert drawn_panels(run, analyse(run), series) == []


def test_a_million_samples_fit_into_a_megabyte(run, series_of):
    """How long that takes is for ``benches/report.py``."""
    columns_drawn = 10
    series = series_of(run, rate_hz=1000, samples=1_000_000 // len(run.trials) // columns_drawn + 1)
    assert len(as_page(run, analyse(run), series).encode()) <= 1_000_000


def test_sixteen_treatments_in_forty_blocks_fit_too(build, series_of):
    treatments = [Treatment(f"t{i}", {"device": f"ssd-{i}"}) for i in range(16)]
    rates = {treatment.id: 100.0 + 5 * place for place, treatment in enumerate(treatments)}
    pairs = [("t0", f"t{i}") for i in range(1, 16)]
    run = build(40, treatments=treatments, rates=rates, pairs=pairs, void_block=0)
    assert len(as_page(run, analyse(run), series_of(run, samples=200)).encode()) <= 1_000_000


def test_a_single_error_is_drawn_but_a_single_read_is_not(run, series_of):
    series = series_of(run, samples=200)
    counted = analyse(run).blocks.trials[1]["t1"].id
    series[counted]["load"]["errors_per_second"][7] = 10.0
    series[counted]["block_device"]["rMB/s"][7] = 0.04
    titles = {panel.panel.title for panel in drawn_panels(run, analyse(run), series)}
    assert "Errors per second" in titles
    assert "Read throughput" not in titles


def in_phases(run, index_after=2.0):
    """Return the run as a bulk load whose index begins some seconds after its rows."""
    phases = [("load", 0.0, 3), ("index", index_after, 4)]
    clock = {"measure_start_ns": 5 * 10**9, "measure_end_ns": 9 * 10**9}
    trials = []
    for trial in run.trials:
        later = 0.5 if trial.treatment == "t2" else 0.0
        spans = [
            {
                "name": name,
                "start_ns": round((5 + start + (later if start else 0)) * 1e9),
                "end_ns": round((5 + end) * 1e9),
            }
            for name, start, end in phases
        ]
        trials.append(replace(trial, load={"phases": spans, "clock": clock}))
    return replace(run, trials=trials)


def test_phases_begin_where_the_median_trial_s_do(run):
    told = in_phases(run)
    starts = phase_starts(analyse(told))
    assert [(one["treatment"], one["name"], one["at_s"]) for one in starts] == [
        ("t1", "index", 2.0),
        ("t2", "index", 2.5),
        ("t3", "index", 2.0),
        ("t4", "index", 2.0),
    ]
    assert phase_starts(analyse(run)) == []


def test_panels_that_would_repeat_another_are_left_out(run, series_of):
    series = series_of(run, samples=50)
    for one in series.values():
        one["load"]["events_per_second"] = one["load"]["queries_per_second"]
        one["load"]["rows_per_second"] = 4 * one["load"]["queries_per_second"]
        one["load"]["backlog"] = 0 * one["load"]["t_s"]
        one["load"]["phase"] = np.array(["load"] * 50, dtype=object)
    titles = [panel.panel.title for panel in drawn_panels(run, analyse(run), series)]
    assert "Events per second" not in titles
    assert "Rows added per second" in titles
    assert "Events waiting for a client" not in titles
    first = next(iter(analyse(run).blocks.trials[1].values())).id
    series[first]["load"]["events_per_second"] = series[first]["load"]["queries_per_second"] / 16
    series[first]["load"]["backlog"] = series[first]["load"]["backlog"] + 1
    titles = [panel.panel.title for panel in drawn_panels(run, analyse(run), series)]
    assert "Events per second" in titles
    assert "Events waiting for a client" in titles


def test_a_gauge_is_drawn_where_it_moved_and_in_its_unit(run, series_of):
    series = series_of(run, samples=50)
    for one in series.values():
        still, moving = np.full(50, 12.0), np.linspace(1e6, 5e6, 50)
        one["server_status"] |= {"Innodb_buffer_pool_pages_dirty": still, "Innodb_checkpoint_age": moving}
    drawn = {one.panel.title: one for one in drawn_panels(run, analyse(run), series)}
    assert "Dirty pages in the buffer pool" not in drawn
    age = drawn["Log written since the last checkpoint"]
    assert age.panel.unit == "MB"
    assert float(np.nanmax(age.lines[0].high)) == pytest.approx(5.0)


def test_charts_stand_in_groups_and_what_is_seldom_asked_for_is_folded(run, series_of):
    series = series_of(run, samples=50)
    for one in series.values():
        one["client_process"] = {"t_s": one["load"]["t_s"], "%usr": np.full(50, 7.0), "%system": np.full(50, 3.0)}
    drawn = drawn_panels(run, analyse(run), series)
    groups = [group for group, _ in groupby(one.panel.group for one in drawn)]
    assert groups == ["The load", "The device", "The host and its processes"]  # each once, and none that is empty
    page = as_page(run, analyse(run), series)
    assert page.count('<details class="group" open>') == 2
    assert page.count('<details class="group"><summary>The host and its processes</summary>') == 1


@pytest.mark.parametrize(("low", "high"), [(1e308, 1e308), (-1e308, 1e308), (0.0, math.inf), (2.0, 1.0)])
@pytest.mark.parametrize("log", [False, True])
def test_a_range_that_is_none_has_no_ticks(low, high, log):
    assert round_ticks(low, high, 5, log=log) == []
