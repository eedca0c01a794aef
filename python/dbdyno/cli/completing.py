"""Answering a shell that asks, by environment variables, how a command line may go on: typer's protocol.

Imported when a shell asks, and not otherwise: what typer answers with is not among its documented names.
"""

import re

from typer._click.shell_completion import CompletionItem, add_completion_class
from typer._completion_classes import BashComplete, FishComplete, ZshComplete

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
