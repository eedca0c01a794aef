"""What is said of the block layer: how long requests waited and took, and in which order they went to the device."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.explanation import BlockLayer
from dbdyno.model.printable import NO_BREAK
from dbdyno.model.wording import UNKNOWN, count, number
from dbdyno.report.document import Abridged, Block, Paragraph, Section, Strong, Table, Text, bullets
from dbdyno.report.source import Source
from dbdyno.store.block_trace import FIGURES, KEPT

HEADINGS = (
    "treatment",
    "requests",
    "queue ms (p99)",
    "device ms (p99)",
    "flush ms (p99)",
    "apart",
    "sorted run",
    "in the device (most)",
)
NOTE: Text = (
    "From the kernel's block trace, means over trials; requests are reads and writes of one trial. ",
    Strong("queue"),
    ": from when a request was handed to the block layer until it was issued. ",
    Strong("device"),
    ": from there until it was done; of an emulated disk the way through the loop device is in it. ",
    Strong("apart"),
    ": from the end of a request to the start of the next one issued. ",
    Strong("sorted run"),
    ": requests issued one after another at ascending addresses; random order has runs of 2. ",
    Strong("in the device"),
    ": at a time, and at most.",
)
BY_CHANCE = 2.0  # mean length of the ascending runs of random addresses
SORTED_ABOVE = 2.5  # a longer run of sorted requests is an order rather than chance
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def section(source: Source) -> Section:
    """Return a table of figures on a page, sentences elsewhere."""
    analysis = source.analysis
    rows = tuple(block_layer_rows(analysis))
    full: list[Block] = [Paragraph(NOTE, "soft"), Table("What the block layer did", HEADINGS, rows)] if rows else []
    full += map(Paragraph, _shortcomings(analysis.block_layer))
    shown = (Abridged(tuple(full), bullets(block_layer_lines(analysis))),) if analysis.block_layer else ()
    return Section("block-layer", "In the block layer", shown, data={"block_layer": block_layer_json(analysis)})


def block_layer_lines(analysis: Analysis) -> list[str]:
    """Return a sentence or two for each treatment with a trace, and why there is none where one was asked for."""
    lines = [" ".join(_sentences(trace)) for trace in analysis.block_layer if trace.trials]
    return [*lines, *_shortcomings(analysis.block_layer)]


def block_layer_rows(analysis: Analysis) -> list[tuple[str, ...]]:
    """Return the table, one row of texts per treatment with a trace, as ``HEADINGS``."""
    return [_row(trace) for trace in analysis.block_layer if trace.trials]


def block_layer_json(analysis: Analysis) -> list[dict[str, Any]]:
    """Return the figures of each treatment; null where they are unknown."""
    return [
        {
            "treatment_id": trace.id,
            "treatment": trace.label,
            "trials": trace.trials,
            "scheduler": trace.scheduler or None,
        }
        | {name: trace.figures.get(name) for name in FIGURES}
        | {
            "why_not_kernel": trace.own or None,
            "lost": trace.lost,
            "traces_kept": trace.kept,
            "traces_cut": trace.cut,
            "none": [{"why": why, "trials": trials} for why, trials in trace.none.items()],
        }
        for trace in analysis.block_layer
    ]


def _sentences(trace: BlockLayer) -> Iterator[str]:
    figures = trace.figures
    moved = figures.get("reads", 0.0) + figures.get("writes", 0.0)
    if not moved or "device_ms_mean" not in figures:
        yield f"{trace.label}: no data went to or from the device."
        return
    waited = f"waited {_ms(figures['queue_ms_mean'])} in the queue and " if "queue_ms_mean" in figures else ""
    p99 = f" (99 % of them at most {_ms(figures['device_ms_p99'])})" if "device_ms_p99" in figures else ""
    yield f"{trace.label}: a request {waited}took {_ms(figures['device_ms_mean'])} in the device{p99}."
    if order := _order(trace, moved):
        yield order
    if figures.get("flushes", 0.0) and "flush_ms_mean" in figures:
        yield f"{_count(figures['flushes'])} flushes took {_ms(figures['flush_ms_mean'])} each."


def _order(trace: BlockLayer, moved: float) -> str:
    """Return in which order the requests of a trial went to the device."""
    run, apart = trace.figures.get("sorted_run_requests_mean"), trace.figures.get("seek_bytes_mean")
    if run is None or apart is None:
        return ""
    waiting, depth = trace.figures.get("waiting_bios_mean", 0.0), trace.figures.get("device_depth_mean")
    lay = f"they lay {size(apart)} apart on average" + (f", {number(depth)} in the device at a time" if depth else "")
    if run < SORTED_ABOVE:
        return f"{_count(moved)} requests went there in no order to speak of (runs of {number(run)}); {lay}."
    sorted_ = f"in sorted runs of {number(run)} (random order has runs of {BY_CHANCE:g})"
    if waiting >= 1 and trace.scheduler not in {"", "none"}:
        return f"{trace.scheduler} sent {_count(moved)} on {sorted_}, with {number(waiting)} to choose from; {lay}."
    return f"{_count(moved)} requests went there {sorted_}; {lay}."


def _shortcomings(traces: list[BlockLayer]) -> Iterator[str]:
    reasons, standing_in = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for trace in traces:
        for why, trials in trace.none.items():
            reasons[why].append(f"{trace.label} in {count(trials, 'trial')}" if trace.trials else trace.label)
        if trace.own:
            standing_in[trace.own].append(trace.label)
    for why, where_not in reasons.items():
        yield f"No block trace of {'; '.join(where_not)}: {why.rstrip('.')}."
    for why, labels in standing_in.items():
        yield (
            f"{'; '.join(labels)}: these figures come from the emulated disk's own trace, which has no times in the"
            f" queue; the kernel made no block trace: {why.rstrip('.')}."
        )
    for trace in traces:
        if trace.kept:
            cut = (
                f"; in {count(trace.cut, 'trial')} the file is full or could not be written to its end"
                if trace.cut
                else ""
            )
            yield f"{trace.label}: the requests of {count(trace.kept, 'trial')} are kept, trials/*/{KEPT}{cut}."
        if trace.lost:
            yield (
                f"{trace.label}: {count(trace.lost, 'event')} of the block trace were lost, the kernel's buffer being"
                " full; these figures are of the rest."
            )


def _row(trace: BlockLayer) -> tuple[str, ...]:
    figures = trace.figures
    requests = figures.get("reads", 0.0) + figures.get("writes", 0.0)
    most = f" ({_count(figures['device_depth_max'])})" if "device_depth_max" in figures else ""
    return (
        trace.label,
        _count(requests),
        _both(trace, "queue_ms"),
        _both(trace, "device_ms"),
        _both(trace, "flush_ms"),
        size(figures["seek_bytes_mean"]).replace(" ", NO_BREAK) if "seek_bytes_mean" in figures else UNKNOWN,
        number(figures["sorted_run_requests_mean"]) if "sorted_run_requests_mean" in figures else UNKNOWN,
        f"{number(figures['device_depth_mean'])}{most}" if "device_depth_mean" in figures else UNKNOWN,
    )


def _both(trace: BlockLayer, name: str) -> str:
    mean, p99 = trace.figures.get(f"{name}_mean"), trace.figures.get(f"{name}_p99")
    if mean is None:
        return "-"
    return number(mean) if p99 is None else f"{number(mean)} ({number(p99)})"


def _ms(value: float) -> str:
    return f"{number(value)} ms" if value >= 1 else f"{number(value * 1000)} us"


def _count(value: float) -> str:
    return f"{value:,.0f}"


def size(value: float) -> str:
    """Return bytes with a unit: ``"10.1 MiB"``."""
    for unit in UNITS[:-1]:
        if value < 1024:  # noqa: PLR2004 - of bytes
            return f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:,.3g} {UNITS[-1]}"
