"""The summary card: a picture with the answer, made of what the report says itself."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.model.design import FailIf
from dbdyno.report import card
from dbdyno.report.contents import document
from dbdyno.report.document import Badge, Badges, Document, Paragraph, Section, inside, plain
from tests.browser import browser, opened
from tests.crash_runs import crash_run
from tests.unit.report.shared_pages import PAGES, against_the_first, observing

SVG = "{http://www.w3.org/2000/svg}"
WRITTEN = "window.written = []; navigator.clipboard.write = items => (written.push(...items), Promise.resolve());"
BEYOND = """Array.from(document.querySelectorAll('svg text')).filter(e => (b => b.x < 0 || b.x + b.width > 1200
    || b.y < 0 || b.y + b.height > 630)(e.getBBox())).map(e => e.textContent)"""


def texts(svg):
    return [one.text or "" for one in ET.fromstring(str(svg)).iter(f"{SVG}text")]


def saying(answer, *, title="A study", question="What is asked?", figures=(), badges=()):
    head = (Paragraph(question, "question"),)
    sections = (
        Section("headline", "", (Paragraph(answer, "headline"),)),
        Section("badges", "", (Badges(tuple(badges), "8 blocks counted", "power cuts were not tried"),)),
    )
    return Document(title, head, sections, {}, tuple(figures))


def test_it_says_question_answer_three_figures_trust_safety_and_the_day(build):
    run = observing(build())
    report = document(run, analyse(run))
    said = texts(card.draw(report))
    joined = " ".join(said)
    assert run.title in said
    assert run.question in said
    assert card.answer(report) in joined
    assert len(report.figures) == 3
    assert {figure for figure, _ in report.figures} <= set(said)
    assert "8 blocks counted" in said
    assert "commits durable; power cuts were not tried" in said
    assert "2025-01-01" in joined


def test_the_lines_of_an_answer_stand_below_one_another():
    drawn = ET.fromstring(str(card.draw(saying("word " * 60)))).iter(f"{SVG}text")
    heights = [float(one.get("y")) for one in drawn if (one.text or "").startswith("word")]
    assert len(heights) > 2
    assert heights == sorted(set(heights))
    assert heights[0] > card.ANSWER_TOP
    assert heights[-1] < card.ANSWER_BOTTOM


@pytest.mark.parametrize(
    ("limits", "begins"),
    [(FailIf(faster=0.5), "Failed: "), (FailIf(slower=0.5), "Not judged: "), (None, "")],
)
def test_it_says_first_what_came_of_the_study_s_thresholds(build, limits, begins):
    run = build()
    run = replace(run, design=replace(run.design, fail_if=limits))
    assert f"{begins}{run.title}" in texts(card.draw(document(run, analyse(run))))


def test_its_figures_have_the_words_of_the_findings(build):
    run = observing(build())
    analysis = analyse(run)
    words = {f"{one.level} vs": one.verdict for one in analysis.verdicts}
    for figure, what in document(run, analysis).figures:
        assert re.search(r"[\d.]+(x| %)", figure)
        assert what.rpartition(": ")[2] in set(words.values())


def test_a_crash_run_counts_cuts_and_a_curve_its_knee():
    run = crash_run()
    figures = document(run, analyse(run)).figures
    assert figures[0][0] == "0 of 300"
    assert figures[0][1].startswith("power cuts lost commits: ")
    run = against_the_first("clients", "workload", {16: 1490.0, 2: 405.0, 4: 760.0, 8: 1240.0, 32: 1520.0})
    assert document(run, analyse(run)).figures[:1] == (("16", "clients at the knee"),)


@pytest.mark.parametrize(
    "answer", ['<script>alert(1)</script> & "x"', "word " * 400, "w" * 5000, "", "\u202eevil\n\x00"]
)
def test_what_a_study_says_is_escaped_and_has_room(answer):
    figures = [(answer or "-", answer or "-")] * 5
    svg = str(card.draw(saying(answer, title=answer or "t", question=answer, figures=figures)))
    root = ET.fromstring(svg)
    assert (root.get("width"), root.get("height")) == ("1200", "630")
    assert "<script" not in svg
    assert all("\u202e" not in text for text in texts(svg))
    assert len(texts(svg)) < 40


def test_what_to_beware_of_is_on_it():
    doubts = [Badge("interference in 4 of 8 trials", "", beware=True), Badge("not finished", "", beware=True)]
    said = texts(card.draw(saying("It is so.", badges=doubts)))
    assert "8 blocks counted · interference in 4 of 8 trials · not finished" in said


def test_a_page_tells_others_what_it_is_and_loads_nothing():
    page = PAGES["comparison"]()
    tags = dict(re.findall(r'<meta property="og:(\w+)" content="([^"]*)">', page))
    assert tags["title"] == "SSD or HDD"
    assert tags["description"].startswith("ssd-sata")
    assert tags["type"] == "article"
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', page)


@browser
@pytest.mark.parametrize("name", ["crash", "not_trustworthy", "quick_look"])
def test_no_text_of_it_is_cut_off(name, tmp_path):
    svg = re.search(r'class="card">(<svg.*?</svg>)', PAGES[name](), re.DOTALL)[1]
    with opened(svg, tmp_path, width=1300) as tab:
        assert tab.value(BEYOND) == []


@browser
def test_one_click_copies_it_as_a_picture(tmp_path):
    with opened(PAGES["quick_look"](), tmp_path) as tab:
        tab.value(WRITTEN)
        tab.value("document.querySelector('[data-card]').click()")
        tab.wait("document.querySelector('[data-card]').textContent === 'Copied'")
        kinds = tab.value("written[0].types")
        size = tab.value(
            "written[0].getType('image/png').then(blob => createImageBitmap(blob)).then(b => [b.width, b.height])"
        )
        assert (kinds, size) == (["image/png"], [1200, 630])
        assert tab.console() == []


def test_a_card_of_a_report_is_made_of_its_blocks(build):
    report = document(run := build(), analyse(run))
    headlines = [
        plain(block.text)
        for section in report.sections
        for block in inside(section)
        if isinstance(block, Paragraph) and block.style == "headline"
    ]
    assert headlines == [card.answer(report)]
