"""The hosts that offered the load: what each did, whether they started as one, what held them up."""

import math
from collections.abc import Callable
from dataclasses import asdict

from dbdyno.analysis.client_hosts import ClientHost, LoadFromHosts
from dbdyno.model.wording import number, percent
from dbdyno.report.amounts import duration
from dbdyno.report.client_hosts import limited_words, start_sentence
from dbdyno.report.document import Abridged, Paragraph, Section, Table
from dbdyno.report.source import Source

TITLE = "Load from other hosts"
HEADINGS = ("treatment", "host", "clients", "queries/s", "p99", "moves p99 of all", "round trip", "sent again", "limit")
NOTE = (
    "Medians over trials, counted while all hosts were at it. The 99th percentile of a treatment is that of all hosts'"
    " events together; how far a host moves it is by how much it is above that of all others. The round trip is the"
    " least of the load's own connections, as the kernel measures it."
)


def section(source: Source) -> Section | None:
    """Return a row for each host of each treatment; None where the load came from this machine."""
    loads = source.analysis.client_hosts
    if not loads:
        return None
    rows = tuple(_row(load, host) for load in loads for host in load.hosts)
    shown = (Paragraph(start_sentence(loads)), Table(TITLE, HEADINGS, rows), Abridged((Paragraph(NOTE, "soft"),)))
    return Section("client_hosts", TITLE, shown, data={"client_hosts": [_values(load) for load in loads]})


def _row(load: LoadFromHosts, host: ClientHost) -> tuple[str, ...]:
    return (
        load.label,
        host.name,
        str(host.clients),
        number(host.queries_per_second),
        _known(host.latency_ms_p99, duration),
        _known(host.moved, percent),
        _known(host.rtt_ms_min, duration),
        str(host.retransmits),
        limited_words(host),
    )


def _known(value: float, form: Callable[[float], str]) -> str:
    return form(value) if math.isfinite(value) else "unknown"


def _values(load: LoadFromHosts) -> dict[str, object]:
    """Return the same for programs."""
    hosts = [
        {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in one.items()}
        for one in map(asdict, load.hosts)
    ]
    return {"treatment": load.label, "started_within_us": load.started_within_us, "hosts": hosts}
