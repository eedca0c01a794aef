"""A static site of many results: run folders, simulated sweeps and quick looks, found, drawn and written.

A result's page and card are drawn by a process of its own; a result that can't be read is left out and named.
"""

import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.quick import Quick, Target, quick_of, target_from_values
from dbdyno.errors import DbdynoError, HostError, UserError
from dbdyno.model.printable import one_line, short
from dbdyno.model.wording import count
from dbdyno.notebook import columns_of, trial_rows, verdict_rows
from dbdyno.report import card, contents, quick, simulation
from dbdyno.report.atlas import (
    QUERY,
    TABLES,
    AtlasEntry,
    figures_of_quick,
    figures_of_run,
    figures_of_sweep,
    gallery,
    side_by_side,
    tables,
)
from dbdyno.report.charts.timeseries import columns_drawn
from dbdyno.report.document import Document
from dbdyno.report.render import html
from dbdyno.report.render.json import rounded
from dbdyno.store.documents import json_object
from dbdyno.store.others import Budget, last_resort
from dbdyno.store.run_folder import is_begun, read_run
from dbdyno.store.series import as_parquet, read_analysed_and
from dbdyno.system.files import is_full, read_regular, why_not_written

RESULTS_MAX = 5000
JSON_BYTES_MAX = 64 * 1024**2
JSON_VALUES_MAX = 10**6  # of a sweep: one of 100 combinations, with their samples, has half as many
ATLAS = "atlas.json"  # which files of a site are dbdyno's
DISKS = "data/disks.json"  # what quick looks found, for dbdyno quick --atlas
_COMMON = ("index.html", "compare.html", "README.md", DISKS)
_OWN = re.compile(r"(?:index|compare)\.html|README\.md|(?:runs|cards|data)/[A-Za-z0-9_][A-Za-z0-9_.-]*")
_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
_NAME_MAX = 80
_DAY = re.compile(r"\d{4}-\d\d-\d\d(?!\d)")
README = """\
# Atlas

`index.html` leads to {results} made by dbdyno; no server is needed. All figures are in `data`, as Parquet files.
DuckDB, started in this folder, answers for example:

```sql
{query}```

`figures` has a row for each treatment, with what it stood on; `verdicts` one for each comparison; `trials` one for each
trial. Results were not interleaved with each other: a difference between two of them includes all that differs between
their hosts and days. `host` says which kind of host a figure is from.
"""


@dataclass(frozen=True)
class Built:
    """A site as it was written."""

    entries: Sequence[AtlasEntry]
    left_out: Mapping[str, str]  # what could not be read -> why


# Which results there are: folders and files that are given, or lie in a folder that is given.


def find(paths: Sequence[Path]) -> list[Path]:
    """Return run folders and JSON files. Raises ``UserError`` where a path holds none, or all hold too many."""
    found: dict[str, Path] = {}
    for path in paths:
        inner = [path] if _is_result(path) else sorted(filter(_is_result, _inside(path)))
        if not inner:
            raise UserError(f"{path} holds no run folder and no .json of dbdyno simulate or quick")
        found |= {os.path.realpath(one): one for one in inner}
    if len(found) > RESULTS_MAX:
        raise UserError(f"these are {len(found)} results; an atlas has at most {RESULTS_MAX}")
    return list(found.values())


def _is_result(path: Path) -> bool:
    return is_begun(path) if path.is_dir() else path.suffix == ".json" and path.is_file()


def _inside(path: Path) -> list[Path]:
    try:
        return list(path.iterdir())
    except NotADirectoryError:
        return []
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None


def _names(paths: Sequence[Path]) -> list[str]:
    """Return a name for each, that is one of a file and no other's."""
    names: list[str] = []
    for path in paths:
        plain = _NAME.sub("-", path.resolve().name.removesuffix(".json")).strip("-.")[:_NAME_MAX] or "result"
        tried = (plain if number == 1 else f"{plain}-{number}" for number in range(1, RESULTS_MAX + 1))
        names.append(next(name for name in tried if name not in names))
    return names


# One result: read, its page and card written, and what the others need of it returned.


def draw(path: Path, name: str, into: Path) -> AtlasEntry:
    """Write the page and the card of a result. Raises ``DbdynoError`` or ``OSError``."""
    with last_resort(path):
        document, entry = _run_entry(path, name) if path.is_dir() else _json_entry(path, name)
        page, picture = html.render(document, home="../index.html"), str(card.draw(document))
    (into / "runs" / f"{name}.html").write_bytes(page.encode("utf-8", "replace"))
    (into / "cards" / f"{name}.svg").write_bytes(picture.encode("utf-8", "replace"))
    return entry


