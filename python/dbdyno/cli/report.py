"""``dbdyno report``, ``compare``, ``rank`` and ``history``: they read run folders, on any machine, and judge."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dbdyno.cli.options import HTML_FILE, fraction_of, path_of
from dbdyno.cli.output import (
    AS_JSON,
    DETAILS,
    FORMAT,
    Format,
    ReportFormat,
    print_document,
    refuse_to_overwrite,
    with_json,
    write_page,
    write_whole,
)
from dbdyno.cli.show import SAFETY, exit_by_thresholds, members, runs_in, show, show_several
from dbdyno.cli.suggestions import VERDICTS, of_words, run_folders, studies
from dbdyno.errors import UserError
from dbdyno.model.word import CONDITION_HOLDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbdyno.analysis.analyse import Analysis
    from dbdyno.analysis.fail_if import Thresholds
    from dbdyno.report.document import Document
    from dbdyno.store.records import Run


# What ``report`` and ``compare`` do for scripts: an exit code, JUnit's XML, GitHub's annotations.


FAIL_IF = typer.Option(
    [],
    "--fail-if",
    metavar="VERDICT",
    help='Exit with 3 if a verdict is so, as in "slower by 5%"; may be repeated.',
    autocompletion=of_words(*VERDICTS),
)
JUNIT = typer.Option(None, "--junit", parser=path_of, metavar="FILE", help="Write the verdicts as JUnit's XML.")
ANNOTATIONS = typer.Option(False, "--annotations", help="Print the verdicts as GitHub's annotations, too.")


def conclude(
    document: "Document",
    fail_if: list[str],
    junit: Path | None,
    *,
    annotations: bool,
    aside: bool,
    studies: "Sequence[Thresholds | None]" = (),
) -> None:
    """Write and print what was asked for, and end with 3 where a condition holds; the report has been printed.

    Annotations go ``aside`` to standard error, where GitHub finds them too, if standard output is a program's.
    Thresholds of the ``studies`` that were run, one for each run, are written and printed, too.

    Raises:
        UserError: A condition is none, or the file can't be written.
        typer.Exit: A condition of ``fail_if`` holds.

    """
    from dbdyno.errors import UserError
    from dbdyno.report import outcome

    comparisons = outcome.compared(document)
    named = outcome.failed(comparisons, [outcome.condition_of(text) for text in fail_if])
    names = [run["name"] for run in document.values()["runs"]] if len(studies) > 1 else [""]
    failures, cases = dict[outcome.OutcomeCase, str](), list[outcome.OutcomeCase](comparisons)
    for name, thresholds in zip(names, studies, strict=False):
        if thresholds is not None:  # of its own run alone
            safety = list(outcome.safety_of(thresholds, name))
            own = [comparison for comparison in comparisons if comparison.of == name]
            failures |= outcome.failed(own, thresholds.conditions)
            failures |= {case: case.condition for case in safety if case.condition}
            cases += safety
    failures |= named
    if junit is not None:
        try:
            junit.write_text(outcome.junit(document.title, cases, failures), encoding="utf-8")
        except OSError as error:
            raise UserError(f"{junit}: {error.strerror}") from None
    if annotations:
        typer.echo("\n".join(outcome.annotations(document.title, cases, failures)), err=aside)
    for case, condition in failures.items():
        typer.echo(f"{condition}: {case.sentence}", err=True)
    if named:
        raise typer.Exit(CONDITION_HOLDS)


def check_conditions(fail_if: list[str], junit: Path | None) -> None:
    """Raises ``UserError`` for a condition that is none, or a file without a folder, before anything is read."""
    from dbdyno.errors import UserError
    from dbdyno.report.outcome import condition_of

    if junit is not None and not junit.parent.is_dir():
        raise UserError(f"--junit {junit}: there is no folder {junit.parent}; make it, or name another")

    for text in fail_if:
        condition_of(text)


# Writing a run's figures for Prometheus, whole or not at all: a textfile collector may read at any moment.


BEGINNING = (b"# help dbdyno_",)
PROMETHEUS = typer.Option(
    None, "--prometheus", parser=path_of, metavar="FILE", help="Write the figures in Prometheus's text format as well."
)


def write_prometheus(path: Path, folders: list[Path], runs: "list[tuple[Run, Analysis]]") -> None:
    """Write the figures of runs, of one folder each. Raises ``UserError``, or ``HostError`` where the disk is full."""
    from dbdyno.report.outcome import Exported, render
    from dbdyno.store.others import last_resort

    names = [Path(os.path.realpath(folder)).name for folder in folders]
    labels = names if len(set(names)) == len(names) else list(map(str, folders))
    exported = [Exported(label, *run_and_analysis) for label, run_and_analysis in zip(labels, runs, strict=True)]
    with last_resort(*folders):
        content = render(exported).encode("utf-8", "replace")
    write_whole(path, content)


def check_prometheus(path: Path | None) -> None:
    """Raises ``UserError`` where a textfile collector would pass the file over, or it would replace another."""
    if path is None:
        return
    if path.suffix != ".prom":
        raise UserError(f"--prometheus {path}: a textfile collector reads *.prom alone; name it {path.name}.prom")
    refuse_to_overwrite(path, BEGINNING, "holds no figures of dbdyno's")


# A summary card: a picture of the result to share. SVG is written by dbdyno itself, PNG drawn by a browser.


PICTURES = (b"<svg", b"\x89png")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
DRAW_SECONDS_MAX = 60
CARD = typer.Option(
    None, "--card", parser=path_of, metavar="FILE", help="Write a summary card as well: .svg, or .png (needs Chromium)."
)


def check_card(path: Path | None) -> None:
    """Raises ``UserError`` for a file that is no picture by its name, or a PNG where there is no browser to draw it."""
    if path is None:
        return
    if path.suffix not in {".svg", ".png"}:
        raise UserError(f"--card {path}: a card is an .svg or a .png; name it {path.with_suffix('.svg').name}")
    if path.suffix == ".png" and browser() is None:
        svg = path.with_suffix(".svg").name
        raise UserError(f"--card {path}: only Chromium can draw a PNG, and it is not installed; name it {svg}")
    refuse_to_overwrite(path, PICTURES, "is neither an SVG nor a PNG")


def browser() -> str | None:
    """Return the path of a browser that can draw a page without a window; None where there is none."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def write_card(path: Path, document: "Document", *, aside: bool) -> None:
    """Write the card of a report whole, or leave what is there, and say where.

    Raises:
        UserError: It can't be written, or the browser has drawn nothing.
        HostError: The disk is full.

    """
    from dbdyno.report.card import draw

    svg = str(draw(document)).encode("utf-8", "replace")
    write_whole(path, svg if path.suffix == ".svg" else _render_png(svg, path))
    typer.echo(f"Summary card: {path}", err=aside)


