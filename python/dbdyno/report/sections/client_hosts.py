"""Loads from other hosts, in words."""

import math
from collections.abc import Callable, Iterator, Sequence

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.client_hosts import ClientHostShare, Limited, LoadFromHosts
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.model.wording import count, listed, number, percent
from dbdyno.report.document import Abridged, Paragraph, Section, Table
from dbdyno.report.reasons import duration, share
from dbdyno.report.source import Source, finite_fields

REMEDY = "give it more processors, or share the load among more hosts"


def limit_text(limit: Limited) -> str:
    """Return ``"its load thread used 93 % of a core"``."""
    match limit.by:
        case "processor":
            return f"its load thread used {share(limit.value)} of a core"
        case "run queue":
            return f"its load thread waited for a processor during {share(limit.value)} of the time"
        case "late starts":
            return f"1 % of what was due started {duration(limit.value)} late or more"
        case "network interface":
            return f"its network interface was at {share(limit.value)} of its speed"


def limited_lines(loads: Sequence[LoadFromHosts]) -> Iterator[str]:
    """Return a warning for each host that was the limit of a treatment, or that makes the tail."""
    for load in loads:
        for host in load.hosts:
            if host.limits:
                why = listed([limit_text(limit) for limit in host.limits])
                most = max(limit.trials for limit in host.limits)
                trials = f"in {most} of {count(load.trials, 'trial')}"
                yield f"{load.label}: limited by client {host.name}: {why} ({trials}); {REMEDY}."
            if host.moves_the_tail:
                yield (
                    f"{load.label}: without client {host.name} the 99th percentile differs: this client moves that"
                    f" of all hosts by {percent(host.moved)}."
                )


def start_sentence(loads: Sequence[LoadFromHosts]) -> str:
    """Return within what all hosts started."""
    within = max(load.started_within_us for load in loads)
    bound = max(host.clock_bound_us for load in loads for host in load.hosts)
    return (
        f"The hosts started within {number(within)} us of one moment in every trial, of which up to {number(bound)} us"
        " are how far their clocks are known."
    )


def network_sentence(verdict: Finding, analysis: Analysis) -> str:
    """Return what the network has of a query's time, with the verdict's level; empty where that is not known."""
    load = next((load for load in analysis.client_hosts if load.id == verdict.level_id), None)
    trips = [host for host in load.hosts if math.isfinite(host.rtt_ms_min)] if load else []
    if not trips:
        return ""
    least = listed([f"{duration(host.rtt_ms_min)} from {host.name}" for host in trips])
    again = sum(host.retransmits for host in trips)
    return f"A query's round trip through the network takes at least {least}; {_sent_again(again)}."


def _sent_again(segments: int) -> str:
    return f"{count(segments, 'segment')} had to be sent again" if segments else "no segment had to be sent again"


def limited_words(host: ClientHostShare) -> str:
    """Return by what a host was the limit, for a table."""
    return ", ".join(limit.by for limit in host.limits) or "-"


# The hosts that offered the load: what each did, whether they started as one, what held them up.


TITLE = "Load from other hosts"
HEADINGS = ("treatment", "host", "clients", "queries/s", "p99", "moves p99 of all", "round trip", "sent again", "limit")
NOTE = (
    "Medians over trials, counted while all hosts offered load. The 99th percentile of a treatment is that of the"
    " events of all hosts together; how far a host moves it is by how much it is above that of all others. The round"
    " trip is the least of the load's own connections, as the kernel measures it."
)


def section(source: Source) -> Section | None:
    """Return a row for each host of each treatment; None where the load came from this machine."""
    loads = source.analysis.client_hosts
    if not loads:
        return None
    rows = tuple(_row(load, host) for load in loads for host in load.hosts)
    shown = (Paragraph(start_sentence(loads)), Table(TITLE, HEADINGS, rows), Abridged((Paragraph(NOTE, "soft"),)))
    return Section("client_hosts", TITLE, shown, data={"client_hosts": [_values(load) for load in loads]})


def _row(load: LoadFromHosts, host: ClientHostShare) -> tuple[str, ...]:
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
    """Return what each client host did as values."""
    hosts = [finite_fields(host) for host in load.hosts]
    return {"treatment": load.label, "started_within_us": load.started_within_us, "hosts": hosts}
