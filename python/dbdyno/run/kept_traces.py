"""``run --keep-traces``: which plans allow it."""

from dataclasses import replace

from dbdyno.errors import UserError
from dbdyno.plan.plan import Plan

WITHOUT = {"here": "a folder", "memory": "memory", "external": "an external server", "simulated": "a simulation"}


def keeping_traces(plan: Plan) -> Plan:
    """The plan with its block traces kept. Raises ``UserError`` where a treatment has no block device, or two."""
    for treatment in plan.design.tried:
        stack = plan.specs[treatment.id].stack
        if stack.kind in WITHOUT:
            raise UserError(
                f"--keep-traces: {treatment.label} stands on {WITHOUT[stack.kind]}, not on a block device of its own; "
                'leave it out, or give the study a device, such as device = "ssd-sata"'
            )
        if stack.devices > 1:
            raise UserError(f"--keep-traces: {treatment.label} stands on {stack.devices} devices; one can be traced")
    return replace(plan, keep_traces=True)
