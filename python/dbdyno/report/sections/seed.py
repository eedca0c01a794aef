"""What the order of trials followed from, and how to have it again."""

from dbdyno.report.document import Abridged, Paragraph, Section
from dbdyno.report.source import Source


def section(source: Source) -> Section:
    """Return the seed; a page has it among its facts."""
    seed = source.run.design.seed
    again = Paragraph(f"Seed {seed}: with --seed {seed} the trials come in this order again.", "soft")
    return Section("seed", "", (Abridged((), (again,)),))
