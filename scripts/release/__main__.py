"""``python -m scripts.release DIR [MACHINE...]``: make a release of the last commit in DIR."""

import sys
from pathlib import Path

from scripts.release import MACHINES, ReleaseError, make_release

wanted = sys.argv[2:] or [machine.name for machine in MACHINES]
try:
    files = make_release(
        Path(sys.argv[1]),
        [machine for machine in MACHINES if machine.name in wanted],
        lambda text: print(text, file=sys.stderr),
    )
except ReleaseError as error:
    sys.exit(f"error: {error}")
for path in files:
    print(f"{path.stat().st_size:12,}  {path}")
