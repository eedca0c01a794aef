"""Metrics that no verdict can come from under a load, as far as that can be foreseen."""

from collections.abc import Iterable

from dbdyno.study.schema import TrialSpec
from dbdyno.study.tools import BonnieSection, FioSection
from dbdyno.study.workload_section import WorkloadSection


def why_metric_is_useless(metric: str, specs: Iterable[TrialSpec]) -> str:
    """Return why ``metric`` can't be had, or is the same whatever is measured, and a remedy; empty if it will do."""
    for spec in specs:
        load = spec.workload
        if metric == "achieved_ratio" and not getattr(load, "rate", 0):
            return "there is no offered rate to compare with; give workload.rate, or judge by queries_per_second"
        if metric == "seconds_real" and load.seconds_bound:
            return "the time is given by workload.duration; give an amount instead, or judge by queries_per_second"
        if metric == "errors" and getattr(load, "ignore_errors", "none") == "none":
            return "a trial with an error fails; give workload.ignore_errors, or judge by another metric"
        if why := _not_reported(metric, load):
            return why
        if metric == "reconnects":
            return "a trial that loses a connection fails, so there are none; judge by another metric"
    return ""


def _not_reported(metric: str, load: WorkloadSection) -> str:
    """Whether the program that offers the load is known not to report this figure."""
    has_orders = metric != "new_orders_per_minute" or load.metric == metric
    if (load.REPORTS is None and has_orders) or metric in (load.REPORTS or ()):
        return ""
    return f"{load.kind} does not report it; judge by {load.metric}"


def cost_warning(specs: Iterable[TrialSpec]) -> str:
    """What of ``[cost]`` will stay unknown, and why; empty if nothing need be."""
    paced = any(getattr(spec.workload, name, 0) for spec in specs for name in ("rate", "think_time", "speed"))
    if not paced:
        return ""
    return (
        "what a query costs, sets for a demand and the break-even will be unknown of treatments that keep up: the load "
        "asks for a rate of its own, by rate, think_time or a log's times, which does not show what they can do at most"
    )


def page_cache_warning(spec: TrialSpec) -> str:
    """Return that a program may read from memory what it was to read from the disk; empty if it won't."""
    load, memory = spec.workload, spec.stack.memory
    buffered = isinstance(load, BonnieSection) or (isinstance(load, FioSection) and not load.job and not load.direct)
    size = load.size_bytes if isinstance(load, FioSection) else getattr(load, "size", 0)
    if not buffered or (memory is not None and memory < size):
        return ""
    return f"the page cache may hold all that {load.kind} works on: give stack.memory, less than workload.size"
