"""The host's own speed: taken off where it explains something, never where a treatment moves it, and costs nothing."""

from dataclasses import replace

import numpy as np
import pytest

from benches.honesty import host_speed as bench
from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.verdict.figures import correct
from dbdyno.report.notes import host_speed_json, host_speed_lines

BLOCKS = 12


def at_speed(run, r, *, effect=0.0, moved=0.0, seed=1):
    """The run, its two treatments equal but for ``effect``, and what the host was worth timed beside each trial."""
    rng = np.random.default_rng(seed)
    host = rng.normal(0, 1, (BLOCKS, 2))
    own = rng.normal(0, 1, (BLOCKS, 2))
    logs = 5 - 0.03 * (r * host + np.sqrt(1 - r**2) * own) + effect * np.arange(2)
    host[:, 1] += moved
    places = {("t1", block): (block - 1, 0) for block in range(1, BLOCKS + 1)}
    places |= {("t2", block): (block - 1, 1) for block in range(1, BLOCKS + 1)}
    trials = [
        replace(
            one,
            metrics={"queries_per_second": float(np.exp(logs[places[one.treatment, one.block]]))},
            host_speed={"work_wall_ns": float(2e6 * np.exp(0.1 * host[places[one.treatment, one.block]]))},
        )
        for one in run.trials
    ]
    return replace(run, trials=trials)


@pytest.fixture
def run(a_run):
    return a_run({"t1": [100.0] * BLOCKS, "t2": [100.0] * BLOCKS})


def width(analysis):
    effect = analysis.verdicts[0].effect
    return effect.high - effect.low


def test_what_the_host_explains_is_taken_off_and_said(run):
    fast = at_speed(run, 0.95, effect=0.04)
    blind = replace(fast, trials=[replace(one, host_speed={}) for one in fast.trials])
    seeing, unseeing = analyse(fast), analyse(blind)
    assert width(seeing) < 0.8 * width(unseeing)
    assert seeing.verdicts[0].verdict == "faster"
    assert seeing.host_speed.r > 0.7
    (line,) = host_speed_lines(seeing.host_speed)
    assert "with r = 0." in line
    assert "fewer blocks" in line
    assert host_speed_json(seeing.host_speed)["used"] == ("work_wall_ns",)
    assert host_speed_lines(unseeing.host_speed) == []
    assert host_speed_json(unseeing.host_speed) is None
    assert [row.metric_mean for row in seeing.treatments] == [row.metric_mean for row in unseeing.treatments]


def test_what_explains_nothing_changes_next_to_nothing(run):
    idle = at_speed(run, 0.0, effect=0.04)
    blind = replace(idle, trials=[replace(one, host_speed={}) for one in idle.trials])
    assert width(analyse(idle)) == pytest.approx(width(analyse(blind)), rel=0.25)


def test_what_a_treatment_moves_is_not_the_host_s_and_is_left_out(run):
    moved = at_speed(run, 0.9, effect=0.04, moved=4.0)
    blind = replace(moved, trials=[replace(one, host_speed={}) for one in moved.trials])
    found = analyse(moved)
    assert found.host_speed.used == ()
    assert found.verdicts[0].effect == analyse(blind).verdicts[0].effect
    assert "not the host's own" in host_speed_lines(found.host_speed)[0]


def test_one_trial_without_it_leaves_all_as_measured(run):
    partly = at_speed(run, 0.9)
    partly = replace(partly, trials=[replace(partly.trials[0], host_speed={}), *partly.trials[1:]])
    assert analyse(partly).host_speed is None


def test_a_block_does_not_choose_its_own_correction():
    rng = np.random.default_rng(3)
    logs, host = bench.trials(rng, 1, BLOCKS, 0.7)
    far = logs.copy()
    far[0, 4, 1] += 5.0
    shift = (logs - correct(logs, host[..., None]).logs)[0, 4]
    again = (far - correct(far, host[..., None]).logs)[0, 4]
    slope, slope_again = (np.diff(one)[0] / np.diff(host[0, 4])[0] for one in (shift, again))
    assert abs(slope_again) <= abs(slope) * 1.5 + 1e-9, "five e-folds in a block hardly move what is taken off it"


@pytest.mark.simulation
def test_every_row_of_the_benchmark_is_met_but_one_that_is_just_missed():
    missed = {row.name: row.measured for row in bench.rows(1500, 5) if row.met is False}
    assert missed.keys() <= {"effect 5 %, r = 0.7"}  # about 7.1 blocks where 7 are wanted
    assert all(blocks < 7.3 for blocks in missed.values())
