"""What the shell offers for a value. Answers at once, changes nothing, and offers nothing where something is amiss."""

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import typer

from dbdyno.errors import DbdynoError
from dbdyno.model.word import Word

# As in the study's schema, which takes a third of a second to import; a test holds them against it.
SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")
WORKLOADS = ("slap", "smack", "oltp", "tpcc", "ledger", "ingest", "bulk", "script", "replay-log", "fio", "bonnie",
             "sysbench", "mysqlslap", "command", "dump")  # fmt: skip
LOADS = ("read", "key", "write", "update", "mixed")  # of slap
VERDICTS = tuple(word for word in Word if " " not in word)  # a shell would take two words for two

Suggest = Callable[[str], list[str]]


def quiet(suggest: Callable[[str], Iterable[str]]) -> Suggest:
    """Return it as the command line calls it: of what begins as ``incomplete``, in order; without a word of errors."""

    def of(incomplete: str) -> list[str]:
        try:
            return sorted(word for word in suggest(incomplete) if word.startswith(incomplete))
        except (OSError, ValueError, DbdynoError):
            return []

    return of


def of_words(*words: str) -> Suggest:
    """Offer one of these words."""
    return quiet(lambda _: words)


workloads, loads = of_words(*WORKLOADS), of_words(*LOADS)


@quiet
def drives(_: str) -> Iterable[str]:
    """Offer the drives of the catalogue."""
    from dbdyno._native import device_models

    return [model["name"] for model in device_models()]


@quiet
def servers_to_get(_: str) -> Iterable[str]:
    """Offer the servers that can be downloaded."""
    from dbdyno.mysql.settings import PROVISIONED

    return PROVISIONED


@quiet
def kernels_to_get(_: str) -> Iterable[str]:
    """Offer the kernels that can be downloaded."""
    from dbdyno.model.design import BOOTED_KERNELS

    return BOOTED_KERNELS


@quiet
def servers(_: str) -> Iterable[str]:
    """Offer the servers that a study may name."""
    from dbdyno.mysql.settings import DISTRIBUTION, PROVISIONED

    return DISTRIBUTION, *PROVISIONED


@quiet
def devices(_: str) -> Iterable[str]:
    """Offer what a study may stand on, but for a disk of this host's."""
    return "here", "memory", *drives("")


@quiet
def levels(incomplete: str) -> Iterable[str]:
    """Offer FIELD=LEVEL,LEVEL of the fields whose levels are words; after a comma the levels that are left."""
    from dbdyno.filesystems import KINDS

    known: dict[str, Iterable[str]] = {"device": devices(""), "scheduler": SCHEDULERS}
    known |= {"filesystem": KINDS, "server": servers("")}
    field, _, level_text = incomplete.partition("=")
    before, comma, _ = level_text.rpartition(",")
    wanted = {field: known[field]} if field in known else known
    taken = before.split(",")
    return [f"{name}={before}{comma}{level}" for name, all_ in wanted.items() for level in all_ if level not in taken]


# What the shell offers for a study, a run folder, a disk.
#
# Names are offered only where no shell would read anything into them; the shell itself completes those of other files.


LOOKED_AT_MAX = 1000  # entries of a folder
_PLAIN = re.compile(r"[\w./+,-]+", re.ASCII)


@quiet
def attached_disks(_: str) -> Iterable[str]:
    """Offer the names of attached disks, from their cards alone: nobody is asked, no undo log is opened."""
    import json

    from dbdyno.system.state import state_folder

    cards = sorted((state_folder() / "scratch").glob("*/disk.json"))[:LOOKED_AT_MAX]
    return _plain(str(json.loads(card.read_text(encoding="utf-8"))["name"]) for card in cards)


@quiet
def block_devices(_: str) -> Iterable[str]:
    """Offer the block devices of this host and attached disks."""
    return [*os.listdir("/sys/block"), *attached_disks("")]  # noqa: PTH208 - their names are asked for


@quiet
def run_folders(incomplete: str) -> Iterable[str]:
    """Offer the run folders in the folder that is being typed, in runs/ where none is."""
    if "/" not in incomplete and "runs".startswith(incomplete):
        incomplete = "runs/"
    above = incomplete.rpartition("/")[0]
    run_files = sorted(Path(above or ("/" if incomplete.startswith("/") else ".")).glob("*/run.toml"))[:LOOKED_AT_MAX]
    return _plain(
        f"{above}/{run_file.parent.name}" if "/" in incomplete else run_file.parent.name for run_file in run_files
    )


def kept_cuts(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the cuts of the run that stands before, whose states are kept."""

    @quiet
    def of_run(_: str) -> Iterable[str]:
        states = sorted(Path(context.params["run"]).glob("trials/*/cuts/*/about.json"))[:LOOKED_AT_MAX]
        return _plain(f"{state_file.parents[2].name}/{state_file.parent.name}" for state_file in states)

    return of_run(incomplete)


@quiet
def studies(incomplete: str) -> Iterable[str]:
    """Offer study files, and folders; one folder alone would be followed by a space, so what is in it is offered."""
    names = _toml_files(incomplete)
    while len(names) == 1 and names[0].endswith("/"):
        names = _toml_files(names[0])
    return names


def _toml_files(incomplete: str) -> list[str]:
    above, slash, begun = incomplete.rpartition("/")
    names = []
    with os.scandir(f"{above}{slash}" or ".") as entries:
        for _, entry in zip(range(LOOKED_AT_MAX), entries, strict=False):
            if entry.name.startswith(begun) and not (entry.name.startswith(".") and not begun):
                folder = entry.is_dir()
                if folder or entry.name.endswith(".toml"):
                    names.append(f"{above}{slash}{entry.name}{'/' if folder else ''}")
    return list(_plain(names))


def _plain(names: Iterable[str]) -> Iterable[str]:
    return (name for name in names if _PLAIN.fullmatch(name))
