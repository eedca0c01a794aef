"""``dbdyno disk``: an emulated disk by hand, and a profile fitted to a real one."""

import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dbdyno.cli.options import nanoseconds_of, one_of, range_of, seconds_of
from dbdyno.cli.output import JSON, print_done, print_json, table
from dbdyno.cli.suggestions import attached_disks, drives, of_words
from dbdyno.errors import UserError
from dbdyno.model.wording import drive_bytes
from dbdyno.study.units import format_bytes

if TYPE_CHECKING:
    from dbdyno.stack.disk_client import TraceEnd


# Lines about an emulated disk: its drive's fast cache and gauges, and its injected faults.


def fast_cache_text(cache: dict[str, Any]) -> str:
    """How large the fast cache is, and whether it ran out."""
    here, whole, at_ns = cache["bytes"], cache["drive_bytes"], cache["ran_out_ns"]
    part = "" if here == whole or whole is None else f" of the drive's {drive_bytes(whole)}"
    ago = "has not run out" if at_ns is None else f"ran out {(time.monotonic_ns() - at_ns) / 1e9:.1f} s ago"
    return f"fast cache {drive_bytes(here)}{part}: {ago}"


def gauge_text(name: str, value: float) -> str:
    """A gauge with its unit."""
    return format_bytes(value) if name.endswith("_bytes") else f"{value:.6g}"


def fault_text(fault: dict[str, Any]) -> str:
    """What a fault does, to which requests, and how often it hit."""
    what = fault["kind"] + (f" +{fault['extra_ns'] / 1e6:g} ms" if fault["extra_ns"] else "")
    target = {"read": "reads", "write": "writes", "all": "all requests"}[fault["target"]]
    where = f" in bytes {fault['range_bytes'][0]}-{fault['range_bytes'][1]}" if fault["range_bytes"] else ""
    which = f", every {fault['every']}." if fault["every"] else ""
    which += f", with probability {fault['probability']:g} (seed {fault['seed']})" if fault["probability"] else ""
    left = f", {fault['left_ns'] / 1e9:.1f} s left" if fault["left_ns"] is not None else ""
    return f"{what} on {target}{where}{which}: hit {fault['hits']} of {fault['seen']}{left}"


KINDS = ("read", "write", "flush", "discard")
PATH = (
    ("later than asked", "lateness_ns"),
    ("path to the model", "path_before_ns"),
    ("left earlier by", "path_taken_ns"),
    ("later than the model", "path_left_ns"),
    ("earlier than it", "path_early_ns"),
)
TIMES = ("mean", "p50", "p99", "p999", "max")


def listed(disks: list[dict[str, Any]]) -> str:
    """The table of ``disk list``."""
    if not disks:
        return "no disk is attached; attach one with: dbdyno disk attach MODEL --size SIZE"
    rows = [
        [
            disk["name"] or "-",
            disk["model"],
            format_bytes(disk["size_bytes"]),
            disk["device"] or "-",
            disk["state"],
            str(disk["pid"]),
            disk["since"] or "-",
            _privileges(disk),
        ]
        for disk in disks
    ]
    text = table(("name", "model", "size", "device", "state", "pid", "since", "granted"), rows, right=8)
    used = (disk for disk in disks if disk["used_by"])
    users = (f"{disk['device'] or disk['model']} is used by dbdyno {disk['used_by']}" for disk in used)
    return "\n".join([text, *users, *(disk["problem"] for disk in disks if disk["problem"])])


def _privileges(disk: dict[str, Any]) -> str:
    words = {"locked_memory": "locked memory", "io_flusher": "I/O flusher", "realtime": "real-time priority"}
    return ", ".join(word for key, word in words.items() if disk.get(key)) or "-"


