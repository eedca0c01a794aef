"""The list of sections: every file is in it, all formats keep its order, and a new one is a file and a line."""

import json
import re
from pathlib import Path

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.report import contents, sections
from dbdyno.report.document import Paragraph, Section
from tests.unit.report.rendered import as_json, as_markdown, as_page, as_text


def test_every_section_is_in_the_list_once():
    written = [
        f"{path.stem}.{name}"
        for path in Path(sections.__file__).parent.glob("*.py")
        for name in re.findall(r"^def (section|[a-z]\w*_section)\(source: Source\b", path.read_text(), re.MULTILINE)
    ]
    listed = [f"{one.__module__.rpartition('.')[2]}.{one.__name__}" for one in contents.SECTIONS]
    assert sorted(listed) == sorted(written)


def test_a_new_section_is_one_function_and_one_line(run, monkeypatch):
    def section(source):
        told = Paragraph(f"All {len(source.run.trials)} trials ran.")
        return Section("scripted", "Scripted", (told,), data={"scripted": len(source.run.trials)})

    monkeypatch.setattr(contents, "SECTIONS", (*contents.SECTIONS, section))
    analysis = analyse(run)
    for render in (as_text, as_markdown, as_page):
        told = render(run, analysis)
        assert told.count("Scripted") == 1
        assert f"All {len(run.trials)} trials ran." in told.replace("\u00a0", " ")
    assert json.loads(as_json(run, analysis))["scripted"] == len(run.trials)


@pytest.mark.parametrize("render", [as_text, as_markdown])
def test_sections_come_in_the_order_of_the_page(run, render):
    analysis = analyse(run, each_pair=True)
    headings = re.findall(r"<h2[^>]*>(.*?)</h2>", as_page(run, analysis))
    told = render(run, analysis)
    places = [told.index(f"{heading}\n") for heading in headings if f"{heading}\n" in told]
    assert places == sorted(places)
    assert len(places) > 4
