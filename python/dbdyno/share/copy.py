"""A run folder written anew of another, with nothing in it but numbers and words that dbdyno knows.

The copy is made of typed values, field by field, by the code that writes every run folder. So what goes in is what
these types have, less their prose and whatever names a thing; hosts get other names (``words``); logs, raw files and
scripts are not looked at. The same is done when a result is sent and when one of others is read: neither has to be
trusted.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.model.disks import series_name
from dbdyno.model.printable import one_line
from dbdyno.share.words import Words, is_known
from dbdyno.store.documents import document_of, value_of
from dbdyno.store.events import Event, Finished, Note, read_events
from dbdyno.store.header import Header
from dbdyno.store.others import Budget
from dbdyno.store.parts import damaged, why_wrong
from dbdyno.store.records import Run, Trial
from dbdyno.store.run_folder import LOCK, create, read_header, read_run
from dbdyno.store.series import read_analysed_and

if TYPE_CHECKING:
    from numpy.typing import NDArray

TITLE_CHARACTERS_MAX = 120
GOES_IN = (
    "the design: treatments, comparisons, blocks, margin and seed; the fields of the study; versions",
    "each trial: its figures, what was read back of each layer, when it began, and whether it met interference",
    "the series that a report uses, and how often each latency was met",
    "which trials failed; processor, cores, memory and kernel of the host",
)
LEFT_OUT = (
    "the text of the study file, with its title, question, expectation and published tables",
    "scripts, drive files, prices, and variables of the environment",
    "logs of servers and tools, raw histograms, recorded requests, and states kept after power cuts",
    "notes, and the causes of failures",
    "serials, paths, checksums, and the names of prepared data",
)
# Fields of the header that hold files, texts and names of the user's own.
_OWN = {
    "question", "expect", "result", "study_file", "study_sha256", "reported", "cost", "drive_files", "scripts",
    "file_hashes", "variables",
}  # fmt: skip


@dataclass(frozen=True)
class Copied:
    """What a copy was made of."""

    title: str
    trials: int
    series: Collection[str]
    words: Words
    notes: int  # that were left out


def copy_without_names(
    source: Path,
    into: Path,
    *,
    title: str = "",
    allowed: Collection[str] = (),
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Copied:
    """Write the run folder ``source`` anew as ``into``; without a ``title`` it is called by what it varies.

    ``allowed`` are texts that may stay as they are; ``progress`` is told how many trials of how many are written.

    Raises:
        UserError: A folder is damaged, or the copy can't be written.

    """
    from dbdyno.report.charts.timeseries import columns_drawn

    budget = Budget()
    run, events = read_run(source, budget=budget), list(read_events(source))
    words = Words(frozenset(allowed))
    words.name_hosts(_hosts(run))
    analysed, drawn = read_analysed_and(source, run, columns_drawn(run), budget)
    series = {
        trial.id: _series(trial.id, analysed["load_series"], analysed["watched"], drawn, analysed["latencies"])
        for trial in run.trials
    }
    try:
        header = header_without_names(read_header(source), words, title)
        trials = {trial.id: trial_without_names(trial, words) for trial in run.trials}
        anew = [(event, _event(event, words)) for event in events]
    except ValueError as error:
        raise damaged(source, why_wrong(error)) from None
    folder = create(into, header, words.document(run.host, "host"), remedy="name a new folder")
    try:
        done = 0
        for event, copied in anew:
            if isinstance(event, Finished):
                if event.trial in trials:
                    done += 1
                    trial = trials[event.trial]
                    folder.trial_folder(trial.id)
                    folder.finish(trial, _named(series[event.trial], run.disk_names, words))
                    progress(done, len(trials))
            elif copied is not None:
                folder.append(copied)
    finally:
        folder.close()
    names = dict.fromkeys(name for of_trial in series.values() for name in of_trial)
    return Copied(header.title, len(trials), list(names), words, len(run.notes))


def _hosts(run: Run) -> list[str]:
    of_loads = [host.get("host", "") for trial in run.trials for host in trial.load.get("client_hosts") or []]
    fleet = run.design.fleet.hosts if run.design.fleet else []
    return list(filter(None, dict.fromkeys([*fleet, *run.hosts, *(trial.host for trial in run.trials), *of_loads])))


# Each typed value of a run folder without names.


def header_without_names(header: Header, words: Words, title: str = "") -> Header:
    """Return what was planned. Raises ``ValueError`` where it would be no header any more."""
    kept = {name: value for name, value in document_of(header).items() if name not in _OWN}
    design = kept["design"]
    if design.get("fleet"):
        design["fleet"]["disks"] = {}  # each is a path and a serial
    kept |= {"title": "", "question": ""}
    copied = value_of(Header, words.document(kept))
    shown = one_line(title)[:TITLE_CHARACTERS_MAX] or _title(copied)
    return replace(copied, title=shown, study_file="", imported=True)


def _title(header: Header) -> str:
    """Return what a study varies and is judged by, as a title."""
    varied = dict.fromkeys(name for treatment in header.design.treatments for name in treatment.levels)
    workload = header.study.get("workload", {})
    load = " ".join(str(workload[name]) for name in ("kind", "load") if isinstance(workload.get(name), str))
    by = " and ".join(varied) or "one treatment"
    return one_line(f"{load}: {by}" if load else by)[:TITLE_CHARACTERS_MAX]


def trial_without_names(trial: Trial, words: Words) -> Trial:
    """Return a trial. Raises ``ValueError`` where it would be none any more."""
    document = asdict(trial)
    # A server has hundreds of variables, and plugins bring more: those of other names or values tell nothing here.
    document["server_variables"] = {
        name: value for name, value in trial.server_variables.items() if is_known(name) and is_known(value)
    }
    copied = value_of(Trial, words.document(document))
    return replace(copied, started_at=trial.started_at if is_known(trial.started_at) else "")


def _event(event: Event, words: Words) -> Event | None:
    """Return an event; none of a note that says no more than its text. Raises ``ValueError``."""
    if isinstance(event, Finished) or (isinstance(event, Note) and event.given_up is None):
        return None
    document = {name: value for name, value in asdict(event).items() if name != "sha256"}
    return value_of(type(event), words.document(document))


def _series(
    trial: str,
    loads: "Mapping[str, Mapping[str, NDArray[Any]]]",
    watched: "Mapping[str, Mapping[str, Mapping[str, NDArray[Any]]]]",
    drawn: "Mapping[str, Mapping[str, Mapping[str, NDArray[Any]]]]",
    latencies: Mapping[str, Any],
) -> "dict[str, dict[str, NDArray[Any]]]":
    """Return the series that an analysis or a page needs of a trial."""
    series: dict[str, dict[str, Any]] = {}
    for name, columns in ({"load": loads[trial]} if trial in loads else {}).items():
        series.setdefault(name, {}).update(columns)
    for part in (watched.get(trial, {}), drawn.get(trial, {})):
        for name, columns in part.items():
            series.setdefault(name, {}).update(columns)
    if trial in latencies:
        met = latencies[trial]
        series["latency"] = {"latency_ns": met.latency_ns, "count": met.count}
    return series


def _named(
    series: "Mapping[str, Mapping[str, NDArray[Any]]]", disks: Sequence[str], words: Words
) -> "dict[str, dict[str, NDArray[Any] | list[str]]]":
    """Return series with names of ``disks``, which the user gave, and texts replaced; others were asked for by name."""
    return {
        _series_name(name, disks, words): {column: _values(values, words) for column, values in columns.items()}
        for name, columns in series.items()
    }


def _series_name(name: str, disks: Sequence[str], words: Words) -> str:
    disk = next((disk for disk in disks if name.endswith(series_name("", disk))), "")
    return series_name(name.removesuffix(series_name("", disk)), words.text(disk)) if disk else name


def _values(values: "NDArray[Any]", words: Words) -> "NDArray[Any] | list[str]":
    return [words.text(str(text or "")) for text in values] if values.dtype.kind == "O" else values


def copied_files(path: Path) -> Iterator[tuple[str, int]]:
    """Yield each file of a copy, with its bytes, in the order of names."""
    for file in sorted(path.rglob("*")):
        if file.is_file() and file.name != LOCK:
            yield str(file.relative_to(path)), file.stat().st_size
