"""The host's tools: found, quoted when they fail, ended when they hang."""

import pytest

from dbdyno.errors import HostError, TrialError
from dbdyno.stack.tools import own_binary, run_tool


def test_a_tool_that_fails_is_quoted():
    with pytest.raises(TrialError) as failed:
        run_tool(["sh", "-c", "echo one >&2; echo two >&2; exit 3"])
    assert str(failed.value) == "sh -c echo one >&2; echo two >&2; exit 3: exit 3: one / two"


def test_a_tool_that_is_not_installed_is_named_with_its_package(monkeypatch):
    monkeypatch.setattr("dbdyno.stack.tools.tool_path", lambda _: None)
    with pytest.raises(HostError) as refused:
        run_tool(["mkfs.xfs", "/dev/x"])
    assert str(refused.value) == "mkfs.xfs is not installed; install it: apt-get install xfsprogs"


def test_a_tool_that_hangs_is_ended():
    with pytest.raises(TrialError, match=r"sleep 60: not done after 0\.2 s, so it was ended"):
        run_tool(["sleep", "60"], timeout_seconds=0.2)


def test_a_program_of_ours_that_is_not_built():
    with pytest.raises(HostError, match=r"dbdyno-nothing is neither beside .* build it with: make build"):
        own_binary("dbdyno-nothing")
