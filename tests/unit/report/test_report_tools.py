"""What a page's script adds: tables that sort, values under the pointer, and everything to take away."""

import base64
import csv
import gzip
import io
import json
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.model.printable import distinguishable
from dbdyno.report.document import Badge, Cell, Document, Section, Table
from dbdyno.report.render import html
from tests.browser import browser, opened
from tests.unit.report.rendered import as_json, as_page

SAVED = """window.files = []; URL.createObjectURL = blob => { files.push(blob); return '#'; };
HTMLAnchorElement.prototype.click = function () {}; 0"""
TEXTS = "Promise.all(files.map(blob => blob.text()))"
NAMES = "Array.from({}.querySelectorAll('tbody th')).map(each => each.textContent.trim())"
TIP = "(tip => tip.hidden ? null : tip.textContent)(document.querySelector('.tip'))"
SVG = "http://www.w3.org/2000/svg"


@pytest.fixture(scope="module")
def page(run, series_of):
    return as_page(run, analyse(run), series_of(run))


def table_page(*rows):
    table = Table("Some figures", ("name", "effect", "word"), rows)
    return html.render(Document("A page", (), (Section("some", "Some", (table,)),)))


def clicked(tab, selector, place=0):
    tab.value(f"document.querySelectorAll({json.dumps(selector)})[{place}].click()")


@browser
def test_a_heading_sorts_up_then_down_then_as_it_was(tmp_path):
    rows = [("b", "+3.1 % (+2 to +4 %)", "x"), ("c", "unknown", "y"), ("a", "2.50x", "z"), ("d", "-12 %", "w")]
    with opened(table_page(*rows), tmp_path) as tab:
        found = {}
        for way in ("ascending", "descending", None):
            clicked(tab, "thead button", 1)
            assert tab.value("document.querySelectorAll('th[scope=col]')[1].getAttribute('aria-sort')") == way
            found[way] = "".join(tab.value(NAMES.format("document")))
        assert found == {"ascending": "dbac", "descending": "abdc", None: "bcad"}


@browser
def test_the_keyboard_sorts_as_well(tmp_path):
    with opened(table_page(("b", "2", ""), ("a", "1", "")), tmp_path) as tab:
        tab.value("document.querySelector('thead button').focus()")
        tab.press(" ")
        assert tab.value(NAMES.format("document")) == ["a", "b"]
        assert tab.console() == []


@browser
def test_a_phone_sorts_by_a_list_and_does_not_reach_headings_that_it_hides(tmp_path):
    with opened(table_page(("b", "2", ""), ("a", "10", "")), tmp_path, width=390) as tab:
        assert tab.value("document.querySelector('.sort').getClientRects().length") == 1
        tab.value("(s => { s.value = '1'; s.dispatchEvent(new Event('change')); })(document.querySelector('.sort'))")
        assert tab.value(NAMES.format("document")) == ["a", "b"]
        assert tab.value("Array.from(document.querySelectorAll('thead button')).every(each => each.tabIndex === -1)")


@browser
def test_every_table_is_a_csv_that_a_spreadsheet_does_not_run(tmp_path):
    rows = [('a "b", c', Cell("+3.1 %", "+2 to +4 %"), "=1+1"), ("-x", "-5", "@f")]
    rows += [("+1+cmd|'/C calc'!A0", "-2+3", "-12 us"), ("\uff1d1", "+SUM(A1)", "-0.5 % (-1 to +0.2 %)")]
    with opened(table_page(*rows), tmp_path) as tab:
        tab.value(SAVED)
        clicked(tab, ".tools .tool:last-child")
        (text,) = tab.value(TEXTS)
    assert list(csv.reader(io.StringIO(text.removeprefix("\ufeff")))) == [
        ["name", "effect", "word"],
        ['a "b", c', "+3.1 % (+2 to +4 %)", "'=1+1"],
        ["'-x", "-5", "'@f"],
        ["'+1+cmd|'/C calc'!A0", "'-2+3", "-12 us"],
        ["'\uff1d1", "'+SUM(A1)", "-0.5 % (-1 to +0.2 %)"],
    ]


