"""Mistakes in the design."""

import pytest

from dbdyno.model.metrics import METRICS
from tests.unit.study.conftest import refusal

DEVICES = '["hdd-7200", "ssd-sata"]'
BASELINE = 'baseline = { device = "hdd-7200" }'
SCHEDULER, TWO_SCHEDULERS = 'scheduler = "mq-deadline"', 'scheduler = ["mq-deadline", "none"]'
TWO_ENDINGS = "can't be given with blocks, which fixes their number; leave out one of the two"

# What is changed in the study; the messages, each after the study's path.
MISTAKES = {
    "a factor compared that is none": (
        [("blocks = 6", 'compare = "one-factor"\ncompare_factors = ["devise"]')],
        [
            (
                ':22: design.compare_factors: "devise" is not a factor of this study; factors are device. '
                'Did you mean "device"?'
            )
        ],
    ),
    "factors to compare where all are": (
        [("blocks = 6", 'compare_factors = ["device"]')],
        [':21: design.compare_factors: is for compare = "one-factor"'],
    ),
    "no such metric": (
        [("blocks = 6", 'metric = "latency_p99"')],
        [
            f':21: design.metric: is "latency_p99"; allowed are {", ".join(METRICS)}. Did you mean "latency_ms_p99"?',
        ],
    ),
    "a list where nothing varies": (
        [("blocks = 6", "blocks = [5, 6]")],
        [":21: design.blocks: is [5, 6] but must be a whole number"],
    ),
    "baseline of no factor": (
        [("{ device", "{ devise")],
        [':20: design.baseline.devise: is not a factor of this study; factors are device. Did you mean "device"?'],
    ),
    "baseline of a fixed field": (
        [(DEVICES, '"ssd-sata"')],
        [":20: design.baseline.device: is not a factor of this study; factors are none: no field is given as a list"],
    ),
    "baseline of no level": (
        [(BASELINE, 'baseline = { device = "hdd-720" }')],
        [
            (
                ':20: design.baseline.device: is "hdd-720", not a level of device; levels are hdd-7200, ssd-sata. '
                'Did you mean "hdd-7200"?'
            )
        ],
    ),
    "an unknown metric to screen": (
        [("blocks = 6", 'secondary_metrics = ["latency_ms_p99", "server_cpu"]')],
        [
            (
                f':21: design.secondary_metrics: "server_cpu" is not a metric; known are {", ".join(METRICS)}. '
                'Did you mean "server_cpu_us_per_query"?'
            )
        ],
    ),
    "a secondary metric twice": (
        [("blocks = 6", 'secondary_metrics = ["errors", "reconnects", "errors"]')],
        [':21: design.secondary_metrics: names "errors" twice'],
    ),
    "a baseline that names no factor": (
        [(BASELINE, 'baseline = "hdd-7200"')],
        [':20: design.baseline: is "hdd-7200" but must be a section, such as { device = "hdd-7200" }'],
    ),
    "no list of what is hard to change": (
        [("blocks = 6", 'hard_to_change = "device"')],
        [':21: design.hard_to_change: is "device" but must be a list, such as ["device"]'],
    ),
    "no factor is hard to change": (
        [(SCHEDULER, TWO_SCHEDULERS), ("blocks = 6", 'hard_to_change = ["devise", "filesystem"]')],
        [
            (
                ':21: design.hard_to_change: "devise" is not a factor of this study; factors are device, scheduler. '
                'Did you mean "device"?'
            ),
            (':21: design.hard_to_change: "filesystem" is not a factor of this study; factors are device, scheduler'),
        ],
    ),
    "all is hard to change": (
        [("blocks = 6", 'hard_to_change = ["device"]')],
        [
            (
                ":21: design.hard_to_change: names device, which leaves no factor to vary inside a whole plot; "
                "leave one out"
            )
        ],
    ),
    "a margin too wide": (
        [("blocks = 6", 'margin = "150%"')],
        [':21: design.margin: is "150%"; it must be less than 100%'],
    ),
    "no block": ([("blocks = 6", "blocks = 0")], [":21: design.blocks: is 0; it must be at least 1"]),
    "fixed blocks, and until": (
        [("blocks = 6", 'blocks = 6\nuntil = "decided"\nmax_blocks = 20')],
        [f":22: design.until: {TWO_ENDINGS}", f":23: design.max_blocks: {TWO_ENDINGS}"],
    ),
    "precise, but how": (
        [("blocks = 6", 'until = "precise"')],
        [':19: design.half_width: is missing; until = "precise" needs it, such as "2%"'],
    ),
    "a half-width for nothing": (
        [("blocks = 6", 'half_width = "2%"')],
        [':21: design.half_width: is for until = "precise"; add that, or leave half_width out'],
    ),
    "too few blocks to decide anything": (
        [("blocks = 6", "max_blocks = 5")],
        [":21: design.max_blocks: is 5; it must be at least 6"],
    ),
    "until something else": (
        [("blocks = 6", 'until = "done"')],
        [':21: design.until: is "done"; allowed are decided, precise'],
    ),
    "a budget of nothing": (
        [("blocks = 6", 'budget = "0s"')],
        [':21: design.budget: is "0s"; it must be more than 0 s'],
    ),
}


@pytest.mark.parametrize(("changes", "messages"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_named(write_study, changes, messages):
    path = write_study(*changes)
    assert refusal(path) == "\n".join(f"{path}{message}" for message in messages)
