"""What ``dbdyno new`` asks at a terminal."""

import sys
from typing import Any

import typer

from dbdyno.errors import UserError

KIND = "slap"
# Flag -> what is asked at a terminal, where it was not given, and the answer that Enter gives.
QUESTIONS: dict[str, tuple[str, Any]] = {
    "device": (
        'What the data lie on: "here" is a folder on this disk; or a drive to emulate, such as ssd-sata',
        "here",
    ),
    "server": ("Which server: mariadb is the distribution's; dbdyno servers lists others", "mariadb"),
    "load": ("What clients do: read, write or mixed", "mixed"),
    "clients": ("How many clients at once", 8),
    "duration": ("How long a trial is measured", "5s"),
    "blocks": ("How often each is measured; fewer than 6 decide nothing", 8),
}
VARY = "What to compare, FIELD=LEVEL,LEVEL", "innodb_flush_log_at_trx_commit=1,2"
VARY_OF_FILE = "Which fields to vary, FIELD=LEVEL,LEVEL; nothing: all of the file against the server's defaults", ""


def answer(name: str, value: Any, *, asks: bool) -> Any:  # noqa: ANN401 - a text or a number
    """Return what was given for a flag, or what is answered, or the default."""
    question, default = QUESTIONS[name]
    return value if value is not None else ask(question, default) if asks else default


def ask(question: str, default: Any) -> Any:  # noqa: ANN401
    """Ask at the terminal; an empty line is the default. Raises ``UserError`` where no line comes."""
    while True:
        typer.echo(f"{question}{f' [{default}]' if default != '' else ''}: ", err=True, nl=False)
        if not (line := sys.stdin.readline()):
            raise UserError("the answers ended before the questions; nothing was written")
        answer = line.strip() or default
        if not isinstance(default, int) or str(answer).isdecimal():
            return type(default)(answer)
        typer.echo("give a whole number", err=True)
