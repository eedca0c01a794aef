"""From a study to its plan: order, comparisons, number of blocks, identity."""

import math
from collections import Counter
from dataclasses import replace
from itertools import groupby, pairwise

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dbdyno.errors import UserError
from dbdyno.model.metrics import SECONDARY
from dbdyno.plan.order import Slot
from dbdyno.plan.plan import OVERHEAD_SECONDS, erased_devices
from dbdyno.plan.stop_rule import StopRule

MANY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
TWO_BY_TWO = ('scheduler = "mq-deadline"', 'scheduler = ["mq-deadline", "none"]')


def seeded(plan, seed):
    return replace(plan, design=replace(plan.design, seed=seed))


def order(plan, block, attempt=1):
    return [slot.treatment for slot in plan.slots(block, attempt)]


@pytest.fixture
def four(plan):
    return plan(TWO_BY_TWO)


@MANY
@given(st.integers(0, 2**63 - 1), st.integers(1, 1000), st.integers(1, 3))
def test_a_block_holds_every_treatment_once(four, seed, block, attempt):
    slots = seeded(four, seed).slots(block, attempt)
    assert sorted(slot.treatment for slot in slots) == ["t1", "t2", "t3", "t4"]
    assert [slot.position for slot in slots] == [1, 2, 3, 4]
    assert {(slot.block, slot.attempt) for slot in slots} == {(block, attempt)}


# The order of a run that was begun with an older dbdyno must not change under --resume.
GOLDEN = {
    (1, 1, 1): "t4 t2 t3 t1",
    (1, 1, 2): "t2 t3 t1 t4",
    (1, 2, 1): "t3 t4 t2 t1",
    (1, 3, 1): "t2 t4 t1 t3",
    (1, 1000, 1): "t1 t3 t2 t4",
    (0, 1, 1): "t4 t1 t2 t3",
    (2**63 - 1, 1, 1): "t3 t4 t2 t1",
}


@pytest.mark.parametrize(("key", "expected"), GOLDEN.items(), ids=str)
def test_the_order_never_changes_from_version_to_version(four, key, expected):
    seed, block, attempt = key
    assert " ".join(order(seeded(four, seed), block, attempt)) == expected


def test_seeds_of_load_and_device_never_change_from_version_to_version(four):
    assert [four.trial_seed(block) for block in (1, 2)] == [243257677398418, 115297019394292]


def test_the_order_knows_nothing_of_the_number_of_blocks(plan):
    short, long = plan(TWO_BY_TWO, blocks=2), plan(TWO_BY_TWO, blocks=50)
    assert [order(short, block) for block in (1, 2)] == [order(long, block) for block in (1, 2)]


def test_seeds_blocks_and_attempts_shuffle_anew(four):
    by_seed = {tuple(map(tuple, (order(seeded(four, seed), block) for block in range(1, 6)))) for seed in range(50)}
    by_block = {tuple(order(four, block)) for block in range(1, 300)}
    by_attempt = {tuple(order(four, 1, attempt)) for attempt in range(1, 300)}
    assert len(by_seed) == 50
    assert len(by_block) == len(by_attempt) == math.factorial(4)


def test_no_treatment_is_favoured(four):
    orders = [order(four, block) for block in range(1, 1201)]
    for position in range(4):
        assert all(240 <= count <= 360 for count in Counter(row[position] for row in orders).values())
    follows = Counter(pair for row in orders for pair in pairwise(row))
    assert len(follows) == 12
    assert all(240 <= count <= 360 for count in follows.values())


def test_the_treatments_of_a_block_meet_the_same_chances_and_blocks_meet_others(four):
    assert len({four.trial_seed(block) for block in range(1, 1001)}) == 1000
    assert four.trial_seed(1) != seeded(four, 2).trial_seed(1)
    assert all(0 <= four.trial_seed(block) < 2**53 for block in range(1, 100))  # JSON and the load generator hold it


def test_trial_ids_sort_in_the_order_of_the_run(factors):
    made = factors({"x": list(range(12))})
    blocks = (1, 2, 9, 10, 99, 100, 999, 1000)
    ids = [slot.id for block in blocks for attempt in (1, 2) for slot in made.slots(block, attempt)]
    assert ids == sorted(ids)
    assert Slot(3, 1, 2, "t4").id == "b0003a1p002-t4"


def hard(*names):
    return 'blocks = 6\nhard_to_change = ["' + '", "'.join(names) + '"]\n'


def plots_of(plan, block, names):
    """The levels of the factors that are hard to change, of each trial of a block in its order."""
    levels = {treatment.id: treatment.levels for treatment in plan.design.treatments}
    return [tuple(levels[id_][name] for name in names) for id_ in order(plan, block)]


