"""What others wrote is shown, never obeyed: each format's own reader finds the text again, and nothing beside it."""

import csv
import io
import json
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from prometheus_client.parser import text_string_to_metric_families

from dbdyno.model.printable import (
    NO_BREAK,
    command_text,
    csv_text,
    html_text,
    json_text,
    markdown_text,
    one_line,
    printable,
    prometheus_text,
    xml_attribute,
    xml_text,
)
from dbdyno.report.charts.svg import element

MARKS = "\x1b[31m\x07\x9b2J\x00\x85\u202e\u2066\u200f\u200b\u2028\ufeff\U000e0041\ud800"
HOSTILE = (
    MARKS,
    "</script><script>alert(1)</script>",
    "\"'><img src=x onerror=alert(2)>",
    "]]></system-out><!-- -->&amp;&#0;",
    "{{7*7}}${1}{% x %}",
    "# a\n- b\n---\n| c | d |\n```\n![x](y) [z](javascript:1) <https://x> ~~s~~ **b** _i_ `c`",
    "---",
    "- - -",
    "1) x",
    "===",
    "=cmd|' /C calc'!A0",
    "+1+cmd|' /C calc'!A0",
    "::error file=a,line=1::b%0A%25",
    'a"} 1\n# HELP x\\n\\',
)
ANY = st.one_of(st.sampled_from(HOSTILE), st.text(alphabet=st.characters(codec=None), max_size=60))


class Texts(HTMLParser):
    """What a browser would show, and which elements and attributes there are."""

    def __init__(self):
        super().__init__()
        self.shown, self.elements = [], []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.shown.append(data)

    def handle_comment(self, data):
        raise AssertionError(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


def is_quiet(text, but="\n"):
    return all(char.isprintable() or char in but for char in text)


@given(ANY)
def test_html(text):
    page = f'<p title="{html_text(text)}">{html_text(text)}</p>'
    found = Texts()
    found.feed(page)
    found.close()
    shown = printable(text, keep=f"\n{NO_BREAK}")
    assert is_quiet(page, f"\n{NO_BREAK}")
    assert found.elements == [("p", {"title": shown})]
    assert "".join(found.shown) == shown


@given(ANY)
def test_svg(text):
    drawn = ET.fromstring(element("text", text, aria_label=text))
    shown = printable(text, keep=f"\n{NO_BREAK}")
    assert (drawn.text or "", drawn.tag, len(drawn)) == (shown, "text", 0)
    assert drawn.get("aria-label") == shown.replace("\n", " ")  # as XML reads line ends in attributes


@given(ANY)
@example("***")
def test_markdown(text):
    escaped = markdown_text(text)
    assert is_quiet(escaped, "")
    for around in ("{}", "- {}", "# {}", "> {}", "a\n\n{}"):
        whole = MarkdownIt("gfm-like", {"linkify": False}).parse(around.format(escaped))
        inline = [token for token in whole if token.type == "inline"]
        kinds = {child.type for token in inline for child in token.children}
        plain = "".join(child.content for child in inline[-1].children) if inline else ""
        assert kinds <= {"text", "text_special"}
        assert plain == one_line(text) or not one_line(text)
        around_it = {token.type for token in MarkdownIt("gfm-like", {"linkify": False}).parse(around.format("x"))}
        assert {token.type for token in whole} <= around_it


@given(ANY)
def test_junit(text):
    found = ET.fromstring(f"<a name={xml_attribute(text)}>{xml_text(text)}</a>")
    assert (found.get("name"), found.text or "", len(found)) == (printable(text), printable(text), 0)


@given(ANY)
def test_annotations(text):
    """GitHub's runner reads a line that begins with ``::`` and takes %25, %3A and %2C back."""
    line = f"::notice title={command_text(text, ':,')}::{command_text(text)}"
    assert is_quiet(line, "")
    head, _, message = line.removeprefix("::notice title=").partition("::")
    assert not set(":,") & set(head)
    for code, char in (("%3A", ":"), ("%2C", ","), ("%25", "%")):
        head = head.replace(code, char)
    assert (head, message.replace("%25", "%")) == (printable(text), printable(text))


@given(ANY)
def test_prometheus(text):
    lines = f'# TYPE a gauge\na{{b="{prometheus_text(text)}"}} 1.0\n'
    (family,) = text_string_to_metric_families(lines)
    (sample,) = family.samples
    assert sample.labels == {"b": one_line(text).replace("<", "\u2039").replace(">", "\u203a")}
    assert is_quiet(lines)


@given(st.lists(ANY, min_size=1, max_size=4))
def test_csv(texts):
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerow(map(csv_text, texts))
    (read,) = csv.reader(io.StringIO(written.getvalue()))
    assert is_quiet(written.getvalue())
    for cell, text in zip(read, texts, strict=True):
        assert cell.removeprefix("'") in {printable(text, " "), printable(text, " ").removeprefix("'")}
        if cell.lstrip().startswith(("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")):
            float(cell)


@given(st.dictionaries(ANY, st.one_of(ANY, st.floats(allow_nan=False), st.lists(ANY, max_size=3)), max_size=3))
def test_json(document):
    text = json_text(json.dumps(document, ensure_ascii=False, indent=2))
    assert is_quiet(text)
    assert json.loads(text) == document


@pytest.mark.parametrize("text", HOSTILE)
def test_a_terminal(text):
    assert is_quiet(printable(text), "")
    assert is_quiet(one_line(text), "")
