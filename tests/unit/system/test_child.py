"""A program that dbdyno runs to its end: no signal leaves it behind."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

import psutil
import pytest

from dbdyno.stack.tools import run_tool
from dbdyno.system.child import child
from dbdyno.system.interrupt import SIGNALS, Interrupted, interruptible


@pytest.fixture
def signal_while_starting(monkeypatch):
    """Every process that is started from now on is followed by a signal before its starter has it in hand."""

    class Signalled(subprocess.Popen):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            os.kill(os.getpid(), number)

    number = signal.SIGTERM

    def choose(which):
        nonlocal number
        number = which
        monkeypatch.setattr(subprocess, "Popen", Signalled)

    return choose


def sleeping():
    """Processes below this one that sleep on somebody's command; the suite has others, a browser among them."""
    return [p for p in psutil.Process().children(recursive=True) if p.name() == "sleep"]


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_while_a_tool_starts_does_not_leave_the_tool_running(signal_while_starting, number):
    signal_while_starting(number)
    with pytest.raises(Interrupted), interruptible(print):
        run_tool(["sleep", "60"])
    assert sleeping() == []


def test_what_the_program_started_goes_with_it():
    script = "import subprocess, time; print(subprocess.Popen(['sleep', '60']).pid, flush=True); time.sleep(60)"
    argv = [sys.executable, "-c", script]
    with suppress(Interrupted), child(argv, env={}) as process:
        grandchild = psutil.Process(int(process.stdout.readline()))
        raise Interrupted
    grandchild.wait(120)
    assert process.returncode == -signal.SIGKILL


def test_a_program_that_has_ended_keeps_its_exit_code():
    with child(["sh", "-c", "echo said; exit 3"], env={}) as process:
        out, _ = process.communicate()
    assert (out, process.returncode) == (b"said\n", 3)
