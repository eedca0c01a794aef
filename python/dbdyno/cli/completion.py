"""``dbdyno completion SHELL``: what a shell needs to complete dbdyno's words at the Tab key."""

import os
from enum import StrEnum

import typer

from dbdyno.cli.formats import JSON
from dbdyno.cli.printed import print_done

PROGRAM, VARIABLE = "dbdyno", "_DBDYNO_COMPLETE"


class Shell(StrEnum):
    """The shells that can be served."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Shell = typer.Argument(metavar="SHELL", help="Which shell."),
    install: bool = typer.Option(False, "--install", help="Write it where that shell reads it, for this user."),
    json_: bool = JSON,
) -> None:
    """Print the completion script of a shell, or install it."""
    from typer._completion_shared import get_completion_script
    from typer._completion_shared import install as installed

    if install:
        _, file = installed(shell=shell, prog_name=PROGRAM, complete_var=VARIABLE)
        words = f"installed as {file}; it works in shells that are started from now on"
        print_done(words, {"shell": shell, "file": str(file)}, json_=json_)
        return
    script = get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell)
    print_done(script, {"shell": shell, "script": script}, json_=json_)


def prepare_to_answer() -> None:
    """See to it that a shell is answered, if it is one that asks."""
    if VARIABLE in os.environ:
        from dbdyno.cli.completing import answer_as_shells_ask

        answer_as_shells_ask()
