"""Ten pages that people share, at two widths, light and dark: what is on the first screen, and how it looks.

A picture is not compared pixel by pixel: fonts differ between hosts, and with them where every line ends. The title,
the headline, the badges and the chart are each held against the same part of the kept picture, wherever both stand and
however large they are, as a few cells by their mean colours. So another font is borne; what is lost, or in other
colours, is seen: the last tests say so. ``DBDYNO_TEST_LONG=1 pytest --snapshot-update`` writes all pictures anew.
"""

import base64
import functools
import json
import re
from pathlib import Path

import pytest

from tests.browser import AXE, browser, opened
from tests.sampled import some
from tests.unit.report.shared_pages import PAGES
from tests.unit.report.test_report_page import OUTSIDE, OVERFLOW

PICTURES = Path(__file__).parent / "pictures"
# Width and height of a window.
SIZES = {1280: 900, 390: 844}
ROOM = 250  # pixels of a chart that is longer than the first screen, such as many rows of comparisons
# Width and whether it is dark: one of these pairs, drawn, is seen of each page, so both widths and both themes are.
PAIRS = [[(1280, False), (390, True)], [(1280, True), (390, False)]]
DRAWN = some("pages", PAGES, 0.4)
VIEWS = [(name, *view) for name in DRAWN for pair in some(f"views of {name}", PAIRS, 0.5) for view in pair]
KEPT = ("comparison", "ranking", "not_trustworthy", "curve", "quick_look")  # whose pictures are held against
BELOW_ROWS = 70  # pixels of the axis below the last row of a chart of comparisons
SCALE = 0.25  # of the kept pictures
APART_MAX = {"h1": 0.5, ".headline": 0.5, ".badges": 0.45, ".chart svg": 0.2}  # 1: one of two pictures is empty
PARTS_AT = f"""Object.fromEntries({list(APART_MAX)}.map(name => [name, (box => [box.x, box.y, box.width, box.height])(
    Array.from(document.querySelectorAll(name)).find(e => e.getClientRects().length).getBoundingClientRect())]))"""
VIOLATIONS = """axe.run(document, {resultTypes: ['violations']}).then(found => found.violations
    .map(one => one.id + ': ' + one.nodes.map(node => node.target + ' ' + node.failureSummary).join(' | ')))"""
# What stands on the first screen: the end of the headline and of the badges, the chart's begin and end.
FIRST = """(ends => [ends('.headline').bottom, ends('.badges').bottom, ends('.chart:not(:empty) svg').top,
    ends('.chart:not(:empty) svg').bottom])(name => Array.from(document.querySelectorAll(name))
    .find(e => e.getClientRects().length).getBoundingClientRect())"""
LINES = "Array.from(document.querySelectorAll('.badges b')).map(each => each.textContent)"
# What is seen on the first screen, in letters at least as large and as bold as the headline's, beside the title.
LOUDER = """(size => Array.from(document.querySelectorAll('main p, main li, summary')).filter(e => {
    const style = getComputedStyle(e), seen = e.getBoundingClientRect().top < innerHeight;
    const loud = parseFloat(style.fontSize) >= size && style.fontWeight >= 600;
    return seen && loud && !e.matches('.headline');
}).map(e => e.textContent))(parseFloat(getComputedStyle(document.querySelector('.headline')).fontSize))"""
OPENED = "document.querySelectorAll('details').forEach(each => { each.open = true; })"
# Elements with text of their own that is wider or higher than they are, and texts of drawings beyond their edge.
CUT_OFF = """Array.from(document.querySelectorAll('main *')).filter(e => {
    const style = getComputedStyle(e), apart = e.closest('svg, .unseen, .skip, thead') || style.display === 'inline';
    const hides = style.overflowX === 'hidden' || style.overflowY === 'hidden';
    const own = Array.from(e.childNodes).some(node => node.nodeType === 3 && node.data.trim());
    if (apart || !e.getClientRects().length || /auto|scroll/.test(style.overflowX) || !(own || hides)) return false;
    return e.scrollWidth > e.clientWidth + 1 || hides && e.scrollHeight > e.clientHeight + 1;
}).map(e => e.tagName + '.' + e.className + ': ' + e.textContent.slice(0, 60)).concat(
    Array.from(document.querySelectorAll('.chart svg')).flatMap(svg => {
        const edge = svg.getBoundingClientRect();
        return Array.from(svg.querySelectorAll('text')).filter(text => {
            const box = text.getBoundingClientRect();
            return box.width && (box.left < edge.left - 2 || box.right > edge.right + 2
                || box.top < edge.top - 4 || box.bottom > edge.bottom + 4);
        }).map(text => svg.getAttribute('aria-label') + ': ' + text.textContent);
    }))"""
