"""The page as people use it: on a phone, on paper, in the dark, by keyboard, and with a screen reader."""

import re
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.model.design import Factor
from dbdyno.report.charts.svg import (
    DARK,
    LIGHT,
    TREATMENT_DASHES,
    TREATMENTS,
    TREATMENTS_ON_DARK,
    VERDICTS,
    VERDICTS_ON_DARK,
    stylesheet,
    treatment_class,
    treatment_dash,
    treatment_swatch,
)
from dbdyno.store.reported import DevicePrice, Prices
from tests.browser import AXE, SERIOUS, browser, opened
from tests.sampled import some
from tests.unit.report.rendered import as_markdown, as_page
from tests.unit.report.test_report_block_layer import trace
from tests.unit.report.test_report_reported import table

SECTIONS = [
    *(
        "Factors",
        "Results",
        "By cell",
        "Time by part",
        "Cost",
        "Reported and measured here",
        "Secondary metrics (exploratory): hints, not verdicts",
    ),
    *(
        "In the block layer",
        "Stability",
        "Over time",
        "In the order it ran",
        "Failed trials",
        "Trials with interference",
        "Notes",
    ),
    *("What was observed", "How to read a verdict", "How to reproduce"),
]
# A phone zooms out until all is seen: the window grows with what is too wide, the element's own width does not.
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
# What can be seen beside the window, not inside something that scrolls by itself.
OUTSIDE = """Array.from(document.querySelectorAll('main *')).filter(e => {
    const box = e.getBoundingClientRect();
    const apart = e.closest('.wide, pre, .unseen, .skip, svg *');
    return box.width > 1 && box.right > document.documentElement.clientWidth + 1 && !apart;
}).map(e => e.tagName + '.' + e.className)"""
READOUT = "document.querySelectorAll('.readout')[{}].textContent"
# Width and whether it is dark: one of two pairs is drawn, so both widths and both themes are seen.
PAIRS = [[(390, False), (1280, True)], [(390, True), (1280, False)]]
VIEWS = [view for pair in some("views", PAIRS, 0.5) for view in pair]
SPOKEN = "document.querySelectorAll('[data-panel]')[{}].getAttribute('aria-valuetext')"


@pytest.fixture(scope="module")
def page(build, series_of):
    """A page with most of what a page can hold: see ``SECTIONS``."""
    run = build(pairs=[("t1", "t3"), ("t2", "t4")])
    factors = [
        Factor("device", "stack", ["hdd-7200", "ssd-sata"]),
        Factor("scheduler", "stack", ["mq-deadline", "none"]),
    ]
    beyond = {"beyond": ["foreign_cpu"], "foreign_cpu": 0.4, "limits": {"foreign_cpu": 0.05}, "others": {"mypy": 0.6}}
    trials = [replace(one, disturbance=beyond) if one.block == 2 else one for one in run.trials]
    trials = [
        replace(
            one,
            metrics={**one.metrics, "events_per_second": one.metrics["queries_per_second"]},
            block_trace=trace(),
        )
        for one in trials
    ]
    drives = [
        DevicePrice("a", ["t1", "t2"], "a shop", price=60.0),
        DevicePrice("b", ["t3", "t4"], "a shop", price=120.0),
    ]
    run = replace(
        run,
        prices=Prices("EUR", 5.0, 0.5, devices=drives),
        design=replace(run.design, factors=factors, secondary_metrics=["latency_ms_p99"], steadiness=True),
        trials=trials,
        reported=[table()],
        expect="The SSD is several times faster.",
        study_file="study.toml",
        study_text='version = 1\n[study]\ntitle = "a & b <i>"\n' + "# " + "long " * 60,
    )
    series = series_of(run)
    loads = {id_: each["load"] for id_, each in series.items()}
    return as_page(run, analyse(run, each_pair=True, load_series=loads, watched=series), series)


def test_the_page_under_test_holds_every_section(page):
    assert set(SECTIONS) <= set(re.findall(r"<h2[^>]*>(.*?)</h2>", page))


