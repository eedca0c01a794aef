"""What is found of a cut, step by step; a failure of the harness is never an outcome."""

import errno
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest

from dbdyno.crash.examine import CAUSE_MAX, Examiner, defects_of, verified_by, worst
from dbdyno.crash.rig import Defect, SpoiltError
from dbdyno.crash.trial_cuts import PlannedCut
from dbdyno.errors import HostError, TrialError
from dbdyno.servers.contract import NotStartedError
from dbdyno.stack.layer import Endpoint
from dbdyno.stack.layers import server as layer
from tests.unit.crash.rig import Verifier, refused
from tests.unit.crash.support import taken, verified

ALL_STEPS = [
    "attach c1 random-4096 9",
    "mount",
    "umount",
    "check",
    "mount",
    "start",
    "verify",
    "kill",
    "umount",
    "detach",
]


def examine(played, rig, found=None, *, limit_reached=False, **cut):
    planned = PlannedCut(
        **{"id": "c1", "when": "uniform", "survivors": "random-4096", "seed": 9, "after_s": 1.0, **cut}
    )
    examiner = Examiner(rig, Verifier(played, found or verified(acked=40)), 60.0)
    state = taken("c1", 3_000_000_000, 3_000_000_500, limit_reached=limit_reached)
    return examiner.examined(planned, state, 1_000_000_000)


def test_a_cut_that_lost_nothing_goes_through_all_steps_and_leaves_no_log(played, rig, tmp_path):
    cut, content = examine(played, rig)
    assert played.steps == ALL_STEPS
    assert (cut.outcome, cut.acked, cut.at_s, cut.cause, cut.unflushed_bytes) == ("nothing", 40, 2.0, "", 4096)
    assert set(cut.recovery_s) >= {"mount", "check", "server", "verify"}
    assert (content.name, content.survivors, content.seed) == ("c1", "random-4096", 9)
    assert list(tmp_path.iterdir()) == []


def test_a_lost_tail_says_how_long_before_the_cut_it_began(played, rig):
    cut, _ = examine(played, rig, verified(acked=40, lost=3, oldest_lost_ack_ns=2_500_000_000), limit_reached=True)
    assert (cut.outcome, cut.lost, cut.lost_ms, cut.limit_reached) == ("tail", 3, 500.0, True)


def test_a_mount_that_is_refused_is_an_outcome_and_ends_it(played, rig):
    played.fails["mount"] = refused("Structure needs cleaning")
    cut, _ = examine(played, rig)
    assert cut.outcome == "filesystem"
    assert "Structure needs cleaning" in cut.cause
    assert played.steps == ["attach c1 random-4096 9", "mount", "check", "detach"]


def test_what_is_not_mounted_says_what_its_checker_finds(played, rig):
    played.fails["mount"], played.damage = refused("cannot mount"), "e2fsck -fn: Superblock checksum does not match"
    cut, _ = examine(played, rig)
    assert cut.outcome == "filesystem"
    assert cut.cause.endswith("cannot mount; e2fsck -fn: Superblock checksum does not match")


def test_a_checker_that_fails_by_itself_hides_no_mount_that_is_refused(played, rig):
    played.fails |= {"mount": refused("cannot mount"), "check": TrialError("e2fsck -fn: not done after 600 s")}
    cut, _ = examine(played, rig)
    assert (cut.outcome, cut.cause) == ("filesystem", "mount -t ext4: exit 32: cannot mount")


def test_a_damage_that_the_journal_did_not_mend_is_an_outcome_and_the_rest_is_looked_at_all_the_same(played, rig):
    played.damage = "e2fsck -fn: Inode 12 has a bad extent"
    cut, _ = examine(played, rig, verified(acked=40, lost=2, oldest_lost_ack_ns=1))
    assert (cut.outcome, cut.lost) == ("filesystem", 2)
    assert cut.cause.startswith("e2fsck -fn: Inode 12")
    assert played.steps == ALL_STEPS


@pytest.mark.parametrize("number", [errno.EUCLEAN, errno.EIO, errno.EROFS])
def test_a_file_that_a_damaged_filesystem_refuses_is_an_outcome(number, played, rig):
    played.fails["start"] = OSError(number, "refused", "/mnt/server")
    assert examine(played, rig)[0].outcome == "filesystem"


def test_a_server_that_does_not_start_is_an_outcome_whose_log_stays(played, rig, tmp_path):
    played.fails["start"] = NotStartedError("the server ended while starting (exit 1): Bad magic header in tc log", 1)
    cut, _ = examine(played, rig)
    assert (cut.outcome, cut.acked) == ("server", 0)
    assert "Bad magic header" in cut.cause
    assert [path.name for path in tmp_path.iterdir()] == ["recovery-c1.log"]


@pytest.mark.parametrize("step", ["mount", "start"])
def test_what_fails_on_a_rig_that_is_not_well_is_no_outcome(step, played, rig):
    faults = {
        "ended by itself": (TrialError, lambda: setattr(played, "alive", False)),
        "answered with errors": (TrialError, lambda: played.stats["errors"].update(reads=1)),
        "no room for its content": (HostError, lambda: played.stats.update(enospc_errors=1)),
        "was detached": (TrialError, lambda: setattr(played, "is_attached", False)),
    }
    for words, (kind, fault) in faults.items():
        played.alive, played.is_attached = True, True
        played.stats.update(errors={"reads": 0}, enospc_errors=0)

        def fail(fault=fault):
            fault()
            raise refused() if step == "mount" else NotStartedError("exit 1", 1)

        played.fails = {step: fail}
        with pytest.raises(kind, match=words):
            examine(played, rig)


