"""What changes how far the verdicts on crash safety are to be trusted, a line each."""

import math
from collections.abc import Iterator

from dbdyno.analysis.safety.judge import CrashSafety, RunsFailed
from dbdyno.model.wording import drive_bytes, listed
from dbdyno.report.crash.headline import doubt_text
from dbdyno.report.crash.names import Names
from dbdyno.report.crash.wording import cuts, many, stratum_text


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
    if safety.correlation.may_be and math.isfinite(safety.correlation.within):
        yield from _correlated(safety, what)
    yield from _spared(safety, names)


def _correlated(safety: CrashSafety, what: str) -> Iterator[str]:
    """Yield how much alike cuts of one run are, where there is a bound of what was not seen."""
    bounds = [one.tally.lost for one in safety.treatments if one.tally.cuts and not one.tally.lost.seen]
    if bounds:
        how = f"correlation {safety.correlation.within:.2f} of what the control lost"
        yield f"{what.capitalize()} of one run resemble each other ({how}): only more runs say more."


def _spared(safety: CrashSafety, names: Names) -> Iterator[str]:
    """Yield the treatments that lost in some strata and in others nothing."""
    for one in safety.treatments:
        if one.only_in:
            where = listed([stratum_text(stratum) for stratum in one.only_in], 3)
            yield f"{names.long(one.id)} lost only with {where}; with the other {many(safety.mode)} nothing."
