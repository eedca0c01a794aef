"""Options that several verbs share, how their values are read, and where a run's folder is."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from dbdyno.errors import UserError
from dbdyno.model.similar import did_you_mean

if TYPE_CHECKING:
    from dbdyno.plan.stop_rule import StopOptions


# Values of options: sizes, times, ranges. A mistake names the option and what was given.


T = TypeVar("T")
U = TypeVar("U", int, float)

SEED_END = 2**63  # TOML's integers have 64 bits
_SEED_DIGITS_MAX = 19


def folder_of(text: str) -> Path:
    """A folder's path. Raises ``UserError`` where none is given: an empty path would be the current folder."""
    if not text.strip():
        raise UserError("--into is empty; name a folder, such as --into results/first")
    return Path(text)


def path_of(text: str) -> Path:
    """A path to read or to write. Raises ``UserError`` where it is empty, which would be the current folder."""
    if not text.strip():
        raise UserError("an empty path was given; name a file or a folder")
    return Path(text)


def seed_of(text: str) -> int:
    """A seed as a study may have it. Raises ``UserError``."""
    if not (text.isascii() and text.isdecimal()) or len(text) > _SEED_DIGITS_MAX or int(text) >= SEED_END:
        raise UserError(f"--seed {text[:40]!r} must be a whole number from 0 to {SEED_END - 1}")
    return int(text)


def _with_unit(option: str, text: str, parsed: Callable[[str], U]) -> U:
    try:
        return parsed(text)
    except ValueError as error:
        raise UserError(f"{option} {text!r} {error}") from None


def bytes_of(option: str, text: str) -> int:
    """Bytes of a size such as ``2G``. Raises ``UserError``."""
    from dbdyno.model.quantity import size_bytes

    return _with_unit(option, text, size_bytes)


def seconds_of(option: str, text: str) -> float:
    """Seconds of a time such as ``50ms``, above 0. Raises ``UserError``."""
    from dbdyno.model.quantity import duration_seconds

    seconds = _with_unit(option, text, duration_seconds)
    if not seconds:
        raise UserError(f"{option} {text!r} must be above 0")
    return seconds


def plain_seconds_of(option: str, text: str) -> float:
    """Seconds of a time such as ``50ms``, or of a plain number as in fio. Raises ``UserError``."""
    return seconds_of(option, text if text[-1:].isalpha() else f"{text}s")


def fraction_of(option: str, text: str) -> float:
    """Fraction of a percentage such as ``3%``, above 0 and below 1. Raises ``UserError``."""
    from dbdyno.model.quantity import fraction

    share = _with_unit(option, text, fraction)
    if not 0 < share < 1:
        raise UserError(f"{option} {text!r} must be above 0% and below 100%")
    return share


def nanoseconds_of(option: str, text: str) -> int:
    """Nanoseconds of a time such as ``50ms``, above 0. Raises ``UserError``."""
    return round(seconds_of(option, text) * 1e9)


def range_of(option: str, text: str) -> tuple[int, int]:
    """First byte and first byte after of a range such as ``0-1M`` or ``4096-8192``. Raises ``UserError``."""
    first, dash, last = text.partition("-")
    if not dash:
        raise UserError(f'{option} {text!r} is not a range of bytes; write it such as "0-1M" or "4096-8192"')
    start, end = (int(part) if part.isdecimal() else bytes_of(option, part) for part in (first, last))
    if start >= end:
        raise UserError(f"{option} {text!r} is empty: its end is the first byte that does not belong to it")
    return start, end


def one_of(option: str, value: object, allowed: Sequence[T]) -> T:
    """The value, which is among those allowed. Raises ``UserError`` where it is not."""
    for allowed_value in allowed:
        if allowed_value == value:
            return allowed_value
    meant = did_you_mean(str(value), map(str, allowed))
    raise UserError(f"{option} is {' or '.join(map(str, allowed))}, not {value}{meant}")


# Options that give a field of a study.
FIELDS = {
    "--servers": "stack.server", "--server": "stack.server", "--device": "stack.device", "--load": "workload.load",
    "--clients": "workload.clients", "--duration": "workload.duration", "--blocks": "design.blocks",
    "--only": "suite.only", "--cuts": "crash.cuts",
}  # fmt: skip


def write_study(study: Path, text: str) -> None:
    """Write a study that dbdyno has made for a run, and its folder. Raises ``UserError`` where the user may not."""
    try:
        study.parent.mkdir(parents=True, exist_ok=True)
        study.write_text(text, encoding="utf-8")
    except (PermissionError, NotADirectoryError, FileExistsError) as error:
        remedy = "start dbdyno in a folder that you may write to"
        raise UserError(f"{study}: can't be written: {error.strerror}; {remedy}") from None


