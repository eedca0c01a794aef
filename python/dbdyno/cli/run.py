"""``dbdyno run``, and its forms ``aa``, ``try`` and ``quick``: what is measured, and shown."""

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

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
    PROFILE,
    RESUME,
    SCALE,
    SEED,
    UNTIL_DECIDED,
    WAIT,
    folder_for,
    new_folder,
    path_of,
    seconds_of,
    stop_options,
    without_place,
    write_study,
)
from dbdyno.cli.output import DETAILS, JSON, Format, ProgressLine, json_or_text, say_to_terminal
from dbdyno.cli.show import end_of_run, exit_by_thresholds, show
from dbdyno.cli.suggestions import drives, levels, loads, studies, workloads
from dbdyno.errors import UserError

if TYPE_CHECKING:
    from dbdyno.analysis.quick import Target
    from dbdyno.plan.plan import Plan
    from dbdyno.run.execute import RunOutcome
    from dbdyno.store.records import Run


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
    profile: bool = PROFILE,
    hosts: Path | None = HOSTS,
    erase: list[str] = ERASE,
) -> None:
    """Run a study.

    Exits 0 when done, 1 when trials failed, 2 on a user's mistake, 130 when interrupted; 3 where the study's [fail_if]
    fails, 4 where it could not be judged.
    """
    from dbdyno.plan.plan import make_plan
    from dbdyno.plan.stop_rule import StopRule
    from dbdyno.run.execute import see_that_it_is_the_same
    from dbdyno.run.preflight import keeping_traces
    from dbdyno.run.profile import lacks_profile, profiling
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
    if profile:
        plan = profiling(plan)
    if begun and begun.stopped and not until_decided and not (profile and lacks_profile(plan, into)):
        see_that_it_is_the_same(plan, into)
        show_as_it_is(begun, into, json_or_text(json_=json_), html=html, details=details)
        return
    chosen = {"--scale": scale, "--keep-traces": keep_traces, "--profile": profile, "--hosts": hosts}
    carry_out(
        plan,
        into,
        resume=resume,
        erase=frozenset(erase),
        html=html,
        wait=wait,
        fresh_images=fresh_images,
        again=command_again("run", study, into, chosen),
        hosts=hosts,
        format_=json_or_text(json_=json_),
        details=details,
    )


# What every verb that runs trials does with its plan: check, warn, run, report, end with the right code.


def command_again(verb: str, study: Path, into: Path, options: Mapping[str, object] | None = None) -> str:
    """Return the command that would go on with a run, as a shell takes it; an option without a value is left out."""
    given = [[name] if value is True else [name, str(value)] for name, value in (options or {}).items() if value]
    return shlex.join(["dbdyno", verb, str(study), "--into", str(into), *(word for words in given for word in words)])


