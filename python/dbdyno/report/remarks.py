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


def filling_line(design: Design, fillings: Sequence[PoolFilling]) -> str:
    """Return one sentence for all treatments; nothing where no pool was still being filled."""
    if not fillings:
        return ""
    whose = "every treatment was"
    if len(fillings) < len(design.treatments):
        names = treatments_named([filling.id for filling in fillings], design.treatments)
        whose = f"{names} {'was' if len(fillings) == 1 else 'were'}"
    most = max(fillings, key=lambda filling: filling.found.first_per_query - filling.found.last_per_query)
    return f"The buffer pool was still being filled while {whose} measured ({_reads(most)}): {LONGER}."


def filling_text(filling: PoolFilling) -> str:
    """Return that one treatment's pool was still being filled, and what that means for its figures."""
    trials = "" if filling.trials == filling.of else f" in {filling.trials} of {count(filling.of, 'trial')}"
    return (
        f"The buffer pool was still being filled{trials}: {_reads(filling)}. The figures are those of a server that is"
        f" warming up, and depend on how long the trial was; {LONGER}."
    )


def _reads(filling: PoolFilling) -> str:
    reads = filling.found
    fell = f"pages read per query fell from {number(reads.first_per_query)} to {number(reads.last_per_query)}"
    if not math.isfinite(reads.free_at_the_end):
        return fell
    return f"{fell}, {percent(reads.free_at_the_end, sign=False)} of the pool was still free"


def filling_json(fillings: Sequence[PoolFilling]) -> list[dict[str, Any]]:
    """Return the figures."""
    return [
        {
            "id": filling.id,
            "pages_per_query_first_third": filling.found.first_per_query,
            "pages_per_query_last_third": filling.found.last_per_query,
            "free_at_the_end": filling.found.free_at_the_end,
            "trials": filling.trials,
            "of": filling.of,
        }
        for filling in fillings
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
    filling = [filling_text(pool) for pool in analysis.pools_filling if pool.id in compared]
    in_vain = list(_settings_not_granted(verdict, analysis))
    hosts = [text] if (text := like_these_remark(verdict, analysis)) else []
    return [*in_vain, *hosts, *carried, *apart, *behind, *caches, *filling[:1], *regime_remarks(analysis, compared)]


def overload_text(row: TreatmentSummary) -> str:
    """Return that a treatment fell behind an open loop's rate, and what its latencies are then; else nothing."""
    overload = row.overload
    if overload is None:
        return ""
    where = "" if overload.trials == overload.of else f" in {overload.trials} of {count(overload.of, 'trial')}"
    offered, achieved = rate_text(overload.offered_per_second), rate_text(overload.achieved_per_second)
    return (
        f"{row.label} was offered {offered}/s, achieved {achieved}/s{where}: the queue grew to {overload.backlog_max:,}"
        "; latencies are those of an overloaded server."
    )


def _carry_over(verdict: Finding, words: str) -> list[str]:
    """Return that trials depend on which trial ran before, where they do, and what became of that; else nothing."""
    carry_over = verdict.carry_over
    if carry_over is None or not carry_over.seen:
        return []
    size = with_interval(carry_over.difference)
    seen = f"Carry-over: trials after {verdict.level} differ from trials after {verdict.baseline} by {size} {words}."
    if not carry_over.taken_out:
        rest = "the verdict stands only if it survives removing this effect"
        return [f"{seen} As measured, about {percent(carry_over.shift)} of the difference is that; {rest}. {REMEDY}"]
    measured = with_interval(verdict.as_measured) if verdict.as_measured else UNKNOWN
    return [f"{seen} Effect, interval and verdict are corrected for it; as measured the effect is {measured}. {REMEDY}"]


def _settings_not_granted(verdict: Finding, analysis: Analysis) -> Iterator[str]:
    """Yield what one of the two had in name only, which the other had not or was granted."""
    sides = {verdict.level_id: verdict.level, verdict.baseline_id: verdict.baseline}
    settings = {id_: {setting.name: setting for setting in not_granted(analysis.blocks.of(id_))} for id_ in sides}
    for id_, other in zip(sides, reversed(sides), strict=True):
        for name, setting in settings[id_].items():
            if name in settings[other]:
                continue
            without = is_without(analysis.blocks.of(other), name)
            both = f", so {sides[id_]} and {sides[other]} were both measured without it" if without else ""
            refusal = f"The host did not grant {name} = {setting.value} to {sides[id_]}{both}"
            yield f"{refusal}. The server's log: {setting.said}."


def not_granted_lines(run: Run, analysis: Analysis) -> Iterator[str]:
    """Yield a line for each setting that treatments had in name only."""
    treatments: dict[tuple[str, str], list[str]] = {}
    log_lines: dict[tuple[str, str], str] = {}
    for treatment in run.design.treatments:
        for setting in not_granted(analysis.blocks.of(treatment.id)):
            treatments.setdefault((setting.name, setting.value), []).append(treatment.id)
            log_lines.setdefault((setting.name, setting.value), setting.said)
    for (name, value), ids in treatments.items():
        whose = (
            "any treatment" if len(ids) == len(run.design.treatments) else treatments_named(ids, run.design.treatments)
        )
        yield f"The host did not grant {name} = {value} to {whose}: the server's log says {log_lines[name, value]}."


def cache_text(row: TreatmentSummary) -> str:
    """Return that the drive's fast cache ran out, how large it was, and when; else nothing."""
    cache = row.cache_ran_out
    if cache is None:
        return ""
    trials = count(cache.of, "trial")
    where = f" ({trials})" if cache.trials == cache.of else f" ({cache.trials} of {trials})"
    if cache.after_s <= 0:
        what = "before measuring began", "its figure is the rate of a drive without one"
    else:
        after = f"{seconds(cache.after_s)} after measuring began"
        what = after, "its figure is a mean of the rate before and after, and depends on how long the run was"
    return f"The fast cache of {row.label}, {_size(cache)}, ran out {what[0]}{where}: {what[1]}."


def _size(cache: CacheRanOut) -> str:
    part = math.isfinite(cache.drive_bytes) and cache.bytes < cache.drive_bytes
    return drive_bytes(cache.bytes) + (f" where the drive has {drive_bytes(cache.drive_bytes)}" if part else "")
