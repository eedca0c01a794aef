"""``dbdyno new``: a study from a few questions, or from the option file of a server."""

import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import typer

from dbdyno.cli.options import seconds_of, without_place
from dbdyno.cli.output import JSON, print_json, say_to_terminal
from dbdyno.cli.suggestions import devices, levels, loads, servers, workloads
from dbdyno.errors import UserError
from dbdyno.mysql.settings import DISTRIBUTION, FLUSH_LOG, NO_SERVER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dbdyno.mysql.my_cnf import LeftOut
    from dbdyno.servers.contract import SettingOutcome
    from dbdyno.study.new_study import NewStudyRequest
    from dbdyno.study.study import Study

KIND = "slap"
LOAD = "mixed"  # of that kind, where no other is given
# Flag -> what is asked at a terminal where the flag was not given, and the answer that Enter gives.
QUESTIONS: dict[str, tuple[str, Any]] = {
    "vary": ("What to compare, FIELD=LEVEL,LEVEL", f"{FLUSH_LOG}=1,2"),
    "server": ("Which server: mariadb is the distribution's; dbdyno servers lists others", DISTRIBUTION),
    "device": (
        'What the data lie on: "here" is a folder on this disk; or a drive to emulate, such as ssd-sata',
        "here",
    ),
    "load": ("What clients do: read, write or mixed", LOAD),
    "clients": ("How many clients at once", 8),
    "duration": ("How long a trial is measured", "5s"),
    "blocks": ("How often each is measured; fewer than 6 decide nothing", 8),
}
VARY_OF_FILE = "Which fields to vary, FIELD=LEVEL,LEVEL; nothing: all of the file against the server's defaults", ""
DEVICES_TRIED = ("here", "ssd-sata")  # an answer must fit one of these until the device is known
# What a load needs beside its usual fields, and the answer that Enter gives; without an answer it is asked again.
NEEDED: dict[str, tuple[str, Any]] = {
    "profile": ("Which profile of KDiskMark's", "RND4K Q32T1"),
    "size": ("How large its file is; one that fits into memory measures the page cache", "1G"),
    "queries": ("How many queries a trial sends", 1000),
    "command": ("Which command", ""),
    "file": ("Which file", ""),
}


def ask(question: str, default: Any) -> Any:  # noqa: ANN401 - a text or a number
    """Ask at the terminal; an empty line is the default. Raises ``UserError`` where no line comes."""
    while True:
        typer.echo(f"{question}{f' [{default}]' if default != '' else ''}: ", err=True, nl=False)
        if not (line := sys.stdin.readline()):
            raise UserError("the answers ended before the questions; nothing was written")
        answer = line.strip() or default
        if not isinstance(default, int) or (str(answer).isdecimal() and int(answer)):
            return type(default)(answer)
        typer.echo("give a whole number, at least 1", err=True)


def ask_questions(request: "NewStudyRequest", names: "Iterable[str]", options: Any) -> "NewStudyRequest":  # noqa: ANN401
    """Return the request with the answers to these questions; each is checked at once, and asked again if wrong."""
    for name in names:
        if name != "vary" and _is_settled(request, name):
            continue
        question, default = VARY_OF_FILE if name == "vary" and options else QUESTIONS[name]
        if name == "vary" and not options:
            default = usual_vary(request)
        if name == "device":
            fitting = (device for device in DEVICES_TRIED if not mistake_of(replace(request, device=device), options))
            default = next(fitting, default)
        while True:
            answer = ask(question, default)
            value = [*request.vary, *_split(answer)] if name == "vary" else answer
            changes: dict[str, Any] = {name: value}
            if not (wrong := mistake_of(replace(request, **changes), options)):
                request = replace(request, **changes)
                break
            typer.echo(wrong, err=True)
    return request


def ask_needed(request: "NewStudyRequest", options: Any) -> "NewStudyRequest":  # noqa: ANN401
    """Return the request with the fields that its load can't do without; each is checked as far as it can be yet.

    Raises ``UserError`` where a flag is wrong, which no answer could mend.
    """
    from dbdyno.study.new_study import check_request

    load = check_request(request, has_options=options is not None)
    for name in _needed_fields(request):
        question, default = NEEDED.get(name, (f"Which {name}", ""))
        words = [word for word in _words(load.model_fields[name].annotation) if isinstance(word, str)]
        if words:
            question, default = f"{question}: {', '.join(words)}", words[0]
        while True:
            answer = ask(question, default)
            fields = {**request.fields, name: answer}
            tried = replace(request, load=answer) if name == "load" else replace(request, fields=fields)
            wrong = mistake_of(_with_usual_vary(tried, options), options)
            if answer != "" and f"workload.{name}: " not in wrong:
                request = tried
                break
            typer.echo(wrong if answer != "" else f"a load of kind {load.named()} needs it", err=True)
    if wrong := mistake_of(_with_usual_vary(request, options), options):
        raise UserError(wrong)
    return request