@browser
@pytest.mark.parametrize(("width", "dark"), VIEWS)
def test_accessible_and_within_the_window(page, tmp_path, width, dark):
    with opened(page, tmp_path, width=width, dark=dark) as tab:
        tab.value("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        assert tab.value(OVERFLOW) <= 0
        assert tab.value(OUTSIDE) == []
        tab.value(AXE.read_text(encoding="utf-8") + ";0")
        assert tab.value(SERIOUS) == []
        assert tab.console() == []


@browser
def test_axe_sees_faults(page, tmp_path):
    with opened(page, tmp_path) as tab:
        # One fault will do: to tell of each costs it some time.
        tab.value("document.querySelector('.headline').style.color = '#dddddd'")
        tab.value(AXE.read_text(encoding="utf-8") + ";0")
        assert any(found.startswith("color-contrast") for found in tab.value(SERIOUS))


@browser
def test_the_pointer_reads_all_charts_at_one_time(page, tmp_path):
    with opened(page, tmp_path) as tab:
        tab.value("document.querySelectorAll('details.part').forEach(each => { each.open = true; })")
        assert tab.value(READOUT.format(0)) == ""
        tab.value("document.querySelector('.u-over').scrollIntoView()")
        box = tab.value(
            "(b => [b.left + b.width / 10, b.top + 40])(document.querySelector('.u-over').getBoundingClientRect())"
        )
        tab.point_at(*box)
        told = [tab.value(READOUT.format(place)) for place in (0, 1, 5)]
        assert len({text.split(" s")[0] for text in told}) == 1
        figures = "Array.from(document.querySelectorAll('.readout')[1].children).map(each => each.textContent)"
        assert len(tab.value(figures)) == 4
        assert all(re.fullmatch(r"[\d.,]+", text) for text in tab.value(figures))
        tab.point_at(1, 1)
        assert tab.value(READOUT.format(1)) == ""


@browser
def test_the_keyboard_reaches_and_reads_a_chart(page, tmp_path):
    with opened(page, tmp_path) as tab:
        tab.value("document.querySelectorAll('details.part').forEach(each => { each.open = true; })")
        tab.press("Tab")
        assert tab.value("document.activeElement.className") == "skip"
        tab.value("document.querySelectorAll('[data-treatment]')[3].focus()")
        tab.press(" ")
        tab.press("Tab")
        assert tab.value("document.activeElement.textContent") == "The load"  # the charts' group, which folds
        tab.press("Tab")
        assert tab.value("document.activeElement.dataset.panel") == "0"
        assert tab.value("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        tab.press("ArrowRight")
        tab.press("ArrowRight", shift=True)
        first, other = tab.value(SPOKEN.format(0)), tab.value(SPOKEN.format(4))
        assert first.split(":")[0] == other.split(":")[0] != "0.0 s"
        assert "hdd-7200 / mq-deadline" in first
        assert "ssd-sata / none" not in first  # switched off above
        assert tab.value("document.querySelector('[data-all]').hidden")
        tab.press("+")
        assert not tab.value("document.querySelector('[data-all]').hidden")
        tab.press("Escape")
        assert tab.value("document.querySelector('[data-all]').hidden")


@browser
def test_paper_is_light_and_whole(page, tmp_path):
    with opened(page, tmp_path, dark=True) as tab:
        assert tab.value("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 26)"
        pdf = tab.pdf()
        assert 4 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 40
        assert tab.value("document.querySelectorAll('details:not([open])').length") > 0  # folded again
        tab.call(
            "Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}]
        )
        tab.value("dispatchEvent(new Event('beforeprint'))")
        assert tab.value("getComputedStyle(document.documentElement).getPropertyValue('--paper').trim()") == "#ffffff"
        assert tab.value("getComputedStyle(document.documentElement).getPropertyValue('--ink').trim()") == "#17191c"
        assert tab.value("document.querySelectorAll('details:not([open])').length") == 0


@browser
@pytest.mark.parametrize(("width", "shown"), [(390, "tight"), (1280, "roomy")])
def test_one_drawing_of_each_chart_is_seen_and_none_is_shrunk(page, tmp_path, width, shown):
    with opened(page, tmp_path, width=width) as tab:
        seen = "Array.from(document.querySelectorAll('.chart')).filter(each => each.getClientRects().length)"
        assert set(tab.value(f"{seen}.map(each => each.className)")) == {f"chart {shown}"}
        scales = tab.value(
            f"{seen}.map(each => each.firstChild.getBoundingClientRect().width / each.firstChild.viewBox.baseVal.width)"
        )
        assert min(scales) > 0.9
        assert tab.value(
            "Array.from(document.querySelectorAll('.chart svg')).every(each => each.getAttribute('aria-label'))"
        )


@browser
def test_headings_are_in_order_and_what_leads_to_parts_finds_them(page, tmp_path):
    with opened(page, tmp_path) as tab:
        levels = tab.value("Array.from(document.querySelectorAll('h1, h2, h3')).map(each => Number(each.tagName[1]))")
        assert levels[0] == 1
        assert all(after - before <= 1 for before, after in pairwise(levels))
        parts = tab.value("Array.from(document.querySelectorAll('details.part > div')).map(each => each.id)")
        assert len(parts) == len(set(parts)) == levels.count(2) > 6
        links = tab.value("Array.from(document.querySelectorAll('a.badge')).map(each => each.hash.slice(1))")
        assert all(tab.value(f"!!document.getElementById('{link}')") for link in links)
    assert page.index('class="headline"') < page.index('class="badges"') < page.index('class="verdicts"')


def test_the_study_is_shown_as_text_with_its_command(page):
    assert "title = &#34;a &amp; b &lt;i&gt;&#34;" in page
    assert "dbdyno run study.toml --into DIR --html --seed 7 --blocks 8" in page


def test_every_table_has_a_caption_and_headings(page):
    for found in re.findall(r"<table.*?</table>", page, re.DOTALL):
        assert "<caption" in found
        assert 'scope="row"' in found


def test_markdown_tells_how_to_reproduce_and_a_hostile_file_name_stays_code(run):
    told = replace(run, study_text="version = 1", study_file="a`b\n# c.toml")
    shown = as_markdown(told, analyse(told))
    assert "\n## How to reproduce\n\n    dbdyno run 'a`b # c.toml' --into DIR" in shown
    assert "## How to reproduce" not in as_markdown(run, analyse(run))


NEVER = "window.requestAnimationFrame = function never() { return 0; };"
DRAWN = "document.documentElement.dataset.drawn"


def reopened(tab, before):
    """Have the page read again after a script of the reader's own browser."""
    tab.call("Page.addScriptToEvaluateOnNewDocument", source=before)
    tab.call("Page.reload")
    tab.wait("window.requestAnimationFrame.name === 'never' && document.readyState === 'complete'")


@browser
def test_scripts_wait_for_the_first_paint_unless_it_is_printed_before(page, tmp_path):
    with opened(page, tmp_path) as tab:
        drawn = tab.value(DRAWN)
        reopened(tab, NEVER)
        assert tab.value(DRAWN) is None
        assert tab.value("document.querySelectorAll('.menu').length") == 0
        tab.value("dispatchEvent(new Event('beforeprint')), 0")
        assert tab.value(DRAWN) == drawn
        assert tab.value("'printing' in document.documentElement.dataset")


@browser
def test_a_tab_in_the_background_is_ready_when_it_is_looked_at(page, tmp_path):
    with opened(page, tmp_path) as tab:
        drawn = tab.value(DRAWN)
        reopened(tab, f"{NEVER} Object.defineProperty(document, 'hidden', {{ value: true }});")
        assert tab.value(DRAWN) == drawn


# The colours of charts: seen against their page, and apart from each other, for colour-blind readers too.


# Machado, Oliveira and Fernandes (2009), severity 1.0, linear RGB.
SIGHT = {
    "usual": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
PAGES = [
    (LIGHT, TREATMENTS, VERDICTS),
    (DARK, TREATMENTS_ON_DARK, VERDICTS_ON_DARK),
]


def linear(colour):
    """sRGB to linear light (IEC 61966-2-1)."""
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """WCAG 2.2: relative luminance, lighter over darker."""
    light, dark = sorted((XYZ[1] @ linear(colour) for colour in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def lab(rgb):
    """CIE 1976 L*a*b* of linear RGB, D65."""
    scaled = XYZ @ np.clip(rgb, 0, 1) / [0.95047, 1, 1.08883]
    f = np.where(scaled > 0.008856, np.cbrt(scaled), 7.787 * scaled + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_contrast_is_that_of_the_standard():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize(("page", "treatments", "verdicts"), PAGES)
def test_every_mark_stands_out_from_its_page_and_every_word_can_be_read(page, treatments, verdicts):
    assert min(contrast(colour, page) for colour in treatments) >= 3
    assert min(contrast(colour, page) for colour in verdicts.values()) >= 4.5


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("treatments", [TREATMENTS, TREATMENTS_ON_DARK])
def test_no_two_treatments_look_alike(treatments, sight):
    seen = [lab(SIGHT[sight] @ linear(colour)) for colour in treatments]
    assert min(float(np.linalg.norm(one - other)) for one, other in combinations(seen, 2)) > 15


def test_the_style_has_a_dark_colour_for_every_light_one():
    style = stylesheet()
    for light, dark in zip(TREATMENTS, TREATMENTS_ON_DARK, strict=True):
        assert f'svg [fill="{light}"]' in style
        assert f": {dark};" in style


def test_a_swatch_tells_apart_what_a_line_tells_apart():
    most = len(TREATMENTS) * len(TREATMENT_DASHES)
    looks = {(treatment_class(place), treatment_dash(place)) for place in range(most)}
    assert len(looks) == len({treatment_swatch(place) for place in range(most)}) == most
    assert ".swatch.d1 {" in stylesheet()