OVERLAPS = """Array.from(document.querySelectorAll('.chart svg')).flatMap(svg => {
    const boxes = Array.from(svg.querySelectorAll('text')).map(text => [text, text.getBoundingClientRect()]);
    return boxes.flatMap(([one, a], i) => boxes.slice(i + 1).filter(([, b]) =>
        Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
        && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3
    ).map(([other]) => one.textContent + ' / ' + other.textContent));
})"""
# Of each part, how far two pictures of it are apart: both are cut into 6 x 3 cells, however large they are, and the
# differences of the cells' mean colours are summed up, over the sum of what is not paper. 1: one of them is empty.
APART = """Promise.all(%(pictures)s.map(text => new Promise((done, failed) => {
    const image = new Image(); image.onload = () => done(image); image.onerror = failed;
    image.src = 'data:image/png;base64,' + text; }))).then(images => {
    const parts = %(parts)s, [columns, rows] = [6, 3];
    const pixels = images.map(image => {
        const canvas = Object.assign(document.createElement('canvas'), {width: image.width, height: image.height});
        const context = canvas.getContext('2d', {willReadFrequently: true});
        context.drawImage(image, 0, 0);
        return context;
    });
    const mean = data => [0, 1, 2].map(k =>
        data.reduce((sum, v, i) => sum + (i %% 4 === k ? v : 0), 0) * 4 / data.length);
    const cells = (context, [x, y, width, height]) => Array.from({length: columns * rows}, (_, i) => {
        const left = Math.floor(x + width * (i %% columns) / columns);
        const up = Math.floor(y + height * Math.floor(i / columns) / rows);
        const across = Math.max(1, Math.floor(width / columns)), down = Math.max(1, Math.floor(height / rows));
        return mean(context.getImageData(left, up, across, down).data);
    });
    const apart = (one, other) => one.reduce((sum, v, i) => sum + Math.abs(v - other[i]), 0);
    const papers = pixels.map(context => mean(context.getImageData(0, 0, 1, 1).data));
    return Object.fromEntries(Object.keys(parts[0]).map(name => {
        const [own, kept] = pixels.map((context, i) => cells(context, parts[i][name]));
        const off = own.reduce((sum, cell, i) => sum + apart(cell, kept[i]), 0);
        const ink = own.reduce((sum, cell, i) => sum + Math.max(apart(cell, papers[0]), apart(kept[i], papers[1])), 0);
        return [name, off / Math.max(ink, 1)];
    }));
})"""


@functools.cache
def page(name):
    return PAGES[name]()


def picture(tab):
    """What is seen down to the end of the first chart, small, and where in it the parts are."""
    parts = tab.value(PARTS_AT)
    height = max(y + height for _, y, _, height in parts.values())
    clip = {"x": 0, "y": 0, "width": tab.value("innerWidth"), "height": height, "scale": SCALE}
    png = tab.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)["data"]
    return png, {name: [round(SCALE * value, 2) for value in part] for name, part in parts.items()}


def too_far(tab, seen, kept):
    """The parts of two pictures that are not alike; a tab may only look at pictures where its page has no policy."""
    tab.call("Page.navigate", url="about:blank")
    tab.wait("location.href === 'about:blank'")
    (one, at), (other, there) = seen, kept
    found = tab.value(APART % {"pictures": json.dumps([one, other]), "parts": json.dumps([at, there])})
    assert set(found) == set(APART_MAX)
    return {name: value for name, value in found.items() if value > APART_MAX[name]}


def kept_picture(name, width, *, dark):
    """The picture of a page that is kept, as ``picture`` gives it."""
    file = PICTURES / f"{name}-{width}-{'dark' if dark else 'light'}.png"
    parts = json.loads((PICTURES / "parts.json").read_text(encoding="utf-8"))
    return base64.b64encode(file.read_bytes()).decode(), parts[file.stem]


def keep(seen, name, width, *, dark):
    """Write a picture and where its parts are."""
    PICTURES.mkdir(exist_ok=True)
    file, parts = PICTURES / f"{name}-{width}-{'dark' if dark else 'light'}.png", PICTURES / "parts.json"
    file.write_bytes(base64.b64decode(seen[0]))
    known = json.loads(parts.read_text(encoding="utf-8")) if parts.exists() else {}
    parts.write_text(json.dumps(dict(sorted({**known, file.stem: seen[1]}.items())), indent=1) + "\n", encoding="utf-8")


@browser
@pytest.mark.parametrize(("name", "width", "dark"), VIEWS)
def test_a_shared_page(name, width, dark, tmp_path, request):
    height = SIZES[width]
    with opened(page(name), tmp_path, width=width, height=height, dark=dark) as tab:
        headline, badges, top, bottom = tab.value(FIRST)
        assert headline < badges < top
        assert bottom <= height or top + ROOM <= height, "the chart, or several rows of it, on the first screen"
        assert tab.value(LINES) == ["Trust", "Safety"]
        assert tab.value(LOUDER) == [], "nothing is as bold as the headline"
        seen = picture(tab)
        tab.value(OPENED)
        assert tab.value(OVERFLOW) <= 0
        assert tab.value(OUTSIDE) == []
        assert tab.value(CUT_OFF) == []
        assert tab.value(OVERLAPS) == []
        tab.value(AXE.read_text(encoding="utf-8") + ";0")
        assert tab.value(VIOLATIONS) == []
        assert tab.console() == []
        if name not in KEPT:
            return
        if request.config.option.update_snapshots:
            keep(seen, name, width, dark=dark)
        assert too_far(tab, seen, kept_picture(name, width, dark=dark)) == {}


