"""What the shell offers for a value. Answers at once, changes nothing, and offers nothing where something is amiss."""

from collections.abc import Callable, Iterable

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
            return sorted(one for one in suggest(incomplete) if one.startswith(incomplete))
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
    from dbdyno.study.products import PROVISIONED

    return PROVISIONED


@quiet
def servers(_: str) -> Iterable[str]:
    """Offer the servers that a study may name."""
    from dbdyno.study.products import DISTRIBUTION, PROVISIONED

    return DISTRIBUTION, *PROVISIONED


@quiet
def devices(_: str) -> Iterable[str]:
    """Offer what a study may stand on, but for a disk of this host's."""
    return "here", "memory", *drives("")


@quiet
def levels(incomplete: str) -> Iterable[str]:
    """Offer FIELD=LEVEL,LEVEL of the fields whose levels are words; after a comma the levels that are left."""
    from dbdyno.filesystems.catalogue import KINDS

    known: dict[str, Iterable[str]] = {"device": devices(""), "scheduler": SCHEDULERS}
    known |= {"filesystem": KINDS, "server": servers("")}
    field, _, given = incomplete.partition("=")
    before, comma, _ = given.rpartition(",")
    wanted = {field: known[field]} if field in known else known
    taken = before.split(",")
    return [f"{name}={before}{comma}{one}" for name, all_ in wanted.items() for one in all_ if one not in taken]
