"""That the buffer pool was still being filled while a treatment was measured, and the remedy."""

import math
from collections.abc import Sequence
from typing import Any

from dbdyno.analysis.checks.load import PoolFilling
from dbdyno.model.design import Design
from dbdyno.model.wording import count, number, percent
from dbdyno.report.sentences import treatments_named


def filling_line(design: Design, found: Sequence[PoolFilling]) -> str:
    """Return one sentence for all treatments; nothing where no pool was still being filled."""
    if not found:
        return ""
    whose = "every treatment was"
    if len(found) < len(design.treatments):
        whose = (
            f"{treatments_named([one.id for one in found], design.treatments)} {'was' if len(found) == 1 else 'were'}"
        )
    most = max(found, key=lambda one: one.found.first_per_query - one.found.last_per_query)
    return f"The buffer pool was still being filled while {whose} measured ({_reads(most)}): take a longer warm-up."


def filling_text(one: PoolFilling) -> str:
    """Return the same of one treatment, with what it means."""
    trials = "" if one.trials == one.of else f" in {one.trials} of {count(one.of, 'trial')}"
    return (
        f"The buffer pool was still being filled{trials}: {_reads(one)}. The figures are those of a server that is"
        " warming up, and depend on how long the trial was; take a longer warm-up."
    )


def _reads(one: PoolFilling) -> str:
    found = one.found
    fell = f"pages read per query fell from {number(found.first_per_query)} to {number(found.last_per_query)}"
    if not math.isfinite(found.free_at_the_end):
        return fell
    return f"{fell}, {percent(found.free_at_the_end, sign=False)} of the pool was still free"


def filling_json(found: Sequence[PoolFilling]) -> list[dict[str, Any]]:
    """Return the figures."""
    return [
        {
            "id": one.id,
            "pages_per_query_first_third": one.found.first_per_query,
            "pages_per_query_last_third": one.found.last_per_query,
            "free_at_the_end": one.found.free_at_the_end,
            "trials": one.trials,
            "of": one.of,
        }
        for one in found
    ]
