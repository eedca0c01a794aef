"""docs/field-reports.md: what was found in each study of the field reports."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "studies/field-reports"
PICTURES = ROOT / "docs/field-reports"

HEAD = """\
# The five field reports, measured again

Five published comparisons by people who had to choose what their MySQL or MariaDB stands on, each made into a study or
a few. Measured on a virtual machine with two processors, at laptop scale, on emulated disks; nothing is tuned to match.
Each study says what was asked, expected and published. `make docs` writes this page from the studies.

"""
# Beginning of the studies' names -> the heading, and which page asks the same.
REPORTS = {
    ("schedulers", "server-versions"): (
        "Which I/O scheduler, and is the new version slower?",
        "tutorials/choose-a-scheduler.md",
    ),
    ("queue-depth",): ("Does a longer request queue help?", "tutorials/request-queue.md"),
    ("filesystems",): ("Which filesystem?", "tutorials/choose-a-filesystem.md"),
    ("ssd-selection",): ("Which SSD is steady?", "tutorials/choose-an-ssd.md"),
    ("ssd-or-hdd",): ("How much faster is the SSD, and is it worth the money?", "tutorials/ssd-or-hdd.md"),
    ("kernels",): ("Which kernel?", "kernels.md"),
}


def field_reports_page() -> str:
    """The whole page."""
    return HEAD + "\n".join(line for names in REPORTS for line in _report(names)) + "\n"


def _report(names: tuple[str, ...]) -> Iterator[str]:
    title, page = REPORTS[names]
    yield from (f"## {title}", "", f"[How to ask it of your own machine]({page}).", "")
    for path in sorted(STUDIES.glob("*.toml"), key=lambda path: (len(path.stem.split("-")), path.stem)):
        if path.stem.startswith(names):
            yield from _study(path.stem, tomllib.loads(path.read_text(encoding="utf-8"))["study"])


def _study(name: str, about: dict[str, Any]) -> Iterator[str]:
    yield from (f"### {about['title']}", "")
    result = about.get("result") or "Not measured in full yet."
    yield from (f"{result} ([study](../studies/field-reports/{name}.toml))", "")
    if (PICTURES / f"{name}.png").exists():
        yield from (f"![The page of {name}](field-reports/{name}.png)", "")