@browser
def test_the_page_has_a_csv_for_each_table_and_an_svg_for_each_chart(page, tmp_path):
    with opened(page, tmp_path) as tab:
        tables, charts = (
            tab.value(f"document.querySelectorAll('{name}').length") for name in ("table", "[data-panel]")
        )
        drawn = tab.value("document.querySelectorAll('.chart.roomy').length")
        tab.value("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        tab.value(SAVED)
        tab.value("document.querySelectorAll('button.tool:not([data-card])').forEach(each => each.click())")
        tab.wait("files.some(blob => blob.type === 'image/png')")
        files = tab.value(TEXTS)
        assert tab.console() == []
    pictures = [ET.fromstring(text) for text in files if text.startswith("<svg")]
    assert len(pictures) == charts + drawn + 1, "and the card"
    assert len(files) == len(pictures) + tables + 1, "and the card as PNG"
    lines = [one for one in pictures if one.findall(f".//{{{SVG}}}polyline")]
    assert len(lines) >= charts
    assert all(float(one.get("width")) > 100 for one in pictures)
    titles = [title.text for one in pictures for title in one.iter(f"{{{SVG}}}title")]
    assert any("faster, 4.19x" in title for title in titles)
    assert {"hdd-7200 / none", "ssd-sata / none"} <= set(titles)


def test_the_whole_data_is_in_the_page_without_a_script(run, page):
    packed = re.search(r'href="data:application/gzip;base64,([^"]+)"', page)[1]
    found = json.loads(gzip.decompress(base64.b64decode(packed)))
    assert found == json.loads(as_json(run, analyse(run)))
    assert len(packed) < 0.1 * len(page)


@browser
def test_the_data_is_saved_unpacked(run, page, tmp_path):
    with opened(page, tmp_path) as tab:
        tab.value(SAVED)
        tab.value("document.querySelector('[data-packed]').dispatchEvent(new MouseEvent('click', {cancelable: true}))")
        tab.wait("files.length === 1")
        (text,) = tab.value(TEXTS)
    assert json.loads(text) == json.loads(as_json(run, analyse(run)))


@browser
def test_the_pointer_reads_a_row_in_full_and_a_dot_by_itself(run, tmp_path):
    levels = [
        {"device": f"a-very-long-name-of-a-drive-that-is-too-long-for-a-chart-{item.id}"}
        for item in run.design.treatments
    ]
    treatments = [replace(item, levels=each) for item, each in zip(run.design.treatments, levels, strict=True)]
    told = replace(run, design=replace(run.design, treatments=treatments))
    with opened(as_page(told, analyse(told), {}), tmp_path) as tab:
        row = "document.querySelector('.roomy svg g[data-says]')"
        box = tab.value(f"(b => [b.left + 30, b.top + 12])({row}.getBoundingClientRect())")
        assert re.match(r"a-very\S+…\S+-t4vs a-very", tab.value(f"{row}.textContent"))
        tab.point_at(*box)
        whole = r"(a-very-long\S+) vs (a-very-long\S+): faster, .* 8 blocks, p [=<] [\d.]+; .* queries/s"
        assert re.fullmatch(whole, tab.value(TIP))
        assert "…" not in tab.value(TIP)
        dot = "document.querySelector('.roomy svg path[data-says]')"
        place = f"(p => [p.x, p.y])(new DOMPoint(...{dot}.getAttribute('d').match(/M([-\\d.]+),([-\\d.]+)/).slice(1))"
        tab.point_at(*tab.value(f"{place}.matrixTransform({dot}.getScreenCTM()))"))
        assert re.fullmatch(r"block \d: [-+\d.]+( %|x)", tab.value(TIP))
        tab.point_at(1, 1)
        assert tab.value(TIP) is None


@browser
def test_arrow_keys_read_the_marks_of_a_chart(page, tmp_path):
    with opened(page, tmp_path) as tab:
        tab.value("document.querySelector('.roomy svg').focus()")
        tab.press("ArrowRight")
        first = tab.value(TIP)
        assert "faster" in first
        tab.press("ArrowRight")
        assert tab.value(TIP) != first
        tab.press("Home")
        assert tab.value(TIP) == first
        tab.press("Escape")
        assert tab.value(TIP) is None
        assert tab.value("document.querySelector('.tip').getAttribute('role')") == "status"


def test_every_dot_of_a_drawing_says_its_value(page):
    paths = re.findall(r'<path d="([^"]+h0)"[^>]*data-says="([^"]+)"', page)
    assert len(paths) >= 4 + 4 + 8
    assert all(d.count("h0") == says.count("|") + 1 for d, says in paths)


@browser
def test_without_a_script_the_page_is_whole(page, tmp_path):
    still = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    with opened(still, tmp_path) as tab:
        assert tab.value("document.querySelectorAll('.roomy svg title').length") > 4
        assert tab.value("Array.from(document.querySelectorAll('button')).filter(e => e.checkVisibility()).length") == 0
        assert tab.value("document.querySelector('[data-packed]').href").startswith("data:application/gzip")


def test_a_badge_without_a_section_is_no_link():
    from dbdyno.report.document import Badges

    page = html.render(Document("A page", (), (Section("b", "", (Badges((Badge("x", "y <z>"),)),)),)))
    assert '<span class="badge" title="y &lt;z&gt;">x</span>' in page


def test_names_that_are_cut_short_still_differ():
    assert distinguishable(["a", "b"], 9) == ["a", "b"]
    assert distinguishable(["a" * 30 + "1", "a" * 30 + "2"], 9) == ["aaaa…aaa1", "aaaa…aaa2"]
    middle = ["x" * 20 + name + "y" * 20 for name in ("ext4", "xfs")]
    assert len(set(distinguishable(middle, 9))) == 2
    assert all(len(name) <= 9 for name in distinguishable(middle, 9))
