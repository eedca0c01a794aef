"""Run folders that were kept: what their reports say in numbers and in words of a fixed list does not change.

``clients`` was measured; the trials of the others were played. ``every-event`` holds every kind of event,
``without-checksums`` is from before there were any. To each belongs the JSON report that was printed at the time.
Each released version adds a run of its own.
"""

import json
from pathlib import Path

import pytest

KEPT = Path(__file__).parents[2] / "kept"


def values(document, path=()):
    """Yield each value with its path; sentences, which may be put otherwise, are left out."""
    if isinstance(document, dict | list):
        for name, one in document.items() if isinstance(document, dict) else enumerate(document):
            yield from values(one, (*path, name))
    elif not (isinstance(document, str) and " " in document):
        yield path, document


@pytest.mark.parametrize("name", sorted(path.stem for path in KEPT.glob("*.json")))
def test_a_kept_run_is_read_as_it_was_then(dbdyno, name):
    code, out, err = dbdyno("report", KEPT / name, "--format", "json")
    assert (code, err) == (0, "")
    found = dict(values(json.loads(out)))
    for path, value in values(json.loads((KEPT / f"{name}.json").read_text())):
        assert path in found
        assert found[path] == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value), path
