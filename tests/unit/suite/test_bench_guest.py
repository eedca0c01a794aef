"""What `make bench-guest` writes: device times are compared by drive, and the CPU's part is judged with KVM alone."""

import pytest

from benches.guest import DRIVES, figures, milliseconds


def trial(drive, job, kind, service_ns, latency_ms):
    return {
        "observed": {"device": {"model": drive}},
        "load": {"jobs": [job]},
        "device": {"service_ns": {kind: {"mean": service_ns}}},
        "metrics": {"latency_ms_mean": latency_ms},
    }


def trials(read_ms, fdatasync_ms):
    """Two blocks, whose mean is what is given."""
    found = []
    for drive, share in zip(DRIVES, (1.0, 0.1), strict=True):
        for block in (0.5, 1.5):
            found.append(trial(drive, "reads", "read", 1e6 * share * block * read_ms, 99.0))
            found.append(trial(drive, "syncs", "flush", 1e6 * share * block * 2.0, share * block * fdatasync_ms))
    return milliseconds(found)


@pytest.mark.parametrize(("has_kvm", "met"), [(True, True), (False, None)])
def test_a_slow_cpu_is_judged_only_where_it_is_real(has_kvm, met):
    by_name = {each.name: each for each in figures(trials(5.0, 25.0), trials(5.2, 33.0), has_kvm=has_kvm)}
    read = by_name["device time of a read of hdd-7200, guest/host"]
    assert (round(read.value, 3), read.limit, read.met) == (1.04, [0.95, 1.05], True)
    assert by_name["device time of a FLUSH of ssd-sata, guest/host"].met is met
    fdatasync = by_name["time of fdatasync on hdd-7200, guest/host"]
    assert (round(fdatasync.value, 2), fdatasync.limit, fdatasync.met) == (1.32, None, None)
    assert by_name["time of fdatasync, hdd-7200:ssd-sata, guest/host"].met is met


def test_a_drive_that_answers_at_other_times_is_not_met():
    found = figures(trials(5.0, 25.0), trials(5.5, 25.0), has_kvm=False)
    assert [each.met for each in found if "a read of" in each.name] == [False, False]
