"""What must be known beside a verdict: carry-over, other totals, overload, a fast cache that ran out, regimes."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.checks import CacheRanOut, PoolFilling
from dbdyno.analysis.summary import TreatmentSummary
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.analysis.verdict.pairs import is_without, not_granted
from dbdyno.model.design import Design
from dbdyno.model.wording import UNKNOWN, count, drive_bytes, number, percent
from dbdyno.report.fleet import like_these_remark
from dbdyno.report.reasons import totals_text
from dbdyno.report.sections.stability import rate_text, regime_remarks, seconds
from dbdyno.report.sentences import treatments_named, with_interval
from dbdyno.store.records import Run

# That the buffer pool was still being filled while a treatment was measured, and the remedy.


LONGER = "measure for longer, after a longer warm-up if the load has one"


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
    return f"The buffer pool was still being filled while {whose} measured ({_reads(most)}): {LONGER}."


def filling_text(one: PoolFilling) -> str:
    """Return the same of one treatment, with what it means."""
    trials = "" if one.trials == one.of else f" in {one.trials} of {count(one.of, 'trial')}"
    return (
        f"The buffer pool was still being filled{trials}: {_reads(one)}. The figures are those of a server that is"
        f" warming up, and depend on how long the trial was; {LONGER}."
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


REMEDY = (
    'In [design], set settle = "30s" or longer to rest before each load, or settle = "trial" to run the same trial'
    " before each."
)


def remarks(verdict: Finding, analysis: Analysis) -> list[str]:
    """Return what must be known beside a verdict.

    That a setting was not granted to one of the two; what is shown of hosts like these; that trials depend on the trial
    before, other totals, a treatment behind its rate, with a fast cache that ran out, with a buffer pool that was still
    being filled, or of changing regime.
    """
    compared = (verdict.level_id, verdict.baseline_id)
    behind = [text for row in analysis.treatments if row.id in compared and (text := overload_text(row))]
    apart = [text] if (text := totals_text(verdict.totals, verdict.blocks)) else []
    carried = _carry_over(verdict, analysis.metric.words)
    caches = [text for row in analysis.treatments if row.id in compared and (text := cache_text(row))]
    filling = [filling_text(one) for one in analysis.pools_filling if one.id in compared]
    in_vain = list(_not_granted(verdict, analysis))
    hosts = [text] if (text := like_these_remark(verdict, analysis)) else []
    return [*in_vain, *hosts, *carried, *apart, *behind, *caches, *filling[:1], *regime_remarks(analysis, compared)]


def overload_text(row: TreatmentSummary) -> str:
    """Return that a treatment fell behind an open loop's rate, and what its latencies are then; else nothing."""
    found = row.overload
    if found is None:
        return ""
    where = "" if found.trials == found.of else f" in {found.trials} of {count(found.of, 'trial')}"
    offered, achieved = rate_text(found.offered_per_second), rate_text(found.achieved_per_second)
    return (
        f"{row.label} was offered {offered}/s, achieved {achieved}/s{where}: the queue grew to {found.backlog_max:,};"
        " latencies are those of an overloaded server."
    )


def _carry_over(verdict: Finding, words: str) -> list[str]:
    """Return that trials depend on which trial ran before, where they do, and what became of that; else nothing."""
    found = verdict.carry_over
    if found is None or not found.seen:
        return []
    size = with_interval(found.difference)
    seen = f"Carry-over: trials after {verdict.level} differ from trials after {verdict.baseline} by {size} {words}."
    if not found.taken_out:
        rest = "the verdict stands only if it survives removing this effect"
        return [f"{seen} As measured, about {percent(found.shift)} of the difference is that; {rest}. {REMEDY}"]
    measured = with_interval(verdict.as_measured) if verdict.as_measured else UNKNOWN
    return [f"{seen} Effect, interval and verdict are corrected for it; as measured the effect is {measured}. {REMEDY}"]


def _not_granted(verdict: Finding, analysis: Analysis) -> Iterator[str]:
    """Yield what one of the two had in name only, which the other had not or was granted."""
    sides = {verdict.level_id: verdict.level, verdict.baseline_id: verdict.baseline}
    found = {id_: {one.name: one for one in not_granted(analysis.blocks.of(id_))} for id_ in sides}
    for id_, other in zip(sides, reversed(sides), strict=True):
        for name, one in found[id_].items():
            if name in found[other]:
                continue
            without = is_without(analysis.blocks.of(other), name)
            both = f", so {sides[id_]} and {sides[other]} were both measured without it" if without else ""
            yield f"The host did not grant {name} = {one.value} to {sides[id_]}{both}. The server's log: {one.said}."


def not_granted_lines(run: Run, analysis: Analysis) -> Iterator[str]:
    """Yield a line for each setting that treatments had in name only."""
    treatments: dict[tuple[str, str], list[str]] = {}
    said: dict[tuple[str, str], str] = {}
    for treatment in run.design.treatments:
        for one in not_granted(analysis.blocks.of(treatment.id)):
            treatments.setdefault((one.name, one.value), []).append(treatment.id)
            said.setdefault((one.name, one.value), one.said)
    for (name, value), ids in treatments.items():
        whose = (
            "any treatment" if len(ids) == len(run.design.treatments) else treatments_named(ids, run.design.treatments)
        )
        yield f"The host did not grant {name} = {value} to {whose}: the server's log says {said[name, value]}."


def cache_text(row: TreatmentSummary) -> str:
    """Return that the drive's fast cache ran out, how large it was, and when; else nothing."""
    found = row.cache_ran_out
    if found is None:
        return ""
    trials = count(found.of, "trial")
    where = f" ({trials})" if found.trials == found.of else f" ({found.trials} of {trials})"
    if found.after_s <= 0:
        what = "before measuring began", "its figure is the rate of a drive without one"
    else:
        after = f"{seconds(found.after_s)} after measuring began"
        what = after, "its figure is a mean of the rate before and after, and depends on how long the run was"
    return f"The fast cache of {row.label}, {_size(found)}, ran out {what[0]}{where}: {what[1]}."


def _size(found: CacheRanOut) -> str:
    part = math.isfinite(found.drive_bytes) and found.bytes < found.drive_bytes
    return drive_bytes(found.bytes) + (f" where the drive has {drive_bytes(found.drive_bytes)}" if part else "")
