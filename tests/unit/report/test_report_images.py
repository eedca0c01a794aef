"""How many images of prepared data a run's trials began with, where that was recorded."""

import json
from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from tests.unit.report.rendered import as_json, as_page, as_text

SAID = {
    (): "",
    ("a",): "Data was prepared in 1 image for all treatments.",
    ("a", "b"): "Data was prepared in 2 images.",
}


@pytest.mark.parametrize("images", SAID, ids=len)
def test_they_are_counted_in_every_form(run, images):
    trials = [replace(one, image=images[place % len(images)] if images else "") for place, one in enumerate(run.trials)]
    made = replace(run, trials=trials, study_text="version = 1")
    found = made, analyse(made)
    assert json.loads(as_json(*found)).get("images", 0) == len(images)
    for shown in (as_text(*found), as_page(*found)):
        assert SAID[images] in " ".join(shown.replace("\u00a0", " ").split())
        assert ("Data was prepared" in " ".join(shown.split())) == bool(images)
