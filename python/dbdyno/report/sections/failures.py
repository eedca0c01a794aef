"""Trials that failed: what, where, why."""

from dbdyno.report.document import Section, bullets
from dbdyno.report.findings import Findings
from dbdyno.report.values import fields
from dbdyno.store.records import Run


def section(findings: Findings) -> Section:
    """Return a line for each of them."""
    run = findings.run
    values = [{"trial": one.id, **fields(one, "treatment block attempt cause")} for one in run.failures]
    return Section("failures", "Failed trials", bullets(failure_lines(run)), data={"failures": values})


def failure_lines(run: Run) -> list[str]:
    """Return one line per failed trial: what, where, why."""
    labels = run.design.labels
    return [
        f"{failure.id} ({labels.get(failure.treatment, failure.treatment)}, block {failure.block},"
        f" attempt {failure.attempt}): {failure.cause}"
        for failure in run.failures
    ]
