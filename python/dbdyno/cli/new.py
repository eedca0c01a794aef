"""``dbdyno new``: a study from a few questions, or from the option file of a server."""

import sys
from pathlib import Path
from typing import Any

import typer

from dbdyno.cli.output import JSON, print_json, say_to_terminal
from dbdyno.cli.suggestions import devices, levels, loads, servers, workloads
from dbdyno.errors import UserError

# What ``dbdyno new`` asks at a terminal.


KIND = "slap"
# Flag -> what is asked at a terminal, where it was not given, and the answer that Enter gives.
QUESTIONS: dict[str, tuple[str, Any]] = {
    "device": (
        'What the data lie on: "here" is a folder on this disk; or a drive to emulate, such as ssd-sata',
        "here",
    ),
    "server": ("Which server: mariadb is the distribution's; dbdyno servers lists others", "mariadb"),
    "load": ("What clients do: read, write or mixed", "mixed"),
    "clients": ("How many clients at once", 8),
    "duration": ("How long a trial is measured", "5s"),
    "blocks": ("How often each is measured; fewer than 6 decide nothing", 8),
}
VARY = "What to compare, FIELD=LEVEL,LEVEL", "innodb_flush_log_at_trx_commit=1,2"
VARY_OF_FILE = "Which fields to vary, FIELD=LEVEL,LEVEL; nothing: all of the file against the server's defaults", ""


def answer(name: str, value: Any, *, asks: bool) -> Any:  # noqa: ANN401 - a text or a number
    """Return what was given for a flag, or what is answered, or the default."""
    question, default = QUESTIONS[name]
    return value if value is not None else ask(question, default) if asks else default


def ask(question: str, default: Any) -> Any:  # noqa: ANN401
    """Ask at the terminal; an empty line is the default. Raises ``UserError`` where no line comes."""
    while True:
        typer.echo(f"{question}{f' [{default}]' if default != '' else ''}: ", err=True, nl=False)
        if not (line := sys.stdin.readline()):
            raise UserError("the answers ended before the questions; nothing was written")
        answer = line.strip() or default
        if not isinstance(default, int) or str(answer).isdecimal():
            return type(default)(answer)
        typer.echo("give a whole number", err=True)


def new(
    study: Path = typer.Argument(Path("study.toml"), metavar="[STUDY]", help="The file to write; it must not exist."),
    from_: Path = typer.Option(None, "--from", metavar="MY.CNF", help="An option file of MySQL or MariaDB."),
    suffix: str = typer.Option(
        "", "--defaults-group-suffix", metavar="SUFFIX", help="With --from: also read groups such as [mysqldSUFFIX]."
    ),
    vary: list[str] = typer.Option(
        None, metavar="FIELD=LEVEL,LEVEL", help="What is compared; may be given again.", autocompletion=levels
    ),
    device: str = typer.Option(None, help='"here", a drive to emulate, or a disk.', autocompletion=devices),
    server: str = typer.Option(None, help="Which server.", autocompletion=servers),
    kind: str = typer.Option(KIND, help="Kind of load; see docs/workloads.md.", autocompletion=workloads),
    load: str = typer.Option(None, help="What the load does, such as write, read or mixed.", autocompletion=loads),
    clients: int = typer.Option(None, min=1, help="Connections."),
    duration: str = typer.Option(None, help='Measured time of a trial, such as "10s".'),
    blocks: int = typer.Option(None, min=1, help="How often every treatment is measured."),
    cuts: int = typer.Option(None, min=1, help="Ask what is lost instead of how fast: so many power cuts of each."),
    json_: bool = JSON,
) -> None:
    """Write a study: from a few questions at a terminal, from flags, or from a my.cnf. Runs nothing."""
    from dbdyno.run.settings_check import fit_settings, version_of
    from dbdyno.study.load import load_study
    from dbdyno.study.new_study import Asked, new_study
    from dbdyno.study.option_file import read_options, server_groups

    if cuts and blocks:
        raise UserError("--blocks is for studies of speed; --cuts decides how many there are: leave out one of the two")
    given = {"device": device, "server": server, "load": load, "clients": clients}
    given |= {"duration": duration, "blocks": blocks}
    asks = sys.stdin.isatty() and sys.stderr.isatty() and not json_
    vary = vary or (ask(*(VARY_OF_FILE if from_ else VARY)).split() if asks else [])
    if not vary and not from_:
        raise UserError("say what to compare: --vary FIELD=LEVEL,LEVEL or --from MY.CNF; at a terminal it is asked")
    unasked = ({"load"} if kind != KIND or cuts else set()) | ({"blocks"} if cuts else set())
    answers = {name: answer(name, value, asks=asks) for name, value in given.items() if name not in unasked}
    answers.setdefault("load", load)
    asked = Asked(vary=vary, kind=kind, cuts=cuts, **answers)
    options = read_options(from_, server_groups(version_of(asked.server), suffix)) if from_ else None
    if options:
        if untried := fit_settings(asked.server, options, say_to_terminal):
            typer.echo(f"what {asked.server} takes of it was not tried: {untried}", err=True)
        if not options.settings:
            raise UserError(f"--from {from_}: a study can set nothing of what it says to a server")
    text = new_study(asked, options, from_.name if from_ else "")
    _write(study, text)
    try:
        load_study(study)
    except UserError:
        study.unlink()
        raise
    _say(study, options, json_=json_)


def _write(study: Path, text: str) -> None:
    try:
        with study.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UserError(f"{study} is there already; name another file, or move it away") from None
    except OSError as error:
        raise UserError(f"{study}: can't be written: {error.strerror}") from None


def _say(study: Path, options: Any, *, json_: bool) -> None:  # noqa: ANN401
    from dataclasses import asdict

    left_out, changed = (options.left_out, list(options.changed.values())) if options else ([], [])
    if json_:
        settings = options.settings if options else {}
        lists = {"left_out": [asdict(one) for one in left_out], "changed": [asdict(one) for one in changed]}
        print_json({"study": str(study), "settings": settings, **lists})
        return
    for one in changed:
        typer.echo(f"changed: {one.place} {one.name}: {one.reason}", err=True)
    for one in left_out:
        typer.echo(f"left out: {one.place} {one.name}: {one.reason}", err=True)
    print(f"study: {study}; next: dbdyno plan {study}")
