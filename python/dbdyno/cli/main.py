"""``dbdyno``: one verb per file; errors become one message and an exit code here."""

import sys
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, NoReturn

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
from dbdyno.cli.output import end_with, flushed, prepare, say
from dbdyno.errors import DbdynoError
from dbdyno.model.printable import printable

# A command line that makes no sense, in one sentence with the remedy.


_WORDS = {"Missing command": "a command is missing"}
SHOWN_MAX = 60  # characters of a value that was given


def sentence(error: TyperException) -> str:
    """Return what is wrong with the words that were typed, and what to do about it."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else ""
    words = _of_option(error, command) or _of_value(error)
    if not words:
        text = error.format_message().rstrip(".").replace("(s)", "")
        words = _WORDS.get(text, text[:1].lower() + text[1:])
    return words if words.endswith("?") or not command else f"{words}; see {command} --help"


def _of_option(error: TyperException, command: str) -> str:
    """Return the sentence about an option that is none; empty where the mistake is another."""
    given = getattr(error, "option_name", None)
    if given is None or not hasattr(error, "possibilities"):
        return ""
    near = " or ".join(sorted(error.possibilities or ()))
    found = f"{command.partition(' ')[2] or 'dbdyno'} has no option {_shown(given)}"
    return found + (f"; did you mean {near}?" if near else "")


def _of_value(error: TyperException) -> str:
    """Return the sentence about the value of an option or an argument; empty where the mistake is another."""
    parameter = getattr(error, "param", None)
    if parameter is None:
        return ""
    name = parameter.get_error_hint().replace("'", "")
    details = getattr(error.__cause__, "errors", None)
    if details is None:
        missing = type(error).__name__ == "MissingParameter"
        return f"{name} is missing" if missing else _of_path(name, str(getattr(error, "message", "")))
    first = details(include_url=False)[0]
    given = _shown(str(first["input"]))
    if parameter.type_descriptor.is_choice:
        known = [str(getattr(one, "value", one)) for one in parameter.type_descriptor.choices]
        near = get_close_matches(str(first["input"]), known, 1)
        allowed = f"{name} {given} is none of {', '.join(known)}"
        return f"{allowed}; did you mean {near[0]}?" if near else allowed
    return f"{name} {given} must be {_wanted(first)}"


def _of_path(name: str, message: str) -> str:
    """Return the sentence about a file that the program would open."""
    path, denied, _ = message.removeprefix("Path ").partition(" is not readable")
    return f"{path.strip(chr(39))}: can't be read: Permission denied" if denied else f"{name}: {message}"


def _wanted(detail: dict[str, Any]) -> str:
    limits = detail.get("ctx", {})
    match detail["type"]:
        case "greater_than_equal":
            return f"at least {limits['ge']}"
        case "less_than_equal":
            return f"at most {limits['le']}"
        case "int_parsing" | "int_from_float" | "int_parsing_size":
            return "a whole number"
        case "float_parsing":
            return "a number"
        case _:
            return str(detail["msg"]).removeprefix("Input should be ")


def _shown(given: str) -> str:
    return repr(given if len(given) <= SHOWN_MAX else f"{given[:SHOWN_MAX]}...")


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
