"""The field reports: every study of them plans at its own scale and at the published one, within its time."""

from pathlib import Path

import pytest

from dbdyno.plan.plan import make_plan
from dbdyno.study.load import load_study

ROOT = Path(__file__).parents[3]
STUDIES = sorted((ROOT / "studies/field-reports").glob("*.toml"))
REPORTS = ("schedulers", "server-versions", "queue-depth", "filesystems", "ssd-selection", "ssd-or-hdd", "kernels")
LAPTOP_SECONDS = 20 * 60


def test_each_of_the_five_reports_has_its_studies():
    for name in REPORTS:
        assert [path for path in STUDIES if path.stem.startswith(name)]
    assert {path.stem for path in STUDIES if not path.stem.startswith(REPORTS)} == set()


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_a_field_report_plans_at_both_scales(path):
    small, full = (make_plan(load_study(path, scale)) for scale in ("", "full"))
    for plan in (small, full):
        assert list(plan.warnings()) == []
        assert plan.design.comparisons
    assert small.study.about.question
    assert small.study.about.expect
    assert small.study_sha256() != full.study_sha256()
    assert small.seconds(small.design.blocks) <= LAPTOP_SECONDS


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_what_was_reported_is_held_against_treatments(path):
    """Each figure that was published has a treatment at one scale or the other, most of them at the small one."""
    small, full = (make_plan(load_study(path, scale)).reported for scale in ("", "full"))
    for here, there in zip(small, full, strict=True):
        assert here.source
        for row, row_there in zip(here.rows, there.rows, strict=True):
            assert row.treatment or row_there.treatment
        measured = [row for row in here.rows if row.treatment]
        assert 2 * len(measured) >= len(here.rows)
        for claim, claim_there in zip(here.claims, there.claims, strict=True):
            assert claim.pairs or claim_there.pairs or not claim.checked
