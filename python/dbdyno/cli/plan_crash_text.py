"""What a plan says of the cuts of a crash study."""

from typing import Any

from dbdyno.model.wording import count
from dbdyno.plan.cuts import bound_of_none, planned_cuts
from dbdyno.plan.plan import Plan
from dbdyno.study.crash_section import CrashSection
from dbdyno.study.units import format_seconds

_MODES = {
    "power": "power cuts of the emulated disk",
    "kill": "kills of the server alone, a weaker test than a power cut: what was written survives in the page cache",
}


def crash_lines(plan: Plan) -> list[str]:
    """What is cut, what is left of it, and what that can show at best; nothing where the study is of speed."""
    crash, control = plan.study.crash, plan.control
    if crash is None or control is None:
        return []
    blocks = plan.design.blocks
    cuts = planned_cuts(crash, blocks)
    lines = [
        "",
        f"cuts ({cuts} of each treatment, {crash.cuts_each} in each of {count(blocks, 'trial')}): {_MODES[crash.mode]}",
    ]
    lines.append(f"  when: {', '.join(crash.when)}")
    if crash.mode == "power":
        lines.append(f"  survivors of what no FLUSH made durable: {', '.join(crash.survivors)}{_held(crash)}")
    if len(crash.strata) > 1:
        lines.append(f"  {len(crash.strata)} kinds of cut, about {cuts // len(crash.strata)} of each")
    return [
        *lines,
        f"  at best: {_best(crash, blocks)}",
        f"  each step of recovery may take {format_seconds(crash.recovery_limit)}; broken states kept: {crash.keep}",
        f"  {control.treatment.id} is known to lose, as {control.why}",
        '  "nothing lost" is said only if it does lose in 95 % of its cuts or more',
    ]


def _best(crash: CrashSection, blocks: int) -> str:
    """What it shows if nothing is lost; and what it would if cuts of one trial had nothing in common."""
    by_trials, by_cuts = (100 * bound_of_none(number) for number in (blocks, planned_cuts(crash, blocks)))
    apart = f"; {by_cuts:.2g} % if cuts of one trial were independent" if crash.cuts_each > 1 else ""
    return (
        f"nothing lost in {count(blocks, 'trial')} shows that at most {by_trials:.2g} % of such cuts lose (95 %){apart}"
    )


def _held(crash: CrashSection) -> str:
    return f" (holds back {1000 * crash.hold_seconds:g} ms)" if crash.hold_seconds else ""


def comparisons_title(plan: Plan) -> str:
    """What the list of comparisons is headed by."""
    design = plan.design
    about = "of what is lost" if plan.study.crash else f"on {design.metric}, margin {design.margin * 100:.3g} %"
    return f"comparisons ({len(design.comparisons)}), {about}:"


def treatment_lines(plan: Plan) -> list[str]:
    """Every treatment that is run, with its part in the design."""
    design, control = plan.design, plan.design.control
    part = {design.baseline: ["baseline"]}
    if control is not None:
        part.setdefault(control.id, []).append("control")
    lines = [f"treatments ({len(design.treatments)}{' and a control' * (len(design.tried) > len(design.treatments))}):"]
    for one in design.tried:
        mark = f"   ({', '.join(part[one.id])})" if one.id in part and one in design.treatments else ""
        lines.append(f"  {one.id}  {one.label}{mark}")
    return lines


def crash_as_dict(plan: Plan) -> dict[str, Any]:
    """The same for a script; empty where the study is of speed."""
    crash, control = plan.study.crash, plan.control
    if crash is None or control is None:
        return {}
    cuts = planned_cuts(crash, plan.design.blocks)
    return {
        "crash": {
            "mode": crash.mode,
            "cuts": cuts,
            "cuts_per_run": crash.cuts_each,
            "strata": [{"when": when, "survivors": survivors} for when, survivors in crash.strata],
            "hold_seconds": crash.hold_seconds or None,
            "recovery_limit_seconds": crash.recovery_limit,
            "keep": crash.keep,
            "bound_of_none": bound_of_none(plan.design.blocks),
            "bound_of_none_if_independent": bound_of_none(cuts),
            "control": {"id": control.treatment.id, "label": control.treatment.label, "why": control.why},
        }
    }
