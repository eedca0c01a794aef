"""What a run says of how far it is."""

import pytest

from dbdyno.cli import progress
from dbdyno.cli.progress import TerminalProgress
from dbdyno.plan.order import Slot
from dbdyno.run.stop import Outlook

SLOT = Slot(block=7, attempt=1, position=1, treatment="t1")
LINES = {
    Outlook(8): "trial 13 of 16, block 7: hdd, about 40 s left",
    Outlook(40, "at most "): "trial 13 of at most 80, block 7: hdd, at most 11 min 20 s left",
    Outlook(15, "about "): "trial 13 of about 30, block 7: hdd, about 3 min 00 s left",
    Outlook(None): "trial 13, block 7: hdd",
}
ON_A_TERMINAL = LINES | {Outlook(15, "about "): "trial 13 of about 30, block 7: hdd, about 9 more blocks, 3 min"}


@pytest.mark.parametrize(("outlook", "line"), LINES.items(), ids=str)
def test_a_pipe_gets_a_line_for_each_trial(capsys, outlook, line):
    with TerminalProgress(2, 10.0) as told:
        told.trial(SLOT, "hdd", 12, outlook)
    assert capsys.readouterr().err == f"{line}\n"


@pytest.mark.parametrize(("outlook", "line"), ON_A_TERMINAL.items(), ids=str)
def test_the_bar_of_a_terminal_follows_what_is_still_expected(monkeypatch, outlook, line):
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    with TerminalProgress(2, 10.0) as told:
        told.trial(SLOT, "hdd", 12, outlook)
        [task] = told._live.tasks
        assert task.description == line
        assert (task.completed, task.total) == (12, outlook.blocks and 2 * outlook.blocks)


def test_time_left_follows_the_trials_that_were_measured(capsys):
    with TerminalProgress(2, 10.0) as told:
        for done, seconds in ((10, 2.0), (11, 4.0)):
            told.trial(SLOT, "hdd", done, Outlook(8))
            told.trial_done(seconds)
        told.trial(SLOT, "hdd", 12, Outlook(8))
    assert capsys.readouterr().err.splitlines()[-1] == "trial 13 of 16, block 7: hdd, about 12 s left"


def test_time_left_counts_blocks_that_are_repeated(capsys):
    with TerminalProgress(2, 10.0) as told:
        for done in (10, 11, 11):  # the second trial met interference and runs again
            told.trial(SLOT, "hdd", done, Outlook(8))
            told.trial_done(4.0)
        told.trial(SLOT, "hdd", 12, Outlook(8))
    assert capsys.readouterr().err.splitlines()[-1] == "trial 13 of 16, block 7: hdd, about 24 s left"