@MANY
@given(st.data(), st.lists(st.integers(1, 3), min_size=2, max_size=3), st.integers(0, 2**63 - 1), st.integers(1, 1000))
def test_the_trials_of_a_whole_plot_stand_together(factors, data, counts, seed, block):
    names = [f"x{index}" for index in range(len(counts))]
    some = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=len(names) - 1, unique=True))
    assume(any(count > 1 for name, count in zip(names, counts, strict=True) if name not in some))
    levels = {name: list(range(count)) for name, count in zip(names, counts, strict=True)}
    made = seeded(factors(levels, hard(*some)), seed)
    assert [factor.name for factor in made.design.factors if factor.hard_to_change] == sorted(some)
    plots = plots_of(made, block, some)
    assert len([plot for plot, _ in groupby(plots)]) == len(set(plots)) == math.prod(len(levels[name]) for name in some)
    assert sorted(order(made, block)) == sorted(treatment.id for treatment in made.design.treatments)


def test_no_whole_plot_and_no_place_inside_one_is_favoured(factors):
    made = factors({"x": [1, 2], "y": [1, 2, 3]}, hard("x"))
    orders = [tuple(order(made, block)) for block in range(1, 3601)]
    found = Counter(orders)
    assert len(found) == 2 * math.factorial(3) ** 2
    assert all(20 <= count <= 90 for count in found.values())  # 50 on average


GOLDEN_PLOTS = ["t2 t1 t4 t3", "t2 t1 t3 t4", "t2 t1 t4 t3", "t3 t4 t1 t2", "t1 t2 t3 t4"]


def test_the_order_inside_whole_plots_never_changes_from_version_to_version(plan):
    made = plan(TWO_BY_TWO, ("blocks = 6", hard("device")))
    assert [" ".join(order(made, block)) for block in (1, 2, 3, 4, 5)] == GOLDEN_PLOTS


def pairs(plan):
    return [(comparison.baseline, comparison.level) for comparison in plan.design.comparisons]


ONE_FACTOR = 'compare = "one-factor"\n'
EVERY_PAIR = 'compare = "every-pair"\n'


@pytest.mark.parametrize(
    ("levels", "design", "expected"),
    [
        ({"x": [1, 2], "y": [1, 2]}, "", [("t1", "t2"), ("t1", "t3"), ("t1", "t4")]),
        ({"x": [1, 2], "y": [1, 2]}, "baseline = { x = 2 }\n", [("t3", "t1"), ("t3", "t2"), ("t3", "t4")]),
        ({"x": [1, 2], "y": [1, 2]}, ONE_FACTOR, [("t1", "t2"), ("t1", "t3"), ("t2", "t4"), ("t3", "t4")]),
        (
            {"x": [1, 2, 3], "y": [1, 2]},
            ONE_FACTOR + "baseline = { x = 2, y = 2 }\n",
            [("t3", "t1"), ("t2", "t1"), ("t4", "t2"), ("t4", "t3"), ("t3", "t5"), ("t6", "t5"), ("t4", "t6")],
        ),
        (
            {"x": [1, 2], "y": [1, 2, 3]},
            ONE_FACTOR + 'compare_factors = ["y"]\nbaseline = { y = 2 }\n',
            [("t2", "t1"), ("t2", "t3"), ("t5", "t4"), ("t5", "t6")],
        ),
        ({"x": [1, 2, 3]}, EVERY_PAIR, [("t1", "t2"), ("t1", "t3"), ("t2", "t3")]),
        ({"x": [1, 2, 3]}, EVERY_PAIR + "baseline = { x = 2 }\n", [("t2", "t1"), ("t2", "t3"), ("t1", "t3")]),
        ({"x": [1]}, "", []),
        ({"x": [1]}, EVERY_PAIR, []),
        ({"x": [1]}, ONE_FACTOR, []),
    ],
)
def test_comparisons(factors, levels, design, expected):
    assert sorted(pairs(factors(levels, design))) == sorted(expected)


@MANY
@given(st.lists(st.integers(1, 3), min_size=1, max_size=3))
def test_every_pair_is_every_two_treatments_once_and_those_with_the_baseline_first(factors, counts):
    made = factors({f"x{index}": list(range(count)) for index, count in enumerate(counts)}, EVERY_PAIR)
    found = pairs(made)
    n = len(made.design.treatments)
    assert len({frozenset(pair) for pair in found}) == len(found) == n * (n - 1) // 2
    assert [one == made.design.baseline for one, _ in found] == [True] * (n - 1) + [False] * (len(found) - n + 1)


