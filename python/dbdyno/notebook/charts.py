"""The charts of the HTML report, by name, as a notebook shows them."""

from dataclasses import dataclass

from markupsafe import Markup

from dbdyno.analysis.analyse import Analysis
from dbdyno.model.printable import html_text
from dbdyno.report.charts import forest, interaction, percentiles, strip
from dbdyno.store.records import Run


@dataclass(frozen=True)
class Chart:
    """One chart: a notebook draws it, ``svg`` is its text."""

    title: str
    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        narrow = Markup(self.svg.replace("<svg ", '<svg style="max-width: 100%; height: auto" ', 1))  # noqa: S704 - ours
        return str(Markup("<figure><figcaption>{}</figcaption>{}</figure>").format(html_text(self.title), narrow))


def charts_of(run: Run, analysis: Analysis) -> dict[str, Chart]:
    """Return those this run has, as in a wide window.

    They are called ``effect``, ``close_up``, ``interaction``, ``interaction_2``, ..., ``latency`` and ``order``.
    """
    names = ("effect", "close_up")
    found = {
        name: Chart(chart.caption or "Effects and their 95 % intervals", str(chart.drawn("wide")))
        for name, chart in zip(names, forest.charts(analysis), strict=False)
    }
    for place, chart in enumerate(interaction.charts(analysis), 1):
        found["interaction" if place == 1 else f"interaction_{place}"] = Chart(chart.caption, str(chart.drawn("wide")))
    if percentiles.shown(analysis):
        latency = percentiles.chart(percentiles.shown(analysis), run.design)
        found["latency"] = Chart(latency.caption, str(latency.drawn("wide")))
    order = strip.chart(run, analysis)
    if order is not None:
        found["order"] = Chart("Every trial in the order it ran", str(order.drawn("wide")))
    return found
