"""Run all tests: Rust's, several of Python's at once, then those marked ``alone``; what failed once more by itself.

A machine on which several tests run at once is a busy one, as may be what shares its processors, and a test may fail
for that. So the second run decides. But a test that needs it is a fault of the test: each is named at the end, and more
than a few fail the whole.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

FORGIVEN_MAX = 5  # tests that failed and passed when run again
SLOWEST = ("--durations=20", "--durations-min=5")  # printed, so that what has become slow is seen
SOME_FAILED = 1  # pytest's exit code; any other above 0 says that the tests could not be run, or were skipped

Pytest = Callable[[list[str]], int]  # run with these arguments; returns its exit code


def run_suite(
    workers: str, say: Callable[[str], None], *, root: Sequence[str] = (), rust: Sequence[str] | None = None
) -> int:
    """Run everything and say what was forgiven; returns an exit code.

    ``root`` is what makes Python's tests run as root; ``rust``, the command of Rust's, which run as whoever built them.
    """
    with tempfile.TemporaryDirectory() as cache:

        def pytest(arguments: list[str]) -> int:
            command = [*root, sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *SLOWEST, *arguments]
            return subprocess.run(command, check=False).returncode

        found = [command_twice(rust)] if rust else []
        found += [
            run_twice(pytest, Path(cache), given) for given in (["-n", workers, "-m", "not alone"], ["-m", "alone"])
        ]
    for _, words in found:
        say(words)
    return max(code for code, _ in found)


def command_twice(command: Sequence[str]) -> tuple[int, str]:
    """Run a command, and once more where it failed; returns an exit code and a sentence."""
    if not subprocess.run(command, check=False).returncode:
        return 0, f"{command[0]}: passed"
    code = subprocess.run(command, check=False).returncode
    return code, f"{command[0]}: failed twice" if code else f"{command[0]}: failed, and passed when run again"


def run_twice(pytest: Pytest, cache: Path, arguments: list[str]) -> tuple[int, str]:
    """Run tests, and what failed of them once more alone; returns an exit code and a sentence.

    The last of the arguments says which tests.
    """
    which = arguments[-1]
    code = pytest(arguments)
    failed = failed_tests(cache) if code == SOME_FAILED else []
    if len(failed) > FORGIVEN_MAX:
        return code, f"{which}: {len(failed)} tests failed; more than {FORGIVEN_MAX} are not run again"
    if not failed:
        return code, f"{which}: 0 tests were run again; pytest's exit code was {code}"
    code = pytest(["--last-failed", "-m", which])
    names = "".join(f"\n  {name}" for name in failed)
    if code:
        return code, f"{which}: {len(failed)} tests failed, and not all of them passed when run again:{names}"
    return 0, f"{which}: {len(failed)} tests failed and passed when run again:{names}"


def failed_tests(cache: Path) -> list[str]:
    """Return the names of the tests that failed in the last run, as pytest has noted them."""
    noted = cache / "v/cache/lastfailed"
    return sorted(json.loads(noted.read_text(encoding="utf-8"))) if noted.exists() else []
