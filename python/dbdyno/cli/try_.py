"""``dbdyno try FIELD=LEVEL,LEVEL``: a study from the command line, run at once and kept."""

from contextlib import suppress

import typer

from dbdyno.cli.options import ERASE, HTML, WAIT, new_folder
from dbdyno.cli.output import DETAILS, JSON, json_or_text, say_to_terminal
from dbdyno.cli.suggestions import levels, loads, workloads
from dbdyno.errors import UserError


def try_(
    fields: list[str] = typer.Argument(
        metavar="FIELD=LEVEL,LEVEL...",
        help="Fields of a study; one with several levels is compared.",
        autocompletion=levels,
    ),
    kind: str = typer.Option("slap", help="Kind of load; see docs/workloads.md.", autocompletion=workloads),
    load: str = typer.Option(None, help="What the load does, such as write, read or mixed.", autocompletion=loads),
    clients: int = typer.Option(None, min=1, help="Connections."),
    duration: str = typer.Option("5s", help='Measured time of a trial, such as "10s".'),
    blocks: int = typer.Option(8, min=1, help="How often every treatment is measured."),
    html: bool = HTML,
    details: bool = DETAILS,
    wait: bool = WAIT,
    erase: list[str] = ERASE,
    plan: bool = typer.Option(False, "--plan", help="Write the study and show what it would do; run nothing."),
    json_: bool = JSON,
) -> None:
    """Compare what is given, as in: dbdyno try device=hdd-7200,ssd-sata scheduler=none,mq-deadline --load write."""
    from dbdyno.cli.carry_out import carry_out
    from dbdyno.cli.plan import show_plan
    from dbdyno.plan.plan import make_plan
    from dbdyno.run.preflight import needs_of
    from dbdyno.study.load import load_study
    from dbdyno.study.new_study import study_text

    asked = {"kind": kind, "load": load, "clients": clients, "duration": duration}
    text = study_text(fields, {name: value for name, value in asked.items() if value is not None}, blocks=blocks)
    into = new_folder("try")
    study = into.with_suffix(".toml")
    study.parent.mkdir(parents=True, exist_ok=True)
    study.write_text(text, encoding="utf-8")
    try:
        made = make_plan(load_study(study))
    except UserError:
        study.unlink()
        with suppress(OSError):  # others' runs are in it
            study.parent.rmdir()
        raise
    typer.echo(f"study: {study}", err=True)
    if plan:
        show_plan(made, needs_of(made, frozenset(erase), say_to_terminal), json_=json_)
        return
    carry_out(
        made,
        into,
        resume=False,
        erase=frozenset(erase),
        html=html,
        wait=wait,
        fresh_images=False,
        again=f"dbdyno run {study} --into {into}",
        format_=json_or_text(json_=json_),
        details=details,
    )
