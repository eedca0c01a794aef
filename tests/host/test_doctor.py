"""``dbdyno doctor`` measures the host: all figures with root, without it all but the emulated disk."""

import json

import pytest

from tests.support import dbdyno, what_is_left

pytestmark = pytest.mark.host

ENDS_WITHIN_SECONDS = 120  # of some 10: the host may be busy with other tests
AS_NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
ALWAYS = ("wake_up_us_p99", "timer_late_us_p99", "clock_read_ns", "memory_bytes_per_second", "stolen_share")


@pytest.mark.parametrize("prefix", [(), AS_NOBODY], ids=["root", "nobody"])
def test_all_that_can_be_is_measured(prefix, state):
    if prefix:
        state.chmod(0o777)
    done = dbdyno("doctor", "--json", state=state, prefix=prefix, timeout=ENDS_WITHIN_SECONDS)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    figures = found["measured"]
    assert all(figures[name] >= 0 for name in ALWAYS)
    assert (figures["disk_iops"] is None) == bool(prefix)
    assert bool(figures["no_disk"]) == bool(prefix)
    assert {one["fit"] for one in found["studies"]} <= {"good", "with care", "no", "unknown"}
    assert all(one["command"] for one in found["advice"])
    assert "measuring for about 10 s: wake-ups" in done.stderr
    assert what_is_left(state) == []
