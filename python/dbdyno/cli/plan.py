"""``dbdyno plan STUDY``: what a run would do. Leaves the host as it is."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dbdyno.cli.options import BLOCKS, BUDGET, HOSTS, MAX_BLOCKS, SCALE, SEED, UNTIL_DECIDED, stop_options
from dbdyno.cli.output import JSON, print_json, say_to_terminal
from dbdyno.cli.suggestions import studies
from dbdyno.errors import UserError

if TYPE_CHECKING:
    from dbdyno.plan.plan import Plan
    from dbdyno.stack.capabilities import Capability


def plan(
    study: Path = typer.Argument(metavar="STUDY", help="The study file.", autocompletion=studies),
    scale: str = SCALE,
    seed: int | None = SEED,
    blocks: int | None = BLOCKS,
    max_blocks: int | None = MAX_BLOCKS,
    until_decided: bool = UNTIL_DECIDED,
    budget: str | None = BUDGET,
    erase: list[str] = typer.Option(
        [], metavar="SERIAL", help="Plan to erase the real device with this serial, whatever it holds."
    ),
    hosts: Path | None = HOSTS,
    json_: bool = JSON,
) -> None:
    """Show treatments, blocks, order, time, what will be touched, and whether this host can do it."""
    from dbdyno.cli.on_hosts import needs_on_its_hosts
    from dbdyno.plan.plan import make_plan
    from dbdyno.plan.stop_rule import StopRule
    from dbdyno.run.over_hosts import ports_over
    from dbdyno.run.preflight import needs_of
    from dbdyno.study.load import load_study

    loaded = load_study(study, scale)
    asked = stop_options(blocks, max_blocks, budget, until_decided=until_decided)
    made = make_plan(loaded, seed=seed, stop_rule=asked.override(StopRule.of_study(loaded)))
    if made.design.fleet:
        needs = needs_on_its_hosts(made, hosts, frozenset(erase))
    else:
        with ports_over(made, hosts):  # which are looked at, and not changed
            needs = needs_of(made, frozenset(erase), say_to_terminal)
    show_plan(made, needs, json_=json_)
    if not all(one.ok for one in needs):
        whose = "the hosts" if made.design.fleet else "this host"
        raise UserError(f"{whose} can't run the study as it is; see above")


def show_plan(made: "Plan", needs: "list[Capability]", *, json_: bool) -> None:
    """Print a plan, and what this host lacks for it."""
    from dbdyno.cli.plan_text import plan_as_dict, plan_as_text
    from dbdyno.run.preflight import with_host_decided

    made = with_host_decided(made)
    if json_:
        print_json(plan_as_dict(made, needs))
    else:
        print(plan_as_text(made, needs))
