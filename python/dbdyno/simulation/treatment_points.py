"""The device and queue of a treatment of a measured run, as the fields of a simulated point."""

from typing import Any

from dbdyno._native import device_models
from dbdyno.model.quantity import size_bytes
from dbdyno.model.treatment import Treatment
from dbdyno.store.records import Run, Trial
from dbdyno.study.kernels import kernels_by_name

KERNEL = "6.x"
LOOP_TAGS = 128  # requests that the loop device of an emulated disk has at the disk at once (drivers/block/loop.c)
TUNABLES = "queue.iosched"
# Else whatever differs from the recorded treatment would have made another load of it.
SIMULATED = {("stack", "device"), ("stack", "scheduler"), ("stack", "size"), ("queue", "nr_requests")}


def point_of(run: Run, treatment: Treatment, recorded: tuple[Treatment, Trial], own: Trial | None) -> dict[str, Any]:
    """Return its fields: as read back in a trial of its ``own``, else as the study gives them.

    Raises ``ValueError`` with what can't be simulated.
    """
    source, trial = recorded
    for factor in run.design.factors:
        levels = [one.levels.get(factor.name, "") for one in (source, treatment)]
        for section, name in factor.differing(*levels):
            if (section, name) not in SIMULATED and section != TUNABLES:
                raise ValueError(f"{section}.{name} is no setting of a simulated device or queue")
    queue = own.observed.get("queue", {}) if own else {}
    observed = (own or trial).observed.get("device", {})
    if observed.get("kind") != "emulated":
        raise ValueError("a device that is no emulated drive has no model")
    device = str(_given(run, treatment, "stack", "device") or observed.get("model"))
    size = _given(run, treatment, "stack", "size")
    bytes_ = observed["size_bytes"] if own or size is None else size_bytes(str(size))
    device_models(device, bytes_)
    scheduler = queue.get("scheduler") or _given(run, treatment, "stack", "scheduler")
    requests = queue.get("nr_requests") or _given(run, treatment, "queue", "nr_requests")
    return {
        "device": device, "size_bytes": bytes_, "kernel": KERNEL, "scheduler": scheduler, "queue_depth": LOOP_TAGS,
        "nr_requests": None if requests is None else int(requests),
        "tunables": _tunables(run, treatment, scheduler),
    }  # fmt: skip


def _tunables(run: Run, treatment: Treatment, scheduler: str | None) -> dict[str, int]:
    known = kernels_by_name()[KERNEL].schedulers
    if scheduler is not None and scheduler not in known:
        raise ValueError(
            f"scheduler {scheduler} is none of the simulated kernel {KERNEL}, which has {', '.join(known)}"
        )
    own = known[scheduler or next(iter(known))]
    found = {}
    for name in _named_tunables(run):
        value = _given(run, treatment, TUNABLES, name)
        if value is None:
            continue
        if name not in own:
            raise ValueError(f"{TUNABLES}.{name} is not simulated")
        found[name] = int(value)
        if not own[name].least <= found[name] <= own[name].most:
            raise ValueError(f"{TUNABLES}.{name} {value} is outside of {own[name].least} to {own[name].most}")
    return found


def _named_tunables(run: Run) -> list[str]:
    names = list(run.study.get("queue", {}).get("iosched", {}))
    for factor in run.design.factors:
        given = [field for level in (factor.gives or {}).values() for field in level]
        fields = given or [f"{factor.section}.{factor.name}"]
        names += [field.removeprefix(f"{TUNABLES}.") for field in fields if field.startswith(f"{TUNABLES}.")]
    return list(dict.fromkeys(names))


def _given(run: Run, treatment: Treatment, section: str, name: str) -> Any:  # noqa: ANN401 - what a study holds
    """Return what the study gives a treatment; None where it says nothing."""
    for factor in run.design.factors:
        level = treatment.levels.get(factor.name, "")
        given = (factor.gives or {}).get(level, {}).get(f"{section}.{name}")
        if given is not None:
            return given
        if not factor.gives and (factor.section, factor.name) == (section, name):
            return level
    body: Any = run.study
    for part in section.split("."):
        body = body.get(part, {})
    value = body.get(name)
    return None if isinstance(value, list | dict) else value