def _words(annotation: Any) -> "Iterator[object]":  # noqa: ANN401 - a type
    """The words that a field may have, where it is one of several."""
    for inner in get_args(annotation):
        yield from _words(inner) if get_args(inner) else [inner]


def _needed_fields(request: "NewStudyRequest") -> list[str]:
    from dbdyno.study.new_study import missing_fields

    names = _names(request.vary)
    present_fields = [*names, *request.fields, *(["load"] if request.load else [])]
    if request.kind == "fio" and "job" not in names:  # a profile, unless a job file says it all
        return [name for name in ("profile", "load") if name not in present_fields]
    return missing_fields(request.kind, present_fields)


def usual_vary(request: "NewStudyRequest") -> str:
    """What Enter compares: a setting of the server; where the load has none, what lies below it."""
    from dbdyno.study.workloads import KINDS

    load = KINDS[request.kind]
    if not load.ON_HOST:
        return "kernel=2.6.18,6.x"
    is_served = load.SERVER == "needed" or (load.SERVER == "either" and request.server != NO_SERVER)
    return QUESTIONS["vary"][1] if is_served else "scheduler=none,mq-deadline"


def _with_usual_vary(request: "NewStudyRequest", options: Any) -> "NewStudyRequest":  # noqa: ANN401
    """Return a request that varies something, so that all else of it can be checked."""
    return request if request.vary or options else replace(request, vary=[usual_vary(request)])


def _split(answer: str) -> list[str]:
    """``FIELD=LEVEL,LEVEL`` several times, with blanks between; one in quotation marks belongs to a level."""
    return re.findall(r'(?:"[^"]*"|[^\s"])+|"', answer)


def _is_settled(request: "NewStudyRequest", name: str) -> bool:
    """Whether a question is answered by what varies, or by the server, which stands elsewhere."""
    from dbdyno.mysql.server_url import is_url

    return (name == "device" and is_url(request.server)) or name in _names(request.vary)


def mistake_of(request: "NewStudyRequest", options: Any) -> str:  # noqa: ANN401
    """What is wrong with a request so far, in a sentence; empty where a study of it could be planned."""
    from tempfile import TemporaryDirectory

    from dbdyno.study.load import load_study
    from dbdyno.study.new_study import new_study

    wrong = ""
    for device in (request.device,) if request.device else (None, *DEVICES_TRIED[1:]):
        with TemporaryDirectory() as scratch:
            study = Path(scratch) / "study.toml"
            try:
                text = new_study(replace(request, device=device), options, "", study.parent)
                study.write_text(text, encoding="utf-8")
                load_study(study)
            except UserError as error:
                wrong = wrong or without_place(study, str(error))
            else:
                return ""
    return wrong


