"""The site is built from the documents as they stand, needs no network, and loses no page and no link."""

import contextlib
import itertools
import json
import re
import subprocess
import sys
import threading
import tomllib
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from scripts.site.build import SiteError, build
from scripts.site.check import faults
from scripts.site.pages import ROOT, documents, staged
from scripts.site.versions import add_version
from tests.browser import AXE, SERIOUS, browser, opened_at, opened_file

CONFIG = ROOT / "scripts/site/zensical.toml"
WIDTHS = [1280, 390]
SHOWN = ["index", "study-reference", "coming-from", "studies/examples/demo.toml"]


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    return build(tmp_path_factory.mktemp("site") / "site")


def places(nav):
    for entry in nav:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            yield from [value] if isinstance(value, str) else places(value)


def test_no_link_is_dead_no_page_is_lost_and_nothing_is_fetched_from_elsewhere(html):
    assert faults(html) == []


def test_every_document_has_one_place_in_the_navigation():
    named = list(places(tomllib.loads(CONFIG.read_text(encoding="utf-8"))["project"]["nav"]))
    assert sorted(named) == sorted(documents().values())


def test_a_list_inside_another_is_indented_by_four():
    """With fewer, the site would have its items beside those of the outer list."""
    nested = re.compile(r"^ {1,3}[-*] ", re.MULTILINE)
    texts = {path.name: path.read_text(encoding="utf-8") for path in documents()}
    outside = {name: re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL) for name, text in texts.items()}
    assert [name for name, text in outside.items() if nested.search(text)] == []


def test_every_example_has_a_page_with_what_it_asks():
    pages = staged()
    studies = [*ROOT.glob("studies/examples/*.toml"), *ROOT.glob("studies/field-reports/*.toml")]
    for path in studies:
        about = tomllib.loads(path.read_text(encoding="utf-8"))["study"]
        page = pages[f"{path.relative_to(ROOT).as_posix()}.md"]
        assert all(about[name] in page for name in ("title", "question", "expect", "result") if name in about)
    pictures = [place for place, content in pages.items() if not isinstance(content, str)]
    assert {f"field-reports/{path.name}" for path in ROOT.glob("docs/field-reports/*.png")} < set(pictures)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('<a href="lost.html">x</a>', "index.html: lost.html leads nowhere"),
        ('<a href="other.html#lost">x</a>', "index.html: other.html#lost has no such heading"),
        ("<p>a\n| b | c |</p>", "index.html: Markdown is left: |"),
        ("<li>a\n- b</li>", "index.html: Markdown is left: -"),
        ("<p>**a**</p><code>**a**</code>", "index.html: Markdown is left: **"),
        ('<img src="lost.png">', "index.html: lost.png leads nowhere"),
        ('<script src="https://example.org/x.js"></script>', "index.html: fetches https://example.org/x.js"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "index.html: fetches //example.org/x.css"),
    ],
)
def test_each_fault_is_named(text, said, tmp_path):
    (tmp_path / "index.html").write_text(f'<a href="other.html#here">x</a>{text}', encoding="utf-8")
    (tmp_path / "other.html").write_text('<h1 id="here">x</h1><a href="https://example.org">x</a>', encoding="utf-8")
    assert faults(tmp_path) == [said]


def test_a_page_that_nothing_leads_to_and_a_font_from_elsewhere_are_named(tmp_path):
    (tmp_path / "index.html").write_text("<p>x", encoding="utf-8")
    (tmp_path / "lost.html").write_text('<a href="index.html">x</a>', encoding="utf-8")
    (tmp_path / "a.css").write_text("@font-face { src: url('https://example.org/f.woff2') }", encoding="utf-8")
    assert faults(tmp_path) == ["lost.html: no page leads to it", "a.css: fetches https://example.org/f.woff2"]


