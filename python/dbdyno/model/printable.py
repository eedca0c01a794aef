"""Text of others, made fit for where it is shown: one function for each format, and one rule for all of them.

A text comes from a study, a server, a tool, a host or another's run folder. The rule: what is not printable in the
sense of Unicode goes, wherever it would be obeyed and not shown: control characters, the first byte of escape
sequences, marks that turn the direction of writing, characters of no width, halves of surrogate pairs. What a format
itself obeys is then escaped as that format says, so that its readers show the text as it is.

| for | by |
|---|---|
| a terminal | `printable`, `one_line`, `short` |
| HTML, SVG | `html_text` |
| Markdown | `markdown_text` |
| JUnit's XML | `xml_text`, `xml_attribute` |
| GitHub's annotations | `command_text` |
| Prometheus | `prometheus_text` |
| CSV | `csv_text` |
| JSON | `json_text`, which loses nothing: it has the escapes for it |
"""

import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markupsafe import Markup


NO_BREAK = "\u00a0"
LABEL_MAX = 28  # characters of a name in a chart
FORMULA_BEGINS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # in full width too
SAID_MAX = 500  # characters of what a server or a tool said; an error message is shorter
# Names of what is kept and shown nowhere.
SECRET_NAME = re.compile(r"pass|pwd|secret|token|credential|private|(?:^|_)keys?(?:$|_file|_id)|auth")
_FIGURES = re.compile(r" %|\bp [=<] |(?<=\d) blocks?")
_LABELS = re.compile(r" / ")
_MARKDOWN = re.compile(r"[\\`*{}\[\]<>|~&#$]|(?<![^\W_])_|_(?![^\W_])")  # of CommonMark, GitHub's additions, HTML
_MARKDOWN_BEGINS = re.compile(r"^(\d*)([-+=.)])(?=\s|$|\2)")  # a list, an underline or a rule
_IN_XML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})
_IN_PROMETHEUS = str.maketrans({"\\": "\\\\", '"': '\\"', "<": "\u2039", ">": "\u203a"})


def printable(text: str, instead: str = "?", keep: str = "") -> str:
    """Return ``text`` with ``instead`` for each character that is not printable, but for those in ``keep``."""
    if text.isprintable():  # as most are, which takes a hundredth of the time
        return text
    return "".join(char if char.isprintable() or char in keep else instead for char in text)


def printable_document(value: Any, characters_max: int | None = None, keep: str = "") -> Any:  # noqa: ANN401  (any JSON)
    """Return a JSON document whose texts, names of fields too, are fit to print and at most so long."""
    if isinstance(value, str):
        return printable(value[:characters_max], keep=keep)
    if isinstance(value, dict):
        return {
            printable(name[:characters_max]): printable_document(item, characters_max, keep)
            for name, item in value.items()
        }
    return [printable_document(item, characters_max, keep) for item in value] if isinstance(value, list) else value


def html_text(text: str) -> "Markup":
    """Return a text as HTML and SVG show it, in an element or an attribute; line ends and no-break spaces stay."""
    from markupsafe import escape as escaped

    return escaped(printable(text, keep=f"\n{NO_BREAK}"))


def markdown_text(text: str) -> str:
    """Return a text such that every reader of Markdown shows it as it is, on one line."""
    return _MARKDOWN_BEGINS.sub(r"\1\\\2", _MARKDOWN.sub(r"\\\g<0>", one_line(text)))


def xml_text(text: str) -> str:
    """Return a text as an element of XML holds it, on one line."""
    return printable(text).translate(_IN_XML)


def xml_attribute(text: str) -> str:
    """Return a text as an attribute of XML, in its quotes."""
    return f'"{xml_text(text)}"'


def command_text(text: str, more: str = "") -> str:
    """Return a text as a command of GitHub's workflows takes it; what is in ``more`` is escaped, too."""
    escaped = printable(text).replace("%", "%25")
    for char in more:
        escaped = escaped.replace(char, f"%{ord(char):02X}")
    return escaped


def prometheus_text(text: str) -> str:
    """Return a text as the value of one of Prometheus's labels holds it.

    Labels go on into alerts and chats, where a ``<`` begins a tag or calls people: it is shown by a sign like it.
    """
    return one_line(text).translate(_IN_PROMETHEUS)


