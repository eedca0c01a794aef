"""The load generator's processes: those started from now on, with their children, alive or ended."""

import select
import subprocess
import sys
import threading
import time

import pytest

from dbdyno.probe.server import ClientProcessSource

BURN = "import time\nwhile time.process_time() < {}: pass\n"
STARTS = """import subprocess, sys, time
subprocess.run([sys.executable, "-c", {burn!r}])
print("done", flush=True)
time.sleep(60)
"""


def seconds(sample):
    return sample["user_seconds"] + sample["system_seconds"]


@pytest.fixture
def source():
    """Watch what this thread starts, a process that ran before left out."""
    with subprocess.Popen([sys.executable, "-c", BURN.format(30)]) as before:
        watched = ClientProcessSource()
        yield watched
        watched.close()
        before.kill()


def test_nothing_was_started_yet(source):
    assert set(source.sample().values()) == {0.0}
    columns = source.interval(source.sample(), source.sample(), 0.1)
    assert set(columns.values()) == {0.0}
    assert set(columns) == {"cpu_seconds", "%usr", "%system", "rss_MB", "rMB/s", "wMB/s"}


def test_a_process_counts_while_it_runs_and_after_it_ended(source):
    with subprocess.Popen([sys.executable, "-c", BURN.format(0.3) + "time.sleep(60)"]) as one:
        deadline = time.monotonic() + 120
        while seconds(running := source.sample()) < 0.25:  # both its parts are rounded to ticks
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert running["resident_bytes"] > 1e6
        one.kill()
    ended = source.sample()
    assert ended["resident_bytes"] == 0
    assert seconds(running) <= seconds(ended) < 3


def test_what_children_of_it_used_is_in_it_and_is_counted_once(source):
    with subprocess.Popen([sys.executable, "-c", STARTS.format(burn=BURN.format(0.6))], stdout=subprocess.PIPE) as one:
        samples = [source.sample()]
        while not select.select([one.stdout], [], [], 0.05)[0]:
            samples.append(source.sample())
        assert one.stdout.readline() == b"done\n"
        samples += [source.sample(), source.sample()]
        one.kill()
    samples.append(source.sample())
    told = [seconds(one) for one in samples]
    assert told == sorted(told)
    assert 0.55 <= told[-1] < 1.15  # twice .6 and Python's start, were it counted twice


def test_what_another_thread_starts_is_not_of_the_load(source):
    started = []
    command = [sys.executable, "-c", BURN.format(0.1)]
    thread = threading.Thread(target=lambda: started.append(subprocess.run(command, check=True)))
    thread.start()
    thread.join()
    assert started
    assert set(source.sample().values()) == {0.0}
