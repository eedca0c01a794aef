"""Run all tests: several of Python's at once, Rust's beside them, then those marked ``alone``.

Most of Python's tests wait for a disk or a server; Rust is compiled and tested meanwhile, on what they leave of the
processors. Each test runs once, and one that fails fails the whole.
"""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryFile

TESTS = Path("tests")
SLOWEST = ("--durations=20", "--durations-min=5")  # printed, so that what has become slow is seen
ALONE = "pytest.mark.alone"


def run_suite(workers: str, say: Callable[[str], None], *, root: Sequence[str] = (), rust: Sequence[str] = ()) -> bool:
    """Run everything, also after a failure, and say what passed; returns whether all of it did.

    ``root`` is the command that makes Python's tests run as root; ``rust``, that of Rust's tests, runs as this user.
    What it writes is said when Python's tests have ended.
    """

    def has_passed(*arguments: str) -> bool:
        command = [*root, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *SLOWEST, *arguments]
        return subprocess.run(command, check=False).returncode == 0

    passed = {}
    with TemporaryFile() as output:  # a pipe that nobody reads would stop Rust's tests
        beside = subprocess.Popen(rust, stdout=output, stderr=output) if rust else None
        try:
            passed["Python"] = has_passed("-n", workers, "-m", "not alone")
            if beside:
                passed["Rust"] = beside.wait() == 0
        except BaseException:
            if beside:
                beside.terminate()
            raise
        output.seek(0)
        say(output.read().decode(errors="replace"))
    passed["alone"] = has_passed(*files_with(ALONE), "-m", "alone")
    for name, ok in passed.items():
        say(f"{name}: {'passed' if ok else 'FAILED'}")
    return all(passed.values())


def files_with(mark: str) -> list[str]:
    """Return the files in which tests have a mark: to collect all the others would only take time."""
    return sorted(str(path) for path in TESTS.rglob("test_*.py") if mark in path.read_text(encoding="utf-8"))
