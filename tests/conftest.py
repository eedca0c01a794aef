"""What every test may use, and the rule that a host test is skipped only where ``dbdyno doctor`` says no."""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, settings

from dbdyno.stack.capabilities import Capability, look_around
from dbdyno.stack.journal import Journal
from dbdyno.state import state_folder
from tests.support import dbdyno, what_is_left

# A busy host is no fault of what is tested, and the same checkout gives the same result. For a search that goes on:
# pytest --hypothesis-profile=search.
settings.register_profile("same", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.register_profile("search", settings.get_profile("same"), derandomize=False)
settings.load_profile("same")

_skipped_though_able: list[str] = []


def pytest_sessionstart():
    """Put back what a killed dbdyno, or killed tests, left: a dead disk's mount fails others' mkfs.btrfs, for one."""
    if os.geteuid() == 0:
        for journals in (state_folder() / "journals", *Path("/tmp").glob("dd*/journals")):
            if any(journals.glob("*.jsonl")):
                dbdyno("restore", state=journals.parent)


def lacking() -> list[Capability]:
    """What this host lacks for the tests marked ``host``; the same words as ``dbdyno doctor``."""
    return [one for one in look_around() if one.needed and not one.ok]


def pytest_collection_modifyitems(items):
    hosted = [item for item in items if item.get_closest_marker("host")]
    missing = lacking() if hosted else []
    if missing:
        reason = "; ".join(f"{one.name}: {one.detail}" for one in missing)
        for item in hosted:
            item.add_marker(pytest.mark.skip(reason=f"this host can't: {reason}"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    outcome = yield
    report = outcome.get_result()
    if report.skipped and item.get_closest_marker("host") and not hasattr(report, "wasxfail") and not lacking():
        reason = str(report.longrepr)
        if not any(f"{one.name}: {one.detail}" in reason for one in look_around() if not one.ok):
            _skipped_though_able.append(item.nodeid)


def pytest_sessionfinish(session):
    if _skipped_though_able and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    for nodeid in _skipped_though_able:
        terminalreporter.write_line(f"SKIPPED ALTHOUGH dbdyno doctor CALLS THIS HOST ABLE: {nodeid}", red=True)


@pytest.fixture
def state(monkeypatch):
    """A short path, since sockets lie below it; afterwards the host must be as it was."""
    folder = Path(tempfile.mkdtemp(prefix="dd", dir="/tmp"))
    folder.chmod(0o755)
    monkeypatch.setenv("DBDYNO_STATE_DIR", str(folder))
    yield folder
    for process in psutil.process_iter():  # of a test that failed half-way
        with suppress(psutil.Error):
            ours = process.pid != os.getpid() and process.name().startswith("python")
            if ours and process.environ().get("DBDYNO_STATE_DIR") == str(folder):
                process.kill()
    left = what_is_left(folder)
    if left:
        dbdyno("restore", state=folder)
    assert not left
    shutil.rmtree(folder)


@pytest.fixture
def journal(state):
    """An open undo journal that must be empty in the end."""
    opened = Journal("a test", folder=state / "journals")
    yield opened
    opened.close()


@pytest.fixture
def study_file(tmp_path):
    """Writes a study file and returns its path."""

    def write(text):
        path = tmp_path / "study.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write
