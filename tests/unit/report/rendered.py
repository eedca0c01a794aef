"""A run's report in each format, as tests ask for it."""

from dbdyno.report.contents import document
from dbdyno.report.render import html, json, markdown, text


def as_text(run, analysis, width=120):
    return text.render(document(run, analysis), width)


def as_markdown(run, analysis):
    return markdown.render(document(run, analysis))


def as_json(run, analysis):
    return json.render(document(run, analysis))


def as_page(run, analysis, series=None):
    return html.render(document(run, analysis, series))
