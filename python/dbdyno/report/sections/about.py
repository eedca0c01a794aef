"""What a result rests on: what was expected of it, what its named levels give, and the run in a few facts."""

from dbdyno.model.wording import margin_text
from dbdyno.report.document import Abridged, Paragraph, Section
from dbdyno.report.sections.stopped import blocks_used
from dbdyno.report.source import Source


def section(source: Source) -> Section:
    """Return them; a terminal has most of the facts elsewhere."""
    run = source.run
    expected = (Paragraph(f"Expected beforehand: {run.expect}", "soft"),) if run.expect else ()
    scale = (Paragraph(f"At scale {run.scale}."),) if run.scale else ()
    levels = tuple(Paragraph(said) for factor in run.design.factors for said in factor.said())
    named = {factor.name: factor.gives for factor in run.design.factors if factor.gives}
    data = {"levels": named} if named else {}
    return Section("about", "", (*expected, *levels, Abridged((_facts(source),), scale)), data=data)


def _facts(source: Source) -> Paragraph:
    run, analysis = source.run, source.analysis
    facts = (
        f"scale {run.scale}" if run.scale else "",
        blocks_used(run, analysis),
        f"{len(run.design.treatments)} treatments",
        f"judged by {analysis.metric.words}",
        f"margin {margin_text(analysis.margin)}",
        f"seed {run.design.seed}",
        f"run {run.ended}" if run.ended != "done" else "",
    )
    return Paragraph(" · ".join(filter(None, facts)), "soft")
