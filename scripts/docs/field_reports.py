"""docs/field-reports.md: the studies of the field reports, each of which says itself what was found."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "studies/field-reports"

HEAD = """\
# The five field reports, measured again

Five published comparisons by people who had to choose what their MySQL or MariaDB stands on, measured on a virtual
machine with two processors, at laptop scale, on emulated disks; nothing is tuned to match. Each study says what was
asked, expected, published and found; `make docs` lists them here.

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
    return HEAD + "\n".join(line for names in REPORTS for line in _report(names))


def _report(names: tuple[str, ...]) -> Iterator[str]:
    title, page = REPORTS[names]
    yield from (f"## {title}", "", f"[On your own machine]({page}).", "")
    for path in sorted(STUDIES.glob("*.toml"), key=lambda path: (len(path.stem.split("-")), path.stem)):
        if path.stem.startswith(names):
            yield _study(path.name, tomllib.loads(path.read_text(encoding="utf-8"))["study"])
    yield ""


def _study(name: str, about: dict[str, Any]) -> str:
    unmeasured = "" if about.get("result") else ": not measured in full yet"
    return f"- [{about['title']}](../studies/field-reports/{name}){unmeasured}"
