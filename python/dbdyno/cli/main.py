"""``dbdyno``: which verbs there are; errors become one message and an exit code here."""

import gc
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from typing import Any, NoReturn

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup
from typer.exceptions import TyperException
from typer.main import get_command, get_group

from dbdyno import __version__
from dbdyno.cli import completion
from dbdyno.cli.output import end_with, flushed, prepare, say
from dbdyno.errors import DbdynoError, UserError
from dbdyno.model.printable import printable
from dbdyno.model.similar import did_you_mean
from dbdyno.system.files import near_file

# The verbs of the load generator: each becomes ``dbdyno-load VERB`` with the same arguments.


# Every flag is the load generator's, so none may be read here.
CONTEXT = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}

LOAD_VERBS = {
    "slap": "mysqlslap's generated SQL, by mysqlslap's flags.",
    "smack": "Super-Smack's statements by random primary key.",
    "oltp": "sysbench's OLTP loads, by sysbench's flags.",
    "tpcc": "TPC-C's transactions over its tables; no TPC result.",
    "ledger": "Transactions whose loss in a crash is found.",
    "ingest": "Rows into a table with three indexes.",
    "bulk": "sysbench's prepare: tables made, filled, indexed.",
    "script": "A SQL file with parameters and weights.",
    "replay-log": "A server's slow or general log, by its times.",
}


def command(verb: str) -> Callable[[typer.Context], None]:
    """What a verb does; its own ``--help`` lists the flags."""

    def offer(context: typer.Context) -> None:
        from dbdyno.stack.tools import own_binary

        binary = own_binary("dbdyno-load")
        os.execv(binary, ["dbdyno-load", verb, *context.args])  # noqa: S606  (no shell on purpose)

    return offer


class Verb(TyperCommand):
    """A verb of the load generator, whose own help says to the shell how it may go on."""

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:  # noqa: ANN401  (as below)
        """Offer its loads first, then its flags."""
        import re
        import subprocess

        from typer._click.shell_completion import CompletionItem

        from dbdyno.stack.tools import own_binary

        try:
            argv = [own_binary("dbdyno-load"), str(self.name), "--help"]
        except DbdynoError:
            return []
        completed = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=5,
            check=False,
        )
        loads = re.search(r"^loads: (.*)$", completed.stdout, re.MULTILINE)
        if loads and not ctx.args and not incomplete.startswith("-"):
            words = loads[1].split(", ")
        else:
            words = re.findall(r"^  (?:-\S, |    )(--[a-z-]+)", completed.stdout, re.MULTILINE)
            words += ["prepare", "run", "cleanup"]
        return [CompletionItem(word) for word in words if word.startswith(incomplete)]


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
    option = getattr(error, "option_name", None)
    if option is None or not hasattr(error, "possibilities"):
        return ""
    near = " or ".join(sorted(error.possibilities or ()))
    refusal = f"{command.partition(' ')[2] or 'dbdyno'} has no option {_shown(option)}"
    return refusal + (f"; did you mean {near}?" if near else "")


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
    input_text = _shown(str(first["input"]))
    if parameter.type_descriptor.is_choice:
        known = [str(getattr(choice, "value", choice)) for choice in parameter.type_descriptor.choices]
        return f"{name} {input_text} is none of {', '.join(known)}{did_you_mean(str(first['input']), known)}"
    return f"{name} {input_text} must be {_wanted(first)}"


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


def _shown(text: str) -> str:
    return repr(text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}...")


USAGE, INTERRUPTED = 2, 130

# Each verb with its line of the help; its code is in the file of its name, or in that of the verb that it is a form of.
# Only the verb that was typed is imported, so a verb may import what it needs at its top.
VERBS = {
    "quick": "Measure this disk, and show the drives it is most like.",
    "plan": "Show what a study would do and touch, and how long it takes.",
    "new": "Write a study: from questions, an option file, or flags.",
    "try": "Compare what is given on the command line, without a study.",
    "run": "Run a study.",
    "suite": "Run many small loads over versions, or levels of any factor.",
    "runs": "List run folders, the latest first, with what each found.",
    "aa": "Measure this host's noise: one treatment against itself.",
    "report": "Print the result of a run, or of several with a ranking.",
    "rank": "Rank stacks over several loads or runs.",
    "compare": "Compare two runs, treatment by treatment.",
    "history": "Show when runs of the same study changed.",
    "export": "Write a result into one file to share, without names.",
    "import": "Make a run folder of a shared result, after checks.",
    "atlas": "Make a static site of many results, to look through.",
    "simulate": "Simulate a load on drives, below the kernel's block layer.",
    "watch": "Show what block devices do, live, as iostat does.",
    "doctor": "Show what this host can do, and how to get what it lacks.",
    "restore": "Undo what a killed dbdyno left behind.",
    "completion": "Print the completion script of a shell, or install it.",
    "kernels": "Add, list and remove kernels that virtual machines boot.",
    "servers": "Add, list and remove servers to measure.",
    "disk": "Attach emulated disks that behave like a named drive.",
    "images": "List or clear prepared data, which is kept from run to run.",
    "crash": "List the power cuts of a run, or look at a state that was kept.",
    "trace": "Record a trace of block I/O, or summarise one.",
    "hosts": "Use many hosts: up, status, down.",
}


