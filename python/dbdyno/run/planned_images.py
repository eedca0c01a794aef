"""How many images a plan needs: treatments of the same key share one."""

from dbdyno.model.wording import count
from dbdyno.plan.plan import Plan
from dbdyno.stack.kinds.catalogue import KINDS


def planned_images(plan: Plan) -> list[list[str]]:
    """Return the treatments by the image that they begin with, in the plan's order; none of an external server."""
    found: dict[str, list[str]] = {}
    for id_, spec in plan.specs.items():
        kind = KINDS[spec.stack.kind]
        if kind.IS_RAISED:
            found.setdefault(f"{spec.stack.kind} {kind.planned_key(spec)}", []).append(id_)
    return list(found.values())


def prepared_lines(plan: Plan) -> list[str]:
    """Return ``["", "prepared data: 2 images: t1, t3; t2, t4"]``; nothing where nothing is prepared."""
    images = planned_images(plan)
    if len(images) == 1:
        return ["", "prepared data: 1 image for all treatments"]
    each = "; ".join(", ".join(treatments) for treatments in images)
    return ["", f"prepared data: {count(len(images), 'image')}: {each}"] if images else []
