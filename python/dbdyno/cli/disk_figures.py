"""``dbdyno disk stats | trace``: what a disk did."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dbdyno.cli.disk_content import DISK
from dbdyno.cli.output import JSON, print_done, print_json
from dbdyno.cli.suggestions import of_words
from dbdyno.cli.values import one_of, seconds_of
from dbdyno.errors import UserError

if TYPE_CHECKING:
    from dbdyno.stack.disk_client import TraceEnd


def stats(
    disk: str = DISK,
    reset: bool = typer.Option(False, "--reset", help="Start counting anew."),
    json_: bool = JSON,
) -> None:
    """Show requests, times, lateness, the model's inner state and faults."""
    from dbdyno.cli.disk_text import stats_text
    from dbdyno.stack.attached import find_disk, summary

    found = find_disk(disk)
    answer = {**summary(found), **found.client().stats(reset=reset)}
    if json_:
        print_json(answer)
    else:
        print(stats_text(answer))


def trace(
    disk: str = DISK,
    file: Path = typer.Argument(None, metavar="FILE", help="Where to write it; a file that is there is replaced."),
    format_: str = typer.Option(
        "csv", "--format", help="csv, or binary: 48 bytes a request.", autocompletion=of_words("binary", "csv")
    ),
    for_: str = typer.Option(None, "--for", help='Stop after this time, such as "10s".'),
    stop: bool = typer.Option(False, "--stop", help="Stop the trace that is running."),
    json_: bool = JSON,
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
        _print_end(found.name, found.client().stop_trace(), json_=json_)
        return
    client = found.client()
    client.start_trace(file.resolve(), written_as)
    if not seconds:
        words = f"{found.name}: tracing into {file}; stop it with: dbdyno disk trace {found.name} --stop"
        print_done(words, {"name": found.name, "file": str(file.resolve())}, json_=json_)
        return
    try:
        time.sleep(seconds)
    finally:
        _print_end(found.name, client.stop_trace(), json_=json_)


def _print_end(name: str, trace: "TraceEnd", *, json_: bool) -> None:
    dropped = f", {trace.dropped} dropped" if trace.dropped else ", none dropped"
    words = f"{name}: {trace.records} requests in {trace.file}{dropped}"
    print_done(words, {"name": name, **asdict(trace)}, json_=json_)


VERBS = {"stats": stats, "trace": trace}
