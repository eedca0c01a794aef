"""docs/models.md: what each device model does and cannot, and every drive with the sources of its numbers."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from dbdyno._native import device_models

CRATE = Path(__file__).parents[2] / "crates/dbdyno-device"
MODELS = {
    "hdd": "Hard disks",
    "ssd": "Solid-state drives",
    "cloud": "Cloud volumes",
    "raid": "Arrays",
    "ideal": "Ideal",
}

HEAD = """\
# Device models and drives

A *model* is the code that says when a device would answer; a *drive* is a file of numbers for one. `make docs` writes
this page from both. Names, fields and drive files of your own: [disk.md](disk.md).

Each number has its source in the drive file. *Published* is a data sheet, manual, documentation or field report;
*fitted* was chosen to reach a known figure; *from memory* was not looked up again; others are explained there. The more
*assumed*, the less a verdict says about the real drive. Only `hdd-7200` was fitted to a measured drive (random reads by
queue depth within 10 %, time of a flush within 20 %); the SSDs come within 10 % of their published figures.
"""
# What a figure's source begins with or names -> how it is counted; the first that fits.
SOURCES = {
    "from memory": re.compile("from memory"),
    "measured": re.compile("^measured"),
    "fitted": re.compile("^fitted|makes short and long"),
    "published": re.compile(
        "^(data sheet|manual|documentation|field report|vendor|published|review|test|specification|guide|announced)"
    ),
    "assumed": re.compile("^assumed"),
}
_FIGURE = re.compile(r"^(\w+)\s*=\s*(.+?)\s*(?:#\s*(.*))?$")
_NOTES_OF_OURS = re.compile(r"\s+as in\s+reference/[\w-]+\.md|\s*\(reference/[\w-]+\.md\)|reference/[\w-]+\.md[;:]\s*")


def drives_page() -> str:
    """The whole page."""
    drives = device_models()
    parts = [HEAD]
    for kind, heading in MODELS.items():
        does, cannot = model_comment(kind)
        source = _source(kind).relative_to(CRATE.parents[1])
        first = does.partition("\n\n")[0]
        parts += [f"## {heading}: `{kind}`\n", f"{first} [Rules](../{source})", f"\n**Cannot:** {cannot}\n"]
        for drive in drives:
            if drive["kind"] == kind:
                parts += [f"### `{drive['name']}`\n", f"{drive['title']}. {_drive(drive['name'])}"]
    return "\n".join(parts).rstrip("\n") + "\n"


def _source(kind: str) -> Path:
    return next(path for path in (CRATE / f"src/{kind}/mod.rs", CRATE / f"src/{kind}.rs") if path.exists())


def model_comment(kind: str) -> tuple[str, str]:
    """What a model does, in paragraphs, and what it cannot. Raises ``ValueError`` for one that does not say."""
    source = _source(kind)
    lines = source.read_text(encoding="utf-8").splitlines()
    comment = [line.removeprefix("//!").strip() for line in lines if line.startswith("//!")]
    does, found, cannot = "\n".join(comment).partition("\n\nCannot: ")
    if not found:
        raise ValueError(f"{source}: its first comment has no paragraph that begins with Cannot:")
    return does, cannot.replace("`SandForce`", "SandForce")


def _drive(name: str) -> str:
    """How many numbers have which source, and where each stands with its own."""
    text = (CRATE / f"drives/{name}.toml").read_text(encoding="utf-8")
    counted = Counter(_counted(source) for _, _, source in figures(text))
    words = ", ".join(f"{counted[word]} {word}" for word in SOURCES if counted[word])
    return f"[Numbers](../crates/dbdyno-device/drives/{name}.toml){words and f': {words}'}.\n"


def _counted(source: str) -> str:
    """The word that a figure's source is counted under; empty for a source of its own kind."""
    return next((word for word, begins in SOURCES.items() if begins.search(source.lower())), "")


def figures(text: str) -> Iterator[tuple[str, str, str]]:
    """Each figure of a drive file: its name with its section, its value, and where it is from."""
    section, source = "", ""
    for line in text.splitlines():
        if header := re.match(r"^\[([\w.]+)\]", line):
            section = header[1]
        elif section and (figure := _FIGURE.match(line)):
            same = figure[3] == "same"
            source = source if same else _NOTES_OF_OURS.sub("", figure[3] or "").replace("|", "\\|")
            yield f"{section}.{figure[1]}", _value(figure[2]), source


def _value(text: str) -> str:
    """A TOML value for people: digits in groups, lists without brackets."""
    value = tomllib.loads(f"x = {text}")["x"]
    values = value if isinstance(value, list) else [value]
    numbers = (isinstance(one, int | float) and not isinstance(one, bool) for one in values)
    return ", ".join(
        f"{Decimal(str(one)):,f}" if number else f"{one}".lower() for one, number in zip(values, numbers, strict=True)
    )
