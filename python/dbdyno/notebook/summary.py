"""What a notebook shows of a run: its verdicts, the effect chart and the table. Every text of the run is escaped."""

from collections.abc import Iterable, Mapping

from markupsafe import Markup

from dbdyno.analysis.analyse import Analysis
from dbdyno.model.printable import html_text, one_line
from dbdyno.notebook.charts import Chart
from dbdyno.report.document import plain
from dbdyno.report.sections.results import results
from dbdyno.report.sections.stopped import stopped_lines
from dbdyno.report.sentences import NO_VERDICT, evidence, verdict_sentence
from dbdyno.report.source import marked
from dbdyno.store.records import Run


def summary_html(run: Run, analysis: Analysis, charts: Mapping[str, Chart]) -> str:
    """Return a fragment of HTML without style or script."""
    parts = [Markup("<h3>{}</h3>").format(one_line(marked(run.title, run)))]
    if run.question:
        parts.append(Markup("<p><em>{}</em></p>").format(one_line(run.question)))
    items = [
        Markup("<li>{}<br><small>{}</small></li>").format(
            one_line(plain(verdict_sentence(verdict, analysis))), one_line(evidence(verdict))
        )
        for verdict in analysis.verdicts
    ]
    parts.append(Markup("<ul>{}</ul>").format(_joined(items)) if items else html_text(NO_VERDICT))
    parts += [Markup("<p>{}</p>").format(one_line(line)) for line in stopped_lines(run, analysis)]
    if "effect" in charts:
        parts.append(Markup(charts["effect"]._repr_html_()))  # noqa: S704 - its texts are escaped
    table = results(analysis)
    parts.append(_table(table.headings, table.rows))
    return str(_joined(parts))


def _table(headings: Iterable[object], rows: Iterable[Iterable[object]]) -> Markup:
    head = _joined(Markup("<th>{}</th>").format(one_line(str(heading))) for heading in headings)
    body = _joined(
        Markup("<tr>{}</tr>").format(_joined(Markup("<td>{}</td>").format(one_line(str(cell))) for cell in row))
        for row in rows
    )
    return Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(head, body)


def _joined(parts: Iterable[Markup]) -> Markup:
    return Markup("\n").join(parts)
