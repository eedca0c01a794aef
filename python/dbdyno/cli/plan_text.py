"""A plan in words."""

from itertools import groupby
from typing import Any

from dbdyno.cli.ending_text import ending_text, looks_of, time_text
from dbdyno.cli.plan_touches import touched
from dbdyno.plan.plan import Plan, whole_plots
from dbdyno.stack.capabilities import Capability

BLOCKS_SHOWN = 12


def plan_as_text(plan: Plan, lacking: list[Capability]) -> str:
    """The plan for a terminal."""
    design, about = plan.design, plan.study.about
    lines = [about.title]
    if about.question:
        lines.append(about.question)
    if plan.study.scale:
        lines.append(f"at scale {plan.study.scale}")
    lines += ["", f"treatments ({len(design.treatments)}):"]
    for treatment in design.treatments:
        mark = "   (baseline)" if treatment.id == design.baseline else ""
        lines.append(f"  {treatment.id}  {treatment.label}{mark}")
    lines += ["", f"comparisons ({len(design.comparisons)}), on {design.metric}, margin {design.margin * 100:.3g} %:"]
    lines += [f"  {c.level} against {c.baseline}" for c in design.comparisons]
    if design.comparisons and design.screened:
        lines.append(f"  screened beside it, as hints: {', '.join(design.screened)}")
    hard = [factor.name for factor in design.factors if factor.hard_to_change]
    plots = f"; whole plots, between bars: {', '.join(hard)}" if hard else ""
    order = f"order from seed {design.seed}{plots}:"
    lines += ["", *([f"{ending_text(design)}, {order}"] if design.until == "blocks" else [ending_text(design), order])]
    for block in range(1, min(design.blocks, BLOCKS_SHOWN) + 1):
        lines.append(f"  {block:3d}  {_order(plan, block)}")
    if design.blocks > BLOCKS_SHOWN:
        most = "" if design.until == "blocks" else "at most "
        lines.append(f"  ... and {most}{design.blocks - BLOCKS_SHOWN} more")
    lines += ["", f"time: {time_text(plan)}"]
    lines += ["", "touches:", *(f"  {line}" for line in touched(plan))]
    for warning in plan.warnings():
        lines += ["", f"warning: {warning}"]
    if lacking:
        lines += ["", "this host can't run it:", *(f"  {one.name}: {one.detail}; {one.remedy}" for one in lacking)]
    else:
        lines += ["", "this host can run it"]
    return "".join(char if char.isprintable() or char == "\n" else "?" for char in "\n".join(lines))


def _order(plan: Plan, block: int) -> str:
    """The treatments of a block in their order, a bar between two whole plots."""
    plots = whole_plots(plan.design)
    runs = groupby((slot.treatment for slot in plan.slots(block, 1)), key=plots.__getitem__)
    return " | ".join(" ".join(treatments) for _, treatments in runs)


def plan_as_dict(plan: Plan, lacking: list[Capability]) -> dict[str, Any]:
    """The plan for a script."""
    design = plan.design
    return {
        "study": plan.study.about.title,
        "scale": plan.study.scale or None,
        "treatments": [{"id": t.id, "levels": t.levels} for t in design.treatments],
        "baseline": design.baseline,
        "comparisons": [{"baseline": c.baseline, "level": c.level} for c in design.comparisons],
        "metric": design.metric,
        "screened": design.screened,
        "margin": design.margin,
        "seed": design.seed,
        "hard_to_change": [factor.name for factor in design.factors if factor.hard_to_change],
        "until": design.until,
        "looks": list(looks_of(design)),
        "half_width": design.half_width,
        "budget_seconds": design.budget_seconds,
        "blocks": [[slot.treatment for slot in plan.slots(b, 1)] for b in range(1, design.blocks + 1)],
        "seconds": plan.seconds(design.blocks),
        "touches": touched(plan),
        "warnings": list(plan.warnings()),
        "lacking": [{"name": one.name, "detail": one.detail, "remedy": one.remedy} for one in lacking],
    }
