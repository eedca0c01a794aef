"""What the results of a simulation must be read with."""

from collections.abc import Mapping, Sequence
from typing import Any

from dbdyno.model.wording import count

LATE_NS = 100_000_000  # from which a request of an open replay came notably late
BACKLOG_S = 1.0
LINES_NAMED = 3


def warnings(outcomes: Sequence[Mapping[str, Any]], replay: str) -> list[str]:
    """Return what is wrong with the load or unlike its record, a sentence each."""
    loads = [outcome["load"] for outcome in outcomes]
    found = []
    if replay == "open":
        late = [
            outcome
            for outcome in outcomes
            if outcome["load"]["late_ns_max"] > LATE_NS
            or max(outcome[way]["latency"]["p50_ns"] for way in ("reads", "writes")) > BACKLOG_S * 1e9
        ]
        if late:
            found.append(
                f"The device can't keep up with the recorded times in {len(late)} of {len(outcomes)} results: latency "
                "there says how long the queue grew, not how fast the device is. Replay closed, or slower by --speed."
            )
    if replay == "closed" and loads[0]["without_wait"]:
        found.append(
            f"{loads[0]['without_wait']:,} requests have no recorded end: what they waited for is guessed from gaps."
        )
    return found + (_of_trace(loads[0]["findings"]) if replay else [])


def _of_trace(findings: Mapping[str, Any]) -> list[str]:
    found = []
    if findings["damaged"]:
        named = "; ".join(f"line {one['line']}: {one['why']}" for one in findings["first_damaged"][:LINES_NAMED])
        lines = count(findings["damaged"], "line")
        found.append(f"{lines} of the trace can't be read and left out: {named}.")
    if findings["backwards"]:
        most = findings["backwards_ns_max"] / 1e6
        found.append(f"Time runs backwards at {findings['backwards']:,} requests, by {most:,.3g} ms at most.")
    if findings["beyond_device"]:
        beyond = f"{findings['beyond_device']:,} requests end beyond the device and were left out"
        found.append(f"{beyond}; give --size, or --fold.")
    if findings.get("folded"):  # results that were kept before traces were folded have none
        found.append(
            f"{findings['folded']:,} requests end beyond the device and were folded onto it: they are nearer to others "
            "than they were, and may meet what was written elsewhere."
        )
    found += [f"{note[:1].upper()}{note[1:]}." for note in findings.get("notes", ())]
    if findings.get("text_before"):
        found.append(f"{count(findings['text_before'], 'line')} of text before the first event, passed over.")
    if findings["passed_over"]:
        kinds = ", ".join(f"{name} ({times:,})" for name, times in list(findings["passed_over"].items())[:6])
        found.append(f"What is no read, write or flush was left out: {kinds}.")
    return found
