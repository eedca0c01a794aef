"""Loads from other hosts, in words."""

import math
from collections.abc import Iterator, Sequence

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.client_hosts import ClientHost, Limited, LoadFromHosts
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.model.wording import count, listed, number, percent
from dbdyno.report.amounts import duration, share

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
                    f"{load.label}: without client {host.name} the 99th percentile is another:"
                    f" it moves that of all hosts by {percent(host.moved)}."
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
    load = next((one for one in analysis.client_hosts if one.id == verdict.level_id), None)
    trips = [host for host in load.hosts if math.isfinite(host.rtt_ms_min)] if load else []
    if not trips:
        return ""
    least = listed([f"{duration(host.rtt_ms_min)} from {host.name}" for host in trips])
    again = sum(host.retransmits for host in trips)
    return f"A query's round trip through the network takes at least {least}; {_sent_again(again)}."


def _sent_again(segments: int) -> str:
    return f"{count(segments, 'segment')} had to be sent again" if segments else "no segment had to be sent again"


def limited_words(host: ClientHost) -> str:
    """Return by what a host was the limit, for a table."""
    return ", ".join(limit.by for limit in host.limits) or "-"