def _run_entry(path: Path, name: str) -> tuple[Document, AtlasEntry]:
    budget = Budget()
    run = read_run(path, budget=budget)
    if not run.trials:
        raise UserError(f"{path}: no trial of it was finished")
    analysed, series = read_analysed_and(path, run, columns_drawn(run), budget)
    analysis = analyse(run, **analysed)
    report = contents.document(run, analysis, series)
    entry = AtlasEntry(
        name=name, title=one_line(run.title), answer=one_line(card.answer(report)),
        how="simulated" if run.is_simulated else "measured",
        when=_day(min((trial.started_at for trial in run.trials), default="")), measured_here=not run.imported,
        has_names=not run.imported, figures=list(figures_of_run(name, run, analysis)),
        verdicts=[_plain(row) for row in verdict_rows(analysis)],
        trials=[_plain(row) for row in trial_rows(run, analysis)],
    )  # fmt: skip
    return report, entry


def _day(text: str) -> str:
    """Return the day that a time begins with; nothing where it is none."""
    return text[:10] if _DAY.match(text) else ""


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a row fits into a table: texts, numbers, yes and no."""
    return {name: value for name, value in row.items() if value is None or isinstance(value, str | int | float)}


def _json_entry(path: Path, name: str) -> tuple[Document, AtlasEntry]:
    """Return what ``dbdyno quick --json`` or ``simulate --json`` printed. Raises ``UserError`` where it is neither."""
    try:
        values = json_object(read_regular(path, JSON_BYTES_MAX), values_max=JSON_VALUES_MAX)
        if values.get("simulated") is True and "points" in values:
            return _sweep_entry(values, name)
        if "targets" in values and "likeness" in values:
            return _quick_entry(values, name)
        why = "it is neither of dbdyno quick --json nor of dbdyno simulate --json"
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
        why = str(error) if type(error) is ValueError else f"its {short(str(error), 60)} is not as dbdyno writes it"
    raise UserError(f"{path}: {why}")


def _sweep_entry(values: Mapping[str, Any], name: str) -> tuple[Document, AtlasEntry]:
    load, by_levels = str(values["load"]), dict[tuple[tuple[str, str], ...], list[Any]]()
    for point in values["points"]:
        levels = {str(factor): str(level) for factor, level in point["levels"].items()}
        by_levels.setdefault(tuple(levels.items()), []).append(point["outcome"])
    rows = [simulation.Row(dict(levels), tuple(outcomes)) for levels, outcomes in by_levels.items()]
    report = simulation.document(rows, load, str(values["replay"] or ""), "")
    figures = list(figures_of_sweep(name, rows, load))
    return report, AtlasEntry(
        name, *_words(report), "simulated", "", measured_here=True, has_names=True, figures=figures
    )


def _quick_entry(values: Mapping[str, Any], name: str) -> tuple[Document, AtlasEntry]:
    look = _without_place(quick_of(values))
    report, figures = quick.document(look), list(figures_of_quick(name, look))
    when = _day(look.facts.get("measured", ""))
    disks = [{"rounds": look.noise.n, **quick.target_values(look.target)}]
    about: dict[str, Any] = {"measured_here": True, "has_names": False, "figures": figures, "disks": disks}
    return report, AtlasEntry(name, *_words(report), "quick look", when, **about)


def _words(report: Document) -> tuple[str, str]:
    """Return the title and the answer of a report."""
    return one_line(report.title), one_line(card.answer(report))


def _without_place(look: Quick) -> Quick:
    """Return a quick look without the host's name and the folder's: an atlas is shown to others."""
    facts = {fact: text for fact, text in look.facts.items() if fact != "host"}
    against = look.against
    if against is not None and against.kind != "model":
        against = replace(against, name="another disk")
    return replace(look, target=replace(look.target, name=facts.get("disk", "a disk")), against=against, facts=facts)


# The site.


def build(
    paths: Sequence[Path],
    into: Path,
    *,
    lacking: Sequence[str] = (),
    processes: int | None = None,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Built:
    """Write the site of these results into a new folder, or over the site that is there.

    It names the studies that it is ``lacking``: those that belong to it and were not measured yet.

    Raises:
        UserError: There is nothing to show, or the folder holds something else.
        HostError: The disk is full.

    """
    results = find(paths)
    try:
        before = _own_files(into)
        names = _names(results)
        planned = [f"{folder}/{name}.{end}" for name in names for folder, end in (("runs", "html"), ("cards", "svg"))]
        planned += [*_COMMON, *(f"data/{name}.parquet" for name in TABLES)]
        into.mkdir(parents=True, exist_ok=True)
        _write_list(into, before | set(planned))  # one that is killed can be made anew
        for folder in ("runs", "cards", "data"):
            (into / folder).mkdir(parents=True, exist_ok=True)
        entries, left_out = _draw_all(dict(zip(names, results, strict=True)), into, processes, progress)
        if not entries:
            raise UserError("; ".join(left_out.values()))
        written = {*_write_common(entries, lacking, into)}
        written |= {f"runs/{entry.name}.html" for entry in entries} | {f"cards/{entry.name}.svg" for entry in entries}
        for file in sorted((before | set(planned)) - written):
            (into / file).unlink(missing_ok=True)
        _write_list(into, written)
    except OSError as error:
        wrong = HostError if is_full(error) else UserError
        raise wrong(why_not_written(error, into)) from None
    return Built(entries, left_out)


def _own_files(into: Path) -> set[str]:
    """Return the files of a site that are dbdyno's. Raises ``UserError`` where a folder holds something else."""
    if not into.exists() or (into.is_dir() and not any(into.iterdir())):
        return set()
    try:
        files = json_object(read_regular(into / ATLAS, JSON_BYTES_MAX, follow=False))["files"]
        return {file for file in files if isinstance(file, str) and _OWN.fullmatch(file)}
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(f"{into} is not empty and is no atlas; name a new folder") from None


