"""``dbdyno``: one verb per file; errors become one message and an exit code here."""

import sys
from contextlib import suppress
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from dbdyno import __version__
from dbdyno.cli import (
    aa,
    compare,
    disk,
    doctor,
    images,
    load,
    plan,
    quick,
    rank,
    report,
    restore,
    run,
    runs,
    servers,
    try_,
    watch,
)
from dbdyno.cli.standard_output import end_with, flushed, prepare, say
from dbdyno.errors import DbdynoError
from dbdyno.model.printable import printable

INTERRUPTED = 130


class Verbs(TyperGroup):
    """The verbs, those of the load generator in a list of their own."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401  (typer keeps their types private)
        """Write both lists."""
        for heading, names in (
            ("Commands", [name for name in self.commands if name not in load.VERBS]),
            ("Load generator, against any server (dbdyno VERB --help)", list(load.VERBS)),
        ):
            with formatter.section(heading):
                limit = formatter.width - 6 - max(map(len, names))
                rows = [(name, self.commands[name].get_short_help_str(limit)) for name in names]
                formatter.write_dl(rows)


app = typer.Typer(
    name="dbdyno",
    cls=Verbs,
    help="A dynamometer for database servers and the storage they stand on.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("quick")(quick.quick)
app.command("plan")(plan.plan)
app.command("try")(try_.try_)
app.command("run")(run.run)
app.command("runs")(runs.runs)
app.command("aa")(aa.aa)
app.command("report")(report.report)
app.command("rank")(rank.rank)
app.command("compare")(compare.compare)
app.command("watch")(watch.watch)
app.command("doctor")(doctor.doctor)
app.command("restore")(restore.restore)
app.add_typer(servers.app, name="servers")
app.add_typer(disk.app, name="disk")
app.add_typer(images.app, name="images")
for verb, about in load.VERBS.items():
    app.command(verb, help=about, context_settings=load.CONTEXT, add_help_option=False)(load.command(verb))


@app.callback(invoke_without_command=True)
def _root(context: typer.Context, version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    if version:
        print(f"dbdyno {__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


def main() -> NoReturn:
    """Entry point of the console script."""
    prepare()
    try:
        try:
            app(prog_name="dbdyno")
        except SystemExit:
            flushed()
            raise
    except DbdynoError as error:
        from dbdyno.report.refusals import message

        with suppress(OSError):
            flushed()
        say(printable(message(error), keep="\n"))
        sys.exit(error.exit_code)
    except OSError as error:
        end_with(error)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    sys.exit(0)


if __name__ == "__main__":
    main()
