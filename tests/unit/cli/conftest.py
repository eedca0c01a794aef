"""The command line in this process."""

import functools
import subprocess
import sys

import pytest
import typer

from tests.support import called

ENVIRONMENT = {"COLUMNS": "100", "TERM": "dumb", "LC_ALL": "C.UTF-8"}


@pytest.fixture(scope="module", autouse=True)
def _verbs():
    """Verbs and their options are made of functions once, not at each command: a process has one command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", functools.cache(typer.main.get_command))
        yield


@pytest.fixture
def dbdyno(monkeypatch, capsys, state):
    """Run the command line in this process; returns its exit code, standard output and standard error."""
    for name, value in {**ENVIRONMENT, "DBDYNO_STATE_DIR": str(state)}.items():
        monkeypatch.setenv(name, value)

    return functools.partial(called, monkeypatch, capsys)


@pytest.fixture
def killed(state):
    """The number of a killed run that had yet to remove the folder ``scratch/x`` of the state folder."""
    (state / "scratch" / "x").mkdir(parents=True)
    code = "import os\nfrom dbdyno.stack.undo_log import Journal\nfrom dbdyno.stack.undo.actions import RemoveTree\n"
    code += f"Journal('run study.toml').announce(RemoveTree('{state}/scratch/x'))\nos.kill(os.getpid(), 9)"
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        process.wait()
    return process.pid
