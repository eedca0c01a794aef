"""The fast caches of the emulated drives that a plan uses: what there is at this size beside what the drive has."""

from collections.abc import Iterator
from typing import Any

from dbdyno._native import device_models
from dbdyno.model.wording import drive_bytes
from dbdyno.plan.plan import Plan


def fast_caches(plan: Plan) -> Iterator[dict[str, Any]]:
    """Return each drive with a fast cache once: its name, and the bytes that its cache has here and on the drive."""
    stacks = [spec.stack for spec in plan.specs.values()]
    for device, size in dict.fromkeys((stack.model, stack.size) for stack in stacks if stack.model):
        drive = device_models(device, size)[0]
        if (here := drive.get("fast_cache_bytes")) is not None:
            yield {"device": device, "bytes": here, "drive_bytes": drive.get("drive_fast_cache_bytes")}


def fast_cache_lines(plan: Plan) -> list[str]:
    """Return them in words, a line each."""
    return [
        f"{one['device']}: {drive_bytes(one['bytes'])}"
        + ("" if one["bytes"] == one["drive_bytes"] else f"; the drive has {drive_bytes(one['drive_bytes'])}")
        for one in fast_caches(plan)
    ]