FORM_OF = {
    "aa": "run", "try": "run", "quick": "run", "compare": "report", "rank": "report",
    "history": "report", "export": "share", "import": "share", "atlas": "share",
}  # fmt: skip


def _list_whole_sentences(group: Any) -> None:  # noqa: ANN401 - a group of Click's, which Typer does not export
    """Let the help of a verb with commands list the first sentence of each; else it is cut to one line of 80."""
    for command in group.commands.values():
        first, stop, _ = " ".join((command.help or "").split()).partition(". ")
        command.short_help = f"{first}." if stop else first
        if hasattr(command, "commands"):
            _list_whole_sentences(command)


class _Argument(TyperArgument):
    """An argument that help calls STUDY, [DIR] or RUN..., as manuals do, without its type in Python."""

    def get_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401  (Click's own)
        """Return what the usage line calls it."""
        name = self.display_name_raw if self.required else f"[{self.display_name_raw}]"
        return [f"{name}..." if self.nargs != 1 else name]

    def display_type_rich(self, ctx: Any) -> str | None:  # noqa: ANN401
        """Return what may be chosen, if that is a list; otherwise its name says what it is."""
        return self.display_type(ctx) if self.type_descriptor.is_choice else None


def _show_arguments_as_manuals_do(command: Any) -> None:  # noqa: ANN401 - as above
    for parameter in getattr(command, "params", []):
        if type(parameter) is TyperArgument:  # typer lets nobody choose the class
            parameter.__class__ = _Argument
    for below in getattr(command, "commands", {}).values():
        _show_arguments_as_manuals_do(below)


def verb_command(verb: str) -> TyperCommand | TyperGroup:
    """Import a verb and return its command."""
    name = f"{verb}_" if iskeyword(verb) else verb
    module = import_module(f"dbdyno.cli.{FORM_OF.get(verb, verb)}")
    command: Any
    if hasattr(module, "app"):
        command = get_group(module.app)
        _list_whole_sentences(command)
    else:
        alone = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)
        alone.command(verb)(getattr(module, name))
        command = get_command(alone)
    command.name = verb
    _show_arguments_as_manuals_do(command)
    return command  # type: ignore[no-any-return]


class Verbs(TyperGroup):
    """All verbs; those of the load generator in a list of their own."""

    def __init__(self, **arguments: Any) -> None:  # noqa: ANN401  (typer's own)
        super().__init__(**arguments)
        ours: dict[str, Any] = {verb: TyperCommand(verb, callback=None, help=line) for verb, line in VERBS.items()}
        self.commands = ours | dict(self.commands)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401  (typer keeps their types private)
        """Return the verb that was typed, imported. Raises ``UserError`` where a file is typed in its place."""
        if args[0].endswith(".toml") and args[0] not in self.commands:
            raise UserError(no_verb_but_a_file(args[0]))
        name, command, rest = super().resolve_command(ctx, args)
        return name, verb_command(name) if name in VERBS else command, rest

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write both lists, each line whole."""
        for heading, lines in (
            ("Commands", VERBS),
            ("Load generator, against any server (dbdyno VERB --help)", LOAD_VERBS),
        ):
            with formatter.section(heading):
                formatter.write_dl(list(lines.items()))


def no_verb_but_a_file(argument: str) -> str:
    """What is said where a study stands in the place of a verb."""
    path = Path(argument)
    if path.exists():
        return f"{argument} is a file, not a command. Did you mean dbdyno plan {argument}?"
    return f"{argument} is neither a command nor a file; a study is run by dbdyno run STUDY{near_file(path)}"


def every_command() -> TyperGroup:
    """Return all of the command line, imported: for the manual page, and for tests that walk through it."""
    root = get_group(app)
    root.commands = {name: verb_command(name) if name in VERBS else command for name, command in root.commands.items()}
    return root


app = typer.Typer(
    name="dbdyno",
    cls=Verbs,
    help="A dynamometer for database servers and the storage they stand on.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for verb, about in LOAD_VERBS.items():
    as_is = app.command(verb, cls=Verb, help=about, context_settings=CONTEXT, add_help_option=False)
    as_is(command(verb))


@app.callback(invoke_without_command=True)
def _root(context: typer.Context, version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    if version:
        print(f"dbdyno {__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


def main() -> NoReturn:
    """Entry point of the console script."""
    # What is imported lives to the end: looking through it for garbage every 700 objects costs a tenth of a start.
    gc.set_threshold(50_000)
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