def stats_text(disk: dict[str, Any]) -> str:
    """All that ``disk stats`` shows."""
    rows = []
    for kind in KINDS:
        times, count = disk["service_ns"][kind], disk[{"flush": "flushes"}.get(kind, f"{kind}s")]
        rows.append([kind, str(count), str(disk["errors"][kind]), *(_us(times[key]) for key in TIMES)])
    for name, key in PATH:
        if (times := disk.get(key)) and times["count"]:  # a disk attached by an older dbdyno knows of no path
            rows.append([name, str(times["count"]), "", *(_us(times[statistic]) for statistic in TIMES)])
    cache = disk["write_cache"] + (" (FLUSH ignored)" if disk.get("flush_ignored") else "")
    lines = [
        f"{disk['name']}, {disk['model']} ({disk['state']}), {format_bytes(disk['size_bytes'])}, {disk['device']}",
        f"mode {disk['mode']}, power {disk['power']}, write cache {cache}, granted: {_privileges(disk)}",
        "",
        table(("us", "requests", "errors", "mean", "p50", "p99", "p99.9", "max"), rows, right=1),
        "",
        (
            f"read {format_bytes(disk['read_bytes'])}, written {format_bytes(disk['write_bytes'])}, "
            f"in flight {disk['in_flight']}, at most {disk['queue_depth_max']}"
        ),
        (
            f"content {format_bytes(disk['content_bytes'])}; held {format_bytes(disk['held_bytes'])} of "
            f"{format_bytes(disk['max_content_bytes'])}, snapshots: {', '.join(disk['snapshots']) or 'none'}; "
            f"unflushed {format_bytes(disk['unflushed_bytes'])}"
        ),
    ]
    if isinstance(ways := disk.get("path_after_ns"), dict):  # an older dbdyno had one figure
        lines.append(_ways_text(ways, disk["spun_seconds"], disk["spin_share_max"]))
    if disk["enospc_errors"]:
        lines.append(
            f"{disk['enospc_errors']} writes found no space: the content has reached its limit (attach --limit)"
        )
    lines += [f"{name:32s} {gauge_text(name, value)}" for name, value in disk["gauges"].items()]
    if cache := disk.get("fast_cache"):  # a disk attached by an older dbdyno has none
        lines.append(fast_cache_text(cache))
    lines += [f"fault: {fault_text(fault)}" for fault in disk["faults"]]
    if trace := disk["trace"]:
        lines.append(f"trace: {trace['records']} requests in {trace['file']}, {trace['dropped']} dropped")
    return "\n".join(lines)


def _ways_text(ways: dict[str, Any], spun_seconds: float, spin_share_max: float) -> str:
    """What an answer takes to the block layer, by what it answers, and what it cost to be in time."""
    sizes = {"more": "larger"} | {str(size): f"to {format_bytes(size)}" for size in (4096, 16384, 65536, 262144)}
    parts = [f"{kind} {sizes[size]} {_us(ns)}" for kind in ("read", "write") for size, ns in ways[kind].items()]
    if (ns := ways["without_data"]) is not None:
        parts.append(f"without data {_us(ns)}")
    spun = f"busy waiting: {spun_seconds:.2f} s, at most {spin_share_max:.0%} of a processor now"
    return f"way back of answers, us: {', '.join(parts) or 'none seen'}; {spun}"


def _us(nanoseconds: float | None) -> str:
    return "-" if nanoseconds is None else f"{nanoseconds / 1e3:.1f}"


# ``dbdyno disk mode | snapshot | restore | forget``: how a disk spends its time, and what is on it.


DISK = typer.Argument(
    metavar="DISK", help="A name or /dev/loopN, as dbdyno disk list shows it.", autocompletion=attached_disks
)
SNAPSHOT = typer.Argument(metavar="SNAPSHOT", help="Name of the snapshot.")


def mode(
    disk: str = DISK,
    mode: str = typer.Argument(
        metavar="instant|model", help="At once, or as the drive.", autocompletion=of_words("instant", "model")
    ),
    json_: bool = JSON,
) -> None:
    """Answer at once, or when the drive would; it then starts idle, with empty caches."""
    from dbdyno.stack.attached import find_disk
    from dbdyno.stack.disk_client import MODES

    wanted = one_of("the mode", mode, MODES)
    attached_disk = find_disk(disk)
    attached_disk.client().set_mode(wanted)
    print_done(f"{attached_disk.name}: mode {mode}", {"name": attached_disk.name, "mode": mode}, json_=json_)


