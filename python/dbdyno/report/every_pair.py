"""Verdicts of every pair, asked for when the figures were there to be seen."""

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.wording import count

HEADING = "Every pair, not planned"


def every_pair_note(analysis: Analysis) -> str:
    """Return what these verdicts are; empty where nobody asked for them."""
    if not analysis.every_pair:
        return ""
    return (
        f"Not planned: these {count(len(analysis.every_pair), 'verdict')} were asked for after the run. Holm's"
        " correction goes over all of them, apart from the planned ones, so a pair's p may differ from the one above."
    )
