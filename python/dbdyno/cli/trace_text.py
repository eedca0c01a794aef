"""Words about a recording of block I/O."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.cli.text_table import table
from dbdyno.model.wording import count

if TYPE_CHECKING:
    from dbdyno.probe.trace_reader import Recorded


def remarks(device: str, file: Path, done: "Recorded") -> list[str]:
    """What a recording must be read with."""
    from dbdyno.host.storage import disks_under

    found = ["the file is full, so the recording ended; --max-size allows more"] if done.ended == "full" else []
    if done.lost:
        found.append(f"{count(done.lost, 'event')} did not fit into the kernel's buffer and are lost")
    if set(disks_under(file.parent)) & set(disks_under(Path("/dev") / device)):
        found.append(f"{file} is on {device} itself: what was written to it is in the trace")
    return found


def recorded_text(file: Path, done: "Recorded", said: list[str]) -> str:
    """One line, and the remarks."""
    cost = "" if done.cpu_us_per_request is None else f"; {done.cpu_us_per_request:.2f} us of CPU a request"
    text = f"{count(done.requests, 'request')} in {done.seconds:.1f} s, {done.bytes / 1e6:,.1f} MB in {file}{cost}"
    return "\n".join([text, *(f"note: {one}" for one in said)])


# Words about what a trace holds.


SIZES_SHOWN = 4
BRIEF_S = 0.01  # a shorter trace has its length in microseconds


def contents_text(files: str, found: dict[str, Any]) -> str:
    """A trace in a few lines."""
    findings, span = found["findings"], found["span_s"]
    if not findings["requests"]:
        return "\n".join([f"{files}: no request{_as(found)}", *_odd(findings)])
    rate = f", {findings['requests'] / span:,.0f} a second" if span else ""
    lasting = f"{span * 1e6:,.0f} us" if 0 < span < BRIEF_S else f"{span:,.3f} s"
    lines = [f"{files}: {count(findings['requests'], 'request')} in {lasting}{rate}{_as(found)}", ""]
    head = ("", "requests", "MB", "mean KiB", "sync", "sequential")
    rows = [_row(name, found[name]) for name in ("reads", "writes")]
    lines += [table(head, rows, right=1), ""]
    lines += [f"{name}: {_sizes(found[name])}" for name in ("reads", "writes") if found[name]["requests"]]
    lines.append(f"flushes: {found['flushes']:,}; writes that are forced to the medium: {found['forced_writes']:,}")
    lines.append(f"a disk of {found['end_sector'] * 512 / 1e9:,.3f} GB holds all of it")
    if found["response_ms_mean"] is not None:
        times = f"{found['response_ms_mean']:.3f} ms mean, {found['response_ms_p99']:.3f} ms p99"
        depth = found["outstanding_mean"]
        lines.append(f"time of a request: {times}" + (f"; {depth:.2f} outstanding on average" if depth else ""))
    if len(found["devices"]) > 1:
        lines.append("devices: " + ", ".join(f"{name} ({requests:,})" for name, requests in found["devices"]))
    rows = [
        [str(one["process"]), one["name"], f"{one['requests']:,}", f"{one['bytes'] / 1e6:,.1f}"]
        for one in found["processes"]
    ]
    lines += ["", table(("process", "name", "requests", "MB"), rows, right=2)]
    if found["processes_count"] > len(rows):
        lines.append(f"and {found['processes_count'] - len(rows)} processes more")
    odd = _odd(findings)
    return "\n".join([*lines, *(["", *odd] if odd else [])])


def _as(found: dict[str, Any]) -> str:
    return f" (read as {found['format']})" if found["format"] else ""


def _row(name: str, kind: dict[str, Any]) -> list[str]:
    requests, size = kind["requests"], kind["bytes"]
    mean = f"{size / requests / 1024:.1f}" if requests else "-"
    return [name, f"{requests:,}", f"{size / 1e6:,.1f}", mean, _share(kind["sync"], requests),
            _share(kind["sequential"], requests)]  # fmt: skip


def _share(part: int, of: int) -> str:
    return f"{100 * part / of:.0f} %" if of else "-"


def _sizes(kind: dict[str, Any]) -> str:
    most = sorted(kind["sizes"], key=lambda one: -one[1])[:SIZES_SHOWN]
    said = ", ".join(f"{size / 1024:g} KiB {_share(number, kind['requests'])}" for size, number in most)
    return said + (f" and {len(kind['sizes']) - len(most)} sizes more" if len(kind["sizes"]) > len(most) else "")


def _odd(findings: dict[str, Any]) -> list[str]:
    """What is wrong with a trace, or was left out; nothing of a good one."""
    found = list(findings["notes"])
    if findings["text_before"]:
        found.append(f"{count(findings['text_before'], 'line')} of text before the first event, passed over")
    if findings["cut_off"]:
        found.append("the recording was cut off: how many events were lost is not known")
    if findings["lost_events"]:
        found.append(f"{count(findings['lost_events'], 'event')} were lost when it was recorded")
    if findings["damaged"]:
        first = "; ".join(f"line {one['line']} {one['why']}" for one in findings["first_damaged"][:3])
        found.append(f"{count(findings['damaged'], 'damaged line')}: {first}")
    if findings["backwards"]:
        by = findings["backwards_ns_max"] / 1e6
        found.append(f"time goes backwards {count(findings['backwards'], 'time')}, by {by:.3f} ms at most")
    if findings["without_end"]:
        found.append(f"{count(findings['without_end'], 'request')} without an end")
    if findings["passed_over"]:
        names = ", ".join(f"{name} {number:,}" for name, number in findings["passed_over"].items())
        found.append(f"not counted, as no reads, writes or flushes (M, F: merges): {names}")
    return found
