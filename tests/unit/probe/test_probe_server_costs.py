"""Context switches and counted events of a process with threads that come and go, against the kernel's own figures."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from dbdyno.host.perf_events import HARDWARE, OF_PROCESSOR, SOFTWARE, count_in, why_no_counters
from dbdyno.probe import server_costs
from dbdyno.probe.server_costs import ServerCountersSource, ServerSwitchesSource, switches_in, threads_of

# Says how often each of its threads waited, as getrusage counts them, whenever it is sent a line.
SLEEPER = """
import resource, sys, threading, time
def wait(times):
    for _ in range(times):
        time.sleep(.001)
for line in sys.stdin:
    threads = [threading.Thread(target=wait, args=(int(line),)) for _ in range(4)]
    [each.start() for each in threads]
    [each.join() for each in threads]
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(used.ru_nvcsw, used.ru_nivcsw, flush=True)
"""
CONTEXT_SWITCHES = {"switches": (SOFTWARE, 3)}  # PERF_COUNT_SW_CONTEXT_SWITCHES, which needs no processor counter


@pytest.fixture
def sleeper():
    process = subprocess.Popen([sys.executable, "-c", SLEEPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def wait(times):
        process.stdin.write(b"%d\n" % times)
        process.stdin.flush()
        return tuple(map(int, process.stdout.readline().split()))

    wait.pid = process.pid
    wait(1)
    yield wait
    process.stdin.close()
    process.wait(10)
    process.stdout.close()


def test_threads_that_have_ended_count_where_the_kernel_tells(sleeper):
    source = ServerSwitchesSource(sleeper.pid)
    by_kernel = source._taskstats is not None
    before, told_before = source.sample(), sleeper(1)
    told = sleeper(200)
    after = source.sample()
    source.close()
    waited = after["voluntary"] - before["voluntary"]
    if by_kernel:
        assert 0 < after["cpu_seconds"] - before["cpu_seconds"] < 10
        assert waited == pytest.approx(told[0] - told_before[0], abs=60, rel=0.05)
        assert waited >= 4 * 200
    else:
        assert waited < told[0] - told_before[0], "what ended between two readings was not seen"
    assert source.interval(before, after, 2.0) == {
        **after,
        "cswch/s": (waited + after["involuntary"] - before["involuntary"]) / 2,
    }


def test_threads_one_by_one_and_what_ended_since_is_kept(monkeypatch):
    threads = {1: (10, 1), 2: (20, 2)}
    monkeypatch.setattr(server_costs, "threads_of", lambda _: list(threads))
    text = "Name:\tx\nvoluntary_ctxt_switches:\t{}\nnonvoluntary_ctxt_switches:\t{}\n"
    monkeypatch.setattr(
        server_costs, "Path", lambda path: _Text(text.format(*threads[int(path.split("/")[4])]).encode())
    )
    source = ServerSwitchesSource(7, by_taskstats=False)
    assert source.sample() == {"voluntary": 30.0, "involuntary": 3.0}
    del threads[2]
    threads[3] = (5, 0)
    assert source.sample() == {"voluntary": 35.0, "involuntary": 3.0}
    threads.clear()
    with pytest.raises(ProcessLookupError):
        source.sample()


class _Text:
    def __init__(self, text):
        self.read_bytes = lambda: text


@pytest.mark.parametrize("text", [b"", b"Name:\tx\n", b"\nvoluntary_ctxt_switches:\t5\n"])
def test_a_status_without_switches_is_not_believed(text):
    with pytest.raises(OSError, match="no context switches"):
        switches_in(text)


def test_nobody_s_switches_and_events_are_refused():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    for source in (ServerSwitchesSource, ServerCountersSource):
        with pytest.raises(OSError, match=r"."):
            source(process.pid)


def test_events_of_threads_that_start_later_and_have_ended_are_counted(sleeper):
    if why_no_counters(CONTEXT_SWITCHES)[0]:
        with pytest.raises(OSError, match="perf_event_open"):
            ServerCountersSource(sleeper.pid, CONTEXT_SWITCHES)
        return
    told_before = sleeper(1)
    source = ServerCountersSource(sleeper.pid, CONTEXT_SWITCHES)
    before, told = source.sample(), sleeper(200)
    after = source.sample()
    source.close()
    assert after["switches"] - before["switches"] == pytest.approx(sum(told) - sum(told_before), rel=0.02, abs=5)


def test_an_event_counted_for_a_part_of_the_time_is_scaled():
    assert count_in(b"".join(number.to_bytes(8, sys.byteorder) for number in (50, 400, 100))) == 200.0
    assert count_in(bytes(24)) == 0.0


def test_a_host_without_counters_is_refused_with_the_remedy_and_leaves_no_file_open():
    nothing = {"none": (HARDWARE, 1 << 20)}
    why, remedy = why_no_counters(nothing)
    assert why
    assert remedy
    opened = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(OSError, match="perf_event_open"):
        ServerCountersSource(os.getpid(), {**CONTEXT_SWITCHES, **nothing})
    assert len(list(Path("/proc/self/fd").iterdir())) == opened
    assert list(OF_PROCESSOR) == ["instructions", "cycles", "cache_misses", "branch_misses"]


def test_own_threads_are_those_of_the_kernel():
    # The kernel lists them in the order in which they began, and numbers start anew.
    assert sorted(threads_of(os.getpid())) == sorted(int(path.name) for path in Path("/proc/self/task").iterdir())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw >= 0
