"""Run the tests of Python: several at once, what failed there once more alone, and then those marked ``alone``.

A machine on which several tests run at once is a busy one, and a test may fail for that. So the second run decides.
But a test that needs it is a fault of the test: each is named at the end, and more than a few fail the whole.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

FORGIVEN_MAX = 5  # tests that failed beside others and passed alone
SOME_FAILED = 1  # pytest's exit code; any other above 0 says that the tests could not be run, or were skipped

Pytest = Callable[[list[str]], int]  # run with these arguments; returns its exit code


def run_suite(workers: str, say: Callable[[str], None]) -> int:
    """Run everything and say what was forgiven; returns an exit code."""
    with tempfile.TemporaryDirectory() as cache:

        def pytest(arguments: list[str]) -> int:
            command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *arguments]
            return subprocess.run(command, check=False).returncode

        beside, words = run_beside(pytest, Path(cache), workers)
        alone = pytest(["-m", "alone"])
    say(words)
    return beside or alone


def run_beside(pytest: Pytest, cache: Path, workers: str) -> tuple[int, str]:
    """Run what may run at once, and what failed of it once more; returns an exit code and a sentence."""
    code = pytest(["-n", workers, "-m", "not alone"])
    failed = failed_tests(cache) if code == SOME_FAILED else []
    if len(failed) > FORGIVEN_MAX:
        return code, f"{len(failed)} tests failed; more than {FORGIVEN_MAX} are not run again"
    if not failed:
        return code, f"0 tests failed beside others and passed alone; pytest's exit code was {code}"
    code = pytest(["--last-failed", "-m", "not alone"])
    names = "".join(f"\n  {name}" for name in failed)
    if code:
        return code, f"{len(failed)} tests failed beside others, and not all of them passed alone:{names}"
    return 0, f"{len(failed)} tests failed beside others and passed alone:{names}"


def failed_tests(cache: Path) -> list[str]:
    """Return the names of the tests that failed in the last run, as pytest has noted them."""
    noted = cache / "v/cache/lastfailed"
    return sorted(json.loads(noted.read_text(encoding="utf-8"))) if noted.exists() else []
