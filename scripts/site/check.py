"""What is wrong with a built site: dead links, pages that nothing leads to, anything that is fetched from elsewhere."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

# Elements whose address a browser fetches by itself; a link is followed only by a reader.
FETCHED = {"script", "img", "link", "iframe", "source", "video", "audio", "object", "embed"}
_IN_STYLE = re.compile(r"(?:url\(\s*|@import\s+)[\"']?((?:https?:)?//[^\"')\s]+)")
# Marks of Markdown that no reader is to see: a table or a list that an empty line, or too small an indent, has broken.
_LEFT_OVER = re.compile(r"\*\*|\]\(|^\s*\|.*\|\s*$|\n\s*[-|] ", re.MULTILINE)
_AS_IT_STANDS = {"code", "pre", "script", "style", "nav", "title"}
_ELSEWHERE = re.compile(r"^(?:https?:)?//")


class _Page(HTMLParser):
    """The addresses and anchors of a page, and its text but for code."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()
        self.texts: list[str] = []
        self._inside = 0  # so many elements whose text stands as it is
        self.feed(text)

    def handle_endtag(self, tag: str) -> None:
        self._inside -= tag in _AS_IT_STANDS

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.texts.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._inside += tag in _AS_IT_STANDS
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        address = given.get("src") or given.get("data") or given.get("href")
        canonical = tag == "link" and given.get("rel") in {"canonical", "alternate"}
        if not address or canonical:
            return
        if tag in FETCHED:
            self.fetched.append(address)
        elif tag in {"a", "area"}:
            self.links.append(address)


def faults(html: Path) -> list[str]:
    """Each fault of the site in that folder as a sentence that begins with its page."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(html.rglob("*.html"))}
    return [*_dead(html, pages), *_unreached(html, pages), *_elsewhere(html, pages), *_left_over(html, pages)]


def _target(page: Path, address: str) -> tuple[Path, str] | None:
    """The file and anchor that an address leads to; none for one outside of the site."""
    if _ELSEWHERE.match(address) or re.match(r"^[a-z]+:", address):
        return None
    place, _, anchor = address.partition("#")
    return ((page.parent / unquote(place.partition("?")[0])).resolve() if place else page), unquote(anchor)


def _dead(html: Path, pages: dict[Path, _Page]) -> Iterator[str]:
    for path, page in pages.items():
        if path.name == "404.html":  # its addresses begin at the root of a server
            continue
        for address in sorted({*page.links, *page.fetched}):
            if (target := _target(path, address)) is None:
                continue
            to, anchor = target
            if not to.is_file():
                yield f"{path.relative_to(html)}: {address} leads nowhere"
            elif anchor and to in pages and anchor not in pages[to].anchors:
                yield f"{path.relative_to(html)}: {address} has no such heading"


def _unreached(html: Path, pages: dict[Path, _Page]) -> Iterator[str]:
    first = html / "index.html"
    reached, waiting = {first}, [first]
    while waiting:
        path = waiting.pop()
        targets = (_target(path, address) for address in pages[path].links)
        new = {target[0] for target in targets if target and target[0] in pages} - reached
        reached |= new
        waiting += new
    for path in sorted(set(pages) - reached):
        if path.name != "404.html":
            yield f"{path.relative_to(html)}: no page leads to it"


def _elsewhere(html: Path, pages: dict[Path, _Page]) -> Iterator[str]:
    for path, page in pages.items():
        for address in page.fetched:
            if _ELSEWHERE.match(address):
                yield f"{path.relative_to(html)}: fetches {address}"
    for path in sorted(html.rglob("*.css")):
        for address in _IN_STYLE.findall(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(html)}: fetches {address}"


def _left_over(html: Path, pages: dict[Path, _Page]) -> Iterator[str]:
    for path, page in pages.items():
        for text in page.texts:
            if found := _LEFT_OVER.search(text):
                yield f"{path.relative_to(html)}: Markdown is left: {found[0].strip()[:60]}"
