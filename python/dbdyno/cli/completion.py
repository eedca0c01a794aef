"""``dbdyno completion SHELL``: what a shell needs to complete dbdyno's words at the Tab key."""

import os
import re
from enum import StrEnum

import typer
from typer._click.shell_completion import CompletionItem, add_completion_class
from typer._completion_classes import BashComplete, FishComplete, ZshComplete

from dbdyno.cli.output import JSON, print_done
from dbdyno.errors import UserError

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
        try:
            _, file = installed(shell=shell, prog_name=PROGRAM, complete_var=VARIABLE)
        except (OSError, RuntimeError) as error:  # the latter where the user has no home
            remedy = f"have the shell read what dbdyno completion {shell} prints"
            raise UserError(f"can't be installed for this user: {error}; {remedy}") from None
        words = f"installed as {file}; it works in shells that are started from now on"
        print_done(words, {"shell": shell, "file": str(file)}, json_=json_)
        return
    script = get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell)
    print_done(script, {"shell": shell, "script": script}, json_=json_)


def prepare_to_answer() -> None:
    """See to it that a shell is answered, if it is one that asks."""
    if VARIABLE in os.environ:
        answer_as_shells_ask()


# Answering a shell that asks, by environment variables, how a command line may go on: typer's protocol.
#
# Imported when a shell asks, and not otherwise: what typer answers with is not among its documented names.


_READ_BY_ZSH = re.compile(r"[^\w ,.;()<>+/%=-]", re.ASCII)


class Bash(BashComplete):
    """Bash takes ``device=hdd`` for three words, and replaces the last of them."""

    _kept = ""  # of the last word, before what bash replaces

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the last, and the last as far as it is typed."""
        args, incomplete = super().get_completion_args()
        joined: list[str] = []
        after_equals = False
        for word in [*args, *([incomplete] if incomplete else [])]:
            if joined and (word == "=" or after_equals):
                joined[-1] += word
            else:
                joined.append(word)
            after_equals = word == "="
        last = joined.pop() if incomplete else ""
        self._kept = last[: last.rfind("=") + 1]
        return joined, last

    def format_completion(self, item: CompletionItem) -> str:
        """Return what bash is to put in the place of the word that it knows."""
        return str(item.value).removeprefix(self._kept)


class Zsh(ZshComplete):
    """Help in words that zsh reads nothing into; typer's would go through Rich, a tenth of a second."""

    def format_completion(self, item: CompletionItem) -> str:
        """Return a value and its help in zsh's words."""
        return f'"{item.value}":"{_READ_BY_ZSH.sub("", item.help)}"' if item.help else f'"{item.value}"'


class Fish(FishComplete):
    """The same for fish."""

    def format_completion(self, item: CompletionItem) -> str:
        """Return a value and its help, a line."""
        return f"{item.value}\t{' '.join(item.help.split())}" if item.help else str(item.value)


def answer_as_shells_ask() -> None:
    """Have typer answer the three shells."""
    for shell, answering in (("bash", Bash), ("zsh", Zsh), ("fish", Fish)):
        add_completion_class(answering, shell)
