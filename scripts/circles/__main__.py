"""``python -m scripts.circles``: print each circle of files, and end with 1 if there is one."""

import sys
from pathlib import Path

from scripts.circles import python, rust

ROOT = Path(__file__).parents[2]

found = python.circles(ROOT) + rust.circles(ROOT)
for circle in found:
    print(f"circle: {', '.join(circle)}")
sys.exit(bool(found))
