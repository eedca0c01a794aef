"""``dbdyno report DIR``: verdicts from a run folder alone, on any machine."""

from pathlib import Path

import typer

from dbdyno.cli.crash_run_beside import SAFETY
from dbdyno.cli.formats import DETAILS, Format, ReportFormat, with_json
from dbdyno.cli.outcome import ANNOTATIONS, FAIL_IF, JUNIT, check_conditions, conclude
from dbdyno.cli.page_file import refuse_to_overwrite
from dbdyno.cli.prometheus_file import PROMETHEUS, check_prometheus, write_prometheus
from dbdyno.cli.show import show, show_several
from dbdyno.cli.suggested_places import run_folders, studies
from dbdyno.cli.values import path_of
from dbdyno.errors import UserError


def report(
    folders: list[Path] = typer.Argument(
        parser=path_of,
        metavar="DIR...",
        help="The run folder; with several, all on one page.",
        autocompletion=run_folders,
    ),
    printed: ReportFormat = typer.Option(
        ReportFormat.TEXT, "--format", help="How to print it; csv, parquet: a row per trial."
    ),
    html: Path | None = typer.Option(
        None, parser=path_of, metavar="FILE", help="Write a self-contained HTML page as well."
    ),
    json_: bool = typer.Option(False, "--json", help="The same as --format json."),
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
) -> None:
    """Print the result of a run, or of several with a ranking over them, and write their HTML page."""
    printed = with_json(printed, json_=json_)
    if printed in {ReportFormat.CSV, ReportFormat.PARQUET}:
        from dbdyno.cli.report_trials import show_trials

        if html is not None or prometheus is not None:
            option = "--html" if html is not None else "--prometheus"
            raise UserError(f"--format {printed} is a table without a report; leave out {option}")
        show_trials(folders, parquet=printed is ReportFormat.PARQUET)
        return
    check_conditions(fail_if, junit)
    if html is not None:
        refuse_to_overwrite(html)
    check_prometheus(prometheus)
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
    conclude(shown.document, fail_if, junit, annotations=annotations, aside=format_ is Format.JSON)
