"""The command line in this process."""

import functools

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
