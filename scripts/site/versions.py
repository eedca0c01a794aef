"""A site of several versions: a folder for each, ``versions.json`` for the page's selector, ``latest`` as redirects.

The selector is Zensical's, which reads ``versions.json`` in the format of mike: a list of ``version``, ``title`` and
``aliases``, the newest first. A browser reads no JSON beside a page that it opened as a file: there it stays hidden.
It leads to the same page of another version if that version's ``sitemap.xml`` lists it, else to its first page.
"""

import html
import json
import re
import shutil
from pathlib import Path
from urllib.parse import quote

from scripts.site.build import SiteError

LATEST = "latest"
VERSIONS = "versions.json"
SITEMAP = "sitemap.xml"
# A sitemap must name a host, and where the site will be published isn't known. The selector replaces it by its own.
ANY_HOST = "http://localhost/"
_NUMBERED = re.compile(r"\d+(?:\.\d+)*")
SITEMAP_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">',
)
REDIRECT = """\
<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<title>{to}</title>
<link rel="canonical" href="{to}">
<script>location.replace("{to}" + location.search + location.hash)</script>
<noscript><meta http-equiv="refresh" content="0; url={to}"></noscript>
<p><a href="{to}">{to}</a></p>
</html>
"""


def add_version(built: Path, version: str, site: Path) -> Path:
    """Copy a built version to ``site/version``, and lead ``latest`` to the newest version; return the version's folder.

    Raises:
        SiteError: The version is no number such as 0.2.0, or the site has it.

    """
    if not _NUMBERED.fullmatch(version):
        raise SiteError(f"{version!r} is no version such as 0.2.0")
    if (site / version).exists():
        raise SiteError(f"{site / version} is there; a published version is not replaced: set the next version first")
    site.mkdir(parents=True, exist_ok=True)
    shutil.copytree(built, site / version)
    (site / version / SITEMAP).write_text(_sitemap(site / version), encoding="utf-8")
    versions = sorted(
        (path.name for path in site.iterdir() if _NUMBERED.fullmatch(path.name)), key=_order, reverse=True
    )
    listed = [{"version": name, "title": name, "aliases": [LATEST] if name == versions[0] else []} for name in versions]
    (site / VERSIONS).write_text(json.dumps(listed, indent=2) + "\n", encoding="utf-8")
    _redirect_latest(site, versions[0])
    return site / version


def _order(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _sitemap(version: Path) -> str:
    """Return the list of a version's pages, and of its root: the selector takes the other addresses from there."""
    pages = sorted(page.relative_to(version).as_posix() for page in version.rglob("*.html"))
    entries = [f"<url><loc>{ANY_HOST}{html.escape(quote(page))}</loc></url>" for page in ["", *pages]]
    return "\n".join([*SITEMAP_HEAD, *entries, "</urlset>", ""])


def _redirect_latest(site: Path, newest: str) -> None:
    """Write a redirect below ``latest`` for each page of the newest version, and one for the site's root."""
    shutil.rmtree(site / LATEST, ignore_errors=True)
    for page in (site / newest).rglob("*.html"):
        place = page.relative_to(site / newest)
        up = "../" * len(place.parts)
        _write_redirect(site / LATEST / place, f"{up}{newest}/{place.as_posix()}")
    _write_redirect(site / "index.html", f"{LATEST}/index.html")


def _write_redirect(page: Path, to: str) -> None:
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(REDIRECT.format(to=html.escape(to)), encoding="utf-8")