def test_a_server_whose_program_did_not_run_is_no_outcome(played, rig):
    played.log, played.fails["start"] = "", NotStartedError("the server ended (exit 127): it left no error log", 127)
    with pytest.raises(TrialError, match="did not run"):
        examine(played, rig)


def test_a_server_that_another_killed_is_no_outcome_unless_its_memory_is_bounded(played, rig):
    played.fails["start"] = NotStartedError("the server ended (killed by signal SIGKILL)", -9)
    with pytest.raises(TrialError, match="another process killed"):
        examine(played, rig)
    bounded = replace(rig, memory=(SimpleNamespace(raised=nullcontext),))
    assert examine(played, bounded)[0].outcome == "server"


def test_a_server_that_comes_up_otherwise_than_asked_is_no_outcome(played, rig):
    played.fails["start"] = TrialError("server.settings.sync_binlog: asked for 1, the server took 0")
    with pytest.raises(TrialError, match="sync_binlog"):
        examine(played, rig)


def test_a_verifier_that_fails_is_no_outcome(played, rig):
    played.fails["verify"] = TrialError("dbdyno-load: exit 2")
    with pytest.raises(TrialError, match="exit 2"):
        examine(played, rig)


def test_what_a_verifier_finds_on_a_rig_that_is_not_well_is_no_outcome(played, rig):
    played.fails["verify"] = lambda: setattr(played, "alive", False)
    with pytest.raises(TrialError, match="ended by itself"):
        examine(played, rig, verified(tables=["Got error 5 when reading"], complete=False))
    assert examine(played, rig, verified(acked=40))[0].outcome == "nothing", "all was read, whatever came then"


@pytest.mark.parametrize(
    ("code", "cgroup", "raised"), [(-9, None, TrialError), (-9, "/g", SpoiltError), (1, None, SpoiltError)]
)
def test_a_server_that_goes_while_it_is_read_is_no_broken_table(code, cgroup, raised, played, monkeypatch):
    monkeypatch.setattr(layer, "killed_for_memory", lambda _: False)
    process = SimpleNamespace(poll=lambda: code, wait=lambda _: code)
    control = SimpleNamespace(cause=lambda _: "its log says nothing")
    endpoint = Endpoint(control, None, process=process, error_log="error.log", cgroup=cgroup)
    verifier = Verifier(played, verified(tables=["lost the connection to socket /s"], complete=False))
    with pytest.raises(raised, match="its log says nothing"):
        verified_by(verifier, endpoint, None, (1, 2), 60.0)


def test_a_checker_that_can_not_work_is_no_outcome(played, rig):
    played.fails["check"] = TrialError("xfs_repair -n /dev/loop7: exit 64")
    with pytest.raises(TrialError, match="exit 64"):
        examine(played, rig)


@pytest.mark.parametrize(("seed", "cuts"), [(8, 1), (9, 2)])
def test_a_recovery_is_cut_once_or_twice_and_then_gone_through(seed, cuts, played, rig):
    cut, content = examine(played, rig, when="recovery", seed=seed, share=0.5)
    assert [step for step in played.steps if step.startswith("cut")] == [f"cut c1-{n}" for n in range(1, cuts + 1)]
    assert (content.name, content.seed) == (f"c1-{cuts}", seed + cuts)
    last = len(played.steps) - 1 - played.steps[::-1].index(f"attach {content.name} random-4096 {content.seed}")
    assert "check" in played.steps[last:]
    assert cut.outcome == "nothing"


def test_a_state_that_can_not_be_recovered_from_is_found_so_also_where_its_recovery_was_to_be_cut(played, rig):
    played.fails["mount"] = refused()
    cut, content = examine(played, rig, when="recovery", share=0.9, seed=8)
    assert cut.outcome == "filesystem"
    assert content.name in {"c1", "c1-1"}
    assert "disarm" in played.steps


# Which of the six outcomes: the worst of what was found, with every cause.


WORST_FIRST = [
    ({"tables": ["Corrupt"]}, "table"),
    ({"complete": False}, "table"),
    ({"holes": 1, "lost": 3}, "inconsistent"),
    ({"torn": 1}, "inconsistent"),
    ({"wrong": 2}, "inconsistent"),
    ({"ghost": 1}, "inconsistent"),
    ({"index_differences": 1}, "inconsistent"),
    ({"balance_off": True}, "inconsistent"),
    ({"lost": 3}, "tail"),
    ({}, "nothing"),
    ({"unknown": 5, "refused": 5}, "nothing"),
]


@pytest.mark.parametrize(("found", "outcome"), WORST_FIRST)
def test_each_thing_that_the_verifier_finds_has_its_outcome(found, outcome):
    finding = worst(defects_of(verified(**found)))
    assert finding.outcome == outcome
    assert bool(finding.cause) == (outcome != "nothing")


def test_the_worst_decides_and_all_causes_are_told_worst_first():
    found = defects_of(verified(tables=["Page 7 is corrupt"], lost=610, torn=1))
    finding = worst([*found, Defect("filesystem", "e2fsck -fn: Inode 12 has a bad extent")])
    assert finding.outcome == "filesystem"
    told = [
        finding.cause.index(words) for words in ("Inode 12", "table ledger needs repair: Page 7", "610 acknowledged")
    ]
    assert told == sorted(told)


def test_a_cause_has_an_end():
    assert len(worst([Defect("server", "x" * 10_000)]).cause) < CAUSE_MAX + 100


def test_what_is_not_a_lost_tail_is_shown_by_an_example():
    finding = worst(defects_of(verified(wrong=1, lost=1, examples=[("lost", "gone"), ("wrong", "amount 3, not 4")])))
    assert "amount 3, not 4" in finding.cause
    assert "(lost: gone" not in finding.cause
