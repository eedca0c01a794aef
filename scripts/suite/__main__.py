"""``python -m scripts.suite WORKERS [COMMAND...]``: the tests of ``make test``; the command runs those of Rust."""

import sys

from scripts.suite import run_suite

if __name__ == "__main__":
    sys.exit(run_suite(sys.argv[1], lambda text: print(text, flush=True), sys.argv[2:] or None))