@browser
def test_on_a_phone_four_comparisons_are_on_the_first_screen(tmp_path):
    with opened(page("comparison"), tmp_path, width=390, height=844) as tab:
        bottom, advised = tab.value(FIRST)[-1], tab.value("document.querySelector('.advice').textContent")
        names = "Array.from(document.querySelector('.chart.tight svg').querySelectorAll('text'))"
        assert tab.value(f"{names}.filter(e => e.textContent.startsWith('vs ')).length") == 4
        assert bottom - BELOW_ROWS <= 844
        assert advised.startswith("Take ssd-sata")


def altered(what, tmp_path, width=1280, **how):
    """The parts of a page that was changed that are not like its picture any more."""
    with opened(what, tmp_path, width=width, height=SIZES[width], **how) as tab:
        return set(too_far(tab, picture(tab), kept_picture("comparison", width, dark=False)))


@browser
@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize("font", ["serif", "DejaVu Sans Condensed"])
def test_the_comparison_of_pictures_bears_another_font(font, width, tmp_path):
    other = page("comparison").replace("font: 16px/1.5 system-ui", f"font: 15px/1.5 {font}")
    other = other.replace('font-family="system-ui', f'font-family="{font}')
    assert altered(other, tmp_path, width) == set()


@browser
def test_the_comparison_of_pictures_sees_what_is_lost_or_in_other_colours(tmp_path):
    whole = page("comparison")
    lost = whole.replace(".chart svg { display: block;", ".chart svg { visibility: hidden;")
    assert altered(lost, tmp_path) == {".chart svg"}
    lost = whole.replace(".badges { margin", ".badges { visibility: hidden; margin")
    assert altered(lost, tmp_path) == {".badges"}
    assert altered(
        whole.replace("--ink: #17191c; --soft: #565d66", "--ink: #c0c4c8; --soft: #c0c4c8"), tmp_path
    ) == set(APART_MAX)
    assert altered(whole, tmp_path, dark=True) == set(APART_MAX)


@browser
def test_the_checks_see_faults(tmp_path):
    whole = page("comparison")
    text = (
        '<text x="300" y="27">one</text><text x="305" y="27">overlaps</text><text x="2000" y="20">beyond</text></svg>'
    )
    wide = '<p style="width: 5rem; overflow: hidden; white-space: nowrap">a sentence that is cut off</p></main>'
    broken = whole.replace("</svg>", text).replace("</main>", wide + '<div style="width: 900px">.</div></main>')
    with opened(broken, tmp_path, width=390, height=844) as tab:
        assert tab.value(OVERFLOW) > 0
        cut = tab.value(CUT_OFF)
        assert any("a sentence that is cut off" in one for one in cut)
        assert any(one.endswith(": beyond") for one in cut)
    with opened(broken, tmp_path) as tab:
        assert any(one == "one / overlaps" for one in tab.value(OVERLAPS))


@browser
@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize("name", some("first screens", PAGES, 0.4))
def test_ten_seconds(name, width, tmp_path):
    """What, how much, trust and safety stand on the first screen, beside the picture; a page is short until opened."""
    height = SIZES[width]
    with opened(page(name), tmp_path, width=width, height=height) as tab:
        ends = "(e => e.getBoundingClientRect().bottom)(document.querySelector('{}'))"
        for what in ("h1", ".headline", ".trust", ".safety", ".facts"):
            assert tab.value(ends.format(what)) <= height, what
        top, bottom = tab.value(FIRST)[2:]
        assert bottom <= height or top + ROOM <= height
        assert tab.value(OVERFLOW) <= 0
        assert tab.value("document.documentElement.scrollHeight") <= 4 * height
        assert tab.value("document.querySelectorAll('.trust').length") == 1


@browser
def test_a_part_is_opened_by_what_leads_to_it_and_all_are_printed(tmp_path):
    with opened(page("not_trustworthy"), tmp_path) as tab:
        part = "document.getElementById('s-disturbed').closest('details')"
        assert not tab.value(f"{part}.open")
        tab.value("document.querySelector('a.badge[href=\"#s-disturbed\"]').click()")
        tab.wait(f"{part}.open")
        tab.value("document.querySelector('[data-open]').click()")
        assert tab.value("document.querySelectorAll('details.part:not([open])').length") == 0
    bare = re.sub(r"<script>.*?</script>", "", page("not_trustworthy"), flags=re.DOTALL)
    with opened(bare, tmp_path) as tab:  # no script has a part
        shown = "document.getElementById('s-results').checkVisibility()"
        assert not tab.value(shown)
        tab.call("Emulation.setEmulatedMedia", media="print")
        assert tab.value(shown)
