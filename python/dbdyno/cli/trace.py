"""``dbdyno trace``: record the requests of a block device, and say what is in a trace."""

import typer

from dbdyno.cli.options import LENGTH_UNIT, TIME_UNIT
from dbdyno.cli.output import JSON, print_done, print_json
from dbdyno.cli.suggestions import block_devices
from dbdyno.cli.values import bytes_of, path_of, plain_seconds_of
from dbdyno.errors import UserError

app = typer.Typer(help="Traces of block I/O: record one, say what is in one.", rich_markup_mode=None)
SIZE_BYTES_MIN = 64 * 1024


@app.command("record")
def record(
    device: str = typer.Argument(
        metavar="DEVICE", help="sda, sda1, /dev/loop3 or an emulated disk by its name.", autocompletion=block_devices
    ),
    seconds: str = typer.Option(None, "--seconds", "-s", metavar="TIME", help='How long, such as "60s"; to Ctrl-C.'),
    output: str = typer.Option("", "--output", "-o", metavar="FILE", help="A new file; DEVICE.blkparse by default."),
    max_size: str = typer.Option("1G", "--max-size", metavar="SIZE", help="The recording ends where the file is full."),
    json_: bool = JSON,
) -> None:
    """Record each request of a block device: asked for, merged, issued, completed. Needs root."""
    from dataclasses import asdict

    from dbdyno.cli.trace_text import recorded_text, remarks
    from dbdyno.probe.trace_reader import Record, record
    from dbdyno.stack.attached import watchables

    limit = bytes_of("--max-size", max_size)
    if limit < SIZE_BYTES_MIN:
        raise UserError(f"--max-size {max_size!r} must be at least 64K")
    found = watchables(device)
    if len(found) > 1:
        raise UserError(f"{device} stands on {', '.join(one.name for one in found)}; name one of them")
    name = found[0].name
    file = path_of(output or f"{name}.blkparse").absolute()
    if file.exists() or not file.parent.is_dir():
        raise UserError(
            f"{file} {'exists; name another' if file.exists() else 'has no folder; make it, or name another'}"
        )
    lasting = None if seconds is None else plain_seconds_of("--seconds", seconds)
    done = record(name, Record(file, limit), lasting, lambda text: typer.echo(text, err=True))
    said = remarks(name, file, done)
    print_done(
        recorded_text(file, done, said),
        {"file": str(file), "device": name, **asdict(done), "remarks": said},
        json_=json_,
    )


@app.command("show")
def show(
    files: list[str] = typer.Argument(metavar="FILE...", help="A trace; several are blktrace's, one a processor."),
    format_: str = typer.Option(None, "--format", metavar="FORMAT", help="Its format; by how it begins, if not given."),
    time_unit: str = TIME_UNIT,
    length_unit: str = LENGTH_UNIT,
    json_: bool = JSON,
) -> None:
    """Say what is in a trace: requests, sizes, time, processes, and what is wrong with it."""
    import json

    from dbdyno._native import trace_contents
    from dbdyno.cli.trace_text import contents_text

    try:
        found = json.loads(trace_contents([str(path_of(file)) for file in files], format_, time_unit, length_unit))
    except ValueError as error:
        raise UserError(str(error)) from None
    if json_:
        print_json({"files": files, **found})
    else:
        print(contents_text(", ".join(files), found))
