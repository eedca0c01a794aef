"""Circles of modules in the Rust crates: files of which each uses the next, and the last the first."""

import re
from collections.abc import Iterator
from pathlib import Path

from scripts.circles import circles_of

NOISE = re.compile(r'//[^\n]*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'', re.DOTALL)
TEST_FILE = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*mod \w+;")
TEST_MODULE = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*mod \w+ \{.*", re.DOTALL)
USE = re.compile(r"\buse ([^;]+);")
INLINE = re.compile(r"(?<![\w:])\w+(?:::\w+)+")

Module = tuple[str, ...]


def circles(root: Path) -> list[list[str]]:
    """Return the files of every circle, sorted, as paths relative to `root`, which has the folder `crates`.

    Test modules do not count, nor does a `mod` line by itself.
    """
    edges = {}
    for crate in (root / "crates").iterdir():
        modules = _modules(crate / "src")
        name = {module: str(path.relative_to(root)) for module, path in modules.items()}
        for module, path in modules.items():
            edges[name[module]] = {name[one] for one in _used(module, path, modules)} - {name[module]}
    return circles_of(edges)


def _modules(source: Path) -> dict[Module, Path]:
    """Every module that has a file of its own, by its path from the crate's root."""
    modules = {}
    for path in source.rglob("*.rs"):
        parts = path.relative_to(source).with_suffix("").parts
        if path.stem != "tests" and not path.stem.endswith("_tests"):
            modules[parts[:-1] if parts[-1] in {"lib", "main", "mod"} else parts] = path
    return modules


def _used(module: Module, path: Path, modules: dict[Module, Path]) -> Iterator[Module]:
    text = TEST_MODULE.sub("", TEST_FILE.sub("", NOISE.sub("", path.read_text(encoding="utf-8"))))
    paths = [one for tree in USE.findall(text) for one in _flat(re.sub(r"\s+", " ", tree))]
    for one in paths + INLINE.findall(USE.sub("", text)):
        first, *rest = one.split("::")
        base = {"crate": (), "self": module, "super": module[:-1]}.get(first)
        while base is not None and rest[:1] == ["super"]:
            base, rest = base[:-1], rest[1:]
        if base is None:
            base, rest = module, [first, *rest]
            if (*module, first) not in modules:
                continue
        full = (*base, *rest)
        yield next(full[:end] for end in range(len(full), -1, -1) if full[:end] in modules)


def _flat(tree: str) -> Iterator[str]:
    """Every path of a use tree, such as `crate::a::{b, c::{D, E}}`."""
    head, brace, rest = tree.partition("{")
    if not brace:
        yield tree.partition(" as ")[0].strip()
        return
    depth, start = 0, 0
    inner = rest[: rest.rindex("}")] + ","
    for at, letter in enumerate(inner):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            if part := inner[start:at].strip():
                yield from _flat(head.strip() + part)
            start = at + 1