def snapshot(disk: str = DISK, name: str = SNAPSHOT, json_: bool = JSON) -> None:
    """Keep the content as the drive has it now, under a name; what a filesystem has not written yet is not in it."""
    from dbdyno.stack.attached import find_disk

    attached_disk = find_disk(disk)
    attached_disk.client().snapshot(name)
    print_done(f"{attached_disk.name}: snapshot {name}", {"name": attached_disk.name, "snapshot": name}, json_=json_)


def restore(disk: str = DISK, name: str = SNAPSHOT, json_: bool = JSON) -> None:
    """Put the content back to what it was at a snapshot; unmount it first."""
    from dbdyno.stack.attached import find_disk

    attached_disk = find_disk(disk)
    attached_disk.refuse_if_used("restore it")
    attached_disk.client().restore(name)
    print_done(f"{attached_disk.name}: restored {name}", {"name": attached_disk.name, "restored": name}, json_=json_)


def forget(disk: str = DISK, name: str = SNAPSHOT, json_: bool = JSON) -> None:
    """Drop a snapshot."""
    from dbdyno.stack.attached import find_disk

    attached_disk = find_disk(disk)
    attached_disk.client().forget(name)
    print_done(f"{attached_disk.name}: forgot {name}", {"name": attached_disk.name, "forgotten": name}, json_=json_)


# ``dbdyno disk stats | trace``: what a disk did.


def stats(
    disk: str = DISK,
    reset: bool = typer.Option(False, "--reset", help="Start counting anew."),
    json_: bool = JSON,
) -> None:
    """Show requests, times, lateness, the model's inner state and faults."""
    from dbdyno.stack.attached import find_disk, summary

    attached_disk = find_disk(disk)
    answer = {**summary(attached_disk), **attached_disk.client().stats(reset=reset)}
    if json_:
        print_json(answer)
    else:
        print(stats_text(answer))


