"""What the disks below the data said of their health: unknown is said to be unknown."""

from collections.abc import Mapping
from typing import Any

from dbdyno.store.records import Run


def smart_lines(run: Run) -> list[str]:
    """Return one sentence per disk: its figures before the first trial and after the last, or why there are none."""
    first: dict[str, Any] = {}
    last: dict[str, Any] = {}
    for trial in run.trials:
        for disk, health in trial.smart.items():
            if isinstance(health, Mapping):
                first.setdefault(disk, health.get("before"))
                last[disk] = health.get("after")
    return [f"SMART of {disk}: {_changes(before, last[disk])}." for disk, before in sorted(first.items())]


def _changes(before: object, after: object) -> str:
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        return str(before if not isinstance(before, Mapping) else after)
    changed = [
        f"{name.replace('_', ' ')} {_text(before.get(name))} to {_text(value)}"
        for name, value in after.items()
        if before.get(name) != value
    ]
    same = [f"{name.replace('_', ' ')} {_text(value)}" for name, value in after.items() if before.get(name) == value]
    return "; ".join(
        part for part in (", ".join(changed), f"as before: {', '.join(same)}" if same else "") if part
    ) or "it reported nothing"  # fmt: skip


def _text(value: object) -> str:
    return {True: "yes", False: "no", None: "unknown"}[value] if isinstance(value, bool | None) else str(value)
