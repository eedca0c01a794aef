"""docs/models.md: what each device model does and cannot, from its first comment, and every drive, from its file."""

import re
import tomllib
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

A *model* is the code that says when a device would answer; a *drive* is a file of numbers for one. Written by
`make docs` from the first comment of each model (`crates/dbdyno-device/src/`) and from the drive files
(`crates/dbdyno-device/drives/`): change them there. How a drive is named, what its fields mean and how to write one of
your own: [disk.md](disk.md).

Behind every number stands where it is from. *Data sheet*, *documentation* and *measured* speak for themselves; *fitted*
was chosen so that the drive comes to figures that are known; *from memory* and *assumed* are what they say. How near
the drives come to their figures is tested in `crates/dbdyno-device/tests/`.

No emulated drive is the drive: a verdict on one is about a device that behaves so.
"""
_FIGURE = re.compile(r"^(\w+)\s*=\s*(.+?)\s*(?:#\s*(.*))?$")
_NOTES_OF_OURS = re.compile(r"\s+as in\s+reference/[\w-]+\.md|\s*\(reference/[\w-]+\.md\)|reference/[\w-]+\.md[;:]\s*")


def drives_page() -> str:
    """The whole page."""
    drives = device_models()
    parts = [HEAD]
    for kind, heading in MODELS.items():
        does, cannot = model_comment(kind)
        parts += [f"## {heading}: `{kind}`\n", does, f"\n**Cannot:** {cannot}\n"]
        for drive in drives:
            if drive["kind"] == kind:
                parts += [f"### `{drive['name']}`\n", f"{drive['title']}.\n", *_drive(drive["name"])]
    return "\n".join(parts).rstrip("\n") + "\n"


def model_comment(kind: str) -> tuple[str, str]:
    """What a model does, in paragraphs, and what it cannot. Raises ``ValueError`` for one that does not say."""
    source = next(path for path in (CRATE / f"src/{kind}/mod.rs", CRATE / f"src/{kind}.rs") if path.exists())
    lines = source.read_text(encoding="utf-8").splitlines()
    comment = [line.removeprefix("//!").strip() for line in lines if line.startswith("//!")]
    does, found, cannot = "\n".join(comment).partition("\n\nCannot: ")
    if not found:
        raise ValueError(f"{source}: its first comment has no paragraph that begins with Cannot:")
    return does, cannot.replace("`SandForce`", "SandForce")


def _drive(name: str) -> Iterator[str]:
    text = (CRATE / f"drives/{name}.toml").read_text(encoding="utf-8")
    about = re.match(r"(?:#.*\n)+", text)
    if about:
        yield _NOTES_OF_OURS.sub("", re.sub(r"^# ?", "", about[0], flags=re.MULTILINE))
    rows = [f"| `{name}` | {value} | {source} |" for name, value, source in figures(text)]
    yield "\n".join(["| figure | value | from |", "|---|---|---|", *rows]) + "\n"


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