def trace(
    disk: str = DISK,
    file: Path = typer.Argument(None, metavar="FILE", help="The file to write; an existing one is replaced."),
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
    attached_disk = find_disk(disk)
    if stop:
        _print_end(attached_disk.name, attached_disk.client().stop_trace(), json_=json_)
        return
    client = attached_disk.client()
    client.start_trace(file.resolve(), written_as)
    if not seconds:
        words = (
            f"{attached_disk.name}: tracing into {file}; stop it with: dbdyno disk trace {attached_disk.name} --stop"
        )
        print_done(words, {"name": attached_disk.name, "file": str(file.resolve())}, json_=json_)
        return
    try:
        time.sleep(seconds)
    finally:
        _print_end(attached_disk.name, client.stop_trace(), json_=json_)


def _print_end(name: str, trace: "TraceEnd", *, json_: bool) -> None:
    dropped = f", {trace.dropped} dropped" if trace.dropped else ", none dropped"
    words = f"{name}: {trace.records} requests in {trace.file}{dropped}"
    print_done(words, {"name": name, **asdict(trace)}, json_=json_)


# ``dbdyno disk power-cut | power-on``: what a power cut takes.


def power_cut(
    disk: str = DISK,
    seed: int = typer.Option(1, min=0, help="Seed of what survives."),
    sector: int = typer.Option(
        None, help="Bytes that are lost or kept as one: 512 or 4096; the device's sector by default."
    ),
    json_: bool = JSON,
) -> None:
    """Cut the power: what was not flushed may be lost; everything fails until power-on."""
    from dbdyno.stack.attached import find_disk

    attached_disk = find_disk(disk)
    sector = sector or attached_disk.sector
    one_of("--sector", sector, (512, 4096))
    cut = attached_disk.client().cut_power(seed, sector)
    lost = f"{cut.lost_sectors} of {cut.unflushed_sectors} unflushed sectors of {sector} bytes are lost"
    if cut.write_cache != "volatile":
        lost = f"nothing acknowledged is lost (write cache: {cut.write_cache})"
    words = f"{attached_disk.name}: power cut; {lost}; {cut.in_flight_failed} requests in flight failed"
    print_done(words, {"name": attached_disk.name, **asdict(cut)}, json_=json_)


def power_on(disk: str = DISK, json_: bool = JSON) -> None:
    """Switch the power on again: the drive starts idle, with empty caches."""
    from dbdyno.stack.attached import find_disk

    attached_disk = find_disk(disk)
    attached_disk.client().power_on()
    print_done(f"{attached_disk.name}: power on", {"name": attached_disk.name, "power": "on"}, json_=json_)


# ``dbdyno disk fit``: a drive file from a drive.


def fit(
    source: str = typer.Argument(
        metavar="DEV|MODEL",
        help="A block device, which is only read; or a drive, in virtual time.",
        autocompletion=drives,
    ),
    out: Path = typer.Option(None, "--out", metavar="FILE", help="File to write, NAME.toml; else standard output."),
    time_: str = typer.Option("2min", "--time", metavar="TIME", help="About how long to measure a device."),
    size: str = typer.Option(None, help="Size of a model's disk, if not that of the drive."),
    write: bool = typer.Option(False, "--write", help="Write, too: a model, or a device that is proved to be empty."),
    erase: str = typer.Option(None, metavar="SERIAL", help="Write to the device with this serial, whatever it holds."),
    seed: int = typer.Option(1, "--seed", min=0, help="Seed of the random places."),
    json_: bool = JSON,
) -> None:
    """Find a drive's parameters by timing requests, and write its drive file."""
    from dbdyno.cli.options import bytes_of, seconds_of
    from dbdyno.cli.output import write_whole
    from dbdyno.run.fit import FitRequest
    from dbdyno.run.fit import fit as fitted

    if out is not None:
        _refuse_to_overwrite(out)
    size_bytes = bytes_of("--size", size) if size else None
    request = FitRequest(source, seconds_of("--time", time_), seed, size_bytes, write, erase=erase)
    result = fitted(request, _progress)
    if out is not None:
        write_whole(out, result["drive_file"].encode())
    if json_:
        print_json(result)
    elif out is None:
        sys.stdout.write(result["drive_file"])
        _print_checks(result, aside=True)
    else:
        print(f"drive file: {out}; {_counts(result)}")
        _print_checks(result, aside=False)


def _refuse_to_overwrite(out: Path) -> None:
    """Raises ``UserError`` where a file would not be found as a drive file, or would replace another."""
    from dbdyno.cli.output import refuse_to_overwrite

    if out.suffix != ".toml":
        raise UserError(f"--out {out}: a drive file ends in .toml; name it {out.name}.toml")
    refuse_to_overwrite(out, (b"# written by dbdyno disk fit",), "was not written by dbdyno disk fit")


def _counts(result: dict[str, Any]) -> str:
    sources = [figure["source"] for figure in result["figures"]]
    parts = [f"{count} {word}" for word in ("measured", "fitted", "default") if (count := sources.count(word))]
    return ", ".join(parts)


def _print_checks(result: dict[str, Any], *, aside: bool) -> None:
    """Print figures of the drive beside those of the model that its drive file makes."""
    from dbdyno.cli.output import table

    rows = [
        [check["what"], f"{check['drive']['value']:,.1f}", f"{check['model']:,.1f}" if "model" in check else ""]
        for check in result["checks"]
    ]
    typer.echo(table(("", "drive", "model"), rows, 1), err=aside)
    for field in result["cut_short"]:
        typer.echo(f"note: {field} is coarser than it could be; give more --time", err=True)
    for note in result["notes"]:
        typer.echo(f"note: {note}", err=True)


def _progress(stage: str) -> None:
    typer.echo(f"measuring: {stage}", err=True)


# ``dbdyno disk fault``: what can go wrong with a drive, put into an emulated one.


def spec_of(kind: str, range_: str | None, read: bool, write: bool, for_: str | None) -> dict[str, Any]:
    """Return the fields of a fault that every kind has. Raises ``UserError`` where options exclude each other."""
    if read and write:
        raise UserError("--read and --write exclude each other; without either all requests are hit")
    target = "read" if read else "write" if write else "all"
    spec = {"kind": kind, "target": target, "range_bytes": range_of("--range", range_) if range_ else None}
    return spec | {"for_ns": nanoseconds_of("--for", for_) if for_ else None}


def add_fault(disk: str, spec: dict[str, Any], what: str, *, json_: bool) -> None:
    """Put a fault into a disk and say so. Raises ``UserError``: it makes no sense, or there is no such disk."""
    from dbdyno.stack.attached import find_disk
    from dbdyno.stack.disk_client import Fault

    if spec.get("every") is not None and spec.get("probability") is not None:
        raise UserError("--every and --probability exclude each other")
    attached_disk = find_disk(disk)
    attached_disk.client().add_fault(Fault(**spec))
    words = f"{attached_disk.name}: {what}; end it with: dbdyno disk fault clear {attached_disk.name}"
    print_done(words, {"name": attached_disk.name, "faults": [spec]}, json_=json_)


fault_app = typer.Typer(help="Put faults into a disk, and end them.", rich_markup_mode=None)

READ = typer.Option(False, "--read", help="Hit reads only.")
WRITE = typer.Option(False, "--write", help="Hit writes, flushes and discards only.")
RANGE = typer.Option(
    None, "--range", metavar="A-B", help='Hit what touches these bytes, such as "0-1M"; all, if not given.'
)
EVERY = typer.Option(None, min=1, help="Hit every Nth request.")
PROBABILITY = typer.Option(None, min=0.0, max=1.0, help="Hit each request with this probability.")
SEED = typer.Option(1, min=0, help="Seed of the chances.")
FOR = typer.Option(None, "--for", help='End after this time, such as "10s"; on fault clear, if not given.')


@fault_app.command("latency")
def latency(
    disk: str = DISK,
    extra: str = typer.Option(..., help='How much later to answer, such as "50ms".'),
    every: int = EVERY,
    probability: float = PROBABILITY,
    range_: str = RANGE,
    read: bool = READ,
    write: bool = WRITE,
    seed: int = SEED,
    for_: str = FOR,
    json_: bool = JSON,
) -> None:
    """Answer late."""
    spec = spec_of("latency", range_, read, write, for_)
    spec |= {"extra_ns": nanoseconds_of("--extra", extra), "every": every, "probability": probability, "seed": seed}
    add_fault(disk, spec, f"answers {extra} late", json_=json_)


@fault_app.command("eio")
def eio(
    disk: str = DISK,
    every: int = EVERY,
    probability: float = PROBABILITY,
    range_: str = RANGE,
    read: bool = READ,
    write: bool = WRITE,
    seed: int = SEED,
    for_: str = FOR,
    json_: bool = JSON,
) -> None:
    """Fail with an I/O error."""
    spec = spec_of("eio", range_, read, write, for_)
    spec |= {"every": every, "probability": probability, "seed": seed}
    add_fault(disk, spec, "fails requests", json_=json_)


@fault_app.command("stuck")
def stuck(
    disk: str = DISK, range_: str = RANGE, read: bool = READ, write: bool = WRITE, for_: str = FOR, json_: bool = JSON
) -> None:
    """Leave the next request without an answer until the fault ends."""
    spec = spec_of("stuck", range_, read, write, for_)
    add_fault(disk, spec, "leaves the next request without an answer", json_=json_)


@fault_app.command("gone")
def gone(disk: str = DISK, seed: int = SEED, json_: bool = JSON) -> None:
    """Pull the drive out: everything fails, and what was not flushed may be lost; fault clear puts it back."""
    from dbdyno.stack.attached import find_disk

    attached_disk = find_disk(disk)
    cut = attached_disk.client().pull_out(seed)
    words = f"{attached_disk.name}: gone; {cut.lost_sectors} of {cut.unflushed_sectors} unflushed sectors are lost"
    print_done(words, {"name": attached_disk.name, **asdict(cut)}, json_=json_)


@fault_app.command("clear")
def clear(disk: str = DISK, json_: bool = JSON) -> None:
    """End all faults of a disk."""
    from dbdyno.stack.attached import find_disk

    attached_disk = find_disk(disk)
    attached_disk.client().clear_faults()
    print_done(f"{attached_disk.name}: no faults", {"name": attached_disk.name, "faults": []}, json_=json_)


# ``dbdyno disk models | attach | detach | list``: emulated disks outside of a study.


def models(json_: bool = JSON) -> None:
    """List the drives that can be emulated."""
    from dbdyno._native import device_models

    drive_models = device_models()
    if json_:
        print_json(drive_models)
        return
    width = max(len(model["name"]) for model in drive_models)
    for model in drive_models:
        print(f"{model['name']:{width}s}  {model['title']}")


app = typer.Typer(help="Emulated disks that behave like a named drive.", rich_markup_mode=None)


app.command("models")(models)


@app.command("attach")
def attach(
    model: str = typer.Argument(
        metavar="MODEL",
        help="A drive: see dbdyno disk models, or a drive file of your own ending in .toml; other numbers, as in "
        '"ebs-io1(iops=20000)", and arrays, as in "raid1(hdd-15k, 2)", in quotes.',
        autocompletion=drives,
    ),
    size: str = typer.Option(..., help='Size, such as "2G".'),
    seed: int = typer.Option(1, min=0, help="Seed of the drive's chances."),
    name: str = typer.Option(None, help="What to call it; the model's name, if not given."),
    state: str = typer.Option(
        "fresh",
        help="An SSD as new (fresh) or long in use (steady); other drives ignore it.",
        autocompletion=of_words("fresh", "steady"),
    ),
    content: str = typer.Option("memory", help="What holds its content: memory, or a sparse FILE, which stays."),
    limit: str = typer.Option(None, help="What the content may take, snapshots included; twice the size by default."),
    sector: int = typer.Option(4096, help="Bytes of a sector as the kernel sees it: 512 or 4096."),
    json_: bool = JSON,
) -> None:
    """Attach an emulated disk; prints its /dev/loopN. It stays until it is detached."""
    from dbdyno.cli.options import bytes_of, one_of
    from dbdyno.stack.attached import attach_disk, find_disk, summary
    from dbdyno.stack.layers.emulated_disk import DiskSpec

    one_of("--state", state, ("fresh", "steady"))
    one_of("--sector", sector, (512, 4096))
    spec = DiskSpec(
        model,
        bytes_of("--size", size),
        seed,
        mode="model",
        state=state,
        content=None if content == "memory" else Path(content).resolve(),
        limit=bytes_of("--limit", limit) if limit else None,
    )
    device, notes = attach_disk(spec, name=name, sector=sector)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    if json_:
        print_json({**summary(find_disk(str(device))), "notes": notes})
    else:
        print(device)


@app.command("detach")
def detach(
    disk: str = DISK,
    json_: bool = JSON,
) -> None:
    """Detach an emulated disk; content in memory is gone."""
    from dbdyno.stack.attached import detach_disk

    detached = detach_disk(disk)
    print_done(f"detached {detached}", {"detached": detached}, json_=json_)


@app.command("list")
def list_(json_: bool = JSON) -> None:
    """List the emulated disks of this host: attached ones, and those of runs in progress."""
    from dbdyno.stack.attached import attached_disks, disks_of_runs, summary

    disks = [*(summary(disk) for disk in attached_disks()), *disks_of_runs()]
    if json_:
        print_json(disks)
    else:
        print(listed(disks))


for command in (mode, snapshot, restore, forget, stats, trace, power_cut, power_on, fit):
    app.command(command.__name__.replace("_", "-"))(command)
app.add_typer(fault_app, name="fault")
