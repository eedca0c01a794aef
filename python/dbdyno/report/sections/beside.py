"""What ran beside the judged load, such as a backup: its own figures, and the judged load while it ran."""

import math
from collections.abc import Iterator, Sequence

from dbdyno.analysis.beside import PARTS, BesideSummary
from dbdyno.model.wording import count, number, number_or_dash
from dbdyno.report.document import Abridged, Block, Paragraph, Section, Table, bullets
from dbdyno.report.source import Source, finite_fields

TITLE = "Beside the load"
_FIGURES = {  # as it is stored -> the heading of its column
    "megabytes": "MB",
    "megabytes_per_second": "MB/s",
    "rows_per_second": "rows/s",
    "events_per_second": "events/s",
    "achieved_ratio": "of its rate",
    "latency_ms_p99": "its p99 ms",
    "stall_seconds_max": "longest stall s",
    "figure_more": "figure",
    "figure_less": "figure",
    "errors": "errors",
}
_HEADINGS = ("treatment", "beside", "began s", "ran s (min to max)", "done in time")
_PART_HEADINGS = {
    "events_per_second": "events/s",
    "latency_ms_mean": "mean ms",
    "latency_ms_p99": "p99 ms of .1 s",
    "latency_ms_max": "max ms",
}
NOTE = (
    "A load beside is not judged. It runs on the host of the server, so its processor time is taken from"
    " the same processors: that is part of its cost, and no interference. Per query, the server's CPU and bytes hold"
    " what the server did for it. The second table splits each trial by time: what was read or written before differs"
    " too, so its cost is what the comparison of treatments says. An event belongs to the tenth of a second in which it"
    " ended; 'p99 ms of .1 s' is the median of their 99th percentiles."
)


def section(source: Source) -> Section | None:
    """Return a row for each load beside of each treatment; None where there is none."""
    loads = source.analysis.loads_beside
    if not loads:
        return None
    shown: tuple[Block, ...] = (
        *bullets(list(_stopped_lines(loads))),
        _own_table(loads),
        _parts_table(loads),
        Abridged((Paragraph(NOTE, "soft"),)),
    )
    return Section("beside", TITLE, shown, data={"beside": [finite_fields(load) for load in loads]})


def _stopped_lines(loads: Sequence[BesideSummary]) -> Iterator[str]:
    """Return which of them did not come to an end."""
    every = [name for name in dict.fromkeys(load.name for load in loads) if _is_always_stopped(name, loads)]
    for name in every:
        yield f"{name} still ran when measuring ended in every trial; its figures are of what it had done until then."
    for load in loads:
        if load.stopped and load.name not in every:
            trials = f"{load.stopped} of {count(load.trials, 'trial')}"
            yield (
                f"{load.label}: {load.name} still ran when measuring ended in {trials}, and was stopped there; its"
                " figures are of what it had done until then."
            )


def _is_always_stopped(name: str, loads: Sequence[BesideSummary]) -> bool:
    """Return whether a load beside several treatments came to an end in none of their trials."""
    own = [load for load in loads if load.name == name]
    return len(own) > 1 and all(load.stopped == load.trials for load in own)


def _own_table(loads: Sequence[BesideSummary]) -> Table:
    names = [name for name in _FIGURES if any(name in load.figures for load in loads)]
    rows = tuple(
        (
            load.label,
            f"{load.name} ({load.kind})",
            number(load.began_s),
            f"{number(load.seconds_mean)} ({number(load.seconds_min)} to {number(load.seconds_max)})",
            f"{load.trials - load.stopped} of {load.trials}",
            *(number_or_dash(load.figures.get(name, math.nan)) for name in names),
            number_or_dash(load.figures.get("seconds_user", math.nan) + load.figures.get("seconds_sys", math.nan)),
        )
        for load in loads
    )
    headings = (*_HEADINGS, *(_FIGURES[name] for name in names), "its CPU s")
    return Table("What ran beside the load", headings, rows)


def _parts_table(loads: Sequence[BesideSummary]) -> Table:
    rows = tuple(
        (load.label, which, *(number_or_dash(part.get(name, math.nan)) for name in PARTS))
        for load in loads
        for which, part in ((f"while {load.name} ran", load.during), (f"while {load.name} did not run", load.outside))
    )
    return Table("The judged load meanwhile", ("treatment", "", *_PART_HEADINGS.values()), rows)
