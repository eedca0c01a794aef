"""One line of progress: it changes on a terminal, and into a pipe some lines go."""

import io

import pytest

from dbdyno.cli.output import ProgressLine


class Terminal(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def shown(monkeypatch, stream, **times):
    monkeypatch.setattr("sys.stderr", stream)
    with ProgressLine(**times) as line:
        for done in range(1, 4):
            line.show(f"round {done} of 3")
        line.say("a disk was slow")
    return stream.getvalue()


@pytest.mark.parametrize("times", [{}, {"pipe_seconds": 0.0}])
def test_a_pipe_gets_lines(monkeypatch, times):
    text = shown(monkeypatch, io.StringIO(), **times)
    assert text == "round 1 of 3\nround 2 of 3\nround 3 of 3\na disk was slow\n"


def test_a_pipe_gets_one_line_in_a_while(monkeypatch):
    assert shown(monkeypatch, io.StringIO(), pipe_seconds=1000.0) == "round 1 of 3\na disk was slow\n"


def test_a_terminal_has_one_line_which_is_gone_afterwards(monkeypatch):
    text = shown(monkeypatch, Terminal())
    lines = text.split("\r\033[K")
    assert lines[1] == "round 1 of 3", "what follows at once would not be seen"
    assert lines[-2] == "a disk was slow\n"
    assert not lines[-1]


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_what_is_done_at_once_is_not_told(monkeypatch, stream):
    assert shown(monkeypatch, stream, silent_seconds=1000.0) == "a disk was slow\n"
