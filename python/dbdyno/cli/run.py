"""``dbdyno run STUDY --into DIR``: run a study."""

from pathlib import Path

import typer

from dbdyno.cli.options import (
    BLOCKS,
    BUDGET,
    ERASE,
    FRESH_IMAGES,
    HOSTS,
    HTML,
    INTO,
    KEEP_TRACES,
    MAX_BLOCKS,
    RESUME,
    SCALE,
    SEED,
    UNTIL_DECIDED,
    WAIT,
    folder_for,
    stop_options,
)
from dbdyno.cli.output import DETAILS, JSON, json_or_text
from dbdyno.cli.suggestions import studies


def run(
    study: Path = typer.Argument(metavar="STUDY", help="The study file.", autocompletion=studies),
    into: Path | None = INTO,
    resume: bool = RESUME,
    scale: str = SCALE,
    seed: int | None = SEED,
    blocks: int | None = BLOCKS,
    max_blocks: int | None = MAX_BLOCKS,
    until_decided: bool = UNTIL_DECIDED,
    budget: str | None = BUDGET,
    html: bool = HTML,
    details: bool = DETAILS,
    json_: bool = JSON,
    wait: bool = WAIT,
    fresh_images: bool = FRESH_IMAGES,
    keep_traces: bool = KEEP_TRACES,
    hosts: Path | None = HOSTS,
    erase: list[str] = ERASE,
) -> None:
    """Run a study; exits 0 when done, 1 when trials failed, 2 on a user's mistake, 130 when interrupted."""
    from dbdyno.cli.carry_out import carry_out, run_to_resume, show_as_it_is
    from dbdyno.plan.plan import make_plan
    from dbdyno.plan.stop_rule import StopRule
    from dbdyno.run.execute import see_that_it_is_the_same
    from dbdyno.run.preflight import keeping_traces
    from dbdyno.study.load import load_study

    options = stop_options(blocks, max_blocks, budget, until_decided=until_decided)
    into = folder_for(into, study, resume=resume)
    begun = run_to_resume(into) if resume else None
    scale = scale or (begun.scale if begun else "")
    loaded = load_study(study, scale)
    if begun:
        stop_rule = options.for_resume(StopRule.of_run(begun.design), into)
        seed = begun.design.seed if seed is None else seed
    else:
        stop_rule = options.override(StopRule.of_study(loaded))
    plan = make_plan(loaded, seed=seed, stop_rule=stop_rule)
    if keep_traces:
        plan = keeping_traces(plan)
    if begun and begun.stopped and not until_decided:
        see_that_it_is_the_same(plan, into)
        show_as_it_is(begun, into, json_or_text(json_=json_), html=html, details=details)
        return
    again = f"dbdyno run {study} --into {into}{f' --scale {scale}' if scale else ''}{' --keep-traces' * keep_traces}"
    again += f" --hosts {hosts}" if hosts else ""
    carry_out(
        plan,
        into,
        resume=resume,
        erase=frozenset(erase),
        html=html,
        wait=wait,
        fresh_images=fresh_images,
        again=again,
        hosts=hosts,
        format_=json_or_text(json_=json_),
        details=details,
    )