def _write_list(into: Path, files: Collection[str]) -> None:
    (into / ATLAS).write_text(json.dumps({"format": 1, "files": sorted(files)}, indent=1), encoding="utf-8")


def _draw_all(
    results: Mapping[str, Path], into: Path, processes: int | None, progress: Callable[[int, int], None]
) -> tuple[list[AtlasEntry], dict[str, str]]:
    """Draw each result, by its name, in processes; return what came of each, and why others were left out."""
    entries, left_out = {}, {}
    with ProcessPoolExecutor(processes or min(len(results), len(os.sched_getaffinity(0)))) as pool:
        futures = {pool.submit(draw, path, name, into): name for name, path in results.items()}
        for done, future in enumerate(as_completed(futures), 1):
            name = futures[future]
            try:
                entries[name] = future.result()
            except (DbdynoError, OSError) as error:
                if isinstance(error, OSError) and is_full(error):
                    raise
                left_out[str(results[name])] = one_line(str(error))
            progress(done, len(results))
    return [entries[name] for name in results if name in entries], left_out


def _write_common(entries: Sequence[AtlasEntry], lacking: Sequence[str], into: Path) -> Iterator[str]:
    """Write what is of all results together, and yield the name of each file."""
    texts = {
        "index.html": gallery(entries, lacking),
        "compare.html": html.render(side_by_side(entries), home="index.html"),
        "README.md": README.format(results=count(len(entries), "result"), query=QUERY),
    }
    files = {name: text.encode("utf-8", "replace") for name, text in texts.items()}
    files |= {f"data/{name}.parquet": as_parquet(columns_of(rows)) for name, rows in tables(entries).items() if rows}
    disks = [disk for entry in entries for disk in entry.disks]
    files[DISKS] = json.dumps(rounded({"format": 1, "disks": disks}), indent=1).encode()
    for name, content in files.items():
        (into / name).write_bytes(content)
        yield name


def disks_of(site: Path) -> tuple[Target, ...]:
    """Return the disks that quick looks in an atlas were at. Raises ``UserError`` where it is no atlas."""
    try:
        disks = json_object(read_regular(site / DISKS, JSON_BYTES_MAX))["disks"]
        return tuple(target_from_values(disk, int(disk["rounds"])) for disk in disks)
    except OSError as error:
        raise UserError(f"--atlas {site}: is no atlas: {site / DISKS}: {error.strerror}") from None
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise UserError(
            f"--atlas {site}: {site / DISKS}: is not as dbdyno writes it: {short(str(error), 60)}"
        ) from None
