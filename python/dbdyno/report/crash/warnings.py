"""What changes how far the verdicts on crash safety are to be trusted, a line each."""

import math
from collections.abc import Iterator

from dbdyno.analysis.safety.judge import CrashSafety
from dbdyno.analysis.safety.verdict import RunsFailed
from dbdyno.model.wording import count, drive_bytes, listed
from dbdyno.report.crash.headline import doubt_text
from dbdyno.report.crash.names import Names
from dbdyno.report.crash.wording import cuts, many, share_text, stratum_text

FEW_RUNS = 6


def crash_warnings(safety: CrashSafety, names: Names) -> Iterator[str]:
    """Yield the lines, the weightiest first."""
    what = many(safety.mode)
    if safety.mode == "kill":
        yield "A kill of the server is no power cut: what it had written survived in memory. Power cuts may lose more."
    if safety.control is None:
        yield "No control: no treatment known to lose was run, so nothing shows that this load shows a loss."
    elif (kept := safety.control.doubt) and all(one.word != "undecided" for one in safety.treatments):
        yield f"{doubt_text((kept,), safety.mode).capitalize()}."
    for one in safety.treatments:
        if one.tally.limit_reached:
            most, seen = drive_bytes(one.tally.unflushed_bytes_most), one.tally.limit_reached
            yield (
                f"{names.long(one.id)}: at {seen:,} of {cuts(safety.mode, one.tally.cuts)} more was unflushed ({most})"
                " than is kept track of, so it loses at least this."
            )
        failed = [doubt for doubt in one.doubts if isinstance(doubt, RunsFailed)]
        if failed and one.word != "undecided":
            yield f"{names.long(one.id)}: {doubt_text(failed, safety.mode)}."
    runs = min((one.tally.runs for one in safety.treatments if one.tally.cuts), default=0)
    if 0 < runs < FEW_RUNS:
        yield f"Only {count(runs, 'run')} of a treatment: {what} of one run may be more alike than can be seen."
    elif safety.correlation.may_be:
        yield from _correlated(safety, what)
    yield from _spared(safety, names)


def _correlated(safety: CrashSafety, what: str) -> Iterator[str]:
    """Yield what it means for bounds, where there is one of what was not seen."""
    known = safety.correlation.within
    seen = f"correlation {known:.2f} of what the control lost" if math.isfinite(known) else "how much is not known"
    bounds = [one.tally.lost for one in safety.treatments if one.tally.cuts and not one.tally.lost.seen]
    if bounds:
        by_runs, by_cuts = max(one.by_runs for one in bounds), max(one.if_independent for one in bounds)
        yield (
            f"{what.capitalize()} of one run resemble each other ({seen}): where nothing was lost bounds are by runs,"
            f" {share_text(by_runs)}, not by {what}, {share_text(by_cuts)}."
        )


def _spared(safety: CrashSafety, names: Names) -> Iterator[str]:
    """Yield the treatments that lost in some strata and in others nothing."""
    for one in safety.treatments:
        if one.only_in:
            where = listed([stratum_text(stratum) for stratum in one.only_in], 3)
            yield f"{names.long(one.id)} lost only with {where}; with the other {many(safety.mode)} nothing."
