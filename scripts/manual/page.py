"""``dbdyno(1)`` from the command line's own tree, in man(7)'s macros; docs/commands.md has the exit codes."""

import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from dbdyno import __version__
from dbdyno.cli.main import LOAD_VERBS, every_command

DATE = "2026-11-23"  # of the prose in this file: the same commit gives the same page
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_DESCRIPTION = """\
dbdyno runs a study: a real MariaDB or MySQL server, on a real kernel, over a
real disk, a folder of this machine, or an emulated disk that answers as late as
a named drive would. Of every comparison that the study asks for it says faster,
slower, equivalent or undecided, by how much and why. Begin with
.BR "dbdyno quick" ,
which needs neither root nor a study, then
.BR "dbdyno new" " and " "dbdyno plan" ."""

_STATE = "state folder of root and of others: prepared data, servers that were added, what undoes changes of the host"
_FILES = (("runs/", "run folders, unless --into says otherwise"), ("/var/lib/dbdyno, ~/.local/state/dbdyno", _STATE))


def manual(commands: str) -> str:
    """Return the page; ``commands`` is the text of docs/commands.md."""
    root = every_command()
    verbs = list(_verbs(root, ()))
    lines = [
        f'.TH DBDYNO 1 {DATE} "dbdyno {__version__}" "User Commands"',
        ".nh",
        ".SH NAME",
        rf"dbdyno \- {_plain(_lower(root.help))}",
        ".SH SYNOPSIS",
        *_synopsis(root, ()),
        ".SH DESCRIPTION",
        *_DESCRIPTION.splitlines(),
        ".SH COMMANDS",
        *(line for words, command in verbs for line in _verb(words, command)),
        ".SH LOAD GENERATOR",
        "Against any server, without a study; each lists its flags by \\-\\-help.",
        *_entries((f"dbdyno {name}", about) for name, about in LOAD_VERBS.items()),
        ".SH EXIT STATUS",
        *_entries(_rows(commands, "Exit codes")),
        ".SH ENVIRONMENT",
        *_entries(_rows(commands, "Environment")),
        ".SH FILES",
        *_entries(_FILES),
        ".SH SEE ALSO",
        ".BR iostat (1),",
        ".BR fio (1),",
        ".BR mysqlslap (1),",
        ".BR sysbench (1)",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _verbs(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:  # noqa: ANN401 - typer's
    """Each command that does something, without those of the load generator, in the order of the help."""
    below = getattr(command, "commands", {})
    if words and (not below or command.invoke_without_command):
        yield words, command
    for name, one in below.items():
        if name not in LOAD_VERBS:
            yield from _verbs(one, (*words, name))


def _synopsis(command: Any, words: tuple[str, ...]) -> list[str]:  # noqa: ANN401
    name = " ".join(("dbdyno", *words))
    arguments = " ".join(one.metavar or one.name.upper() for one in _arguments(command))
    rest = "COMMAND [ARGUMENT...]" if not words else arguments
    return [rf'.B "{_plain(name)}"', rf"[\fIoptions\fR] \fI{_plain(rest)}\fR" if rest else r"[\fIoptions\fR]"]


def _verb(words: tuple[str, ...], command: Any) -> Iterator[str]:  # noqa: ANN401
    yield f'.SS "{_plain(" ".join(("dbdyno", *words)))}"'
    yield from _synopsis(command, words)
    yield ".PP"
    yield _plain(command.help)
    yield from _entries((one.metavar or one.name.upper(), one.help or "") for one in _arguments(command))
    yield from _entries(_option(one) for one in command.params if one.param_type_name == "option")


def _arguments(command: Any) -> list[Any]:  # noqa: ANN401
    return [one for one in command.params if one.param_type_name == "argument"]


def _option(option: Any) -> tuple[str, str]:  # noqa: ANN401
    value = "" if option.is_flag else f" {option.metavar or _kind(option)}"
    default = option.default if isinstance(option.default, int | float | str) and option.default is not False else ""
    return ", ".join(option.opts) + value, f"{option.help} [{default}]" if str(default) else str(option.help)


def _kind(option: Any) -> str:  # noqa: ANN401
    choices = option.type_descriptor.choices if option.type_descriptor.is_choice else None
    return "|".join(str(getattr(one, "value", one)) for one in choices) if choices else option.name.strip("_").upper()


def _entries(entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, text in entries:
        yield from (".TP", rf".B {_plain(name)}", _plain(text))


def _rows(page: str, heading: str) -> Iterator[tuple[str, str]]:
    """The rows of the table below a heading of a page in Markdown."""
    section = page.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    for line in [line for line in section.splitlines() if line.startswith("| ")][1:]:
        name, text = line.strip("| ").split(" | ", 1)
        yield tuple(_LINK.sub(r"\1", cell).replace("`", "") for cell in (name, text))  # type: ignore[misc]


def _lower(text: str | None) -> str:
    text = text or ""
    return (text[:1].lower() + text[1:]).rstrip(".")


def _plain(text: str) -> str:
    """Text as roff shows it as it stands: no request in it, and minus signs that can be copied."""
    plain = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    lines = textwrap.wrap(plain, 78, break_on_hyphens=False, break_long_words=False)
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in lines)
