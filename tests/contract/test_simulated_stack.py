"""The contract of a kind of stack, of the one that stands on no host."""

import json
from pathlib import Path

import pytest

from dbdyno._native import kernels, simulate
from dbdyno.run.ports import HOST
from dbdyno.stack.kinds.catalogue import KINDS
from dbdyno.stack.kinds.kind import Raising
from dbdyno.stack.layer import StackContext, raised
from dbdyno.study.schema import TrialSpec
from dbdyno.study.stack_rules import broken_stack_rules
from dbdyno.workload.simulated import Simulated, point_of

KIND = KINDS["simulated"]
EVERY = [(kernel["name"], scheduler) for kernel in kernels() for scheduler in kernel["schedulers"]]


def spec_of(kernel="2.6.18", **stack):
    """Return a treatment of a moment's load."""
    load = {"kind": "fio", "profile": "RND4K Q4T2", "load": "mix", "size": "64MiB", "duration": "500ms"}
    stack = {"kernel": kernel, "device": "hdd-15k", "size": "128MiB", **stack}
    return TrialSpec.model_validate({"stack": stack, "workload": load})


def raised_stack(spec, journal):
    """Return its layers, raised on nothing."""
    with KIND.new_image(spec, journal) as image:
        stack = KIND.stack(spec, image, Raising(Path("unused"), lambda _: None))
        return raised(stack.layers, StackContext(journal, Path()))


@pytest.mark.parametrize(("kernel", "scheduler"), EVERY, ids=map(" ".join, EVERY))
def test_every_scheduler_of_every_kernel_is_observed_as_it_is_simulated(kernel, scheduler, journal):
    spec = spec_of(kernel, scheduler=scheduler)
    assert list(broken_stack_rules(spec, Path())) == []
    with raised_stack(spec, journal) as up:
        assert up.observed["device"]["kind"] == "simulated"
        assert (up.observed["queue"]["kernel"], up.observed["queue"]["scheduler"]) == (kernel, scheduler)
    outcome = json.loads(simulate(point_of(spec, 1)))
    assert outcome["scheduler"] == scheduler


def test_it_needs_and_touches_nothing(journal):
    spec = spec_of()
    assert list(KIND.needs_of_ground(spec, frozenset())) == list(KIND.needs_of_server(spec)) == []
    assert list(KIND.touches([spec], {})) == ["nothing of this host: kernel and drive are simulated"]
    before = journal.path.read_bytes()
    with raised_stack(spec, journal), HOST.without_host().scratch(journal) as ground:
        assert HOST.without_host().disks_below(ground) == []
    assert journal.path.read_bytes() == before  # nothing to undo


def test_what_a_study_does_not_say_is_the_kernel_s_default(journal):
    with raised_stack(spec_of(), journal) as up:
        assert up.observed["queue"]["scheduler"] == "cfq"
        assert up.observed["queue"]["nr_requests"] == "128"
        assert up.observed["queue"]["queue_depth"] == "32"
        assert up.observed["queue"]["iosched"]["slice_idle"] == "8"


def test_the_same_seed_has_the_same_outcome_and_another_has_another(journal, tmp_path):
    spec = spec_of()
    with raised_stack(spec, journal) as up:
        first, again, other = (Simulated(spec).run(up, seed, tmp_path) for seed in (1, 1, 2))
    assert first.metrics() == again.metrics() != other.metrics()
    assert first.columns() == again.columns()


def test_metrics_series_and_histogram_are_of_the_same_load(journal, tmp_path):
    spec = spec_of()
    with raised_stack(spec, journal) as up:
        load = Simulated(spec).run(up, 1, tmp_path)
    metrics, device, latencies = load.metrics(), load.beside()["block_device"], load.latencies()
    assert metrics["seconds_real"] == load.window_ns[1] / 1e9 == 0.5
    assert metrics["latency_ms_p50"] <= metrics["latency_ms_p99"] <= metrics["latency_ms_max"]
    assert max(latencies["latency_ns"]) / 1e6 == metrics["latency_ms_max"]
    assert sum(latencies["count"]) == pytest.approx(metrics["iops"] * 0.5)
    assert device["t_s"] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])
    moved = device["read_bytes"][-1] + device["written_bytes"][-1]
    assert moved == pytest.approx(metrics["megabytes_per_second"] * 1e6 * 0.5)
    assert {len(column) for column in device.values()} == {5}
    assert len(load.columns()["iops"]) == 5


def test_what_the_simulator_refuses_is_the_trial_s_failure(journal, tmp_path):
    from dbdyno.errors import TrialError

    spec = spec_of()
    with raised_stack(spec, journal) as up, pytest.raises(TrialError, match="the simulator refused it: size_bytes"):
        Simulated(spec, lambda point: simulate(point.replace("134217728", "7"))).run(up, 1, tmp_path)
