"""``python -m scripts.site [FOLDER]``: build the site, and fail at a dead link or a page that no other leads to."""

import sys
from pathlib import Path

from scripts.site.build import SiteError, build
from scripts.site.check import faults

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "target/site").resolve()
try:
    html = build(folder)
except SiteError as error:
    sys.exit(str(error))
found = faults(html)
print(*found, f"{html}/index.html", sep="\n")
sys.exit(1 if found else 0)
