"""The texts of the program that are whole phrases: in Python by its syntax tree, in Rust by its literals."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

WORDS_MIN = 3  # of what is taken for a phrase
_PHRASE = re.compile(r"[A-Za-z][a-z'-]+(?:[ ,.;:]+\S+)+")
_SQL = re.compile(r"(?:SELECT|INSERT|CREATE|DROP|UPDATE|DELETE|SHOW|SET|GRANT|REVOKE|ALTER|BEGIN|CALL|LOCK|FLUSH) ")
# Fields of a study are explained by the text below each, which becomes a page of docs/.
_FIELDS_EXPLAINED = ("study/schema.py", "study/workloads.py", "study/document.py", "study/levels.py")
# A character, which may be a quotation mark, or a text.
_RUST = re.compile(r"""b?'(?:\\.[^']*|[^'\\])'|"((?:[^"\\]|\\.)*)\"""", re.DOTALL)
_RUST_CONTINUED = re.compile(r"\\\n\s*")
_RUST_HELP = re.compile(r"^\s*/// (.*)$")


@dataclass(frozen=True)
class Sentence:
    """A text, with ``{}`` for each value in it, and where it stands."""

    file: str
    line: int
    text: str

    @property
    def place(self) -> str:
        """``FILE:LINE``."""
        return f"{self.file}:{self.line}"


def sentences(root: Path) -> list[Sentence]:
    """Every one of the Python package and of the programs, in the order of files and lines."""
    found = []
    for file in sorted((root / "python/dbdyno").rglob("*.py")):
        name, source = str(file.relative_to(root)), file.read_text(encoding="utf-8")
        found += [
            Sentence(name, line, text) for line, text in of_python(source, explains=name.endswith(_FIELDS_EXPLAINED))
        ]
    for file in sorted(root.glob("crates/*/src/**/*.rs")):
        name, source = str(file.relative_to(root)), file.read_text(encoding="utf-8")
        found += [Sentence(name, line, text) for line, text in of_rust(source)]
    return found


def of_python(source: str, *, explains: bool = False) -> Iterator[tuple[int, str]]:
    """Line and text of each phrase; documentation is one where ``explains``, or where it is the help of a verb."""
    tree = ast.parse(source)
    silent = set(_not_shown(tree, explains=explains))
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            silent.update(
                id(part) for part in ast.walk(node) if part is not node and not isinstance(part, ast.JoinedStr)
            )
            found.append((node.lineno, _joined(node)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            found.append((node.lineno, node.value))
    return ((line, text) for line, text in sorted(found) if is_phrase(text))


def of_rust(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each literal that is a phrase, and of the help of each option."""
    shown = source.partition("#[cfg(test)]")[0]
    without = re.sub(r"(?m)^[ \t]*//.*$", "", shown)  # comments may hold a single quotation mark
    for found in _RUST.finditer(without):
        if found[1] is None:
            continue
        text = _RUST_CONTINUED.sub("", found[1]).replace('\\"', '"').replace("\\n", "\n")
        if is_phrase(text):
            yield without.count("\n", 0, found.start()) + 1, text
    lines = shown.splitlines()
    for number, line in enumerate(lines):
        below = next((one.strip() for one in lines[number + 1 :] if not _RUST_HELP.match(one)), "")
        if (help_ := _RUST_HELP.match(line)) and below.startswith("#[arg") and is_phrase(help_[1]):
            yield number + 1, help_[1]


def is_phrase(text: str) -> bool:
    """Whether a text is for people: several words with spaces between, and no SQL."""
    return bool(_PHRASE.search(text)) and len(text.split()) >= WORDS_MIN and not _SQL.match(text.lstrip())


def _joined(node: ast.JoinedStr) -> str:
    parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return "".join(map(str, parts))


def _not_shown(tree: ast.AST, *, explains: bool) -> Iterator[int]:
    """The constants that no user meets: documentation of code, and patterns."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            fields = isinstance(node, ast.ClassDef) and explains
            for at, each in enumerate(node.body):
                if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)):
                    continue
                if (at == 0 or not fields) and not _is_verb(node):
                    yield id(each.value)
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re."):
            yield from (id(argument) for argument in ast.walk(node))


def _is_verb(node: ast.AST) -> bool:
    """Whether a function is a verb of the command line, whose documentation is its help."""
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(default, ast.Call) and ast.unparse(default.func).startswith("typer.")
        for default in node.args.defaults
    )
