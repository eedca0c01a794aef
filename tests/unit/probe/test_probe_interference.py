"""Who used the host beside us: processes told apart, limits kept, a real burner found."""

import contextlib
import inspect
import os
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.probe import interference as probed
from dbdyno.probe.interference import (
    ALLOWED_CPU_SECONDS,
    FOREIGN_CPU_SHARE_MAX,
    BackgroundLoadSource,
    ProcessStat,
    disks_below,
    family,
    interference,
    parse_stat,
    processes,
)
from dbdyno.probe.sampler import Sampler, Series
from dbdyno.system.interrupt import now_ns

SECOND = 1_000_000_000
BURN = "import time\nend = time.monotonic() + {}\nwhile time.monotonic() < end: pass"


def process(pid, parent):
    return ProcessStat(pid, "p", parent, kernel=False, started=1, own_seconds=0.0, seconds=0.0, user_seconds=0.0)


def test_a_name_may_hold_brackets_and_blanks():
    fields = b"S 7 1 1 0 -1 2129984 0 0 0 0 100 50 30 20 20 0 1 0 4242 0 0"
    found = parse_stat(9, b"9 (a) b (c)) " + fields)
    assert (found.name, found.parent, found.started, found.kernel) == ("a) b (c)", 7, 4242, True)
    tick = 1 / os.sysconf("SC_CLK_TCK")
    assert (found.own_seconds, found.seconds, found.user_seconds) == pytest.approx((150 * tick, 200 * tick, 130 * tick))


def test_a_family_is_all_that_descend_from_its_roots_and_no_other():
    everyone = [process(*pair) for pair in ((1, 0), (5, 1), (6, 5), (7, 6), (8, 1), (9, 8), (5000, 9))]
    assert family(everyone, {5, 9}) == {5, 6, 7, 9, 5000}


def test_kernel_threads_are_told_by_their_flag():
    assert not next(one for one in processes() if one.pid == os.getpid()).kernel


def test_kernel_threads_are_read_once():
    source = BackgroundLoadSource(set(), [])
    assert not {one.pid for one in processes(source.kernel_threads)} & source.kernel_threads
    assert 2 in source.kernel_threads  # kthreadd
    source.close()


def watched(source, seconds):
    sampler = Sampler([source], source.interval_ns)
    began = now_ns()
    sampler.start()
    time.sleep(seconds)
    ended = now_ns()
    return interference(sampler.stop()["foreign"], (began, ended), cores=source.cores, others=source.shares())


@pytest.fixture
def orphan():
    """Start a process that is nobody's child here: it burns a core for some seconds."""
    started = []

    def start(seconds):
        command = (
            f"[sys.executable, '-c', {BURN.format(seconds)!r}], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL"
        )
        starter = f"import subprocess, sys; print(subprocess.Popen({command}).pid)"
        said = subprocess.run([sys.executable, "-c", starter], capture_output=True, text=True, check=True)
        started.append(int(said.stdout))
        return started[-1]

    yield start
    for pid in started:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)


def test_a_burner_that_is_none_of_ours_is_found_and_named(orphan):
    pid = orphan(20)
    time.sleep(0.2)
    before = time.process_time()
    found = watched(BackgroundLoadSource(set(), []), 2.5)
    assert time.process_time() - before < 1
    assert "foreign_cpu" in found["beyond"]
    assert found["foreign_cpu"] * found["cores"] > 0.1  # a core, as far as this host had one to give
    comm = next(one.name for one in processes() if one.pid == pid)
    (told,) = [name for name in found["others"] if name.startswith(f"{comm} (")]
    assert f"(pid {pid})" in told or "of them)" in told  # this host may have others of that name
    assert found["others"][told] > 0.03


def running(pid, name, own, *, parent=1, waited=0.0, kernel=False):  # noqa: PLR0913
    return ProcessStat(pid, name, parent, kernel, 1, own_seconds=own, seconds=own + waited, user_seconds=own + waited)


@pytest.fixture
def played(monkeypatch):
    """Play one list of processes after another to a source; returns it and what it sampled."""

    def play(*moments, roots):
        monkeypatch.setattr(probed, "processes", lambda _without=frozenset(): moments[0])
        source = BackgroundLoadSource(roots, [])
        found = []
        for at_ns, moment in enumerate(moments):
            seen = {frozenset(): moment}
            seen[source.kernel_threads] = [one for one in moment if one.pid not in source.kernel_threads]
            monkeypatch.setattr(probed, "processes", lambda without=frozenset(), seen=seen: seen[without])
            monkeypatch.setattr(probed, "now_ns", lambda at_ns=at_ns: at_ns * SECOND)
            found.append(source.sample())
        source.close()
        return source, found

    return play


KERNEL = running(2, "kthreadd", 7.0, parent=0, kernel=True)


