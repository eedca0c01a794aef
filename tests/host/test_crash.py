"""Power cuts and kills from end to end: what documentation promises is found, and nothing is left on the host."""

import os
import signal
import statistics

import pytest

from dbdyno.crash.examine import examine_kept
from dbdyno.crash.trial_cuts import read_kept
from dbdyno.plan.plan import make_plan
from dbdyno.stack.undo_log import Journal
from dbdyno.store.run_folder import read_run
from dbdyno.study.load import load_study
from tests.crash_studies import EMULATED, PROTECTED, crash_study, cuts_of, ran
from tests.disks import LONG
from tests.support import kill, number_of, put_back, start_dbdyno, wait_for, what_is_left

pytestmark = [pytest.mark.host, pytest.mark.timeout(900)]

INTERVAL_MS, SLACK_MS = 1000, 4000  # innodb_flush_log_at_timeout as shipped; a busy host syncs it late now and then


@pytest.fixture
def study(study_file):
    """Write a study; ``stack`` is an emulated SSD with ext4 if not given."""

    def written(levels, crash, **fields):
        return study_file(crash_study(levels, crash, **fields))

    return written


def test_a_flush_at_commit_loses_nothing_and_without_one_the_newest_commits_are_lost(state, study, tmp_path):
    path, run = study("[0, 1, 2]", "cuts = 6\ncuts_per_run = 6"), tmp_path / "run"
    told = ran(path, run, state)
    assert what_is_left(state) == []
    assert "cut 6 of 6" in told.stderr
    durable = cuts_of(run, 1)
    assert [(cut.outcome, cut.lost, cut.cause) for cut in durable] == [("nothing", 0, "")] * 6
    assert min(cut.acked for cut in durable) > 0
    assert {"first mount", "check", "mount", "server", "verify"} <= durable[0].recovery_s.keys()
    for level in (0, 2):
        cuts = cuts_of(run, level)
        assert {cut.outcome for cut in cuts} <= {"tail", "nothing"}
        lost = [cut for cut in cuts if cut.outcome == "tail"]
        assert len(lost) >= 3, "a log that is written once a second is behind at most moments"
        assert all(cut.lost > 0 and 0 < cut.lost_ms < INTERVAL_MS + SLACK_MS for cut in lost)
        assert statistics.median(cut.lost_ms for cut in lost) <= INTERVAL_MS
        assert sum(bool(cut.kept) for cut in cuts) == 1, "of each treatment the first that lost something"


@pytest.mark.drawn(2, group="cuts")
def test_a_kept_state_gives_the_same_again(state, study, tmp_path, monkeypatch):
    path, run = study("[0, 1]", 'cuts = 3\ncuts_per_run = 3\nkeep = "all"'), tmp_path / "run"
    ran(path, run, state)
    monkeypatch.setenv("DBDYNO_STATE_DIR", str(state))
    specs = make_plan(load_study(path)).specs
    states = sorted(run.glob("trials/*/cuts/*"))
    assert states
    journal = Journal("test")
    try:
        for place in states[: None if LONG else 2]:
            kept = read_kept(place)
            again = examine_kept(place, specs[kept.treatment], journal)
            assert (again.outcome, again.lost, again.acked) == (kept.cut.outcome, kept.cut.lost, kept.cut.acked)
    finally:
        journal.close()
    assert what_is_left(state) == []


WHEN = '"uniform", "recovery", "ack"'


@pytest.mark.drawn(2, group="cuts")
@pytest.mark.parametrize("filesystem", ["ext4", "xfs", *(["btrfs", "ext3", "zfs"] if LONG else [])])
def test_a_drive_whose_cache_no_cut_takes_loses_nothing_whenever_it_is_cut(filesystem, state, study, tmp_path):
    stack = EMULATED.format(device="nvme-pm9a3", filesystem=filesystem)
    crash = f'cuts = {300 if LONG else 10}\ncuts_per_run = 10\nwhen = [{WHEN}]\nsurvivors = ["random-512"]'
    path, run = study("[1, 0]", crash, stack=stack), tmp_path / "run"
    ran(path, run, state)
    found = cuts_of(run, 1)
    assert {cut.when for cut in found} == {"uniform", "recovery", "ack"}
    assert [cut for cut in found if cut.is_loss] == []
    assert what_is_left(state) == []


