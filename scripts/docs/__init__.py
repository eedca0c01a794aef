"""The pages of docs/ that are written from the code: ``make docs`` writes them, a test says when one is stale."""

from pathlib import Path

from scripts.docs.drives import drives_page
from scripts.docs.field_reports import field_reports_page
from scripts.docs.study_reference import study_reference

ROOT = Path(__file__).parents[2]


def pages() -> dict[Path, str]:
    """Every generated page with its text."""
    return {
        ROOT / "docs/study-reference.md": study_reference(),
        ROOT / "docs/models.md": drives_page(),
        ROOT / "docs/field-reports.md": field_reports_page(),
    }
