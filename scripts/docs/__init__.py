"""The pages of docs/ that are written from the code, whole or in part; a test says when one is stale."""

from pathlib import Path

from scripts.docs.drives import drives_page
from scripts.docs.field_reports import field_reports_page
from scripts.docs.study_reference import study_reference, with_fields

ROOT = Path(__file__).parents[2]


def pages() -> dict[Path, str]:
    """Every generated page with its text."""
    return {
        ROOT / "docs/study-reference.md": study_reference(),
        **{path: with_fields(path) for path in (ROOT / "docs/workloads.md", ROOT / "docs/tools.md")},
        ROOT / "docs/models.md": drives_page(),
        ROOT / "docs/field-reports.md": field_reports_page(),
    }