@MANY
@given(st.data(), st.lists(st.integers(1, 3), min_size=1, max_size=3))
def test_one_factor_comparisons_differ_in_one_factor_and_lead_away_from_the_reference(factors, data, counts):
    levels = {f"x{index}": list(range(1, count + 1)) for index, count in enumerate(counts)}
    reference = {name: str(data.draw(st.sampled_from(values))) for name, values in levels.items()}
    baseline = ", ".join(f"{name} = {level}" for name, level in reference.items())
    made = factors(levels, f"{ONE_FACTOR}baseline = {{ {baseline} }}\n")
    by_id = {treatment.id: treatment.levels for treatment in made.design.treatments}
    assert by_id[made.design.baseline] == reference
    for one, other in pairs(made):
        [name] = [name for name in levels if by_id[one][name] != by_id[other][name]]
        assert by_id[one][name] == reference[name]
    total = math.prod(counts)
    assert len(set(pairs(made))) == len(pairs(made)) == sum(total // count * (count - 1) for count in counts)


@MANY
@given(st.lists(st.integers(1, 3), min_size=1, max_size=3))
def test_baseline_comparisons_put_every_other_treatment_against_it(factors, counts):
    made = factors({f"x{index}": list(range(count)) for index, count in enumerate(counts)})
    others = [treatment.id for treatment in made.design.treatments if treatment.id != made.design.baseline]
    assert pairs(made) == [(made.design.baseline, other) for other in others]


def test_the_baseline_is_the_first_level_of_each_factor_but_where_the_study_says_otherwise(factors):
    levels = {"x": [1, 2], "y": [1, 2]}
    assert factors(levels).design.baseline == "t1"
    assert factors(levels, "baseline = { y = 2 }\n").design.baseline == "t2"


def test_every_treatment_has_its_specification(four):
    for treatment in four.design.treatments:
        spec = four.specs[treatment.id]
        assert {"device": spec.stack.device, "scheduler": spec.stack.scheduler} == treatment.levels


@pytest.mark.parametrize(
    ("design", "expected"),
    [
        ("", StopRule("decided", 40)),
        ("max_blocks = 20\n", StopRule("decided", 20)),
        ("blocks = 4\n", StopRule("blocks", 4)),
        ('until = "precise"\nhalf_width = "2%"\n', StopRule("precise", 40, 0.02)),
        ('blocks = 4\nbudget = "2h"\n', StopRule("blocks", 4, None, 7200.0)),
    ],
)
def test_when_measuring_stops(factors, design, expected):
    assert StopRule.of_run(factors({"x": [1, 2]}, design).design) == expected


def test_the_command_line_overrules_seed_and_blocks(plan):
    made = plan(seed=0, blocks=3)
    assert (made.design.seed, made.design.blocks) == (0, 3)
    assert (plan().design.seed, plan().design.blocks) == (1, 6)


def test_without_a_seed_each_plan_draws_one_that_can_be_typed(plan):
    drawn = [plan(seed=None) for _ in range(8)]
    assert len({made.design.seed for made in drawn}) > 1
    assert all(made.seed_is_drawn and 0 <= made.design.seed < 2**32 for made in drawn)
    again = plan(seed=drawn[0].design.seed)
    assert [again.slots(block, 1) for block in range(1, 7)] == [drawn[0].slots(block, 1) for block in range(1, 7)]
    assert not again.seed_is_drawn


def test_a_study_may_fix_its_seed(plan):
    made = plan(("blocks = 6", "blocks = 6\nseed = 5"), seed=None)
    assert (made.design.seed, made.seed_is_drawn) == (5, False)


def test_too_few_blocks_are_foretold(plan):
    assert list(plan(blocks=5).warnings()) == [
        (
            "5 blocks can't decide 1 comparison at 5 %: the smallest p the exact test can show, times 1 (Holm), "
            "is 0.0694; give blocks = 6 or more"
        )
    ]
    assert list(plan(TWO_BY_TWO, blocks=6).warnings()) == list(plan(blocks=6).warnings()) == []


@MANY
@given(st.integers(2, 9), st.integers(1, 14))
def test_a_warning_comes_exactly_where_nothing_can_be_decided(factors, levels, blocks):
    made = factors({"x": list(range(levels))}, f"blocks = {blocks}\n")
    assert bool(list(made.warnings())) == (blocks < 6), "a large effect can be decided from six blocks on"


def test_a_budget_of_less_than_a_block_is_foretold(plan):
    assert list(plan(("blocks = 6", 'budget = "5s"')).warnings()) == [
        "the budget is less than a block may take; the first block is run all the same"
    ]


def test_nothing_to_compare_is_foretold(factors):
    assert list(factors({"x": [1]}).warnings()) == [
        "there is nothing to compare: no field is given as a list of two values or more"
    ]


def test_the_time_is_exact_where_the_load_is_bounded_by_time(plan):
    bounded = plan(("queries = 1000", 'duration = ["10s", "30s"]\nwarmup = "1s"'))
    assert bounded.seconds_per_trial() == pytest.approx(1 + (10 + 30) / 2 + OVERHEAD_SECONDS)


SAME = {
    "title": ('"A study"', '"Another"'),
    "question": ('"Which?"', '"What?"'),
    "blocks": ("blocks = 6", "blocks = 9"),
    "seed": ("blocks = 6", "blocks = 6\nseed = 5"),
    "margin": ("blocks = 6", 'margin = "10%"'),
    "order of the fields": ("clients = 10\nqueries = 1000", "queries = 1000\nclients = 10"),
    "a comment": ("clients = 10", "clients = 10  # ten"),
}
OTHER = {
    "workload": ("clients = 10", "clients = 11"),
    "levels": ('["hdd-7200", "ssd-sata"]', '["hdd-7200", "nvme"]'),
    "order of levels": ('["hdd-7200", "ssd-sata"]', '["ssd-sata", "hdd-7200"]'),
    "server setting": ('"256M"', '"128M"'),
    "queue": ("nr_requests = 64", "nr_requests = 32"),
    "metric": ("blocks = 6", 'metric = "latency_ms_p99"'),
    "baseline": ('device = "hdd-7200" }', 'device = "ssd-sata" }'),
}


def test_identity_changes_with_what_is_hard_to_change(plan):
    made = [plan(TWO_BY_TWO, ("blocks = 6", hard(*names))) for names in (["device"], ["scheduler"])]
    assert len({one.study_sha256() for one in (plan(TWO_BY_TWO), *made)}) == 3


@pytest.mark.parametrize("change", SAME.values(), ids=SAME.keys())
def test_identity_is_what_a_trial_measures(plan, change):
    assert plan(change).study_sha256() == plan().study_sha256()


@pytest.mark.parametrize("change", OTHER.values(), ids=OTHER.keys())
def test_identity_changes_with_what_a_trial_measures(plan, change):
    assert plan(change).study_sha256() != plan().study_sha256()


def test_devices_to_be_erased_are_the_real_ones(plan):
    devices = '["/dev/disk/by-id/ata-A_1", "/dev/disk/by-id/ata-B_2"]'
    made = plan(
        ('["hdd-7200", "ssd-sata"]', devices), ('size = "1GiB"\n', ""), ('baseline = { device = "hdd-7200" }', "")
    )
    assert erased_devices(made) == ["/dev/disk/by-id/ata-A_1", "/dev/disk/by-id/ata-B_2"]
    assert erased_devices(plan()) == []


def test_the_usual_metrics_are_secondary_but_for_the_one_that_verdicts_are_about(plan):
    assert plan().design.secondary_metrics == [name for name in SECONDARY if name != "queries_per_second"]
    assert "latency_ms_p99" not in plan(("blocks = 6", 'metric = "latency_ms_p99"')).design.secondary_metrics
    named = 'secondary_metrics = ["latency_ms_p999", "errors"]'
    assert plan(("blocks = 6", named)).design.secondary_metrics == ["latency_ms_p999", "errors"]
    assert plan(("blocks = 6", "secondary_metrics = []")).design.secondary_metrics == []


@pytest.mark.parametrize(
    ("metric", "amount", "why"),
    [
        ("achieved_ratio", "queries = 1000", "there is no offered rate"),
        ("achieved_ratio", 'duration = "2s"\nrate = 50', ""),
        ("seconds_real", 'duration = "2s"', "the time is given by workload.duration"),
        ("seconds_real", "queries = 1000", ""),
        ("errors", "queries = 1000", "a trial with an error fails"),
        ("errors", 'queries = 1000\nignore_errors = "1213"', ""),
        ("reconnects", "queries = 1000", "a trial that loses a connection fails"),
        ("latency_ms_p99", "queries = 1000", ""),
    ],
)
def test_a_metric_that_tells_nothing_under_the_load_is_foretold(plan, metric, amount, why):
    made = plan(("blocks = 6", f'blocks = 6\nmetric = "{metric}"'), ("queries = 1000", amount))
    found = list(made.warnings())
    assert [one.startswith(f"no verdict can come from {metric}: {why}") for one in found] == ([True] if why else [])


def test_more_trials_than_a_run_can_be_read_with_are_refused(plan):
    levels = ('innodb_buffer_pool_size = "256M"', f"innodb_io_capacity = {list(range(100, 130))}")
    with pytest.raises(UserError, match="60 treatments in 1000 blocks are 60,000 trials; a run has at most 20,000"):
        plan(levels, blocks=1000)
    assert len(plan(levels, blocks=300).design.treatments) == 60
    assert plan(levels, stop_rule=StopRule("open", 1000)).design.until == "open"
