"""What a study takes for a kernel's ``nr_requests`` is what the simulator takes."""

import json

import pytest

from dbdyno._native import simulate
from dbdyno.study.simulated_loads import kernels_by_name

DEPTH = 16
EACH = [(name, scheduler) for name, kernel in kernels_by_name().items() for scheduler in kernel.schedulers]


def outcome(kernel, scheduler, nr_requests):
    """Of more random reads at once than any default has requests; of many processes, as the first cfq limits each."""
    job = {"depth": 100, "processes": 100}
    point = {
        "device": "hdd-15k",
        "size_bytes": 1 << 33,
        "kernel": kernel,
        "scheduler": scheduler,
        "nr_requests": nr_requests,
        "queue_depth": DEPTH,
        "duration_s": 0.2,
        "load": {"kind": "jobs", "jobs": [job]},
    }
    return json.loads(simulate(json.dumps(point)))["columns"]


@pytest.mark.parametrize(("name", "scheduler"), EACH)
def test_default_and_bounds_of_nr_requests_are_the_simulators(name, scheduler):
    default, least, most = kernels_by_name()[name].nr_requests(scheduler, DEPTH)
    assert outcome(name, scheduler, None) == outcome(name, scheduler, default) != outcome(name, scheduler, least)
    assert outcome(name, scheduler, most)
    for outside in (least - 1, most + 1):
        with pytest.raises(ValueError, match=f"not between {least} and {most}"):
            outcome(name, scheduler, outside)
