"""The list of sections: every file is in it, all formats keep its order, and a new one is a file and a line."""

import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.report import contents, sections
from dbdyno.report.document import Paragraph, Section
from tests.unit.report.rendered import as_json, as_markdown, as_page, as_text


def test_every_file_of_a_section_is_in_the_list_once():
    files = [path for path in Path(sections.__file__).parent.glob("*.py") if "\ndef section(" in path.read_text()]
    assert sorted(path.stem for path in files) == sorted(contents.SECTIONS)


def test_a_new_section_is_one_file_and_one_line(run, monkeypatch):
    def section(source):
        told = Paragraph(f"All {len(source.run.trials)} trials ran.")
        return Section("scripted", "Scripted", (told,), data={"scripted": len(source.run.trials)})

    module = ModuleType("scripted")
    module.section = section
    monkeypatch.setitem(sys.modules, "dbdyno.report.sections.scripted", module)
    monkeypatch.setattr(contents, "SECTIONS", (*contents.SECTIONS, "scripted"))
    analysis = analyse(run)
    for render in (as_text, as_markdown, as_page):
        told = render(run, analysis)
        assert told.count("Scripted") == (2 if render is as_page else 1)  # a page lists its sections as well
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
