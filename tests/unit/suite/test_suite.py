"""What failed beside others is run once more, alone: that decides, but it is said, and only so often."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.suite import FORGIVEN_MAX, beside, run_twice, second_run

ROOT = Path(__file__).parents[3]


@pytest.fixture
def suite(tmp_path):
    """Play a pytest that notes these tests as failed and ends so; returns what came of it and what was run."""

    def run(failed, *codes):
        noted = tmp_path / "v/cache/lastfailed"
        noted.parent.mkdir(parents=True)
        noted.write_text(json.dumps(dict.fromkeys(failed, True)))
        coming, asked = iter(codes), []

        def played(arguments):
            asked.append(arguments)
            return next(coming)

        code, words = run_twice(played, tmp_path, ["-n", "4", "-m", "not alone"])
        return code, words, asked

    return run


def test_where_all_pass_nothing_is_run_again(suite):
    code, words, asked = suite([], 0)
    assert (code, asked) == (0, [["-n", "4", "-m", "not alone"]])
    assert words.startswith("not alone: 0 tests were run again")


def test_what_passes_alone_is_forgiven_and_named(suite):
    code, words, asked = suite(["t.py::b", "t.py::a"], 1, 0)
    assert (code, asked[1]) == (0, ["--last-failed", "-m", "not alone"])
    assert words == "not alone: 2 tests failed and passed when run again:\n  t.py::a\n  t.py::b"


def test_what_fails_alone_too_is_a_failure(suite):
    code, words, _ = suite(["t.py::a"], 1, 1)
    assert code == 1
    assert "not all of them passed when run again" in words


def test_many_are_no_accident(suite):
    code, words, asked = suite([f"t.py::{n}" for n in range(FORGIVEN_MAX + 1)], 1)
    assert (code, len(asked)) == (1, 1)
    assert "4 tests failed; more than 3 are not run again" in words


@pytest.mark.parametrize("code", [2, 3, 4, 5, 10])
def test_nothing_makes_up_for_tests_that_could_not_be_run(code, suite):
    assert suite(["t.py::a"], code)[0] == code


TESTS = """
import pathlib
import pytest

def test_sound():
    pass

def test_busy():
    seen = pathlib.Path(__file__).with_name("seen")
    first = not seen.exists()
    seen.touch()
    assert not first

@pytest.mark.alone
def test_by_itself():
    raise ValueError
"""


@pytest.mark.long
def test_with_pytest_itself(tmp_path):
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    alone\n")
    command = [sys.executable, "-m", "scripts.suite", "--root=env A=b", "1", "sh", "-c", "echo it ran"]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, "for the one that runs by itself"
    ends = re.findall(r"\d (?:passed|failed).*(?= in )", done.stdout)
    assert ends == ["1 failed, 1 passed", "1 passed", "1 failed, 2 deselected", "1 failed"], done.stdout
    assert "it ran\n" in done.stdout
    assert "sh -c 'echo it ran': passed\n" in done.stdout
    assert "not alone: 1 tests failed and passed when run again:\n  test_some.py::test_busy\n" in done.stdout
    assert done.stdout.endswith("not all of them passed when run again:\n  test_some.py::test_by_itself\n")


@pytest.mark.parametrize(
    ("first", "command", "code", "words"),
    [(0, "false", 0, "passed"), (1, "false", 1, "failed twice"), (2, "true", 0, "failed, and passed when run again")],
)
def test_a_command_has_a_second_run_too(first, command, code, words):
    assert second_run([command], first, "") == (code, f"{command}: {words}")


def test_a_second_run_that_hangs_is_ended():
    code, words = second_run(["sleep", "60"], 101, "", limit_seconds=0.01)
    assert (code, words) == (101, "sleep 60: failed, and had not ended 0.01 s after it was run again")


def test_of_rust_s_tests_only_those_that_failed_are_run_again(tmp_path):
    wrote = "test a::one ... FAILED\ntest two ... ok\ntest a::one ... FAILED\ntest three - should panic ... FAILED\n"
    code, words = second_run(["sh", "-c", f"echo $0 > {tmp_path}/asked"], 101, wrote)
    assert (tmp_path / "asked").read_text() == "ONLY=a::one three\n"
    assert code == 0
    assert words.endswith(": failed, and passed when run again\n  a::one\n  three")


def test_what_runs_beside_is_waited_for_and_shown_once(tmp_path):
    said = []
    with beside(["sh", "-c", "sleep 0.1; echo out; echo err >&2; exit 3"], tmp_path / "output", said.append) as ended:
        assert said == []
        assert [ended(), ended()] == [(3, "out\nerr\n")] * 2
    assert said == ["out\nerr\n"]
    with beside(None, tmp_path / "nothing", said.append) as ended:
        assert ended() == (0, "")
    assert len(said) == 1


def test_what_runs_beside_is_ended_with_the_whole(tmp_path):
    with pytest.raises(KeyboardInterrupt), beside(["sleep", "1000"], tmp_path / "output", print):
        raise KeyboardInterrupt
