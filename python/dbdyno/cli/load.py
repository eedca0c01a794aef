"""The verbs of the load generator: each becomes ``dbdyno-load VERB`` with the same arguments."""

import os
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand

from dbdyno.errors import DbdynoError

# Every flag is the load generator's, so none may be read here.
CONTEXT = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}

VERBS = {
    "slap": "mysqlslap's generated SQL, by mysqlslap's flags.",
    "smack": "Super-Smack's statements by random primary key.",
    "oltp": "sysbench's OLTP loads, by sysbench's flags.",
    "tpcc": "TPC-C's transactions over its tables; no TPC result.",
    "ledger": "Transactions whose loss in a crash is found.",
    "ingest": "Rows into a table with three indexes.",
    "bulk": "sysbench's prepare: tables made, filled, indexed.",
    "script": "A SQL file with parameters and weights.",
    "replay-log": "A server's slow or general log, by its times.",
}


def command(verb: str) -> Callable[[typer.Context], None]:
    """What a verb does; its own ``--help`` lists the flags."""

    def offer(context: typer.Context) -> None:
        from dbdyno.stack.tools import own_binary

        binary = own_binary("dbdyno-load")
        os.execv(binary, ["dbdyno-load", verb, *context.args])  # noqa: S606  (no shell on purpose)

    return offer


class Verb(TyperCommand):
    """A verb of the load generator, whose own help says to the shell how it may go on."""

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:  # noqa: ANN401  (as below)
        """Offer its loads first, then its flags."""
        import re
        import subprocess

        from typer._click.shell_completion import CompletionItem

        from dbdyno.stack.tools import own_binary

        try:
            argv = [own_binary("dbdyno-load"), str(self.name), "--help"]
        except DbdynoError:
            return []
        completed = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=5,
            check=False,
        )
        loads = re.search(r"^loads: (.*)$", completed.stdout, re.MULTILINE)
        if loads and not ctx.args and not incomplete.startswith("-"):
            words = loads[1].split(", ")
        else:
            words = re.findall(r"^  (?:-\S, |    )(--[a-z-]+)", completed.stdout, re.MULTILINE)
            words += ["prepare", "run", "cleanup"]
        return [CompletionItem(word) for word in words if word.startswith(incomplete)]
