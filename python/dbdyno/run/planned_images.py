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


def images_text(images: list[list[str]]) -> str:
    """Return ``"2 images: t1, t3; t2, t4"``, or that all begin with the same."""
    if len(images) == 1:
        return "1 image for all treatments"
    return f"{count(len(images), 'image')}: {'; '.join(', '.join(each) for each in images)}"
