"""``dbdyno try FIELD=LEVEL,LEVEL``: a study from the command line, run at once and kept."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import typer

from dbdyno.cli.options import ERASE, HTML, WAIT, new_folder
from dbdyno.cli.output import DETAILS, JSON, json_or_text, say_to_terminal
from dbdyno.cli.suggestions import levels, loads, workloads
from dbdyno.cli.values import without_place
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
    from dbdyno.cli.carry_out import carry_out
    from dbdyno.cli.plan import show_plan
    from dbdyno.plan.plan import make_plan
    from dbdyno.run.preflight import needs_of
    from dbdyno.study.load import load_study
    from dbdyno.study.new_study import study_text

    load_fields = {"kind": kind, "load": load, "clients": clients, "duration": duration}
    into = new_folder("try")
    study = into.with_suffix(".toml")
    text = study_text(
        fields, {name: value for name, value in load_fields.items() if value is not None}, study.parent, blocks=blocks
    )
    study.parent.mkdir(parents=True, exist_ok=True)
    study.write_text(text, encoding="utf-8")
    with _only_kept_if_taken(study, into):
        made = make_plan(load_study(study))
    typer.echo(f"study: {study}", err=True)
    if plan:
        show_plan(made, needs := needs_of(made, frozenset(erase), say_to_terminal), json_=json_)
        if not all(need.ok for need in needs):
            raise UserError("this host can't run the study as it is; see above")
        return
    with _only_kept_if_taken(study, into):
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


@contextmanager
def _only_kept_if_taken(study: Path, into: Path) -> Iterator[None]:
    """Remove the study where it is refused before its run has begun; what is said of it names no file that is gone."""
    try:
        yield
    except UserError as error:
        if into.exists():
            raise
        study.unlink(missing_ok=True)
        with suppress(OSError):  # others' runs are in it
            study.parent.rmdir()
        raise UserError(without_place(study, str(error))) from None
