"""Studies on several hosts: one vote a host, hosts as whole plots, the parts of a variance, odd hosts."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from benches.honesty import fleets
from dbdyno.analysis import statistics as mean
from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.fleet import (
    Groups,
    HostsCode,
    LevelCode,
    by_ranks,
    evidence_over_hosts,
    excluded_kinds,
    in_halves,
    odd_p,
    of_one_host,
)
from dbdyno.analysis.looks import Looks
from dbdyno.analysis.statistics import log_margin
from dbdyno.analysis.verdict.evidence import evidence
from dbdyno.analysis.verdict.figures import predecessors
from dbdyno.store.records import FailedTrial
from tests.unit.report.fleet_runs import on_hosts, same_on_hosts

DRIVES = {"drive": {f"db{number}": "hdd" if number <= 4 else "ssd" for number in range(1, 9)}}


@pytest.mark.simulation
def test_every_row_is_met():
    assert [row for row in fleets.rows(1000, 7) if row.met is False] == []


@pytest.mark.simulation
def test_pooling_the_blocks_of_all_hosts_would_fail():
    pooled = [row for row in fleets.rows(300, 7) if "pooled" in row.name or "pooled" in row.group]
    assert len(pooled) == len(fleets.HOSTS) + 4
    assert all(row.measured > 40 for row in pooled)


def test_of_few_hosts_t_is_that_of_the_books():
    values = np.random.default_rng(1).normal(0.02, 0.03, (5, 4))
    found = evidence_over_hosts(values, 0.03)
    for at, row in enumerate(values):
        right = stats.ttest_1samp(row, 0.0)
        assert found.p[at] == pytest.approx(right.pvalue)
        assert (found.low[at], found.high[at]) == pytest.approx(tuple(right.confidence_interval()))


def test_ranks_take_over_where_they_can_decide():
    assert [n for n in range(3, 9) if by_ranks(n)] == [6, 7, 8]
    assert [n for n in range(3, 9) if by_ranks(n, 3)] == [8]
    values = np.random.default_rng(1).normal(0.05, 0.01, 6)
    assert evidence_over_hosts(values, 0.03) == evidence(values, Looks.single(6), 0.03)
    spread = values * [1, 1, 1, 1, 1, 9]  # too much for the mean
    assert evidence_over_hosts(spread, 0.03).p == pytest.approx(2 / 2**6 / 0.9)


def test_of_two_hosts_nothing_is_said():
    found = evidence_over_hosts(np.array([0.1, 0.1]), 0.03)
    assert (float(found.p), float(found.p_equivalence), np.isfinite(found.low)) == (1.0, 1.0, False)


def like_these(run):
    (found,) = analyse(run).fleet.like_these
    return found


def test_one_host_has_one_vote_however_many_blocks_it_ran():
    run = on_hosts([0.1, 0.02, 0.02, 0.02])
    found = like_these(run)
    lone = [one for one in run.trials if one.host != "db1" or one.block == 1]
    less = like_these(replace(run, trials=lone))
    assert [one.blocks for one in less.hosts] == [1, 6, 6, 6]
    assert [one.host for one in found.hosts] == ["db1", "db2", "db3", "db4"]
    assert found.effect.value == pytest.approx(math.expm1(0.04), abs=0.005)
    assert less.effect.value == pytest.approx(math.expm1(0.04), abs=0.01)


def test_what_all_hosts_agree_on_is_shown_of_hosts_like_these():
    found = like_these(on_hosts([0.10, 0.11, 0.09, 0.10]))
    assert (found.word.hosts_text, found.code, found.method) == ("faster", HostsCode.DIFFERENT, "t")
    assert found.effect.n == 4
    assert found.effect.low < math.expm1(0.1) < found.effect.high
    found = like_these(on_hosts([0.0, 0.003, -0.003, 0.0, 0.002, -0.002, 0.001]))
    assert (found.word.hosts_text, found.code, found.method) == (
        "equivalent",
        HostsCode.MARGIN_RULED_OUT,
        "signed rank",
    )


def test_what_is_clear_on_these_hosts_need_not_hold_on_others():
    analysis = analyse(on_hosts([0.15, 0.01, 0.10, 0.0]))
    (verdict,), (found,) = analysis.verdicts, analysis.fleet.like_these
    assert verdict.verdict == "faster"
    assert (found.word.hosts_text, found.code) == ("not shown", HostsCode.HOSTS_DIFFER)
    assert found.spread.low > 0.03


def test_too_few_hosts_show_nothing():
    found = like_these(on_hosts([0.1, 0.1]))
    assert (found.word.hosts_text, found.code, found.method) == ("not shown", HostsCode.TOO_FEW_HOSTS, "none")
    assert found.effect.value == pytest.approx(math.expm1(0.1), abs=0.01)
    assert not found.effect.bounded


def test_no_word_stands_that_is_not_said_of_these_hosts():
    found = like_these(on_hosts([0.05] * 4, blocks_each=1, noise=0.001))
    assert found.p_adjusted < 0.01, "by hosts alone it would be shown"
    assert (found.word.hosts_text, found.code) == ("not shown", HostsCode.NOT_ON_THESE_HOSTS)


def test_what_is_not_comparable_is_not_comparable_on_other_hosts():
    run = on_hosts([0.1] * 4)
    found = like_these(replace(run, dropped=frozenset({"t2"})))
    assert (found.word.hosts_text, found.code) == ("not shown", HostsCode.NOT_COMPARABLE)


def test_a_run_on_one_host_says_nothing_of_hosts(a_run):
    assert analyse(a_run({"t1": [1.0] * 6, "t2": [1.1] * 6})).fleet is None


def test_levels_of_hosts_are_compared_by_hosts():
    speeds = [0.0, 0.05, -0.05, 0.02, 0.40, 0.45, 0.38, 0.42]
    (found,) = analyse(on_hosts([0.0] * 8, speeds=speeds, levels=DRIVES)).fleet.levels
    assert (found.word.text, found.code, found.effect.n) == ("higher", LevelCode.DIFFERENT, 8)
    assert found.p_adjusted == pytest.approx(2 / 70)
    assert (found.baseline.level, found.level.level) == ("hdd", "ssd")
    assert found.effect.low > 0.3
    mixed = analyse(on_hosts([0.0] * 8, speeds=[0.0, 0.4] * 4, levels=DRIVES)).fleet.levels[0]
    assert (mixed.word.text, mixed.code) == ("not shown", LevelCode.HOSTS_DIFFER)


def test_one_machine_against_another_is_no_level_against_another():
    levels = {"drive": {"db1": "hdd", "db2": "ssd"}}
    (found,) = analyse(on_hosts([0.0] * 2, speeds=[0.0, 0.4], levels=levels)).fleet.levels
    assert (found.word.text, found.code, found.effect.bounded) == ("not shown", LevelCode.ONE_HOST_EACH, False)
    assert found.machines.low < math.expm1(0.4) < found.machines.high


@pytest.mark.parametrize("hosts", [3, 6, 7])
def test_fewer_than_four_hosts_of_a_level_show_nothing(hosts):
    levels = {"drive": {f"db{at}": "hdd" if at <= 3 else "ssd" for at in range(1, hosts + 1)}}
    found = analyse(on_hosts([0.0] * hosts, speeds=[0.0] * 3 + [0.5] * (hosts - 3), levels=levels)).fleet.levels
    assert {(one.word.text, one.code) for one in found} <= {("not shown", LevelCode.TOO_FEW_HOSTS)}


def test_more_questions_need_more_hosts():
    levels = DRIVES | {"rack": {f"db{at}": "left" if at % 2 else "right" for at in range(1, 9)}}
    speeds = [0.0, 0.01, 0.0, 0.01, 0.4, 0.41, 0.4, 0.41]
    drive, rack = analyse(on_hosts([0.0] * 8, speeds=speeds, levels=levels)).fleet.levels
    assert (drive.code, drive.p_adjusted) == (LevelCode.P_OUT_OF_REACH, pytest.approx(4 / 70))
    assert rack.word.text == "not shown"


def test_an_effect_that_goes_with_the_level_is_found():
    effects = [0.0, 0.01, -0.01, 0.0, 0.2, 0.21, 0.19, 0.2]
    (found,) = analyse(on_hosts(effects, levels=DRIVES)).fleet.effects
    assert (found.word.text, found.of.level_id) == ("higher", "t2")
    assert found.effect.value == pytest.approx(math.expm1(0.2), abs=0.02)


def test_variance_is_laid_to_hosts_blocks_starts_and_what_is_inside():
    rng = np.random.default_rng(3)
    noise = analyse(same_on_hosts(list(rng.normal(0, 0.1, 8)), blocks_each=20)).fleet.noise
    assert noise.between_hosts.low < 0.1 < noise.between_hosts.high
    assert noise.between_starts.low < math.sqrt(0.01**2 - 0.002**2) < noise.between_starts.high
    assert noise.inside.value == pytest.approx(0.002, rel=0.1)
    assert noise.between_blocks.low == 0
    assert noise.share_of_hosts.low > 0.9
    alike = analyse(same_on_hosts([0.0] * 8, blocks_each=20)).fleet.noise
    assert alike.between_hosts.low == alike.share_of_hosts.low == 0


def test_an_odd_host_is_named_and_no_other():
    noise = analyse(same_on_hosts([0.0, 0.01, -0.01, 0.005, -0.2, 0.0])).fleet.noise
    assert [one.host.host for one in noise.odd] == ["db5"]
    assert noise.odd[0].difference == pytest.approx(math.expm1(-0.2), abs=0.02)
    assert not analyse(same_on_hosts([0.0, 0.01, -0.2])).fleet.noise.odd, "of three, who is odd?"


def test_leaving_one_out_is_the_studentised_residual():
    means = np.array([1.0, 1.2, 0.9, 1.1, 2.0])
    _, p = odd_p(means, np.ones(5) / 10)
    others = means[:4]
    t = (2.0 - others.mean()) / (others.std(ddof=1) * math.sqrt(1 + 1 / 4))
    assert p[4] == pytest.approx(5 * 2 * stats.t.sf(t, 3))


def test_components_are_those_of_the_analysis_of_variance():
    rng = np.random.default_rng(1)
    values = [rng.normal(mean, 1.0, 5) for mean in (0.0, 3.0, 5.0, 2.0)]
    found = Groups.of(values)
    assert found.between.value / found.inside.value == pytest.approx(stats.f_oneway(*values).statistic)
    assert found.deviation().value == pytest.approx(math.sqrt((found.between.value - found.inside.value) / 5))
    assert in_halves(np.array([1.0, 3.0, 5.0, 7.0])).tolist() == [2.0, 6.0]
    assert in_halves(np.array([4.0])).tolist() == [4.0]


def test_the_usual_block_is_a_host_s_figure():
    assert float(of_one_host(np.array([0.1, 0.1, 0.1, 0.1, 5.0]))) == pytest.approx(0.1)


def test_each_host_has_an_order_of_its_own():
    run = on_hosts([0.0, 0.0], blocks_each=3)
    before = predecessors(run)
    ordered = sorted((one for one in run.trials if one.host == "db2"), key=lambda one: (one.block, one.position))
    assert [before.get(one.id) for one in ordered] == [None, *(one.treatment for one in ordered[:-1])]
    failed = replace(run, failures=[FailedTrial("f", 1, 1, "t1", "died", "db1")])
    assert predecessors(failed).keys() & {one.id for one in ordered} == before.keys() & {one.id for one in ordered}


@pytest.mark.parametrize("hosts", [4, 6, 10])
def test_hosts_like_these_are_equivalent_only_if_a_farther_one_would_not_change_it(hosts):
    """The mean is asked once more with a further host, twice as far from the middle as the farthest, to either side."""
    near = np.linspace(-0.002, 0.002, hosts)
    assert float(evidence_over_hosts(near, 0.03).p_equivalence) < 0.05
    far = near.copy()
    far[-1] = 0.02 * hosts**0.5
    found = float(evidence_over_hosts(far, 0.03).p_equivalence)
    middle = float(np.median(far))
    more = np.append(far, middle + 2 * (far[-1] - middle))
    assert found >= float(mean.mean_p_beyond(more, np.array(log_margin(0.03)))) > 0.05
    assert float(evidence_over_hosts(-far, 0.03).p_equivalence) == pytest.approx(found)


@pytest.mark.simulation
@pytest.mark.parametrize("hosts", [6, 10])
def test_skewed_effects_at_the_margin_are_not_called_equivalent(hosts):
    rng = np.random.default_rng(3)
    values = log_margin(0.03) + 0.01 * (rng.exponential(size=(4000, hosts)) - 1)
    assert np.mean(mean.mean_p_beyond(values, log_margin(0.03)) <= 0.05) > 0.08  # what the mean of these alone says
    assert np.mean(evidence_over_hosts(values, 0.03).p_equivalence <= 0.05) < 0.06


def test_what_so_many_hosts_exclude():
    assert [round(excluded_kinds(k), 3) for k in (1, 3, 4, 10, 30)] == [0.95, 0.632, 0.527, 0.259, 0.095]
    assert excluded_kinds(0) == 1
    assert (1 - excluded_kinds(7)) ** 7 == pytest.approx(0.05)
    assert excluded_kinds(100) == pytest.approx(3 / 100, rel=0.02)
