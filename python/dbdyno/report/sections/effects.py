"""The effect of each comparison, drawn with its interval, single blocks and the margin."""

from dbdyno.model.wording import margin_text
from dbdyno.report.charts import forest
from dbdyno.report.document import Abridged, Details, Paragraph, Section
from dbdyno.report.sections.stopped import interval_words
from dbdyno.report.source import Source


def section(source: Source) -> Section | None:
    """Return the chart; folded a close-up of the margin where the whole range hides it; none of unknown effects."""
    analysis = source.analysis
    charts = forest.charts(analysis)
    if not charts:
        return None
    words = interval_words(analysis)
    sides = "To the left the figure of each side, a geometric mean over blocks, with its 95 % interval; to the right"
    note = (
        f"{sides} the difference inside blocks. The large dot is the estimate ({words.estimate}) and the bar its"
        f" {words.name}; small dots are single blocks; the grey band is the margin of {margin_text(analysis.margin)}."
        " The axis is logarithmic: twice as fast and half as fast are equally far from 0."
    )
    close_up = (Details("Close to the margin", charts[1:]),) if charts[1:] else ()
    how = Details("How to read this chart", (Paragraph(note, "soft"),))
    heading = "Speed" if source.safety else ""  # else it stands right below the headline
    return Section("effect", heading, (Abridged((charts[0], *close_up, how)),))
