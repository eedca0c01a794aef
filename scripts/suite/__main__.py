"""``python -m scripts.suite WORKERS``: the tests of ``make test``."""

import sys

from scripts.suite import run_suite

if __name__ == "__main__":
    sys.exit(run_suite(sys.argv[1], print))
