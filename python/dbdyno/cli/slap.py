"""``dbdyno slap``: the slap load against any server, with mysqlslap's own flags."""

import os

import typer

from dbdyno.stack.tools import own_binary

# Every flag is mysqlslap's, so none may be read here.
CONTEXT = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


def slap(context: typer.Context) -> None:
    """Offer mysqlslap's auto-generated load to any server; takes mysqlslap's flags (slap --help lists them)."""
    binary = own_binary("dbdyno-load")
    os.execv(binary, ["dbdyno-load", "slap", *context.args])  # noqa: S606  (no shell on purpose)
