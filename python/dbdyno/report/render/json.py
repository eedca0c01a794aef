"""A report for programs: the same bytes for the same run folder, wherever and whenever it is read."""

import json
import math
from typing import Any

from dbdyno.model.printable import json_text
from dbdyno.report.document import Document

SCHEMA = 1  # raised when a key moves or means something else
DIGITS = 6  # significant; more would only show the last bits of a sum


def render(document: Document) -> str:
    """Return the report as JSON. Differences are fractions (.03 for +3 %); what is unknown is null."""
    return json_text(json.dumps(values(document), indent=2, ensure_ascii=False, allow_nan=False)) + "\n"


def values(document: Document) -> dict[str, Any]:
    """Return what the JSON holds."""
    data: dict[str, Any] = rounded({"schema": SCHEMA, **document.values()})
    return data


def rounded(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """Return a document with its figures rounded; one that is no number is null."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return value
