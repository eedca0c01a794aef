"""Trials that failed: what, where, why."""

from dbdyno.report.document import Section, bullets
from dbdyno.report.source import Source, fields


def section(source: Source) -> Section:
    """Return a line for each of them: what, where, why."""
    failures, labels = source.run.failures, source.run.design.labels
    lines = [
        f"{one.id} ({labels.get(one.treatment, one.treatment)}, block {one.block}, attempt {one.attempt}): {one.cause}"
        for one in failures
    ]
    values = [{"trial": one.id, **fields(one, "treatment block attempt cause")} for one in failures]
    return Section("failures", "Failed trials", bullets(lines), data={"failures": values})
