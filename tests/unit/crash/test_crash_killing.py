"""A kill beside a load, at the drawn moment, with the clock read right before it."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from dbdyno.crash.faults import killing
from dbdyno.crash.trial_cuts import PlannedCut
from dbdyno.system.interrupt import now_ns


@pytest.fixture
def endpoint():
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        yield SimpleNamespace(process=process)
        process.kill()


def planned(after_s):
    return PlannedCut("c1", "uniform", None, 1, after_s)


def test_the_server_is_killed_at_its_moment(endpoint):
    began_ns = now_ns()
    with killing(endpoint, planned(0.1), warmup_s=0.1) as killed:
        endpoint.process.wait(30)
        ended_ns = now_ns()
    assert endpoint.process.returncode == -9
    assert began_ns + 200_000_000 <= killed.cut_ns < ended_ns
    assert killed.cut_ns <= killed.cut_end_ns <= now_ns()


def test_a_load_that_ends_before_is_not_waited_for_and_nobody_is_killed(endpoint):
    with killing(endpoint, planned(36_000.0), warmup_s=1.0) as killed:
        pass
    assert (killed.cut_ns, endpoint.process.poll()) == (0, None)
