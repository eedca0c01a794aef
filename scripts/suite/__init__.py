"""Run all tests: several of Python's at once, Rust's beside them, then those marked ``alone``; what failed once more.

Most of Python's tests wait for a disk or a server; Rust is compiled and tested meanwhile, on what they leave of the
processors. A machine on which several tests run at once is a busy one, as may be what shares its processors, and a test
may fail for that. So what fails is run once more with nothing beside it, and the second run decides. But a test that
needs it is a fault of the test: each is named at the end, and more than a few fail the whole.
"""

import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

TESTS = Path("tests")
SECOND_RUN_SECONDS = 1800.0  # of Rust's tests, which are compiled by then
FORGIVEN_MAX = 3  # tests that failed and passed when run again
SLOWEST = ("--durations=20", "--durations-min=5")  # printed, so that what has become slow is seen
RUST_FAILED = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. FAILED$", re.MULTILINE)
SOME_FAILED = 1  # pytest's exit code; any other above 0 says that the tests could not be run, or were skipped

ALONE = "pytest.mark.alone"

Pytest = Callable[[list[str]], int]  # run with these arguments; returns its exit code
Ended = Callable[[], tuple[int, str]]  # waits for what runs beside; returns its exit code, and what it wrote


def run_suite(
    workers: str, say: Callable[[str], None], *, root: Sequence[str] = (), rust: Sequence[str] | None = None
) -> int:
    """Run everything and say what was forgiven; returns an exit code.

    ``root`` is what makes Python's tests run as root; ``rust``, the command of Rust's, which run as whoever built them.
    """
    with tempfile.TemporaryDirectory() as cache, beside(rust, Path(cache) / "beside", say) as ended:

        def pytest(arguments: list[str]) -> int:
            if "-n" not in arguments:
                ended()
            command = [*root, sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *SLOWEST, *arguments]
            return subprocess.run(command, check=False).returncode

        found = [run_twice(pytest, Path(cache), ["-n", workers, "-m", "not alone"])]
        found += [second_run(rust, *ended())] if rust else []
        found += [run_twice(pytest, Path(cache), [*files_with(ALONE), "-m", "alone"])]
    for _, words in found:
        say(words)
    return max(code for code, _ in found)


def files_with(mark: str) -> list[str]:
    """Return the files in which tests have a mark: to collect all the others would only take time."""
    return sorted(str(path) for path in TESTS.rglob("test_*.py") if mark in path.read_text(encoding="utf-8"))


@contextmanager
def beside(command: Sequence[str] | None, output: Path, say: Callable[[str], None]) -> Iterator[Ended]:
    """Have a command run meanwhile; what it wrote is said when it is first waited for."""
    if not command:
        yield lambda: (0, "")
        return
    with output.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:

        def ended() -> tuple[int, str]:
            said = process.returncode is not None
            code, wrote = process.wait(), output.read_text(encoding="utf-8", errors="replace")
            if not said:
                say(wrote)
            return code, wrote

        try:
            yield ended
        except BaseException:
            process.terminate()
            raise


def second_run(
    command: Sequence[str], code: int, wrote: str, limit_seconds: float = SECOND_RUN_SECONDS
) -> tuple[int, str]:
    """Run what failed of Rust once more: tests, or all of the command; returns an exit code and a sentence.

    The command takes ``ONLY=NAMES``.
    """
    name = shlex.join(command)
    if not code:
        return 0, f"{name}: passed"
    failed = sorted(set(RUST_FAILED.findall(wrote)))
    names = "".join(f"\n  {one}" for one in failed)
    again = [*command, *([f"ONLY={' '.join(failed)}"] if failed else [])]
    try:
        code = subprocess.run(again, check=False, timeout=limit_seconds).returncode
    except subprocess.TimeoutExpired:
        return code, f"{name}: failed, and had not ended {limit_seconds:g} s after it was run again{names}"
    return code, f"{name}: failed twice{names}" if code else f"{name}: failed, and passed when run again{names}"


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