def test_ours_and_the_kernels_are_not_foreign(played):
    def moment(second):
        return [
            running(1, "init", 5.0),
            KERNEL,
            running(3, "loop0", 50.0 + second, parent=2, kernel=True),
            running(os.getpid(), "dbdyno", 10.0 + second),
            running(70, "dbdyno-load", second, parent=os.getpid()),
            running(80, "mariadbd", 20.0 + second, parent=1),
            running(81, "helper", 1.0 + second, parent=80),
            running(90, "rustc", 3.0 + second / 2),
        ]

    source, found = played(moment(0.0), moment(2.0), roots={80})
    assert found[1]["foreign_cpu_seconds"] - found[0]["foreign_cpu_seconds"] == 1.0
    assert source.shares() == {"rustc (pid 90)": 1.0, "init": 0.0}
    assert "hidden_cpu_seconds" not in found[0]


def test_what_a_short_lived_process_used_is_in_the_sum_once_its_parent_has_waited(played):
    first = [KERNEL, running(9, "make", 1.0, waited=4.0), running(10, "cc", 2.0, parent=9)]
    last = [KERNEL, running(9, "make", 1.5, waited=7.0), running(11, "cc", 0.5, parent=9)]
    source, found = played(first, last, roots=set())
    # make itself .5, the first cc another second before it ended, the second .5
    assert found[1]["foreign_cpu_seconds"] - found[0]["foreign_cpu_seconds"] == 2.0
    assert source.shares() == {"make (pid 9)": 0.5, "cc (pid 11)": 0.5}


def test_a_number_that_is_used_again_is_another_process(played):
    again = ProcessStat(10, "cc", 9, kernel=False, started=77, own_seconds=0.25, seconds=0.25, user_seconds=0.25)
    source, _ = played([KERNEL, running(10, "cc", 2.0)], [KERNEL, again], roots=set())
    assert source.shares() == {"cc (pid 10)": 0.25}


def test_where_no_kernel_thread_is_seen_others_are_hidden_too(played):
    _, found = played([running(os.getpid(), "dbdyno", 1.0)], [running(os.getpid(), "dbdyno", 1.0)], roots=set())
    assert found[1]["hidden_cpu_seconds"] >= found[0]["hidden_cpu_seconds"]


def counted(columns, seconds=10):
    series = Series()
    series.add(0, dict.fromkeys(columns, 0.0))
    series.add(seconds * SECOND, {name: float(value) for name, value in columns.items()})
    return series


def judged(seconds=10, cores=2, **columns):
    columns = {"foreign_cpu_seconds": 0.0, "stolen_seconds": 0.0, **columns}
    return interference(counted(columns, seconds), (0, seconds * SECOND), cores=cores, others={})


def test_a_quiet_host_is_within_every_limit():
    found = judged()
    assert found["beyond"] == []
    assert (found["stolen"], found["foreign_cpu"], found["foreign_io"]) == (0.0, 0.0, None)


@pytest.mark.parametrize(
    ("columns", "beyond"),
    [
        ({"foreign_cpu_seconds": 1.0}, []),
        ({"foreign_cpu_seconds": 1.2}, ["foreign_cpu"]),
        ({"hidden_cpu_seconds": 1.2}, ["foreign_cpu"]),
        ({"stolen_seconds": 0.4}, []),
        ({"stolen_seconds": 0.6}, ["stolen"]),
        ({"disk_bytes": 9e9, "ours_io_bytes": 0.0}, []),  # without root nobody can tell whose they were
        ({"disk_bytes": 9e9, "ours_io_bytes": 1e9, "foreign_io_bytes": 13e6}, []),
        ({"disk_bytes": 9e9, "ours_io_bytes": 1e9, "foreign_io_bytes": 15e6}, ["foreign_io"]),
        ({"disk_bytes": 1e9, "ours_io_bytes": 1e9, "foreign_io_bytes": 9e9}, []),  # theirs went to other disks
    ],
)
def test_limits_over_ten_seconds_of_two_cores(columns, beyond):
    assert judged(**columns)["beyond"] == beyond


@given(seconds=st.integers(1, 10_000), cores=st.integers(1, 512), share=st.floats(0, 1))
def test_limits_are_shares_of_the_hosts_time_with_room_for_a_few_ticks(seconds, cores, share):
    used = share * seconds * cores
    allowed = FOREIGN_CPU_SHARE_MAX * seconds * cores + ALLOWED_CPU_SECONDS
    beyond = judged(seconds, cores, foreign_cpu_seconds=used)["beyond"]
    if abs(used - allowed) > 1e-6 * allowed:
        assert beyond == (["foreign_cpu"] if used > allowed else [])


def test_limits_know_nothing_of_the_trials_result():
    assert set(inspect.signature(interference).parameters) == {"series", "window_ns", "cores", "others"}


def test_without_a_sample_nothing_is_claimed():
    assert interference(Series(), (0, SECOND), cores=2, others={}) == {}


def test_the_disks_below_are_those_of_devices_that_are_not_emulated(monkeypatch):
    def standing_on(path="", *, disposable=False, directory=None, **disks):
        device = SimpleNamespace(path=path, disposable=disposable) if path else None
        return SimpleNamespace(device=device, directory=directory, disks=disks)

    monkeypatch.setattr(probed, "disks_under", lambda path: [f"disk of {path}"])
    assert disks_below(standing_on("a")) == ["disk of a"]
    assert disks_below(standing_on("a", disposable=True, logs=standing_on("b"))) == ["disk of b"]
    assert disks_below(standing_on(directory="c")) == ["disk of c"]
    assert disks_below(standing_on()) == []
