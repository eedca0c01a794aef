"""What every verb that runs trials does with its plan: check, warn, run, report, end with the right code."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dbdyno.cli.on_hosts import run_on_its_hosts
from dbdyno.cli.output import Format, say_to_terminal
from dbdyno.cli.show import end_of_run, show
from dbdyno.errors import UserError
from dbdyno.plan.plan import Plan

if TYPE_CHECKING:
    from dbdyno.store.records import Run


def carry_out(
    plan: Plan,
    into: Path,
    *,
    resume: bool,
    erase: frozenset[str],
    html: bool,
    wait: bool,
    fresh_images: bool,
    again: str,
    hosts: Path | None = None,
    format_: Format = Format.TEXT,
    details: bool = False,
) -> None:
    """Run a plan and print its report; ``again`` is the command that would go on with it.

    Raises ``UserError`` where this host can't, or another run is going on (without ``wait``), and nothing was touched;
    ``typer.Exit`` where a trial failed, or the run was interrupted.
    """
    from dbdyno.cli.progress import TerminalProgress
    from dbdyno.run.execute import open_run, run_all
    from dbdyno.run.over_hosts import ports_over
    from dbdyno.run.preflight import host_facts, unmet_needs, versions, with_host_decided
    from dbdyno.stack.capabilities import nothing_left_over
    from dbdyno.system.locks import alone_on_host, only_one

    if plan.design.fleet:
        outcome = run_on_its_hosts(plan, into, hosts, resume=resume, erase=erase, fresh_images=fresh_images)
        end_of_run(outcome, into, format_, html=html, details=details, again=again)
        return
    plan = with_host_decided(plan)
    lacking = unmet_needs(plan, erase, say_to_terminal)
    if lacking:
        raise UserError("\n".join(need.said for need in lacking))
    with (
        TerminalProgress(plan.design.labels, plan.seconds_per_trial()) as progress,
        only_one(f"run {plan.study.path} into {into}", wait=wait, say=progress.say),
        alone_on_host(wait=wait, say=progress.say),
        ports_over(plan, hosts) as ports,
    ):
        leftover = nothing_left_over()
        if not leftover.ok:
            progress.say(f"warning: {leftover.detail} and left things on this host; {leftover.remedy} puts it back")
        for warning in plan.warnings():
            progress.say(f"warning: {warning}")
        folder = open_run(plan, into, resume=resume, versions=versions(plan), host=host_facts(plan))
        if plan.seed_is_drawn:
            progress.say(f"seed {plan.design.seed}, drawn for this run; --seed {plan.design.seed} repeats its order")
        try:
            outcome = run_all(plan, folder, progress, erase, fresh_images=fresh_images, ports=ports)
        finally:
            folder.close()
    end_of_run(outcome, into, format_, html=html, details=details, again=again)


def run_to_resume(into: Path) -> "Run | None":
    """The run to go on with; one that was killed before it wrote its header is begun anew.

    Trials that can't be read any more are left out, and a run that lacks them has not ended.
    """
    from dbdyno.store.run_folder import is_begun, read_run
    from dbdyno.store.trials import lost_trials

    if not into.is_dir():
        raise UserError(f"{into} does not exist, so there is no run to resume; leave out --resume")
    if not is_begun(into):
        return None
    lost = [lost_trial.trial for lost_trial in lost_trials(into)]
    run = read_run(into, without=lost)
    return replace(run, stopped="") if lost else run


def show_as_it_is(run: "Run", into: Path, format_: Format, *, html: bool, details: bool) -> None:
    """Say that a run has ended for good and why, and print its report."""
    from dbdyno.analysis.analyse import analyse
    from dbdyno.report.sections.stopped import why_it_stopped

    typer.echo(f"nothing to do: {into} is finished. {why_it_stopped(run, analyse(run))}", err=True)
    typer.echo("to go on beyond its plan: --resume --until-decided", err=True)
    show(into, format_, html=into / "report.html" if html else None, details=details)
