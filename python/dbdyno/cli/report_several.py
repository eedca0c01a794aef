"""``dbdyno report DIR DIR...``: several runs together."""

from pathlib import Path

from dbdyno.cli.formats import Format
from dbdyno.cli.members import members
from dbdyno.cli.page_file import write_page
from dbdyno.cli.show import print_document, say_where_the_rest_is


def show_several(folders: list[Path], format_: Format, html: Path | None, *, details: bool) -> None:
    """Print the ranking over the runs and each one's verdicts; with ``html`` write the page of all of them too."""
    from dbdyno.analysis.several import together
    from dbdyno.report.several import document

    found = document(together(members(folders)))
    brief = format_ is Format.TEXT and not details
    print_document(found, format_, brief=brief)
    if html is not None:
        write_page(html, found, aside=format_ is not Format.TEXT)
    if brief:
        say_where_the_rest_is("the same with", html=html is not None)
