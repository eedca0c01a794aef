"""What a run says of how far it is: in 60 columns, whatever the study is."""

import io
import subprocess
import sys
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from dbdyno.cli import progress
from dbdyno.cli.output import ProgressLine
from dbdyno.cli.progress import TerminalProgress
from dbdyno.model.printable import PROGRESS_COLUMNS
from dbdyno.plan.order import Slot
from dbdyno.run.stop import Outlook

SLOT = Slot(block=7, attempt=1, position=1, treatment="t1")
LABELS = {"t1": "hdd", "t2": "ssd"}
LINES = {
    Outlook(8): "trial 13/16, block 7: hdd, ~40 s left",
    Outlook(40, "at most "): "trial 13/<=80, block 7: hdd, <=11 min left",
    Outlook(15, "about "): "trial 13/~30, block 7: hdd, ~3 min left",
    Outlook(None): "trial 13, block 7: hdd",
}
LEFT = {
    Outlook(8): "2 more blocks, ~40 s left",
    Outlook(40, "at most "): "<=34 more blocks, <=11 min left",
    Outlook(15, "about "): "~9 more blocks, ~3 min left",
    Outlook(None): "",
}
OUTLOOKS = st.builds(Outlook, st.integers(1, 1000), st.sampled_from(["", "about ", "at most "])) | st.just(
    Outlook(None)
)
NOTES = st.sampled_from(["", "unmeasured", "rests 59 min 59 s"])


def drawn(said):
    """Return the lines that stand on a terminal of 60 columns."""
    console = Console(file=StringIO(), width=PROGRESS_COLUMNS)
    console.print(said.drawn())
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)


@pytest.mark.parametrize(("outlook", "line"), LINES.items(), ids=str)
def test_a_pipe_gets_a_line_for_each_trial(capsys, outlook, line):
    with TerminalProgress(LABELS, 10.0) as said:
        said.trial(SLOT, "", 12, outlook)
    assert capsys.readouterr().err == f"{line}\n"


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(("outlook", "left"), LEFT.items(), ids=str)
def test_a_terminal_has_the_trial_and_below_it_how_far_all_are(outlook, left):
    with TerminalProgress(LABELS, 10.0) as said:
        said.trial(SLOT, "rests 30 s", 12, outlook)
        first, second = drawn(said)
    assert first == LINES[outlook].split(", ~")[0].split(", <=")[0] + ", rests 30 s"
    assert second.endswith(f" 0:00:00 {left}".rstrip())


def test_time_left_follows_the_trials_that_were_measured(capsys):
    with TerminalProgress(LABELS, 10.0) as said:
        for done, seconds in ((10, 2.0), (11, 4.0)):
            said.trial(SLOT, "", done, Outlook(8))
            said.trial_done(seconds)
        said.trial(SLOT, "", 12, Outlook(8))
    assert capsys.readouterr().err.splitlines()[-1] == "trial 13/16, block 7: hdd, ~12 s left"


def test_time_left_counts_blocks_that_are_repeated(capsys):
    with TerminalProgress(LABELS, 10.0) as said:
        for done in (10, 11, 11):  # the second trial met interference and runs again
            said.trial(SLOT, "", done, Outlook(8))
            said.trial_done(4.0)
        said.trial(SLOT, "", 12, Outlook(8))
    assert capsys.readouterr().err.splitlines()[-1] == "trial 13/16, block 7: hdd, ~24 s left"


def test_a_sentence_takes_as_many_lines_as_it_needs_and_a_path_stays_whole(capsys):
    path = f"/srv/{'long' * 20}/study.toml"
    said = TerminalProgress(LABELS, 10.0)
    said._on_terminal = True
    said.say(f"the next run is in {path}, which is named by no more than its folder and the file's own name")
    said.say("  ssd vs hdd: +2.0 %")
    assert capsys.readouterr().err.splitlines() == [
        "the next run is in",
        f"  {path},",
        "  which is named by no more than its folder and the file's",
        "  own name",
        "  ssd vs hdd: +2.0 %",
    ]


SLOTS = st.builds(Slot, st.integers(1, 1000), st.integers(1, 9), st.just(1), st.just("t2"))


@given(st.text(min_size=1, max_size=300), SLOTS, NOTES, st.integers(0, 99_999), OUTLOOKS)
def test_a_line_of_any_run_fits(label, slot, note, done, outlook):
    said, lines = TerminalProgress({"t1": label, "t2": f"{label}2"}, 1e5), []
    said.say = lines.append
    said.trial(slot, note, done, outlook)
    assert lines[0].isprintable()
    said._on_terminal = True
    said.trial(slot, note, done, outlook)
    for line in (lines[0], said._line):
        assert f"block {slot.block}" in line
    assert all(len(line) <= PROGRESS_COLUMNS for line in drawn(said))


def test_a_line_in_a_pipe_is_whole_however_long_it_is(capsys):
    labels = {"t1": f"innodb_flush_log_at_trx_commit {'1' * 90}", "t2": "2"}
    with TerminalProgress(labels, 10.0) as said:
        said.trial(SLOT, "rests 30 s", 12, Outlook(8))
        said.say("a sentence that is longer than sixty columns, and is not wrapped where nobody reads a terminal")
    assert capsys.readouterr().err == (
        f"trial 13/16, block 7: {labels['t1']}, rests 30 s, ~40 s left\n"
        "a sentence that is longer than sixty columns, and is not wrapped where nobody reads a terminal\n"
    )


def test_a_reader_that_goes_ends_no_run():
    said = (
        "from dbdyno.cli.progress import TerminalProgress\n"
        "import sys\n"
        "sys.stdin.readline()\n"
        "with TerminalProgress({}, 1.0) as progress:\n"
        "    progress.say('one')\n"
        "    progress.say('two')\n"
        "print('went on')\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", said], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        running.stderr.close()
        running.stdin.write("\n")
        running.stdin.flush()
        assert (running.stdout.read(), running.wait()) == ("went on\n", 0)


# One line of progress: it changes on a terminal, and into a pipe some lines go.


class Terminal(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def progress_text(monkeypatch, stream, **times):
    monkeypatch.setattr("sys.stderr", stream)
    with ProgressLine(**times) as line:
        for done in range(1, 4):
            line.show(f"round {done} of 3")
        line.say("a disk was slow")
    return stream.getvalue()


@pytest.mark.parametrize("times", [{}, {"pipe_seconds": 0.0}])
def test_a_pipe_gets_lines(monkeypatch, times):
    text = progress_text(monkeypatch, io.StringIO(), **times)
    assert text == "round 1 of 3\nround 2 of 3\nround 3 of 3\na disk was slow\n"


def test_a_pipe_gets_one_line_in_a_while(monkeypatch):
    assert progress_text(monkeypatch, io.StringIO(), pipe_seconds=1000.0) == "round 1 of 3\na disk was slow\n"


def test_a_terminal_has_one_line_which_is_gone_afterwards(monkeypatch):
    text = progress_text(monkeypatch, Terminal())
    lines = text.split("\r\033[K")
    assert lines[1] == "round 1 of 3", "what follows at once would not be seen"
    assert lines[-2] == "a disk was slow\n"
    assert not lines[-1]


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_what_is_done_at_once_is_not_told(monkeypatch, stream):
    assert progress_text(monkeypatch, stream, silent_seconds=1000.0) == "a disk was slow\n"
