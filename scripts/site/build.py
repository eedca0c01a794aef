"""Lay the pages out in a folder and have Zensical build them."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from scripts.site.pages import ROOT, staged

HERE = Path(__file__).parent
# What has the pages of a site of several versions show their selector; scripts/site/versions.py writes its list.
SELECTOR = '\n[project.extra.version]\nprovider = "mike"\n'
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class SiteError(Exception):
    """The site can't be built."""


def current_version() -> str:
    """Return the version that the documents are of."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def build(folder: Path, *, among_versions: bool = False) -> Path:
    """Build the site below ``folder``, which is made anew; return where its pages are.

    Pages that are to stand ``among_versions`` have a selector, which needs the list beside their folder.

    Raises:
        SiteError: Zensical refuses a page; it names each dead link.

    """
    shutil.rmtree(folder, ignore_errors=True)
    for place, content in staged().items():
        page = folder / "pages" / place
        page.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Path):
            shutil.copy(content, page)
        else:
            page.write_text(content, encoding="utf-8")
    shutil.copytree(HERE / "assets", folder / "pages/assets")
    config = (HERE / "zensical.toml").read_text(encoding="utf-8").replace("VERSION", current_version())
    (folder / "zensical.toml").write_text(config + SELECTOR * among_versions, encoding="utf-8")
    command = [Path(sys.executable).with_name("zensical"), "build", "--strict", "-f", folder / "zensical.toml"]
    built = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if built.returncode != 0:
        said = _COLOUR.sub("", built.stdout + built.stderr).partition("Traceback")[0].strip()
        raise SiteError(said or f"zensical: exit {built.returncode}")
    return folder / "html"