def new(
    study: Path = typer.Argument(Path("study.toml"), metavar="STUDY", help="The file to write; it must not exist."),
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
    """Write a study: from a few questions at a terminal, from flags, or from a my.cnf. Measures nothing."""
    from dbdyno.mysql.my_cnf import read_options, server_groups
    from dbdyno.mysql.server_url import is_url
    from dbdyno.run.preflight import fit_settings, version_of
    from dbdyno.study.new_study import NewStudyRequest, check_request, unasked_fields

    if cuts and blocks:
        raise UserError("--blocks is for studies of speed; --cuts decides how many there are: leave out one of the two")
    asks = sys.stdin.isatty() and sys.stderr.isatty() and not json_
    if not vary and not from_ and not asks:
        raise UserError(
            "nothing to compare: give --vary FIELD=LEVEL,LEVEL or --from MY.CNF; at a terminal you are asked"
        )
    check_target(study)
    if duration is not None:
        seconds_of("--duration", duration)
    flags: dict[str, Any] = {"vary": vary, "device": device, "server": server, "load": load, "clients": clients}
    flags |= {"duration": duration, "blocks": blocks}
    request = replace(
        NewStudyRequest(kind=kind, cuts=cuts), **{name: value for name, value in flags.items() if value is not None}
    )
    options = read_options(from_, server_groups(version_of(request.server), suffix)) if from_ else None
    kind = check_request(request, has_options=options is not None).named()
    if asks:
        request = ask_needed(request, options)
        unasked = unasked_fields(kind, _names(request.vary)) | ({"blocks"} if cuts else set())
        unasked |= {"load"} if kind != KIND else set()
        questions = [name for name in QUESTIONS if not flags[name] and name not in unasked]
        request = ask_questions(request, questions, options)
    elif not load and kind == KIND:
        request = replace(request, load=LOAD)
    if options and not is_url(request.server):  # of an external one, the study itself is refused
        if untried := fit_settings(request.server, options, say_to_terminal):
            typer.echo(f"whether {request.server} takes these settings was not tried: {untried}", err=True)
        if not options.settings:
            raise UserError(f"--from {from_}: a study can set none of its server settings")
    given = {f"--{name}": value for name, value in flags.items() if name != "vary"} | {"--cuts": cuts}
    source = from_.name if from_ else ""
    left_out = _write_or_ask_again(study, request, options, source, given, asks=asks and not vary)
    _say(study, options, left_out, json_=json_)


def _write_or_ask_again(
    study: Path,
    request: "NewStudyRequest",
    options: Any,  # noqa: ANN401
    source: str,
    given: Mapping[str, object],
    *,
    asks: bool,
) -> "list[LeftOut]":
    """Write the study; where the server takes none of the levels, what to compare is asked again, and nothing else."""
    from dbdyno.study.new_study import NothingToVaryError

    while True:
        try:
            return _write_study(study, request, options, source, given)
        except NothingToVaryError as error:
            if not asks:
                raise
            typer.echo(f"{error}; the other answers are kept", err=True)
            request = ask_questions(replace(request, vary=()), ["vary"], options)


def _names(vary: "Iterable[str]") -> list[str]:
    return [variation.partition("=")[0].rpartition(".")[2] for variation in vary]


def check_target(study: Path) -> None:
    """Raise ``UserError`` before anything is asked: the file to write is there already, or its folder is not."""
    if study.is_symlink() or study.exists():
        raise UserError(f"{study} is there already; name another file, or move it away")
    if not study.parent.is_dir():
        raise UserError(f"{study}: can't be written: No such file or directory; make the folder {study.parent} first")


def _write_study(
    study: Path,
    request: "NewStudyRequest",
    options: Any,  # noqa: ANN401
    source: str,
    given: Mapping[str, object],
) -> "list[LeftOut]":
    """Write the study, without the levels that the server refuses; return these. Leaves no file where it raises.

    ``given`` are options that gave a field, by which a message calls it.
    """
    from dbdyno.mysql.my_cnf import LeftOut
    from dbdyno.study.load import load_study
    from dbdyno.study.new_study import new_study

    left_out = list[LeftOut]()
    _write(study, new_study(request, options, source, study.parent))
    try:
        while refused := list(_refused_levels(load_study(study), request, say_to_terminal)):
            request, more = _without(request, refused)
            left_out += more
            study.write_text(new_study(request, options, source, study.parent), encoding="utf-8")
    except BaseException as error:
        study.unlink()
        if not isinstance(error, UserError):
            raise
        reasons = "; ".join(map(str, left_out))
        text = without_place(study, str(error), given) + (f"; left out: {reasons}" if reasons else "")
        raise type(error)(text) from None
    return left_out


def _without(request: "NewStudyRequest", refused: "list[SettingOutcome]") -> "tuple[NewStudyRequest, list[LeftOut]]":
    """Return the request without the levels that are refused, and these. Raises ``NothingToVaryError``."""
    from dbdyno.mysql.my_cnf import LeftOut
    from dbdyno.study.new_study import NothingToVaryError, without_level

    vary, left_out = list(request.vary), []
    for outcome in refused:
        level = str(outcome.asked)
        place = f"--vary, level {level.lower() if isinstance(outcome.asked, bool) else level[:60]} of"
        left_out.append(LeftOut(outcome.name, place, outcome.text))
        vary = [without_level(variation, outcome.name, outcome.asked) for variation in vary]
    if not any(vary):
        reasons = "; ".join(map(str, left_out))
        raise NothingToVaryError(f"nothing is left to vary; left out: {reasons}")
    return replace(request, vary=list(filter(None, vary))), left_out


def _refused_levels(
    study: "Study", request: "NewStudyRequest", say: "Callable[[str], None]"
) -> "Iterator[SettingOutcome]":
    """The levels of what is varied that the server does not take."""
    from dbdyno.run.preflight import settings_not_taken
    from dbdyno.study.new_study import varies

    for outcome in dict.fromkeys(settings_not_taken(study, say) if request.vary else ()):
        if outcome.name == "settings":
            typer.echo(f"whether {request.server} takes these levels was not tried: {outcome.said}", err=True)
        elif any(varies(variation, outcome.name, outcome.asked) for variation in request.vary):
            yield outcome


def _write(study: Path, text: str) -> None:
    try:
        with study.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UserError(f"{study} is there already; name another file, or move it away") from None
    except OSError as error:
        raise UserError(f"{study}: can't be written: {error.strerror}") from None


def _say(study: Path, options: Any, levels_left: "list[LeftOut]", *, json_: bool) -> None:  # noqa: ANN401
    from dataclasses import asdict

    left_out, changed = (options.left_out, list(options.changed.values())) if options else ([], [])
    left_out = [*left_out, *levels_left]
    if json_:
        settings = options.settings if options else {}
        lists = {"left_out": [asdict(option) for option in left_out], "changed": [asdict(option) for option in changed]}
        print_json({"study": str(study), "settings": settings, **lists})
        return
    for option in changed:
        typer.echo(f"changed: {option}", err=True)
    for option in left_out:
        typer.echo(f"left out: {option}", err=True)
    print(f"study: {study}; next: dbdyno plan {study}")
