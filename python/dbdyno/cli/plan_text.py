"""A plan in words."""

from typing import Any

from dbdyno.plan.identity import image_key
from dbdyno.plan.plan import Plan, erased_devices
from dbdyno.stack.capabilities import Capability
from dbdyno.study.drives import is_emulated
from dbdyno.study.units import format_bytes, format_seconds

BLOCKS_SHOWN = 12


def plan_as_text(plan: Plan, lacking: list[Capability]) -> str:
    """The plan for a terminal."""
    design, about = plan.design, plan.study.about
    lines = [about.title]
    if about.question:
        lines.append(about.question)
    lines += ["", f"treatments ({len(design.treatments)}):"]
    for treatment in design.treatments:
        mark = "   (baseline)" if treatment.id == design.baseline else ""
        lines.append(f"  {treatment.id}  {treatment.label}{mark}")
    lines += ["", f"comparisons ({len(design.comparisons)}), on {design.metric}, margin {design.margin * 100:.3g} %:"]
    lines += [f"  {c.level} against {c.baseline}" for c in design.comparisons]
    lines += ["", f"blocks ({design.blocks}), order from seed {design.seed}:"]
    for block in range(1, min(design.blocks, BLOCKS_SHOWN) + 1):
        lines.append(f"  {block:3d}  " + " ".join(slot.treatment for slot in plan.slots(block, 1)))
    if design.blocks > BLOCKS_SHOWN:
        lines.append(f"  ... and {design.blocks - BLOCKS_SHOWN} more")
    trials = design.blocks * len(design.treatments)
    lines += ["", f"time: {trials} trials, about {format_seconds(plan.seconds_per_trial() * trials)}{_basis(plan)}"]
    lines += ["", "touches:", *(f"  {line}" for line in touched(plan))]
    for warning in plan.warnings():
        lines += ["", f"warning: {warning}"]
    if lacking:
        lines += ["", "this host can't run it:", *(f"  {one.name}: {one.detail}; {one.remedy}" for one in lacking)]
    else:
        lines += ["", "this host can run it"]
    return "".join(char if char.isprintable() or char == "\n" else "?" for char in "\n".join(lines))


def plan_as_dict(plan: Plan, lacking: list[Capability]) -> dict[str, Any]:
    """The plan for a script."""
    design = plan.design
    return {
        "study": plan.study.about.title,
        "treatments": [{"id": t.id, "levels": t.levels} for t in design.treatments],
        "baseline": design.baseline,
        "comparisons": [{"baseline": c.baseline, "level": c.level} for c in design.comparisons],
        "metric": design.metric,
        "margin": design.margin,
        "seed": design.seed,
        "blocks": [[slot.treatment for slot in plan.slots(b, 1)] for b in range(1, design.blocks + 1)],
        "seconds": plan.seconds_per_trial() * design.blocks * len(design.treatments),
        "touches": touched(plan),
        "warnings": list(plan.warnings()),
        "lacking": [{"name": one.name, "detail": one.detail, "remedy": one.remedy} for one in lacking],
    }


def touched(plan: Plan) -> list[str]:
    """What will be created, changed or erased on the host, a line each."""
    specs = list(plan.specs.values())
    erased = erased_devices(plan)
    disks = {
        image_key(spec, spec.stack.server): spec.stack.size or 0 for spec in specs if is_emulated(spec.stack.device)
    }
    lines = [f"ERASED: {device}, all that is on it" for device in erased]
    lines += [f"changed: queue settings of {device}, put back after each trial" for device in erased]
    if disks:
        sizes = ", ".join(format_bytes(size) for size in sorted(disks.values()))
        lines.append(
            f"created: {len(disks)} emulated disk{'s' * (len(disks) > 1)} in memory ({sizes}); gone afterwards"
        )
    if any(spec.stack.memory for spec in specs):
        lines.append("created: a memory control group; gone afterwards")
    servers = ", ".join(dict.fromkeys(spec.stack.server for spec in specs))
    tcp = "TCP on 127.0.0.1 only" if any("port" in spec.server.settings for spec in specs) else "no TCP"
    lines.append(f"started: {servers} with data, socket and user of its own, {tcp}; ended afterwards")
    if not erased:
        lines.append("erased: nothing")
    return lines


def _basis(plan: Plan) -> str:
    loads = [spec.workload for spec in plan.specs.values()]
    if all(load.seconds_bound for load in loads):
        return ""
    return f" (a guess: the load is bounded by {loads[0].AMOUNT or 'its data'}, not by time)"
