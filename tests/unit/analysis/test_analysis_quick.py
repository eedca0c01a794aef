"""A quick look at storage: noise, likeness and verdicts from figures whose truth is known."""

import math

import numpy as np
import pytest

from benches.honesty import quick as honesty
from dbdyno.analysis import quick

DEPTHS = (1, 8, 32)


def measured(name, rates, noise=0.0, seed=1, rounds=8):
    """Return what the program prints of a target with these rates at depth 1, ten times those at 8, twenty at 32."""
    random = np.random.default_rng(seed)
    steps = [
        {
            "operation": operation,
            "bytes": 4096,
            "depth": depth,
            "rounds": [
                {"operations": 1000, "elapsed_ns": 1e12 / (rate * scale * math.exp(noise * random.standard_normal()))}
                for _ in range(rounds)
            ],
            "latency_ns": {"count": 8000, "p50": 1e9 / rate, "p99": 3e9 / rate, "max": 9e9 / rate},
        }
        for operation, rate in rates.items()
        for depth, scale in zip(DEPTHS, (1, 10, 20), strict=True)
    ]
    facts = {"kind": "directory", "direct": True, "region_bytes": 2**30}
    return {"target": name, "facts": facts, "fill": {"bytes": 2**30, "elapsed_ns": 2e9}, "steps": steps}


def target(name="here", noise=0.0, seed=1, rounds=8, **rates):
    return quick.target_of(
        measured(name, rates or {"fsync": 500, "randread": 9000, "randwrite": 20000}, noise, seed, rounds)
    )


def test_a_rate_is_the_geometric_mean_and_its_interval_holds_the_truth():
    held = 0
    for seed in range(200):
        rate = target(noise=0.1, seed=seed).steps[("fsync", 8)].rate
        assert rate.low < rate.value < rate.high
        held += rate.low < 5000 < rate.high
    assert 180 <= held <= 199


def test_noise_is_that_between_rounds():
    noises = [quick.noise_of(target(noise=0.05, seed=seed)).value for seed in range(100)]
    assert np.sqrt(np.mean(np.square(noises))) == pytest.approx(0.05, rel=0.1)
    assert quick.least_shown(quick.noise_of(target(noise=0.05))) > quick.least_shown(quick.noise_of(target(noise=0.01)))


def test_one_round_has_no_spread():
    noise = quick.noise_of(target(rounds=1))
    assert not noise.known
    assert quick.least_shown(noise) is None


def test_it_is_like_the_nearest_drive_and_says_by_how_much():
    near = target("near", fsync=600, randread=9000, randwrite=20000)
    far = target("far", fsync=5, randread=90, randwrite=200)
    found = quick.likeness(target(), [far, near])
    assert (found.drive, found.alike) == ("near", True)
    assert found.factor == pytest.approx(math.exp(math.log(1.2) / math.sqrt(3)))
    assert not quick.likeness(target(), [far]).alike
    assert quick.likeness(target(), []) is None


def test_what_differs_is_found_and_the_same_is_not_called_different():
    slower = target("slower", noise=0.01, seed=2, fsync=400, randread=9000, randwrite=20000)
    words = {one.level_id: one.verdict for one in quick.verdicts(target(noise=0.01), slower)}
    assert words == {"fsync": "faster", "randread": "equivalent", "randwrite": "equivalent"}


def test_the_same_is_called_different_in_one_study_of_twenty_at_most():
    wrong = 0
    for seed in range(100):
        pair = target(noise=0.05, seed=2 * seed), target(noise=0.05, seed=2 * seed + 1)
        wrong += any(one.verdict in {"faster", "slower"} for one in quick.verdicts(*pair))
    assert wrong <= 11


def test_only_what_both_have_is_compared():
    device = target("disk", randread=9000)
    assert [one.level_id for one in quick.verdicts(device, target())] == ["randread"]
    assert quick.noise_of(device).n == 8


@pytest.mark.parametrize(("commits", "cheap"), [(500, False), (15000, True)])
def test_a_flush_that_costs_no_more_than_a_write_is_noticed(commits, cheap):
    host = quick.Host(0.0, 0.0, 0.0)
    here = target(fsync=commits, randread=9000, randwrite=20000)
    assert quick.Quick(here, host, quick.noise_of(here), None, None).flush_is_cheap is cheap


@pytest.mark.simulation
def test_what_is_said_of_these_seconds_is_right_of_them_and_would_not_be_of_the_disks():
    found = honesty.rows(1000, 7)
    assert [row for row in found if row.met is False] == []
    of_disks = {row.name: row.measured for row in found if row.group == "quick: different, of the disks"}
    assert of_disks["memory 0"] < 6
    assert of_disks["memory 0.995"] > 50