def json_text(text: str) -> str:
    r"""Return JSON with each character in it that is not printable as ``\uXXXX``, which readers of JSON take back."""
    lines = text.split("\n")
    return "\n".join(line if line.isprintable() else "".join(map(_escape, line)) for line in lines)


def _escape(char: str) -> str:
    if char.isprintable():
        return char
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))


def csv_text(text: str) -> str:
    """Return a text as a cell of CSV that no spreadsheet takes for a formula: one that begins like it gets a ' before.

    What is no number and begins so, behind blanks too, is known from a number by being one that ``float`` reads.
    """
    cell = printable(text, " ")
    if not text.lstrip().startswith(FORMULA_BEGINS) and not text.startswith(("\t", "\r", "\n")):
        return cell
    try:
        float(text)
    except ValueError:
        return f"'{cell}"
    return cell


def one_line(text: str) -> str:
    """Return ``text`` with every run of white space as one space and what a terminal might obey left out."""
    return " ".join(printable(text, " ").split())


def short(text: str, length_max: int = SAID_MAX) -> str:
    """Return what a server or a tool said as one line, cut after ``length_max`` characters."""
    line = one_line(text[:length_max])
    bytes_left = len(text[length_max:].encode(errors="replace"))
    return f"{line} ... ({bytes_left} more bytes)" if bytes_left else line


def joined_lines(text: str) -> str:
    """Return the lines of a text that hold anything as one, such as what a program said of a failure."""
    return " / ".join(line.strip() for line in text.splitlines() if line.strip())


def glued(text: str, *, labels: bool = True) -> str:
    """Return ``one_line(text)`` with no-break spaces inside figures ("3 %", "p = 0.02", "8 blocks") and labels."""
    line = _FIGURES.sub(_no_break, one_line(text))
    return _LABELS.sub(_no_break, line) if labels else line


def _no_break(match: re.Match[str]) -> str:
    return match[0].replace(" ", NO_BREAK)


def clipped(text: str, most: int = LABEL_MAX) -> str:
    """Return a name that is at most so many characters long; its end is kept, as names of a kind begin alike."""
    short = one_line(text)
    end = (most - 1) // 2
    return short if len(short) <= most else f"{short[: most - 1 - end]}…{short[len(short) - end :]}"


def distinguishable(texts: Sequence[str], most: int = LABEL_MAX) -> list[str]:
    """Return names that are clipped and still differ where the names do: else without what they begin with alike."""
    names = [one_line(text) for text in texts]
    short = [clipped(name, most) for name in names]
    if len(set(short)) == len(set(names)):
        return short
    long = [name for name in names if len(name) > most]
    ends = zip(min(long), max(long), strict=False)  # what these two begin with, all begin with
    alike = next((place for place, (first, second) in enumerate(ends) if first != second), 0)
    return [clipped(f"…{name[max(0, alike - 1) :]}", most) if len(name) > most else name for name in names]


# Lines that say how far a run is, made to fit: half of a terminal, or one pane of several.


PROGRESS_COLUMNS = 60
NAME_COLUMNS_MIN = 16  # of a name, before what comes after it is left out


def fitted(before: str, names: Sequence[str], place: int, after: Sequence[str]) -> str:
    """Return a line about one of several names that still differ in it, with as much ``after`` it as leaves room."""
    parts = [f", {text}" for text in after if text]
    while parts and _room(before, parts) < min(len(names[place]), NAME_COLUMNS_MIN):
        parts.pop()
    return f"{before}{distinguishable(names, _room(before, parts))[place]}{''.join(parts)}"


def _room(before: str, after: Sequence[str]) -> int:
    return PROGRESS_COLUMNS - len(before) - sum(map(len, after))


def wrapped(text: str) -> list[str]:
    """Return the lines of a text, continued further to the right; only a word that is too long by itself stands out."""
    indent = " " * (len(text) - len(text.lstrip(" ")) + 2)
    folded = (
        textwrap.wrap(line, PROGRESS_COLUMNS, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        for line in text.splitlines()
    )
    return [line for lines in folded for line in lines]
