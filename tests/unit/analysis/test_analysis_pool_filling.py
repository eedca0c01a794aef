"""A buffer pool that still fills while it is measured is seen; one that is warm, or smaller than the data, is not."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.blocks import usable_blocks
from dbdyno.analysis.load_checks import Filling, filling, pools_filling
from dbdyno.mysql.settings import PAGES_READ, POOL_FREE, POOL_TOTAL, QUESTIONS
from dbdyno.report.notes import remarks
from dbdyno.report.sections.advice import advice_text
from dbdyno.report.sections.badges import section as badges
from dbdyno.report.sections.warnings import warning_lines
from dbdyno.report.source import Source
from tests.unit.report.conftest import build

POOL = 16_000  # pages
SECONDS = 4.0
QUERIES = 2_000.0  # per second


def simulated(data, pool=POOL, loaded=0, *, seconds=SECONDS, seed=1, made=0.0, reads=True, gauges=True):  # noqa: PLR0913
    """The status of a server whose queries read each a page out of ``data`` at random, LRU once the pool is full.

    ``made`` are pages per second that the load itself makes. The first sample is before measuring begins.
    """
    rng = np.random.default_rng(seed)
    ends = np.arange(-0.05, seconds + 0.2, 0.1)
    inside, own, free, read = float(loaded), 0.0, [], []
    for _ in ends:
        misses = rng.poisson(QUERIES * 0.1 * (1 - min(1.0, inside / data))) if reads else 0
        inside = min(inside + misses, float(data), pool - own)
        own = min(own + made * 0.1, pool - inside)
        read.append(misses / 0.1)
        free.append(pool - inside - own + rng.integers(0, 60))
    status = {"t_s": ends, QUESTIONS: np.full(len(ends), QUERIES), PAGES_READ: np.array(read)}
    return status | ({POOL_FREE: np.array(free), POOL_TOTAL: np.full(len(ends), float(pool))} if gauges else {})


@pytest.mark.parametrize("gauges", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_a_pool_that_fills_is_seen(seed, gauges):
    found = filling(simulated(8_000, seed=seed, gauges=gauges), SECONDS)
    assert found.first_per_query > found.last_per_query
    assert 0.5 < found.first_per_query < 1
    assert 0.2 < found.last_per_query < 0.6
    assert math.isnan(found.free_at_the_end) != gauges
    assert not gauges or 0.5 < found.free_at_the_end < 0.8


@pytest.mark.parametrize("gauges", [True, False])
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    "steady",
    [
        {"data": 8_000, "loaded": 8_000},  # warm
        {"data": 8_000, "loaded": 7_980},  # as good as warm
        {"data": 40_000, "loaded": POOL},  # more than the pool holds
        {"data": 40_000, "loaded": 2_028, "pool": 2_028},
        {"data": 8_000, "reads": False, "made": 300.0},  # it takes up what the load makes
        {"data": 40_000, "loaded": 15_000, "pool": 15_000, "seconds": 1.0},
    ],
)
def test_a_pool_in_a_steady_state_is_not(steady, seed, gauges):
    assert filling(simulated(**steady, seed=seed, gauges=gauges), steady.get("seconds", SECONDS)) is None


def test_a_pool_far_smaller_than_the_data_hardly_changes_while_it_fills():
    assert filling(simulated(1_000_000), SECONDS) is None


def test_a_lru_list_whose_free_pages_come_and_go_does_not_fill():
    """MariaDB keeps many pages free in a small pool: half of 2,028 here, by some hundred more or less."""
    status = simulated(40_000, pool=2_028, loaded=2_028)
    falling = np.linspace(1_450.0, 1_100.0, len(status["t_s"]))
    reads = np.linspace(6_000.0, 5_000.0, len(falling))
    assert filling({**status, POOL_FREE: falling, PAGES_READ: reads}, SECONDS) is None


def test_what_can_not_be_said_is_not():
    status = simulated(8_000)
    assert filling({name: column for name, column in status.items() if name != PAGES_READ}, SECONDS) is None
    assert filling({name: column[:8] for name, column in status.items()}, SECONDS) is None
    assert filling(status, math.nan) is None
    assert filling({**status, QUESTIONS: 0 * status["t_s"]}, SECONDS) is None
    unknown = {**status, POOL_FREE: np.full(len(status["t_s"]), np.nan)}
    assert filling(unknown, SECONDS).first_per_query > 0, "reads fell so far that they say it alone"


@pytest.fixture(scope="module")
def run_and_seen():
    run = build(8, pairs=[("t1", "t3"), ("t1", "t2")], void_block=0)
    trials = [replace(one, metrics={**one.metrics, "seconds_real": SECONDS}) for one in run.trials]
    seen = {
        one.id: {"server_status": simulated(8_000, loaded=0 if one.treatment == "t3" else 8_000, seed=place)}
        for place, one in enumerate(trials)
    }
    return replace(run, trials=trials), seen


def test_a_treatment_of_which_most_trials_fill_is_warned_of_and_not_recommended(run_and_seen):
    run, seen = run_and_seen
    found = pools_filling(run.design, usable_blocks(run), seen)
    assert [(one.id, one.trials, one.of) for one in found] == [("t3", 8, 8)]
    assert isinstance(found[0].found, Filling)
    analysis = analyse(run, watched=seen)
    lines = [line for line in warning_lines(run, analysis) if "buffer pool" in line]
    assert len(lines) == 1
    assert lines[0].startswith(
        "The buffer pool was still being filled while ssd-sata / mq-deadline was measured (pages read per query fell"
    )
    assert lines[0].endswith(
        "of the pool was still free): measure for longer, after a longer warm-up if the load has one."
    )
    verdicts = {one.level_id: one for one in analysis.verdicts}
    assert any("still being filled" in line for line in remarks(verdicts["t3"], analysis))
    assert not any("still being filled" in line for line in remarks(verdicts["t2"], analysis))
    assert advice_text(run, analysis).startswith(
        "Not final. The buffer pool was still being filled; measure for longer"
    )
    assert "buffer pool filling" in [one["text"] for one in badges(Source(run, analysis)).data["badges"]]


def test_a_warm_run_is_not_warned_of(run_and_seen):
    run, seen = run_and_seen
    warm = next(seen[one.id] for one in run.trials if one.treatment == "t1")
    analysis = analyse(run, watched=dict.fromkeys(seen, warm))
    assert analysis.pools_filling == []
    assert not any("buffer pool" in line for line in warning_lines(run, analysis))
    assert advice_text(run, analysis).startswith("Take ssd-sata")