def without_place(study: Path, text: str, options: Mapping[str, object] | None = None) -> str:
    """What was said of a study without its file and lines, where nobody can look at it any more.

    ``options`` are fields of the study by the options that gave them, which then stand in their place; those without a
    value were not given.
    """
    text = re.sub(rf"(?m)^{re.escape(str(study))}:(\d+:)? ", "", text)
    for option, value in (options or {}).items():
        if value:
            text = re.sub(rf"(?m)^{re.escape(FIELDS[option])}: ", f"{option}: ", text)
    return text


def note_ssh_config(hosts: Path | None) -> Path | None:
    """Say which configuration of ssh a file of hosts names, as that may have programs run on this machine.

    It is a callback of the option, whose value stays as it is. What is wrong with the file is left to the verb to say.
    """
    if hosts is None:
        return None
    from dbdyno.hosts.inventory import read_inventory
    from dbdyno.model.printable import printable

    try:
        config = read_inventory(hosts).ssh_config
    except UserError:
        return hosts
    if config is not None:
        runs = "programs that it names (such as ProxyCommand or Match exec) run on this machine, as you"
        typer.echo(f"ssh reads {printable(str(config))}, named by {printable(str(hosts))}: {runs}", err=True)
    return hosts


BLOCKS = typer.Option(None, min=1, max=1000, help="Run exactly so many blocks.")
MAX_BLOCKS = typer.Option(None, min=6, max=1000, help="Stop after so many blocks at the latest.")
UNTIL_DECIDED = typer.Option(
    False,
    "--until-decided",
    help="Stop once every comparison is decided; with --resume, even beyond the plan.",
)
SEED = typer.Option(
    None, parser=seed_of, metavar="<int>", help="Seed of the order; the study's, or a random one, if not given."
)
BUDGET = typer.Option(None, metavar="TIME", help='Begin no block that would end later than this, such as "2h".')
SCALE = typer.Option("", metavar="NAME", help="Run the study at one of its scales: the sections [scale.NAME.*] of it.")

INTO = typer.Option(
    None, parser=folder_of, metavar="<path>", help="The run folder to make; runs/NAME-DATE-TIME, if not given."
)
RESUME = typer.Option(False, "--resume", help="Go on with the run in that folder, same seed, same order.")
HTML = typer.Option(False, "--html", help="Write the HTML report into the run folder at the end.")
HTML_FILE = typer.Option(
    None, "--html", parser=path_of, metavar="FILE", help="Write a self-contained HTML page as well."
)
WAIT = typer.Option(False, "--wait", help="Wait for another run on this host to end.")
FRESH_IMAGES = typer.Option(False, "--fresh-images", help="Prepare all data anew, not from dbdyno images.")
KEEP_TRACES = typer.Option(
    False, "--keep-traces", help="Keep every request of each trial in the run folder, 256 MiB each at most."
)
PROFILE = typer.Option(
    False, "--profile", help="Then profile the server by perf, in a trial of each treatment that is not judged."
)
HOSTS = typer.Option(
    None, "--hosts", metavar="FILE", help="Hosts that are up: see dbdyno hosts.", callback=note_ssh_config
)
TIME_UNIT = typer.Option(
    None, "--time-unit", metavar="UNIT", help="s, ms, us, 100ns or ns: of a trace's times, where its format is silent."
)
LENGTH_UNIT = typer.Option(
    None, "--length-unit", metavar="UNIT", help="sectors or bytes: of a trace's places and lengths, likewise."
)
ERASE = typer.Option([], metavar="SERIAL", help="Erase the real device with this serial, whatever it holds.")


def stop_options(
    blocks: int | None, max_blocks: int | None, budget: str | None, *, until_decided: bool
) -> "StopOptions":
    """What the options ask for. Raises ``UserError`` where they contradict each other."""
    from dbdyno.plan.stop_rule import StopOptions

    seconds = None if budget is None else seconds_of("--budget", budget)
    options = StopOptions(blocks, max_blocks, seconds, until_decided)
    options.check()
    return options


# Where runs go unless ``--into`` says: ``runs/NAME-DATE-TIME``.


RUNS = Path("runs")


def new_folder(name: str) -> Path:
    """Return a folder that is not there yet, by the local clock."""
    base = f"{name}-{datetime.now().astimezone():%Y%m%d-%H%M%S}"  # noqa: TID251  (a name for people)
    tried = (RUNS / (base if number == 1 else f"{base}-{number}") for number in range(1, 1000))
    return next(path for path in tried if not (path.exists() or path.with_suffix(".toml").exists()))


def folder_for(into: Path | None, study: Path, *, resume: bool) -> Path:
    """Return the folder that was named, or a new one. Raises ``UserError``: there is none to go on with."""
    if into is None and resume:
        raise UserError("--resume needs --into DIR, the run to go on with; dbdyno runs lists them")
    return into or new_folder(study.stem)
