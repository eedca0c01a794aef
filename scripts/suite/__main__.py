"""``python -m scripts.suite [--root COMMAND] WORKERS [COMMAND...]``: the tests of ``make test``.

``--root`` is what makes Python's tests run as root, such as "sudo"; the command runs Rust's tests.
"""

import argparse
import shlex
import sys

from scripts.suite import run_suite

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("workers")
    parser.add_argument("--root", default="", type=shlex.split)
    parser.add_argument("rust", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    passed = run_suite(given.workers, lambda text: print(text, flush=True), root=given.root, rust=given.rust)
    sys.exit(not passed)
