"""Run all tests: Rust's beside several of Python's, then those marked ``alone``; what failed once more by itself.

A machine on which several tests run at once is a busy one, as may be what shares its processors, and a test may fail
for that. So the second run decides. But a test that needs it is a fault of the test: each is named at the end, and more
than a few fail the whole.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

FORGIVEN_MAX = 5  # tests that failed and passed when run again
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
            command = [*root, sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *arguments]
            return subprocess.run(command, check=False).returncode

        with beside(rust, Path(cache) / "rust.log", say) as ended:
            found = [run_twice(pytest, Path(cache), ["-n", workers, "-m", "not alone"])]
        found += [*ended, run_twice(pytest, Path(cache), ["-m", "alone"])]
    for _, words in found:
        say(words)
    return max(code for code, _ in found)


@contextmanager
def beside(command: Sequence[str] | None, log: Path, say: Callable[[str], None]) -> Iterator[list[tuple[int, str]]]:
    """Run a command beside what is in the context, and once more by itself where it failed.

    Gives a list that has its exit code and a sentence at the end.
    """
    ended: list[tuple[int, str]] = []
    if command is None:
        yield ended
        return
    with log.open("wb") as written, subprocess.Popen(command, stdout=written, stderr=subprocess.STDOUT) as running:
        yield ended
        code = running.wait()
    say(log.read_text(encoding="utf-8", errors="replace"))
    again = subprocess.run(command, check=False).returncode if code else 0
    words = "passed" if not code else "failed, and passed when run again" if not again else "failed twice"
    ended.append((again, f"{command[0]}: {words}"))


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
