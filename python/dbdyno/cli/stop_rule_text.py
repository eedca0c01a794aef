"""How many blocks a plan has, what decides it, how long that may take, and the order in each."""

from itertools import groupby

from dbdyno.analysis.planned_looks import planned_looks
from dbdyno.model.design import MIN_BLOCKS, Design
from dbdyno.model.wording import looks_listed
from dbdyno.plan.order import whole_plots
from dbdyno.plan.plan import Plan
from dbdyno.study.units import format_seconds


def stop_rule_text(design: Design) -> str:
    """How many blocks there will be, and what decides it."""
    budget = "" if design.budget_seconds is None else f"; none is begun that would end after {_budget(design)}"
    if design.until == "blocks":
        return f"blocks ({design.blocks}){budget}"
    if design.until == "open":
        after_each = (
            f"blocks: looked at after each from {MIN_BLOCKS} on; stops when every comparison is decided{budget}"
        )
        return f"{after_each}; p and intervals are of the mean, and hold if log ratios are normal"
    goal = "comparison is decided"
    if design.until == "precise":
        goal = f"interval reaches at most {100 * (design.half_width or 0):.3g} % to either side"
    looks = looks_of(design)
    if len(looks) == 1:
        wanted = f"; wanted is that every {goal}" if design.until == "precise" else ""
        return f"blocks ({design.blocks}): too few to look at them before the last{wanted}{budget}"
    fewest, after = looks[0], looks_listed(looks)
    return f"{fewest} to {design.blocks} blocks: looked at after {after}; stops when every {goal}{budget}"


def looks_of(design: Design) -> tuple[int, ...]:
    """The numbers of blocks after which the data may end the run."""
    return planned_looks(design.blocks) if design.until in {"decided", "precise"} else ()


def _budget(design: Design) -> str:
    return format_seconds(design.budget_seconds or 0)


def time_text(plan: Plan) -> str:
    """How long it may take."""
    return f"{_range(plan)}{_basis(plan)}{_settling(plan)}"


def _settling(plan: Plan) -> str:
    if plan.design.settle == "trial":
        return "; before each trial one of the baseline, unmeasured"
    return f"; {format_seconds(plan.design.settle)} of each trial are a rest" if plan.design.settle else ""


def _range(plan: Plan) -> str:
    design, each = plan.design, len(plan.design.tried)
    if design.until == "open":
        return f"{each} trials a block, about {format_seconds(plan.seconds(1))} each"
    fewest = (looks_of(design) or (design.blocks,))[0]
    if fewest == design.blocks:
        return f"{fewest * each} trials, about {format_seconds(plan.seconds(fewest))}"
    least, most = format_seconds(plan.seconds(fewest)), format_seconds(plan.seconds(design.blocks))
    return f"{fewest * each} to {design.blocks * each} trials, about {least} to {most}"


def _basis(plan: Plan) -> str:
    loads = [spec.workload for spec in plan.specs.values()]
    if all(load.seconds_bound for load in loads):
        return ""
    return f" (a guess: the load is bounded by {loads[0].AMOUNT or 'its data'}, not by time)"


def order_from(plan: Plan) -> str:
    """The seed that the order of trials comes from."""
    if plan.seed_is_drawn:
        return f"order from seed {plan.design.seed}, as an example: each run draws a seed of its own"
    return f"order from seed {plan.design.seed}"


def order_text(plan: Plan, block: int) -> str:
    """The treatments of a block in their order, a bar between two whole plots."""
    plots = whole_plots(plan.design)
    runs = groupby((slot.treatment for slot in plan.slots(block, 1)), key=plots.__getitem__)
    return " | ".join(" ".join(treatments) for _, treatments in runs)
