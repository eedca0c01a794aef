"""``python -m scripts.site [FOLDER] [--release SITE]``: build the site; fail at a dead link or a page none leads to.

With ``--release`` the pages are added as ``SITE/VERSION`` to a site of several versions.
"""

import argparse
import sys
from pathlib import Path

from scripts.site.build import SiteError, build, current_version
from scripts.site.check import faults
from scripts.site.versions import add_version

parser = argparse.ArgumentParser(prog="make site")
parser.add_argument("folder", nargs="?", type=Path, default=Path("target/site"), help="where it is built")
parser.add_argument("--release", type=Path, metavar="SITE", help="the site of all versions that this one is added to")
asked = parser.parse_args()
try:
    html = build(asked.folder.resolve(), among_versions=asked.release is not None)
    found = faults(html)
    if asked.release and not found:
        html = add_version(html, current_version(), asked.release.resolve())
except SiteError as error:
    sys.exit(str(error))
print(*found, f"{html}/index.html", sep="\n")
sys.exit(1 if found else 0)
