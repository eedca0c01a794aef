"""Every trial in the order it ran, and what the order followed from."""

from dbdyno.report.charts import strip
from dbdyno.report.document import Abridged, Paragraph, Section
from dbdyno.report.source import Source

NOTE = (
    "Each dot is one trial; dashed lines separate blocks; hollow dots are trials of attempts that do not count. Below:"
    " the same trials against the mean of their treatment, where drift and outliers show."
)


def section(source: Source) -> Section | None:
    """Return the strip of trials; none before there is one."""
    run = source.run
    chart = strip.chart(run, source.analysis)
    if chart is None:
        return None
    return Section("order", "In the order it ran", (Abridged((chart, Paragraph(NOTE, "soft"))),))
