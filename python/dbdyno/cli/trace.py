"""``dbdyno trace``: record the requests of a block device, and say what is in a trace."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dbdyno.cli.options import LENGTH_UNIT, TIME_UNIT, bytes_of, path_of, plain_seconds_of
from dbdyno.cli.output import JSON, print_done, print_json, table
from dbdyno.cli.suggestions import block_devices
from dbdyno.errors import UserError
from dbdyno.model.wording import count

if TYPE_CHECKING:
    from dbdyno.probe.block_trace import TraceRecording


app = typer.Typer(help="Traces of block I/O: record one, say what is in one.", rich_markup_mode=None)
SIZE_BYTES_MIN = 64 * 1024


@app.command("record")
def record(
    device: str = typer.Argument(
        metavar="DEVICE", help="sda, sda1, /dev/loop3 or an emulated disk by its name.", autocompletion=block_devices
    ),
    seconds: str = typer.Option(
        None, "--seconds", "-s", metavar="TIME", help='How long, such as "60s"; until Ctrl-C, if not given.'
    ),
    output: str = typer.Option("", "--output", "-o", metavar="FILE", help="A new file; DEVICE.blkparse by default."),
    max_size: str = typer.Option("1G", "--max-size", metavar="SIZE", help="The recording ends where the file is full."),
    json_: bool = JSON,
) -> None:
    """Record each request of a block device: asked for, merged, issued, completed. Needs root."""
    from dataclasses import asdict

    from dbdyno.probe.block_trace import Record, record
    from dbdyno.stack.attached import watchables

    limit = bytes_of("--max-size", max_size)
    if limit < SIZE_BYTES_MIN:
        raise UserError(f"--max-size {max_size!r} must be at least 64K")
    disks = watchables(device)
    if len(disks) > 1:
        raise UserError(f"{device} stands on {', '.join(disk.name for disk in disks)}; name one of them")
    name = disks[0].name
    file = path_of(output or f"{name}.blkparse").absolute()
    if file.exists() or not file.parent.is_dir():
        raise UserError(
            f"{file} {'exists; name another' if file.exists() else 'has no folder; make it, or name another'}"
        )
    lasting = None if seconds is None else plain_seconds_of("--seconds", seconds)
    done = record(name, Record(file, limit), lasting, lambda text: typer.echo(text, err=True))
    remark_lines = remarks(name, file, done)
    print_done(
        recorded_text(file, done, remark_lines),
        {"file": str(file), "device": name, **asdict(done), "remarks": remark_lines},
        json_=json_,
    )


@app.command("show")
def show(
    files: list[str] = typer.Argument(metavar="FILE", help="A trace; several are blktrace's, one a processor."),
    format_: str = typer.Option(None, "--format", metavar="FORMAT", help="Its format; by how it begins, if not given."),
    time_unit: str = TIME_UNIT,
    length_unit: str = LENGTH_UNIT,
    json_: bool = JSON,
) -> None:
    """Say what is in a trace: requests, sizes, time, processes, and what is wrong with it."""
    import json

    from dbdyno._native import trace_contents

    try:
        contents = json.loads(trace_contents([str(path_of(file)) for file in files], format_, time_unit, length_unit))
    except ValueError as error:
        raise UserError(str(error)) from None
    if json_:
        print_json({"files": files, **contents})
    else:
        print(contents_text(", ".join(files), contents))


# Words about a recording of block I/O.


def remarks(device: str, file: Path, done: "TraceRecording") -> list[str]:
    """What a recording must be read with."""
    from dbdyno.host.storage import disks_under

    remark_lines = ["the file is full, so the recording ended; --max-size allows more"] if done.ended == "full" else []
    if done.lost:
        remark_lines.append(f"{count(done.lost, 'event')} did not fit into the kernel's buffer and are lost")
    if set(disks_under(file.parent)) & set(disks_under(Path("/dev") / device)):
        remark_lines.append(f"{file} is on {device} itself: what was written to it is in the trace")
    return remark_lines


def recorded_text(file: Path, done: "TraceRecording", remark_lines: list[str]) -> str:
    """One line, and the remarks."""
    cost = "" if done.cpu_us_per_request is None else f"; {done.cpu_us_per_request:.2f} us of CPU a request"
    text = f"{count(done.requests, 'request')} in {done.seconds:.1f} s, {done.bytes / 1e6:,.1f} MB in {file}{cost}"
    return "\n".join([text, *(f"note: {remark}" for remark in remark_lines)])


# Words about what a trace holds.


SIZES_SHOWN = 4
BRIEF_S = 0.01  # a shorter trace has its length in microseconds


def contents_text(files: str, contents: dict[str, Any]) -> str:
    """A trace in a few lines."""
    findings, span = contents["findings"], contents["span_s"]
    if not findings["requests"]:
        return "\n".join([f"{files}: no request{_as(contents)}", *_odd(findings)])
    rate = f", {findings['requests'] / span:,.0f} a second" if span else ""
    lasting = f"{span * 1e6:,.0f} us" if 0 < span < BRIEF_S else f"{span:,.3f} s"
    lines = [f"{files}: {count(findings['requests'], 'request')} in {lasting}{rate}{_as(contents)}", ""]
    head = ("", "requests", "MB", "mean KiB", "sync", "sequential")
    rows = [_row(name, contents[name]) for name in ("reads", "writes")]
    lines += [table(head, rows, right=1), ""]
    lines += [f"{name}: {_sizes(contents[name])}" for name in ("reads", "writes") if contents[name]["requests"]]
    lines.append(
        f"flushes: {contents['flushes']:,}; writes that are forced to the medium: {contents['forced_writes']:,}"
    )
    lines.append(f"a disk of {contents['end_sector'] * 512 / 1e9:,.3f} GB holds all of it")
    if contents["response_ms_mean"] is not None:
        times = f"{contents['response_ms_mean']:.3f} ms mean, {contents['response_ms_p99']:.3f} ms p99"
        depth = contents["outstanding_mean"]
        lines.append(f"time of a request: {times}" + (f"; {depth:.2f} outstanding on average" if depth else ""))
    if len(contents["devices"]) > 1:
        lines.append("devices: " + ", ".join(f"{name} ({requests:,})" for name, requests in contents["devices"]))
    rows = [
        [str(process["process"]), process["name"], f"{process['requests']:,}", f"{process['bytes'] / 1e6:,.1f}"]
        for process in contents["processes"]
    ]
    lines += ["", table(("process", "name", "requests", "MB"), rows, right=2)]
    if contents["processes_count"] > len(rows):
        lines.append(f"and {contents['processes_count'] - len(rows)} processes more")
    odd = _odd(findings)
    return "\n".join([*lines, *(["", *odd] if odd else [])])


def _as(contents: dict[str, Any]) -> str:
    return f" (read as {contents['format']})" if contents["format"] else ""


def _row(name: str, kind: dict[str, Any]) -> list[str]:
    requests, size = kind["requests"], kind["bytes"]
    mean = f"{size / requests / 1024:.1f}" if requests else "-"
    return [name, f"{requests:,}", f"{size / 1e6:,.1f}", mean, _share(kind["sync"], requests),
            _share(kind["sequential"], requests)]  # fmt: skip


def _share(part: int, of: int) -> str:
    return f"{100 * part / of:.0f} %" if of else "-"


def _sizes(kind: dict[str, Any]) -> str:
    most = sorted(kind["sizes"], key=lambda size_and_number: -size_and_number[1])[:SIZES_SHOWN]
    sizes_text = ", ".join(f"{size / 1024:g} KiB {_share(number, kind['requests'])}" for size, number in most)
    return sizes_text + (f" and {len(kind['sizes']) - len(most)} sizes more" if len(kind["sizes"]) > len(most) else "")


def _odd(findings: dict[str, Any]) -> list[str]:
    """What is wrong with a trace, or was left out; nothing of a good one."""
    lines = list(findings["notes"])
    if findings["text_before"]:
        lines.append(f"{count(findings['text_before'], 'line')} of text before the first event, passed over")
    if findings["cut_off"]:
        lines.append("the recording was cut off: how many events were lost is not known")
    if findings["lost_events"]:
        lines.append(f"{count(findings['lost_events'], 'event')} were lost when it was recorded")
    if findings["damaged"]:
        first = "; ".join(
            f"line {damaged_line['line']} {damaged_line['why']}" for damaged_line in findings["first_damaged"][:3]
        )
        lines.append(f"{count(findings['damaged'], 'damaged line')}: {first}")
    if findings["backwards"]:
        by = findings["backwards_ns_max"] / 1e6
        lines.append(f"time goes backwards {count(findings['backwards'], 'time')}, by {by:.3f} ms at most")
    if findings["without_end"]:
        lines.append(f"{count(findings['without_end'], 'request')} without an end")
    if findings["passed_over"]:
        names = ", ".join(f"{name} {number:,}" for name, number in findings["passed_over"].items())
        lines.append(f"not counted, as no reads, writes or flushes (M, F: merges): {names}")
    return lines