@pytest.mark.drawn(2, group="cuts")
def test_cuts_right_after_acknowledgements_and_ddl_find_nothing_of_their_client_in_flight(state, study, tmp_path):
    """One client and one connection for DDL, each of which asks for the cut itself before it goes on."""
    crash = 'cuts = 8\ncuts_per_run = 8\nwhen = ["ack", "ddl"]'
    fields = {"clients": 1, "workload": "ddl = true", "stack": PROTECTED}
    path, run = study("[1, 0]", crash, **fields), tmp_path / "run"
    ran(path, run, state)
    found = {when: [cut for cut in cuts_of(run, 1) if cut.when == when] for when in ("ack", "ddl")}
    assert [len(cuts) for cuts in found.values()] == [4, 4]
    acked = sorted(cut.acked for cut in found["ack"])
    assert acked[0] > 0
    assert len(set(acked)) == 4, "each is after an acknowledgement of its own"
    # The other of the two, client and DDL, may be at work.
    assert max(cut.unknown for cuts in found.values() for cut in cuts) <= 1
    # MariaDB does not sync all files of a table's definition: what is spoiled depends on the moment.
    assert all("ddl_" in cut.cause for cuts in found.values() for cut in cuts if cut.is_loss)


@pytest.mark.drawn(2, group="cuts")
def test_after_the_acknowledgement_of_a_lone_client_nothing_is_in_flight(state, study, tmp_path):
    crash = 'cuts = 6\ncuts_per_run = 6\nwhen = ["ack"]'
    path, run = study("[1, 0]", crash, clients=1, stack=PROTECTED), tmp_path / "run"
    ran(path, run, state)
    durable, late = cuts_of(run, 1), cuts_of(run, 0)
    assert [(cut.outcome, cut.unknown) for cut in durable] == [("nothing", 0)] * 6
    assert [cut.unknown for cut in late] == [0] * 6
    assert sum(cut.outcome == "tail" for cut in late) >= 4, "what was acknowledged this moment is in no log yet"


@pytest.mark.drawn(2, group="cuts")
def test_a_filesystem_without_a_journal_needs_repair(state, study, tmp_path):
    stack = EMULATED.format(device="ssd-sata", filesystem="ext2")
    path, run = study("[1, 0]", "cuts = 3\ncuts_per_run = 3", stack=stack), tmp_path / "run"
    ran(path, run, state)
    found = cuts_of(run, 1)
    assert "filesystem" in {cut.outcome for cut in found}
    assert all("e2fsck" in cut.cause for cut in found if cut.outcome == "filesystem")


@pytest.mark.drawn(2, group="cuts")
def test_a_killed_server_keeps_what_it_wrote(state, study, tmp_path):
    crash = 'mode = "kill"\ncuts = 2'
    path, run = study("[0, 1, 2]", crash, stack='device = "here"'), tmp_path / "run"
    ran(path, run, state)
    for level in (1, 2):
        found = [(cut.mode, cut.survivors, cut.outcome) for cut in cuts_of(run, level)]
        assert found == [("kill", None, "nothing")] * 2
    assert "tail" in {cut.outcome for cut in cuts_of(run, 0)}
    assert what_is_left(state) == []


@pytest.mark.drawn(2, group="cuts")
def test_a_run_killed_while_it_examines_is_put_back_and_gone_on_with(state, study, tmp_path):
    path, run = study("[1, 0]", "cuts = 8\ncuts_per_run = 8"), tmp_path / "run"
    process = start_dbdyno("run", path, "--into", run, state=state)
    wait_for(lambda: process.poll() is not None or list(run.glob("trials/*/verified.json")))
    assert process.poll() is None, process.communicate()[0]
    kill(process)
    put_back(state)
    ran(path, run, state, "--resume")
    assert [len(cuts_of(run, level)) for level in (0, 1)] == [8, 8]


@pytest.mark.drawn(2, group="cuts")
def test_a_load_whose_server_dies_by_itself_is_a_failed_trial_and_no_outcome(state, study, tmp_path):
    path, run = study("[1, 0]", "cuts = 2\ncuts_per_run = 2", seconds=4), tmp_path / "run"
    process = start_dbdyno("run", path, "--into", run, state=state)
    killed = wait_for(lambda: process.poll() is not None or _server_under_load(state))
    os.kill(killed, signal.SIGKILL)
    output = process.communicate(timeout=600)[0]
    held = read_run(run)
    assert len(held.failures) == 1, output
    assert "SIGKILL" in held.failures[0].cause
    assert [len(cuts_of(run, level)) for level in (0, 1)] == [2, 2]
    assert {cut.outcome for cut in cuts_of(run, 1)} == {"nothing"}


def _server_under_load(state):
    """The process of the server, once a load is offered to it."""
    return number_of(state, "mariadbd") if number_of(state, "dbdyno-load ledger", "--ledger=", " run") else None