def carry_out(
    plan: "Plan",
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


def run_on_its_hosts(
    plan: "Plan", into: Path, hosts: Path | None, *, resume: bool, erase: frozenset[str], fresh_images: bool
) -> "RunOutcome":
    """Run a plan on the hosts that it names. Raises ``UserError`` where one can't; then nothing was touched."""
    from dbdyno.cli.progress import TerminalProgress
    from dbdyno.hosts.connect import connected
    from dbdyno.run.execute import open_run
    from dbdyno.run.fleet import asking, coordinate
    from dbdyno.run.fleet.part import HostAccess
    from dbdyno.run.fleet.request import make_requests
    from dbdyno.run.over_hosts import see_that_they_are_clients
    from dbdyno.run.preflight import this_machine

    if hosts is None:
        raise UserError(f"{plan.study.path}: hosts.under_test names hosts; say by --hosts FILE how they are reached")
    names = plan.host_names()
    request_for = make_requests(plan, "asked", erase, fresh_images=fresh_images)
    with connected(hosts) as connected_hosts:
        asking.check_names(plan, connected_hosts.inventory)
        see_that_they_are_clients(plan.client_hosts(), connected_hosts.inventory)
        of_hosts = asking.ask_all(connected_hosts.hosts, [request_for("facts", name) for name in names])
        plan, answers = asking.decide_plan(
            plan, of_hosts, erase, connected_hosts.reboots.refusals(names, plan.kernels())
        )
        connected_hosts.reboots.adopt(names)
        with TerminalProgress(plan.design.labels, plan.seconds_per_trial() / plan.blocks_at_once) as progress:
            for warning in plan.warnings():
                progress.say(f"warning: {warning}")
            versions = asking.common_versions(answers)
            folder = open_run(plan, into, resume=resume, versions=versions, host=this_machine())
            if plan.seed_is_drawn:
                again = f"--seed {plan.design.seed} repeats its order"
                progress.say(f"seed {plan.design.seed}, drawn for this run; {again}")
            try:
                requests = make_requests(plan, coordinate.identity_of(into), erase, fresh_images=fresh_images)
                access = HostAccess(
                    connected_hosts.hosts,
                    connected_hosts.why_lost,
                    why_not_back=connected_hosts.why_not_back,
                    clients=connected_hosts,
                )
                return coordinate.run_on_hosts(plan, folder, progress, requests, access)
            finally:
                folder.close()


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
    exit_by_thresholds(show(into, format_, html=into / "report.html" if html else None, details=details))


# ``dbdyno aa STUDY --into DIR``: how much do trials differ on this host where nothing does.


def aa(
    study: Path = typer.Argument(metavar="STUDY", help="The study file.", autocompletion=studies),
    into: Path | None = INTO,
    treatment: str | None = typer.Option(None, metavar="LABEL", help="What to run; the study's baseline if not given."),
    blocks: int | None = typer.Option(None, min=2, help="Blocks of two trials each; 10 if not given."),
    scale: str = SCALE,
    seed: int | None = SEED,
    resume: bool = RESUME,
    html: bool = HTML,
    details: bool = DETAILS,
    wait: bool = WAIT,
    fresh_images: bool = FRESH_IMAGES,
    json_: bool = JSON,
    hosts: Path | None = HOSTS,
    erase: list[str] = ERASE,
) -> None:
    """Measure this host's noise floor: one treatment of a study, run under two labels; exits as run does."""
    from dbdyno.plan.plan import aa_plan
    from dbdyno.study.load import load_study

    into = folder_for(into, study, resume=resume)
    begun = run_to_resume(into) if resume else None
    scale = scale or (begun.scale if begun else "")
    loaded = load_study(study, scale)
    if begun:
        seed, blocks = begun.design.seed if seed is None else seed, blocks or begun.design.blocks
    plan = aa_plan(loaded, treatment=treatment, blocks=blocks, seed=seed)
    chosen = {"--treatment": treatment, "--scale": scale, "--hosts": hosts}
    carry_out(
        plan,
        into,
        resume=resume,
        erase=frozenset(erase),
        html=html,
        wait=wait,
        fresh_images=fresh_images,
        again=command_again("aa", study, into, chosen),
        hosts=hosts,
        format_=json_or_text(json_=json_),
        details=details,
    )


# ``dbdyno try FIELD=LEVEL,LEVEL``: a study from the command line, run at once and kept.


def try_(
    fields: list[str] = typer.Argument(
        metavar="FIELD=LEVEL,LEVEL",
        help="Fields of a study; one with several levels is compared.",
        autocompletion=levels,
    ),
    kind: str = typer.Option("slap", help="Kind of load; see docs/workloads.md.", autocompletion=workloads),
    load: str = typer.Option(None, help="What the load does, such as write, read or mixed.", autocompletion=loads),
    clients: int = typer.Option(None, min=1, help="Connections."),
    duration: str = typer.Option(None, help='Measured time of a trial, such as "10s"; 5s, if not given.'),
    blocks: int = typer.Option(8, min=1, help="How often every treatment is measured."),
    html: bool = HTML,
    details: bool = DETAILS,
    wait: bool = WAIT,
    erase: list[str] = ERASE,
    plan: bool = typer.Option(False, "--plan", help="Write the study and show what it would do; run nothing."),
    json_: bool = JSON,
) -> None:
    """Compare what is given, as in: dbdyno try device=hdd-7200,ssd-sata scheduler=none,mq-deadline --load write."""
    from dbdyno.plan.plan import make_plan
    from dbdyno.study.load import load_study
    from dbdyno.study.new_study import study_text

    if duration is not None:
        seconds_of("--duration", duration)
    load_fields = {"kind": kind, "load": load, "clients": clients, "duration": duration}
    into = new_folder("try")
    study = into.with_suffix(".toml")
    text = study_text(
        fields, {name: value for name, value in load_fields.items() if value is not None}, study.parent, blocks=blocks
    )
    write_study(study, text)
    options = {"--load": load, "--clients": clients, "--duration": duration, "--blocks": blocks}
    with discard_if_refused(study, into, options):
        made = make_plan(load_study(study))
        typer.echo(f"study: {study}", err=True)
        if plan:
            show_or_refuse(made, frozenset(erase), json_=json_)
            return
        carry_out(
            made,
            into,
            resume=False,
            erase=frozenset(erase),
            html=html,
            wait=wait,
            fresh_images=False,
            again=command_again("run", study, into),
            format_=json_or_text(json_=json_),
            details=details,
        )


def show_or_refuse(plan: "Plan", erase: frozenset[str], *, json_: bool) -> None:
    """Show what a study that was just written would do. Raises ``UserError`` where this host can't run it."""
    from dbdyno.cli.plan import show_plan
    from dbdyno.run.preflight import needs_of

    show_plan(plan, needs := needs_of(plan, erase, say_to_terminal), json_=json_)
    if not all(need.ok for need in needs):
        raise UserError("this host can't run the study as it is; see above")


@contextmanager
def discard_if_refused(study: Path, into: Path, options: Mapping[str, object]) -> Iterator[None]:
    """Remove the study where it is refused before its run has begun; what is said of it names no file that is gone.

    A field is called by the one of the ``options``, with their values, that gave it.
    """
    try:
        yield
    except UserError as error:
        if into.exists():
            raise
        study.unlink(missing_ok=True)
        with suppress(OSError):  # others' runs are in it
            study.parent.rmdir()
        raise UserError(without_place(study, str(error), options)) from None


# ``dbdyno quick``: what the storage here is like, within a minute.


PAGE = Path("dbdyno-quick.html")


def quick(
    place: Path = typer.Argument(Path(), metavar="DIR|DEV", help="A folder, or a block device, which is only read."),
    against: str = typer.Option(
        None, "--against", metavar="DIR|MODEL", help="What to compare it with.", autocompletion=drives
    ),
    html: Path = typer.Option(PAGE, "--html", help="The HTML page to write."),
    rounds: int = typer.Option(8, "--rounds", min=2, max=100, help="How often everything is measured."),
    seed: int = typer.Option(1, "--seed", min=0, help="Seed of places and order."),
    atlas: Path | None = typer.Option(
        None, "--atlas", parser=path_of, metavar="SITE", help="Show the disks of this atlas beside it as well."
    ),
    json_: bool = JSON,
) -> None:
    """Measure the disk below a folder in 40 seconds: durable commits, random reads and writes. No root, no study."""
    from dbdyno.cli.output import print_document, refuse_to_overwrite, write_page
    from dbdyno.report.quick import document
    from dbdyno.run.quick import look

    refuse_to_overwrite(html)
    others: tuple[Target, ...] = ()
    if atlas is not None:
        from dbdyno.share.atlas import disks_of

        others = disks_of(atlas)
    with ProgressLine() as line:
        found = look(
            *(place, against),
            rounds=rounds,
            seed=seed,
            progress=lambda done, of: line.show(f"round {done} of {of}"),
        )
    report = document(replace(found, atlas=others))
    print_document(report, json_or_text(json_=json_))
    write_page(html, report, aside=json_)
