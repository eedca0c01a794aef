"""A plan in words."""

from collections.abc import Iterator
from typing import Any

from dbdyno.cli.likely_blocks import likely_blocks_json, likely_blocks_text
from dbdyno.cli.plan_crash_text import comparisons_title, crash_as_dict, crash_lines, treatment_lines
from dbdyno.cli.plan_order_text import blocks_as_dict, hosts_lines, order_lines
from dbdyno.cli.plan_servers_text import servers_warnings
from dbdyno.cli.plan_touches import touched
from dbdyno.cli.stop_rule_text import looks_of, time_text
from dbdyno.model.printable import printable
from dbdyno.plan.fast_caches import fast_cache_lines, fast_caches
from dbdyno.plan.plan import Plan
from dbdyno.run.planned_images import planned_images, prepared_lines
from dbdyno.servers.contract import Taken
from dbdyno.stack.capabilities import Capability


def plan_as_text(plan: Plan, needs: list[Capability]) -> str:
    """The plan for a terminal."""
    lacking = [one for one in needs if not one.ok]
    design, about = plan.design, plan.study.about
    lines = [f"{about.title} (simulated)" if plan.is_simulated else about.title]
    if about.question:
        lines.append(about.question)
    if plan.study.scale:
        lines.append(f"at scale {plan.study.scale}")
    lines += ["", *treatment_lines(plan), *_named_levels(plan), *crash_lines(plan)]
    lines += ["", comparisons_title(plan), *(f"  {c.level} against {c.baseline}" for c in design.comparisons)]
    if design.comparisons and design.secondary_metrics and not plan.study.crash:
        lines.append(f"  secondary metrics (exploratory): {', '.join(design.secondary_metrics)}")
    lines += ["", *order_lines(plan)]
    if likely := likely_blocks_text(design):
        lines.append(likely)
    if caches := fast_cache_lines(plan):
        lines += ["", "fast caches, which writes fill:", *(f"  {line}" for line in caches)]
    lines += [
        *prepared_lines(plan),
        "",
        f"time: {time_text(plan)}",
        "",
        "touches, on each host:" if design.fleet else "touches:",
        *(f"  {line}" for line in touched(plan, needs)),
    ]
    otherwise = [one for one in needs if one.taken and one.ok]
    if otherwise:
        lines += ["", "settings that the server takes otherwise than written:", *(f"  {one.said}" for one in otherwise)]
    for warning in (*plan.warnings(), *servers_warnings(plan), *_not_granted(otherwise)):
        lines += ["", f"warning: {warning}"]
    if design.fleet:
        lines += ["", *hosts_lines(needs)]
    elif lacking:
        lines += ["", "this host can't run it:", *(f"  {one.said}" for one in lacking)]
    else:
        lines += ["", f"this host can run it{', as any can: it is simulated' * plan.is_simulated}"]
    return printable("\n".join(lines), keep="\n")


def _named_levels(plan: Plan) -> list[str]:
    given = [["", f"{one.name}:", *(f"  {said}" for said in one.said())] for one in plan.design.factors if one.gives]
    return [line for lines in given for line in lines]


def _not_granted(needs: list[Capability]) -> Iterator[str]:
    """Yield one for each setting that a trial would have in name only."""
    for one in needs:
        if one.taken and one.taken.how == "not granted":
            asked = str(one.taken.asked).lower()
            yield f"this host does not grant {one.taken.name} = {asked}: what is measured is the server without it"


def _setting_as_dict(one: Capability, taken: Taken) -> dict[str, Any]:
    told = {"setting": taken.name, "asked": taken.asked, "got": taken.got, "how": taken.how, "said": taken.said}
    return {"place": one.name, **told, "taken": taken.holds}


def plan_as_dict(plan: Plan, needs: list[Capability]) -> dict[str, Any]:
    """The plan for a script."""
    design = plan.design
    return {
        "study": plan.study.about.title,
        "scale": plan.study.scale or None,
        "simulated": plan.is_simulated,
        "treatments": [{"id": t.id, "levels": t.levels} for t in design.treatments],
        "levels": {factor.name: factor.gives for factor in design.factors if factor.gives},
        "baseline": design.baseline,
        "comparisons": [{"baseline": c.baseline, "level": c.level} for c in design.comparisons],
        "metric": design.metric,
        "screened": design.secondary_metrics,
        "margin": design.margin,
        "likely_blocks": likely_blocks_json(design),
        **crash_as_dict(plan),
        "seed": design.seed,
        "seed_is_drawn": plan.seed_is_drawn,
        "settle": design.settle or None,
        "hard_to_change": [factor.name for factor in design.factors if factor.hard_to_change],
        "until": design.until,
        "looks": list(looks_of(design)),
        "half_width": design.half_width,
        "budget_seconds": design.budget_seconds,
        **blocks_as_dict(plan),
        "seconds": plan.seconds(design.blocks),
        "fast_caches": list(fast_caches(plan)),
        "awake": plan.awake(),
        "images": planned_images(plan),
        "touches": touched(plan, needs),
        "settings": [_setting_as_dict(one, one.taken) for one in needs if one.taken],
        "warnings": [*plan.warnings(), *servers_warnings(plan), *_not_granted([one for one in needs if one.ok])],
        "lacking": [{"name": one.name, "detail": one.detail, "remedy": one.remedy} for one in needs if not one.ok],
    }
