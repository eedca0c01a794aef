"""What every test may use, and the rule that a host test is skipped only where ``dbdyno doctor`` says no."""

import gc
import os
import shutil
import signal
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, settings
from xdist import is_xdist_worker

from dbdyno.stack.capabilities import Capability, look_around
from dbdyno.stack.undo_log import Journal
from dbdyno.system.interrupt import SIGNALS
from dbdyno.system.state import state_folder
from tests import sampled
from tests.lab import PACKAGES, lab_lacking
from tests.support import KEPT_ANSWERS, NO_REGISTRY, dbdyno, kept_answers, what_is_left

# A busy host is no fault of what is tested, and the same checkout gives the same result. For a search that goes on:
# pytest --hypothesis-profile=search.
settings.register_profile("same", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.register_profile("search", settings.get_profile("same"), derandomize=False)
settings.load_profile("same")

SKIPPED_THOUGH_ABLE = 10  # exit code of a run that proves less than this host could
_lacking_registry: list[str] = []
_skipped_though_able: list[str] = []


def pytest_configure(config):
    for number in SIGNALS:  # of a job in the background they are ignored, and so by all that is started here
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    os.environ["DBDYNO_TEST_SEED"] = str(sampled.seed())  # the same for all workers
    if KEPT_ANSWERS not in os.environ:
        os.environ[KEPT_ANSWERS] = tempfile.mkdtemp(prefix="ddtakes", dir="/var/tmp")
        config.add_cleanup(lambda: shutil.rmtree(os.environ.pop(KEPT_ANSWERS)))
    if PACKAGES not in os.environ:
        os.environ[PACKAGES] = tempfile.mkdtemp(prefix="ddpackages", dir="/var/tmp")
        config.add_cleanup(lambda: shutil.rmtree(os.environ.pop(PACKAGES)))


def pytest_report_header():
    return f"sampled: {'everything is tried, ' if sampled.LONG else ''}DBDYNO_TEST_SEED={sampled.seed()}"


def pytest_sessionstart(session):
    """Put back what a killed dbdyno, or killed tests, left: a dead disk's mount fails others' mkfs.btrfs, for one."""
    if os.geteuid() == 0 and not is_xdist_worker(session):  # by then the tests of other workers have begun
        for journals in (state_folder() / "journals", *Path("/var/tmp").glob("dd*/journals")):
            if any(journals.glob("*.jsonl")):
                dbdyno("restore", state=journals.parent)


def lacking() -> list[Capability]:
    """What this host lacks for the tests marked ``host``; the same words as ``dbdyno doctor``."""
    return [one for one in look_around() if one.needed and not one.ok]


def pytest_collection_modifyitems(config, items):
    """Skip what this host can't, and put long tests first, so that none of them is left for one worker at the end."""
    if left_out := sampled.left_out(items):
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    hosted = [item for item in items if item.get_closest_marker("host")]
    missing = lacking() if hosted else []
    if missing:
        reason = "; ".join(f"{one.name}: {one.detail}" for one in missing)
        for item in hosted:
            item.add_marker(pytest.mark.skip(reason=f"this host can't: {reason}"))
    items.sort(key=lambda item: (not item.get_closest_marker("long"), not item.get_closest_marker("host")))


def pytest_collection_finish():
    """What was imported and collected stays to the end: a collector that looks through it at each test is in vain."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure():
    gc.unfreeze()  # what is still there at the very end is called a leak by some libraries


def pytest_runtest_logreport(report):
    """Note each host test that was skipped; with many workers this is called where the session ends."""
    if not report.skipped or "host" not in report.keywords or hasattr(report, "wasxfail"):
        return
    reason = str(report.longrepr)
    lacking_lab = lab_lacking()
    if lacking_lab and lacking_lab in reason:
        return
    if NO_REGISTRY in reason:
        _lacking_registry.append(report.nodeid)
    elif not lacking() and not any(f"{one.name}: {one.detail}" in reason for one in look_around() if not one.ok):
        _skipped_though_able.append(report.nodeid)


def pytest_sessionfinish(session):
    if _skipped_though_able:
        session.exitstatus = SKIPPED_THOUGH_ABLE


def pytest_terminal_summary(terminalreporter):
    if _lacking_registry:
        terminalreporter.write_line(f"{len(_lacking_registry)} tests were skipped: {NO_REGISTRY}", yellow=True)
    for nodeid in _skipped_though_able:
        terminalreporter.write_line(f"SKIPPED ALTHOUGH dbdyno doctor CALLS THIS HOST ABLE: {nodeid}", red=True)


@contextmanager
def clean_state():
    """A short path, since sockets lie below it, on a disk, as /tmp need not be; afterwards the host is as it was."""
    folder = Path(tempfile.mkdtemp(prefix="dd", dir="/var/tmp"))
    folder.chmod(0o755)
    with kept_answers(folder):
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
def state(monkeypatch):
    """A state folder of the test's own."""
    with clean_state() as folder:
        monkeypatch.setenv("DBDYNO_STATE_DIR", str(folder))
        yield folder


@pytest.fixture(scope="module")
def shared_state():
    """A state folder for all tests of a file."""
    with clean_state() as folder:
        yield folder


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
