"""The tutorials, done from top to bottom: their studies measured for real, with two treatments and a moment of load."""

import shutil
import subprocess

import pytest

from tests.documents import ROOT, TOOLS, blocks, shrunk
from tests.sampled import some
from tests.support import dbdyno

pytestmark = [pytest.mark.host, pytest.mark.timeout(300)]

TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.md"))
PAGES = [*some("tutorials", TUTORIALS, 0.34), ROOT / "docs/disk.md"]


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "studies").symlink_to(ROOT / "studies")
    return tmp_path


def typed(page):
    """Every command of a page."""
    shown = [block for block in blocks(page) if block.language in {"sh", "console"} and not block.not_run]
    return [words for block in shown for words in block.commands]


def do(words, state, device):
    """Run a command; what it calls /dev/loop0 is the device that was attached here, and no other."""
    words = [device if word == "/dev/loop0" else word for word in words]
    assert None not in words, "a device is named before one is attached"
    if words[0] in TOOLS:
        subprocess.run(words, check=True, capture_output=True)
        return device
    done = dbdyno(*words[1:], state=state)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
    return done.stdout.strip() if words[1:3] == ["disk", "attach"] else device


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_step_works(page, desk, state):
    names, device = {}, None
    ranked = ["dbdyno", "rank"] in [words[:2] for words in typed(page)]
    for block in blocks(page):
        if block.not_run:
            continue
        if block.language == "toml" and block.file:
            (desk / block.file).write_text(shrunk(block.text, 2 if ranked else 1), encoding="utf-8")
        elif block.language == "python":
            exec(compile(block.text, f"{page.name}:{block.line}", "exec"), names)
        elif block.language in {"sh", "console"} and "DISK" not in block.text:
            for words in block.commands:
                device = do(words, state, device)
    shutil.rmtree(desk / "runs", ignore_errors=True)
    kinds = [["dbdyno", "run"], ["dbdyno", "simulate"]]
    assert page not in TUTORIALS or any(words[:2] in kinds for words in typed(page))


def test_there_is_a_tutorial_for_each_field_report_for_safety_for_reading_one_and_for_many_hosts():
    assert [page.stem for page in TUTORIALS] == [
        "choose-a-filesystem",
        "choose-a-scheduler",
        "choose-an-ssd",
        "existing-dask-cluster",
        "first-results",
        "how-safe-is-my-setting",
        "read-a-report",
        "request-queue",
        "ssd-or-hdd",
        "two-machines",
    ]
