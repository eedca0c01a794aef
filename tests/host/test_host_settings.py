"""Settings of the host's kernel: taken, read back, put back however dbdyno ends, and changed by one trial at a time."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from dbdyno.errors import HostError, TrialError
from dbdyno.stack.capabilities import allocators
from dbdyno.stack.layer import StackContext, raised
from dbdyno.stack.layers.host_settings import SETTINGS, HostSettings, current, why_not
from dbdyno.stack.undo.actions import RestoreSysfs
from dbdyno.stack.undo_log import Journal
from tests.disks import LONG
from tests.sampled import drawn
from tests.support import dbdyno, study_text, wait_for, what_is_left

pytestmark = pytest.mark.host

KILLS = 50 if LONG else 5
VM = Path("/proc/sys/vm")
# A value that a host has not by itself; of what others would miss, the one that it has.
VALUES = {
    "transparent_hugepage": "never" if current("transparent_hugepage") != "never" else "madvise",
    "transparent_hugepage_defrag": "defer" if current("transparent_hugepage_defrag") != "defer" else "never",
    "nr_hugepages": 1,
    "swappiness": 37,
    "dirty_ratio": 33,
    "dirty_bytes": 512 * 1024**2,
    "dirty_background_ratio": 7,
    "dirty_background_bytes": 256 * 1024**2,
    "dirty_expire_centisecs": 2345,
    "zone_reclaim_mode": 1,
    "numa_balancing": 0,
    "io_uring_disabled": current("io_uring_disabled"),
    "cpu_governor": "performance",
}
OF_OTHER_FILES = {"vfs_cache_pressure", "dirty_writeback_centisecs"}  # whose tests may run at the same time
BOTH = {"dirty_background_bytes": 64 * 1024**2, "dirty_expire_centisecs": 1234}


def everything():
    return {name: current(name) for name in SETTINGS.keys() - OF_OTHER_FILES}


def ground(journal, state):
    return StackContext(journal, state)


@pytest.mark.parametrize("name", sorted(SETTINGS.keys() - OF_OTHER_FILES))
def test_a_setting_is_taken_read_back_and_put_back_or_refused_with_the_reason(name, journal, state):
    before, refusal = everything(), why_not(name, VALUES[name])
    layer = HostSettings({name: VALUES[name]})
    if refusal:
        with (
            pytest.raises(HostError, match=f"host.{name}: .*{refusal.remedy}"),
            raised([layer], ground(journal, state)),
        ):
            pass
    else:
        with raised([layer], ground(journal, state)) as stand:
            assert stand.observed["host_settings"][name] == current(name) == str(VALUES[name])
            assert stand.observed["host_settings"]["before"] == {name: before[name]}
    assert everything() == before


@pytest.mark.parametrize("unit", ["ratio", "bytes"])
def test_of_a_limit_in_two_units_the_host_gets_back_the_one_that_it_had(unit, journal, state):
    value = {"ratio": "11", "bytes": str(32 * 1024**2)}[unit]
    with journal.undoing(RestoreSysfs(str(VM / "dirty_background_ratio"), current("dirty_background_ratio"))):
        (VM / f"dirty_background_{unit}").write_text(value)
        for setting in ({"dirty_background_ratio": 3}, {"dirty_background_bytes": 16 * 1024**2}):
            with raised([HostSettings(setting)], ground(journal, state)):
                pass
            assert current(f"dirty_background_{unit}") == value


def test_what_another_program_changes_meanwhile_fails_the_trial(journal, state):
    before = current("dirty_expire_centisecs")
    said = (
        "host.dirty_expire_centisecs: was set to 2345 for the trial, and another program changed it to 2000 meanwhile"
    )
    with (
        pytest.raises(TrialError, match=said),
        raised([HostSettings({"dirty_expire_centisecs": 2345})], ground(journal, state)),
    ):
        (VM / "dirty_expire_centisecs").write_text("2000")
    assert current("dirty_expire_centisecs") == before


def test_a_value_that_the_kernel_does_not_take_fails_the_trial(journal, state):
    with (
        pytest.raises(TrialError, match=r"host.zone_reclaim_mode: write -1 to /proc/sys/vm/zone_reclaim_mode: Invalid"),
        raised([HostSettings({"zone_reclaim_mode": -1})], ground(journal, state)),
    ):
        pass


def start_changing(state):
    """Start a process that sets and puts back again and again, until it is killed."""
    if pid := os.fork():
        return pid
    try:
        journal = Journal("a test that is killed", folder=state / "journals")
        while True:
            with raised([HostSettings(BOTH)], ground(journal, state)):
                pass
    finally:
        os._exit(1)


def test_after_sigkill_at_random_moments_restore_puts_the_host_back(state, journal):
    rng, before, changed, kills = drawn("host settings"), everything(), 0, 0
    while kills < KILLS or not changed:  # on a busy host a kill seldom comes while the settings hold
        kills += 1
        assert kills <= 20 * KILLS, "no kill found the host changed"
        pid = start_changing(state)
        wait_for(lambda: current("dirty_expire_centisecs") == "1234", every=0.0001)
        time.sleep(rng.uniform(0, 0.02))
        os.kill(pid, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
        if everything() != before:
            changed += 1
            said = f"has left it changed; DBDYNO_STATE_DIR={state} dbdyno restore"
            with pytest.raises(HostError, match=said), raised([HostSettings(BOTH)], ground(journal, state)):
                pass
        restored = dbdyno("restore", state=state)
        assert restored.returncode == 0, restored.stdout + restored.stderr
        assert everything() == before


def test_two_trials_do_not_change_the_same_setting_at_once(state, journal, monkeypatch, tmp_path):
    pid, (told, tells) = 0, os.pipe()
    if not (pid := os.fork()):
        other = Journal("another run", folder=tmp_path / "journals")
        with raised([HostSettings(BOTH)], ground(other, tmp_path)):
            os.write(tells, b"x")
            time.sleep(600)
        os._exit(0)
    try:
        os.read(told, 1)
        said = rf"another dbdyno \(pid {pid}\) has changed it; wait until that has ended"
        for name in BOTH:
            assert said.replace("\\", "") in f"{why_not(name).why}; {why_not(name).remedy}"
        # The kernel clears one of the two when the other is set.
        with (
            pytest.raises(HostError, match=said),
            raised([HostSettings({"dirty_background_ratio": 5})], ground(journal, state)),
        ):
            pass
        with raised([HostSettings({"dirty_ratio": 33})], ground(journal, state)):
            pass
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    monkeypatch.setenv("DBDYNO_STATE_DIR", str(tmp_path))
    assert dbdyno("restore", state=tmp_path).returncode == 0
    assert why_not("dirty_background_ratio", 5) is None


def test_a_run_sets_them_reads_them_back_and_shows_the_server_s_allocator(state, study_file, tmp_path):
    if not (found := allocators()).ok:
        pytest.skip(f"this host can't: {found.name}: {found.detail}")
    before, run = everything(), tmp_path / "run"
    server = (
        '[server]\nallocator = ["system", "jemalloc", "tcmalloc"]\nnice = 3\nnuma = "interleave"\n[server.settings]'
    )
    text = study_text(device='"here"', blocks=1).replace("[server.settings]", server)
    text = "".join(
        line
        for line in text.splitlines(keepends=True)
        if not line.startswith(("size", "scheduler", "filesystem =", "[filesystem]", "mount"))
    )
    study = study_file(f"{text}[host]\ndirty_expire_centisecs = 2345\ntransparent_hugepage = 'never'\n")
    planned = json.loads(dbdyno("plan", study, "--json", state=state).stdout)
    assert any(
        "changed: transparent_hugepage, dirty_expire_centisecs of this host" in one for one in planned["touches"]
    )
    done = dbdyno("run", study, "--into", run, state=state)
    assert done.returncode == 0, done.stderr
    trials = [json.loads(path.read_text())["observed"] for path in sorted(run.glob("trials/*/trial.json"))]
    assert {one["server"]["allocator"].split()[0] for one in trials} == {"system", "jemalloc", "tcmalloc"}
    assert not any("unknown" in one["server"]["allocator"] for one in trials)
    assert {one["server"]["nice"] for one in trials} == {"3"}
    assert all(one["server"]["numa"].startswith("interleave") for one in trials)
    assert {one["host_settings"]["dirty_expire_centisecs"] for one in trials} == {"2345"}
    assert {one["host_settings"]["transparent_hugepage"] for one in trials} == {"never"}
    assert everything() == before
    assert what_is_left(state) == []
