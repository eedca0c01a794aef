"""The renderers: every kind of block in every format, untrusted text escaped, and no section known by name."""

import json
import re
from pathlib import Path

import pytest

from dbdyno.report import document as doc
from dbdyno.report.render import html, markdown, text
from dbdyno.report.render import json as as_json

RENDER = Path(html.__file__).parent
HOSTILE = "a|b <script>alert(1)</script> *x* `y` [l](u) {{ 7 * 7 }} \x1b[31m\n# z"
SVG = dict.fromkeys(("wide", "narrow"), '<svg role="img" aria-label="a chart"></svg>')


def document(say="told", **fields):
    """A document with one block of each kind; every text in it is ``say``."""
    item = doc.Item((f"{say} is ", doc.Strong("faster", "faster"), f" than {say}."), (say,), (say,), (say,))
    blocks = (
        doc.Paragraph(say, "soft"),
        doc.List((item,), "verdicts", say),
        *doc.bullets([say]),
        doc.Table(say, ("treatment", say), ((say, doc.Cell(say, say, strong=True)),), words=(1,)),
        doc.Table(say, (), ((say, say),)),
        doc.Table(
            say,
            ("treatment", "rate", "a", "b"),
            ((say, "3", "1", "2"),),
            "results",
            (),
            True,
            ("cpu", "read"),
            ((1.0, 2.0),),
        ),
        doc.Chart(say, SVG.__getitem__, (say,)),
        doc.TimeCharts(
            (say,),
            ((say, (0,)),),
            (say,),
            {"treatments": [], "panels": [{"title": say, "unit": say}], "phases": []},
        ),
        doc.CodeBlock("command", say, say),
        doc.List((doc.Item((doc.Strong("faster", "faster"), f": {say}")),)),
        doc.Details(say, (doc.Paragraph(say),), 1),
        doc.Abridged(full=(doc.Paragraph("at length"),), short=(doc.Paragraph("in short"),)),
        doc.Section("inner", say, (doc.Paragraph(say),)),
    )
    section = doc.Section("scripted", say, blocks, say, {"scripted": [say, float("nan"), 1 / 3]}, **fields)
    return doc.Document(say, (doc.Paragraph(say, "question"),), (section,), {"study": say})


def test_every_block_is_drawn(snapshot):
    assert text.render(document()) == snapshot(name="text")
    assert markdown.render(document()) == snapshot(name="markdown")
    assert as_json.render(document()) == snapshot(name="json")
    page = html.render(document())
    assert page[page.index("<body>") : page.index("<footer")] == snapshot(name="html")


def test_hostile_text_stays_text():
    told = document(HOSTILE)
    assert "\x1b" not in text.render(told)
    marked = markdown.render(told)
    assert "<script" not in "\n".join(line for line in marked.splitlines() if line[:4] != "    ").replace("\\<", "")
    assert "\n# z" not in marked
    page = html.render(told)
    assert "<script>alert" not in page
    assert "{{ 7 * 7 }}" in page
    assert len(re.findall(r"<script\b", page)) == 2
    assert json.loads(as_json.render(told))["study"] == HOSTILE


@pytest.mark.parametrize("render", [text.render, markdown.render])
def test_a_section_with_nothing_to_show_in_a_format_is_left_out_of_it(render):
    charts = doc.Section(
        "charts", "Only charts", (doc.Chart("", SVG.__getitem__), doc.Abridged(full=(doc.Paragraph("x"),)))
    )
    told = doc.Document("title", (), (charts,))
    assert "Only charts" not in render(told)
    assert "Only charts" in html.render(told)


def test_a_report_in_brief_has_its_opening_sections():
    assert "at length" not in text.render(document())
    assert text.render(document("x"), brief=True) == "x\n"
    assert "in short" in text.render(document("x", opening=True), brief=True)


def test_unknown_figures_are_null_and_others_rounded():
    found = json.loads(as_json.render(document()))
    assert found == {"schema": as_json.SCHEMA, "study": "told", "scripted": ["told", None, 0.333333]}


def test_a_short_page_shows_its_sections_and_a_long_one_folds_them():
    def page(n):
        return html.render(
            doc.Document("t", (), tuple(doc.Section(f"n{i}", f"N <{i}>", (doc.Paragraph("x"),)) for i in range(n)))
        )

    for i in range(3):
        assert f'<h2 id="s-n{i}">N &lt;{i}&gt;</h2>' in page(3)
    for i in range(4):
        assert f'<details class="part"><summary><h2>N &lt;{i}&gt;</h2></summary>\n<div id="s-n{i}">' in page(4)


def test_renderers_know_no_section():
    for path in RENDER.glob("*.py"):
        assert "dbdyno.report.sections" not in path.read_text(encoding="utf-8")
