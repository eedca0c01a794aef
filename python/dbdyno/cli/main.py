"""``dbdyno``: one verb per file; errors become one message and an exit code here."""

import sys
from typing import NoReturn

import typer

from dbdyno import __version__
from dbdyno.cli import disk, doctor, plan, report, restore, run, slap
from dbdyno.errors import DbdynoError

INTERRUPTED = 130

app = typer.Typer(
    name="dbdyno",
    help="A dynamometer for database servers and the storage they stand on.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("plan")(plan.plan)
app.command("run")(run.run)
app.command("report")(report.report)
app.command("doctor")(doctor.doctor)
app.command("restore")(restore.restore)
app.add_typer(disk.app, name="disk")
app.command("slap", context_settings=slap.CONTEXT, add_help_option=False)(slap.slap)


@app.callback(invoke_without_command=True)
def _root(context: typer.Context, version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    if version:
        print(f"dbdyno {__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


def main() -> NoReturn:
    """Entry point of the console script."""
    try:
        app(prog_name="dbdyno")
    except DbdynoError as error:
        print(f"dbdyno: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone; a message about it would only be noise
        sys.exit(1)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"dbdyno: {where}{error.strerror or error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    sys.exit(0)


if __name__ == "__main__":
    main()
