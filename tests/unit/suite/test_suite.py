"""The whole of `make test`: what fails once fails it, and all the rest is run none the less."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.suite import run_suite

ROOT = Path(__file__).parents[3]
SOUND = "def test_sound():\n    pass\n"
BY_ITSELF = "import pytest\n@pytest.mark.alone\ndef test_by_itself():\n    pass\n"
# It would pass if it were run again.
ONCE = """
import pathlib
def test_once():
    seen = pathlib.Path(__file__).with_name("seen")
    first = not seen.exists()
    seen.touch()
    assert not first
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("sources", "rust", "failed"),
    [
        ([SOUND, BY_ITSELF], ["echo", "it ran"], []),
        ([SOUND, BY_ITSELF, ONCE], ["sh", "-c", "echo it ran; kill -9 $$"], ["Python", "Rust"]),
        ([SOUND, BY_ITSELF.replace("pass", "raise ValueError")], ["echo", "it ran"], ["alone"]),
    ],
)
def test_one_failure_fails_all_and_the_rest_is_run(sources, rust, failed, tmp_path):
    (tmp_path / "tests").mkdir()
    for number, source in enumerate(sources):
        (tmp_path / f"tests/test_{number}.py").write_text(source)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    alone\n")
    command = [sys.executable, "-m", "scripts.suite", "--root=env A=b", "1", *rust]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert re.findall(r"^(\w+): FAILED$", done.stdout, re.MULTILINE) == failed, done.stdout
    assert len(re.findall(r"^\w+: passed$", done.stdout, re.MULTILINE)) == 3 - len(failed)
    assert "it ran\n" in done.stdout
    assert done.returncode == bool(failed)


def test_what_runs_beside_is_ended_with_the_whole(monkeypatch):
    started, call = [], subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda *words, **options: started.append(call(*words, **options)) or started[-1]
    )

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_suite("1", print, rust=["sleep", "1000"])
    assert started[0].wait() < 0