def _render_png(svg: bytes, path: Path) -> bytes:
    """Return the picture as PNG. The browser sees a folder of its own, and nothing of a network."""
    from dbdyno.report.card import HEIGHT, WIDTH
    from dbdyno.system.child import child, exit_words

    program = browser() or BROWSERS[0]
    with tempfile.TemporaryDirectory(prefix="dbdyno-card-", ignore_cleanup_errors=True) as folder:
        page, picture = Path(folder, "card.svg"), Path(folder, "card.png")
        page.write_bytes(svg)
        flags = ["headless", "disable-gpu", "hide-scrollbars", "no-first-run", "disable-background-networking"]
        flags += ["disable-sync", "proxy-server=127.0.0.1:9", f"user-data-dir={folder}/profile"]
        flags += [f"window-size={WIDTH},{HEIGHT}", f"screenshot={picture}"]
        flags += ["no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses its sandbox to root
        argv = [program, *(f"--{flag}" for flag in flags), page.as_uri()]
        with child(argv, env={**os.environ, "HOME": folder}) as process:
            try:
                process.communicate(timeout=DRAW_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                raise UserError(f"{path}: {program} drew nothing within {DRAW_SECONDS_MAX} s; name an .svg") from None
        if not picture.exists():
            raise UserError(f"{path}: {program} drew nothing ({exit_words(process.returncode)}); name an .svg")
        return picture.read_bytes()


def report(
    folders: list[Path] = typer.Argument(
        parser=path_of,
        metavar="DIR",
        help="The run folder; with several, all on one page.",
        autocompletion=run_folders,
    ),
    printed: ReportFormat = typer.Option(
        ReportFormat.TEXT, "--format", help="How to print it; csv, parquet: a row per trial."
    ),
    html: Path | None = HTML_FILE,
    json_: bool = AS_JSON,
    details: bool = DETAILS,
    every_pair: bool = typer.Option(
        False, "--every-pair", help="Verdicts of all pairs as well, marked as not planned."
    ),
    prices: Path | None = typer.Option(
        None,
        parser=path_of,
        metavar="STUDY",
        help="Take prices from [cost] of this study file.",
        autocompletion=studies,
    ),
    safety: Path | None = SAFETY,
    fail_if: list[str] = FAIL_IF,
    junit: Path | None = JUNIT,
    annotations: bool = ANNOTATIONS,
    prometheus: Path | None = PROMETHEUS,
    card: Path | None = CARD,
) -> None:
    """Print the result of a run, or of several with a ranking over them, and write their HTML page.

    Exits 3 if a threshold of --fail-if or of the study's [fail_if] is crossed, 4 if one could not be judged.
    """
    printed = with_json(printed, json_=json_)
    if printed in {ReportFormat.CSV, ReportFormat.PARQUET}:
        if html is not None or prometheus is not None or card is not None:
            option = "--html" if html is not None else "--prometheus" if prometheus is not None else "--card"
            raise UserError(f"--format {printed} is a table without a report; leave out {option}")
        show_trials(folders, parquet=printed is ReportFormat.PARQUET)
        return
    check_conditions(fail_if, junit)
    if html is not None:
        refuse_to_overwrite(html)
    check_prometheus(prometheus)
    check_card(card)
    format_ = Format(printed)
    if len(folders) > 1 and (every_pair or prices or safety):
        option = "--every-pair" if every_pair else "--prices" if prices else "--safety"
        raise UserError(f"{option} is for one run; give one folder")
    if len(folders) == 1:
        more = {"every_pair": every_pair, "details": details}
        shown = show(folders[0], format_, html, prices=prices, safety=safety, **more)
    else:
        shown = show_several(folders, format_, html, details=details)
    if prometheus is not None:
        write_prometheus(prometheus, folders, shown.runs)
    if card is not None:
        write_card(card, shown.document, aside=format_ is not Format.TEXT)
    conclude(
        shown.document,
        fail_if,
        junit,
        annotations=annotations,
        aside=format_ is Format.JSON,
        studies=[analysis.thresholds for _, analysis in shown.runs],
    )
    exit_by_thresholds(shown)


# ``dbdyno report DIR... --format csv | parquet``: a row for each finished trial.


def show_trials(folders: list[Path], *, parquet: bool) -> None:
    """Write the table to standard output; of several runs, their names are its first column.

    Raises:
        UserError: Parquet would go to a terminal, or a folder can't be read.

    """
    from dbdyno.notebook import columns_of, trial_rows
    from dbdyno.store.others import last_resort
    from dbdyno.store.series import as_csv, as_parquet

    if parquet and sys.stdout.isatty():
        raise UserError("parquet is a binary format: write it into a file, as in > trials.parquet")
    runs = members(folders)
    several = len(runs) > 1
    with last_resort(*folders):
        columns = columns_of(
            {**({"run": member.name} if several else {}), **row}
            for member in runs
            for row in trial_rows(member.run, member.analysis)
        )
        if parquet:
            sys.stdout.buffer.write(as_parquet(columns))
        else:
            sys.stdout.write(as_csv(columns))


# ``dbdyno compare DIR DIR``: two runs, before and after a change.


def compare(
    before: Path = typer.Argument(
        metavar="BEFORE", help="The run folder from before the change.", autocompletion=run_folders
    ),
    after: Path = typer.Argument(metavar="AFTER", help="The run folder from after it.", autocompletion=run_folders),
    format_: Format = FORMAT,
    json_: bool = AS_JSON,
    html: Path | None = HTML_FILE,
    margin: str | None = typer.Option(
        None, metavar="PERCENT", help="Judge by this margin, such as 3%; else the runs'."
    ),
    names: list[str] = typer.Option(
        [], "--map", metavar="OLD=NEW", help="Labels of a treatment that is called differently in the two runs."
    ),
    control: str | None = typer.Option(None, metavar="LABEL", help="A treatment that should not have changed."),
    fail_if: list[str] = FAIL_IF,
    junit: Path | None = JUNIT,
    annotations: bool = ANNOTATIONS,
) -> None:
    """Compare two runs, treatment by treatment, and list what else differs between them."""
    from dbdyno.analysis.two_runs import compare as compared
    from dbdyno.report.comparison import document
    from dbdyno.store.others import last_resort

    format_ = with_json(format_, json_=json_)
    if os.path.realpath(before) == os.path.realpath(after):
        raise UserError(f"{before} and {after} are the same folder; name two runs")
    check_conditions(fail_if, junit)
    if html is not None:
        refuse_to_overwrite(html)
    width = None if margin is None else fraction_of("--margin", margin)
    (first, second), _ = runs_in([before, after])
    with last_resort(before, after):
        comparison = document(first, second, compared(first, second, margin=width, names=names, control=control))
        print_document(comparison, format_)
        if html is not None:
            write_page(html, comparison, aside=format_ is not Format.TEXT)
    conclude(comparison, fail_if, junit, annotations=annotations, aside=format_ is Format.JSON)


# ``dbdyno rank DIR...``: stacks in order over the tests of one or more runs.


def rank(
    folders: list[Path] = typer.Argument(
        parser=path_of, metavar="DIR", help="One or more run folders.", autocompletion=run_folders
    ),
    format_: Format = FORMAT,
    json_: bool = AS_JSON,
    baseline: str | None = typer.Option(None, metavar="STACK", help="What scores are ratios to [the first run's]."),
) -> None:
    """Rank stacks over several tests: the loads of one run, or of several runs of the same stacks."""
    from dbdyno.analysis.analyse import distinct_names
    from dbdyno.analysis.ranking import rank_runs
    from dbdyno.report.sections.ranking import document
    from dbdyno.store.others import last_resort

    format_ = with_json(format_, json_=json_)
    runs, _ = runs_in(folders)
    names = distinct_names([run.title for run in runs], folders)
    with last_resort(*folders):
        ranking = rank_runs(list(zip(names, runs, strict=True)), baseline)
        print_document(document(ranking, runs), format_)


# ``dbdyno history DIR...``: runs of the same study through time, and when something changed.


def history(
    folders: list[Path] = typer.Argument(
        parser=path_of, metavar="DIR", help="Run folders, in any order.", autocompletion=run_folders
    ),
    format_: Format = FORMAT,
    json_: bool = AS_JSON,
    html: Path | None = HTML_FILE,
    since: str | None = typer.Option(
        None, metavar="RUN", help="List changes from this run, or date (2026-11-29), on; all runs are read."
    ),
    control: str | None = typer.Option(None, metavar="LABEL", help="A treatment that should not change."),
    margin: str | None = typer.Option(
        None, metavar="PERCENT", help="Judge by this margin, such as 3%; else the last run's."
    ),
    fail_if: list[str] = FAIL_IF,
    junit: Path | None = JUNIT,
    annotations: bool = ANNOTATIONS,
) -> None:
    """Show when runs of the same study changed, such as nightly ones, by how far runs lie apart."""
    from dbdyno.analysis.analyse import distinct_names
    from dbdyno.analysis.history import history as through_time
    from dbdyno.report.history import document, place_of
    from dbdyno.store.others import last_resort

    format_ = with_json(format_, json_=json_)
    check_conditions(fail_if, junit)
    if html is not None:
        refuse_to_overwrite(html)
    width = None if margin is None else fraction_of("--margin", margin)
    runs, _ = runs_in(folders)
    names = [folder.name for folder in folders]
    names = names if len(set(names)) == len(names) else distinct_names([str(folder) for folder in folders], folders)
    with last_resort(*folders):
        found = through_time(list(zip(names, runs, strict=True)), margin=width, control=control)
        shown = document(found, place_of(found, since))
        print_document(shown, format_)
        if html is not None:
            write_page(html, shown, aside=format_ is not Format.TEXT)
    conclude(shown, fail_if, junit, annotations=annotations, aside=format_ is Format.JSON)
