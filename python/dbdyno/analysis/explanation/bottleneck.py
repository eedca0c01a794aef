"""What limits a treatment, by simple rules over what was watched. METHODOLOGY.md gives the reason of each threshold."""

from dataclasses import dataclass
from typing import Literal, get_args

from dbdyno.analysis.explanation.time_parts import Figures

FULL = 0.9  # of a resource's time: from there on waiting grows at least tenfold over serving (M/M/1: 1 / (1 - .9))
NEARLY_ALL = 0.8  # of the time a device is busy: what else it does would not fill it
MOST = 0.5  # of an event's time

Resource = Literal["client", "processor", "flushes", "device"]
Part = Literal["cpu_ms", "lock_ms", "read_ms", "flush_ms", "write_ms", "rest_ms"]
Kind = Literal[Resource, "rate", Part]


@dataclass(frozen=True)
class Limit:
    """A resource that is full, or else (``full`` false) the part of an event that takes most of its time."""

    kind: Kind
    share: float  # of the resource's capacity, or of the event's time
    full: bool
    of: float = 1.0  # capacity: cores or threads
    others: float = 0.0  # of the capacity, used by other processes: at most the share; 0 where that is not known


@dataclass(frozen=True)
class Place:
    """What the figures of a treatment are to be held against."""

    cores: float | None  # of the host
    server_cores: float | None  # that the server may use, if it was confined
    client_beside: bool  # the load generator was confined to the same
    client_threads: float
    rotational: bool | None
    kept_up: bool  # with an open loop's rate


def limit(mean: Figures, place: Place) -> Limit:
    """Return what limits a treatment whose mean figures are ``mean``.

    In this order: the load generator, the processors, a device that is busy: nearly always with flushes, which go one
    at a time and so can fill any, or else a hard disk. Of a solid-state drive utilisation says only that there was
    some request, which is no limit.
    """
    if found := _processors(mean, place):
        return found
    if mean.get("busy_share", 0.0) >= FULL:
        if mean["flush_share"] >= NEARLY_ALL * mean["busy_share"]:
            return Limit("flushes", mean["flush_share"], full=True)
        if place.rotational:
            return Limit("device", mean["busy_share"], full=True)
    if place.kept_up:
        return Limit("rate", 1.0, full=False)
    most = max(get_args(Part), key=lambda name: mean.get(name, 0.0))
    return Limit(most, mean.get(most, 0.0) / mean["latency_ms"], full=False)


def _processors(mean: Figures, place: Place) -> Limit | None:
    if mean.get("client_cores", 0.0) >= FULL * place.client_threads:
        share = min(1.0, mean["client_cores"] / place.client_threads)
        return Limit("client", share, full=True, of=place.client_threads)
    confined = place.server_cores
    used = mean.get("server_cores", 0.0) + (mean.get("client_cores", 0.0) if place.client_beside else 0.0)
    if confined and used >= FULL * confined:
        return Limit("processor", min(1.0, used / confined), full=True, of=confined)
    if mean.get("host_busy_share", 0.0) >= FULL:
        others = min(mean.get("foreign_share", 0.0), mean["host_busy_share"])
        return Limit("processor", mean["host_busy_share"], full=True, of=place.cores or 0.0, others=others)
    return None
