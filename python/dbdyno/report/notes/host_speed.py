"""What the host's own speed, timed beside every trial, explains of what trials differ by."""

from typing import Any

from dbdyno.analysis.verdict.figures import HostSpeed
from dbdyno.model.wording import listed, percent

NAMES = {"work_wall_ns": "a fixed piece of CPU work", "flush_ns": "a durable write to another disk"}
LEAST = 0.1  # r below which nothing is worth saying of it


def host_speed_lines(found: HostSpeed | None) -> list[str]:
    """Return one sentence; nothing where it was not measured."""
    if found is None:
        return []
    timed = f"Timed just before and after each load: {listed([NAMES[name] for name in found.covariates])}."
    if not found.used:
        return [f"{timed} Treatments differ in it, so it is not the host's own, and is not used."]
    if found.r < LEAST:
        return [f"{timed} It explains nothing of what trials differ by (r = {found.r:.2f})."]
    saved = percent(found.saved, sign=False)
    explained = f"It explains what trials of a block differ by with r = {found.r:.2f}, and that is taken off"
    return [f"{timed} {explained}: about {saved} fewer blocks are needed for the same intervals."]


def host_speed_json(found: HostSpeed | None) -> dict[str, Any] | None:
    """Return the same for programs."""
    return {"covariates": found.covariates, "used": found.used, "r": found.r, "saved": found.saved} if found else None
