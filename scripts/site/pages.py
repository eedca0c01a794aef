"""The pages of the site as Markdown: the documents as they stand, each study with its answer, files that they name."""

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "studies"
# Languages of the files that documents link to, by the end of their names.
LANGUAGES = {".toml": "toml", ".rs": "rust", ".py": "python", ".sql": "sql", ".json": "json", ".yml": "yaml"}
_LINK = re.compile(r"(\]\()(?!https?:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")
_BLOCK = re.compile(r"^(?:```.*?^```|````.*?^````)$", re.MULTILINE | re.DOTALL)


def documents() -> dict[Path, str]:
    """Each document of the repository and its place in the site."""
    top = {path: f"{path.stem.lower()}.md" for path in ROOT.glob("*.md")} | {ROOT / "README.md": "index.md"}
    docs = ROOT / "docs"
    return top | {path: path.relative_to(docs).as_posix() for path in sorted(docs.rglob("*.md"))}


def staged() -> dict[str, str | Path]:
    """Place in the site -> its Markdown, or the picture that stands there."""
    places = documents()
    studies = [path for path in sorted(STUDIES.glob("*/*.toml")) if path.parent.name != "selftest"]
    found: dict[str, str | Path] = {}
    waiting = [*places, *studies]
    while waiting:
        path = waiting.pop()
        place = place_of(path)
        if place in found:
            continue
        if path.suffix == ".png":
            found[place] = path
            continue
        text = path.read_text(encoding="utf-8") if path.suffix == ".md" else page_of_file(path)
        found[place], linked = relinked(text, path)
        waiting += linked
    return found


def place_of(path: Path) -> str:
    """Where a file of the repository stands in the site."""
    inside = path.relative_to(ROOT).as_posix()
    if path in (places := documents()):
        return places[path]
    if path.suffix == ".png":
        return inside.removeprefix("docs/")
    return f"{inside}.md" if inside.startswith("studies/") else f"sources/{inside}.md"


def relinked(text: str, page: Path) -> tuple[str, list[Path]]:
    """A page with its links to files of the repository led to their places in the site, and those files."""
    here = Path(place_of(page)).parent
    linked = []

    def led(found: re.Match[str]) -> str:
        path = (page.parent / found[2]).resolve()
        if not path.is_file():
            return found[0]  # the builder names it, as it does any dead link
        linked.append(path)
        return f"{found[1]}{os.path.relpath(place_of(path), here)}{found[3] or ''}"

    parts = _BLOCK.split(text)
    blocks = [*_BLOCK.findall(text), ""]
    return "".join(_LINK.sub(led, part) + block for part, block in zip(parts, blocks, strict=True)), linked


def page_of_file(path: Path) -> str:
    """A page with a file's text, and what a study asks, expects and found above it."""
    text = path.read_text(encoding="utf-8").rstrip("\n")
    inside = path.relative_to(ROOT).as_posix()
    about = tomllib.loads(text).get("study") if path.suffix == ".toml" and path.is_relative_to(STUDIES) else None
    head = list(about_study(about, path)) if about else [f"# {path.name}", ""]
    return "\n".join([*head, f"`{inside}`", "", f"````{LANGUAGES.get(path.suffix, 'text')}", text, "````", ""])


def about_study(about: dict[str, Any], path: Path) -> Iterator[str]:
    """The title, question, expectation, result and picture of a study, line by line."""
    yield from (f"# {about['title']}", "", f"**{about['question']}**", "")
    if about.get("expect"):
        yield from (f"Expected: {about['expect']}", "")
    if about.get("result"):
        yield from (f"Found: {about['result']}", "")
    picture = ROOT / f"docs/{path.parent.name}/{path.stem}.png"
    picture = ROOT / "docs/report.png" if path.stem == "demo" else picture
    if picture.exists():
        yield from (f"![Its report]({os.path.relpath(picture, path.parent)})", "")
