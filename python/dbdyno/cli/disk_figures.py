"""``dbdyno disk stats | trace``: what a disk did."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dbdyno.cli.disk_content import DISK
from dbdyno.cli.values import one_of, seconds_of
from dbdyno.errors import UserError

if TYPE_CHECKING:
    from dbdyno.stack.disk_client import TraceEnd


def stats(
    disk: str = DISK,
    reset: bool = typer.Option(False, "--reset", help="Start counting anew."),
    json_: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Show requests, times, lateness, the model's inner state and faults."""
    from dbdyno.cli.disk_text import stats_text
    from dbdyno.stack.attached import find_disk, summary

    found = find_disk(disk)
    answer = {**summary(found), **found.client().stats(reset=reset)}
    print(json.dumps(answer, indent=1) if json_ else stats_text(answer))


def trace(
    disk: str = DISK,
    file: Path = typer.Argument(None, metavar="FILE", help="Where to write it; a file that is there is replaced."),
    format_: str = typer.Option("csv", "--format", help="csv, or binary: 48 bytes a request."),
    for_: str = typer.Option(None, "--for", help='Stop after this time, such as "10s".'),
    stop: bool = typer.Option(False, "--stop", help="Stop the trace that is running."),
) -> None:
    """Write every request with its times to a file; without --for, until trace --stop."""
    from dbdyno.stack.attached import find_disk
    from dbdyno.stack.disk_client import TRACE_FORMATS

    written_as = one_of("--format", format_, TRACE_FORMATS)
    seconds = seconds_of("--for", for_) if for_ else 0.0
    if stop == bool(file):
        raise UserError("give a FILE to start a trace, or --stop to stop one")
    found = find_disk(disk)
    if stop:
        print(_trace_text(found.name, found.client().stop_trace()))
        return
    client = found.client()
    client.start_trace(file.resolve(), written_as)
    if not seconds:
        print(f"{found.name}: tracing into {file}; stop it with: dbdyno disk trace {found.name} --stop")
        return
    try:
        time.sleep(seconds)
    finally:
        print(_trace_text(found.name, client.stop_trace()))


def _trace_text(name: str, trace: "TraceEnd") -> str:
    dropped = f", {trace.dropped} dropped" if trace.dropped else ", none dropped"
    return f"{name}: {trace.records} requests in {trace.file}{dropped}"


VERBS = {"stats": stats, "trace": trace}
