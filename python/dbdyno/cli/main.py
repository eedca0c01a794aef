"""``dbdyno``: one verb per file; errors become one message and an exit code here."""

import sys
from contextlib import suppress
from typing import NoReturn

import typer
from typer.exceptions import TyperException

from dbdyno import __version__
from dbdyno.cli import (
    aa,
    compare,
    completion,
    crash,
    disk,
    doctor,
    hosts,
    images,
    load,
    new,
    plan,
    quick,
    rank,
    report,
    restore,
    run,
    runs,
    servers,
    simulate,
    trace,
    try_,
    watch,
)
from dbdyno.cli.standard_output import end_with, flushed, prepare, say
from dbdyno.cli.wrong_use import sentence
from dbdyno.errors import DbdynoError
from dbdyno.model.printable import printable

USAGE, INTERRUPTED = 2, 130

app = typer.Typer(
    name="dbdyno",
    cls=load.Verbs,
    help="A dynamometer for database servers and the storage they stand on.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    *(quick.quick, plan.plan, new.new, try_.try_, run.run, runs.runs, aa.aa, report.report, rank.rank, compare.compare),
    *(simulate.simulate, watch.watch, doctor.doctor, restore.restore, completion.completion),
):
    app.command(command.__name__.rstrip("_"))(command)
for group in (servers, disk, images, crash, trace, hosts):
    app.add_typer(group.app, name=group.__name__.rpartition(".")[2])
for verb, about in load.VERBS.items():
    as_is = app.command(verb, cls=load.Verb, help=about, context_settings=load.CONTEXT, add_help_option=False)
    as_is(load.command(verb))


@app.callback(invoke_without_command=True)
def _root(context: typer.Context, version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    if version:
        print(f"dbdyno {__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


def main() -> NoReturn:
    """Entry point of the console script."""
    prepare()
    completion.prepare_to_answer()
    try:
        try:
            code = app(prog_name="dbdyno", standalone_mode=False)
        except SystemExit:
            flushed()
            raise
        flushed()
    except TyperException as error:
        say(printable(sentence(error)))
        sys.exit(USAGE)
    except DbdynoError as error:
        from dbdyno.report.several import message

        with suppress(OSError):
            flushed()
        say(printable(message(error), keep="\n"))
        sys.exit(error.exit_code)
    except OSError as error:
        end_with(error)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