def test_words_are_spelled_as_they_should_be(tmp_path):
    """A wrong word is found too, so that the check does check."""
    (tmp_path / "wrong.md").write_text("It is seperate.\n", encoding="utf-8")
    checked = [*documents(), *ROOT.glob("studies/*/*.toml"), *ROOT.glob("python/dbdyno/**/*.py"), tmp_path / "wrong.md"]
    done = subprocess.run(
        [sys.executable, "-m", "codespell_lib", "--ignore-words", CONFIG.with_name("words"), *checked],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [f"{tmp_path / 'wrong.md'}:1: seperate ==> separate"]


@browser
@pytest.mark.parametrize(("width", "dark"), [*itertools.product(WIDTHS, [False, True])])
def test_pages_fit_a_screen_and_a_phone_light_and_dark(html, width, dark):
    for page in SHOWN:
        with opened_file(html / f"{page}.html", width=width, dark=dark) as tab:
            assert tab.value("document.documentElement.scrollWidth") <= width, page
            shade = tab.value("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
            assert (sum(shade[:3]) < 200) is dark, page
            assert tab.console() == [], page
            if width == WIDTHS[0]:
                tab.value(AXE.read_text(encoding="utf-8") + ";0")
                assert tab.value(SERIOUS) == [], page


@browser
def test_search_finds_a_page_without_a_network(html):
    with opened_file(html / "index.html") as tab:
        tab.wait("document.querySelector('.md-search__button') !== null")
        tab.value("document.querySelector('.md-search__button').click()")
        tab.wait("document.activeElement.shadowRoot?.activeElement?.tagName === 'INPUT'")
        tab.call("Input.insertText", text="semi-synchronous")
        tab.wait(
            "[...document.activeElement.shadowRoot.querySelectorAll('a')].some(a => a.href.includes('layers.html'))"
        )
        assert [one for one in tab.fetched() if not one.startswith(("file:", "data:", "blob:"))] == []


@pytest.fixture(scope="module")
def versions(tmp_path_factory):
    """A site of two versions, the newer of which was added first and has a page more."""
    folder = tmp_path_factory.mktemp("versions")
    built, site = build(folder / "built", among_versions=True), folder / "site"
    add_version(built, "0.10.0", site)
    (built / "quick.html").unlink()
    add_version(built, "0.9.0", site)
    return site


def test_versions_are_listed_the_newest_first_and_latest_leads_to_it(versions):
    assert json.loads((versions / "versions.json").read_text(encoding="utf-8")) == [
        {"version": "0.10.0", "title": "0.10.0", "aliases": ["latest"]},
        {"version": "0.9.0", "title": "0.9.0", "aliases": []},
    ]
    names = [
        {page.relative_to(versions / one) for page in (versions / one).rglob("*.html")} for one in ("0.10.0", "latest")
    ]
    assert names[0] == names[1] != set()
    redirects = ("index.html", "latest/")  # which no page leads to
    dead = [one for one in faults(versions) if one.startswith(redirects) and not one.endswith("no page leads to it")]
    assert dead == []
    assert "../../0.10.0/tutorials/ssd-or-hdd.html" in (versions / "latest/tutorials/ssd-or-hdd.html").read_text()


@pytest.mark.parametrize(
    ("version", "said"), [("0.9.0", "0.9.0 is there; a published version is not replaced"), ("../x", "is no version")]
)
def test_a_version_that_is_there_or_is_none_is_refused(versions, version, said, tmp_path):
    before = sorted(versions.rglob("*"))
    with pytest.raises(SiteError, match=re.escape(said)):
        add_version(tmp_path, version, versions)
    assert sorted(versions.rglob("*")) == before


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Say nothing of what is asked for."""


@contextlib.contextmanager
def served(folder):
    """The address of a web server of this host that serves a folder."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


LISTED = "[...document.querySelectorAll('.md-version__link')].map(one => one.textContent.trim())"


@browser
@pytest.mark.parametrize(
    ("place", "same"), [("tutorials/ssd-or-hdd.html#beware", True), ("index.html", True), ("quick.html", False)]
)
def test_the_selector_lists_the_versions_and_leads_to_the_same_page_of_another_that_has_it(versions, place, same):
    with served(versions) as address, opened_at(f"{address}/latest/{place}", leads_to=f"/0.10.0/{place}") as tab:
        tab.wait(f"{LISTED}.length === 2")
        assert tab.value(LISTED) == ["0.10.0", "0.9.0"]
        assert tab.value("document.querySelector('.md-version__current').textContent.trim()") == "0.10.0"
        tab.value("document.querySelectorAll('.md-version__link')[1].click()")
        tab.wait_for_address(f"/0.9.0/{place if same else ''}")
        tab.wait("document.querySelector('.md-version__current')?.textContent.trim() === '0.9.0'")
        assert [one for one in tab.fetched() if not one.startswith((address, "data:", "blob:"))] == []


@browser
@pytest.mark.parametrize(("place", "leads_to"), [("index.html", "/0.10.0/index.html"), ("0.9.0/index.html", "")])
def test_pages_that_are_opened_as_files_work_without_the_selector(versions, place, leads_to):
    with opened_at((versions / place).as_uri(), leads_to=leads_to) as tab:
        tab.wait("document.querySelector('.md-search__button') !== null")
        assert tab.value("document.querySelector('.md-version')") is None
