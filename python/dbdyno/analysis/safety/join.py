"""A crash run beside a speed run of the same treatments."""

from dataclasses import replace

from dbdyno.analysis.refused import RefusedError
from dbdyno.analysis.safety.by_host import ByHost
from dbdyno.analysis.safety.judge import CrashSafety, crash_safety
from dbdyno.model.treatment import Treatment
from dbdyno.store.records import Run


def joined(speed: Run, crash: Run) -> CrashSafety:
    """Return the crash run's safety by the ids of the speed run's treatments, in that one's order.

    Treatments are the same where their labels are, the order of factors aside. Raises ``RefusedError`` where one of the
    speed run is not in the crash run, or where that one has no cuts.
    """
    found = crash_safety(crash)
    if found is None:
        raise RefusedError("no cuts", title=crash.title)
    ids = {_levels(one): one.id for one in crash.design.treatments}
    lacking = [one.label for one in speed.design.treatments if _levels(one) not in ids]
    if lacking:
        theirs = [one.label for one in crash.design.treatments]
        raise RefusedError("other treatments", lacking=lacking, theirs=theirs, title=crash.title)
    by_id = {one.id: one for one in found.treatments}
    ours = {ids[_levels(one)]: one.id for one in speed.design.treatments}
    control = found.control
    # A control that is none of the treatments keeps its id.
    ids_now = ours | ({control.id: control.id} if control and not control.compared else {})
    return replace(
        found,
        treatments=[replace(by_id[ids[_levels(one)]], id=one.id, label=one.label) for one in speed.design.treatments],
        differences=[
            replace(one, level_id=ours[one.level_id], baseline_id=ours[one.baseline_id])
            for one in found.differences
            if one.level_id in ours and one.baseline_id in ours
        ],
        by_host=tuple(_renamed(one, ids_now[one.treatment]) for one in found.by_host if one.treatment in ids_now),
    )


def _renamed(one: ByHost, id_: str) -> ByHost:
    return ByHost(id_, tuple(replace(on, treatment=id_) for on in one.hosts))


def _levels(treatment: Treatment) -> frozenset[tuple[str, str]]:
    return frozenset(treatment.levels.items())
