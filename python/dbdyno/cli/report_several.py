"""``dbdyno report DIR DIR...``: several runs together."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.cli.page_file import write_page
from dbdyno.cli.report import Format
from dbdyno.errors import UserError

if TYPE_CHECKING:
    from dbdyno.analysis.several import Member


def show_several(folders: list[Path], format_: Format, html: Path | None) -> None:
    """Print the ranking over the runs and each one's verdicts; with ``html`` write the page of all of them too."""
    from dbdyno.analysis.several import together
    from dbdyno.report import json, markdown, several_html, several_text

    several = together(members(folders))
    if format_ is Format.TEXT and sys.stdout.isatty():
        from rich.console import Console

        Console().print(several_text.SeveralReport(several))
    else:
        renderers = {
            Format.TEXT: several_text.render,
            Format.MARKDOWN: markdown.render_several,
            Format.JSON: json.render_several,
        }
        sys.stdout.write(renderers[format_](several).rstrip("\n") + "\n")
    if html is not None:
        write_page(html, lambda: several_html.render(several), aside=format_ is not Format.TEXT)


def members(folders: list[Path]) -> list["Member"]:
    """Read and analyse each run. Raises ``UserError`` where a folder is given twice."""
    from dbdyno.analysis.folder import analyse_folder
    from dbdyno.analysis.several import Member, told_apart
    from dbdyno.store.run_folder import read_run

    if len({folder.resolve() for folder in folders}) < len(folders):
        raise UserError("a run folder is given twice; its blocks would count twice")
    runs = [read_run(folder) for folder in folders]
    named = zip(told_apart([run.title for run in runs], folders), folders, runs, strict=True)
    return [Member(name, run, analyse_folder(folder, run)) for name, folder, run in named]
