"""What a headline says of hosts."""

from collections.abc import Iterator

from dbdyno.analysis.analyse import Analysis
from dbdyno.report.document import plain
from dbdyno.report.fleet.levels import level_sentence
from dbdyno.report.fleet.like_these import in_brief, spread_words
from dbdyno.report.fleet.noise import odd_text

LEVELS_MAX = 2  # sentences; more stand in the section


def hosts_used(analysis: Analysis) -> list[str]:
    """Return the hosts with a usable block, of a study on several."""
    return [host for host, blocks in analysis.fleet.blocks.items() if blocks] if analysis.fleet else []


def of_hosts(analysis: Analysis) -> Iterator[str]:
    """Yield what is shown of hosts like these, of what is fixed to hosts, and which host is odd."""
    found = analysis.fleet
    if found is None or not hosts_used(analysis):
        return
    if text := in_brief(found.like_these):
        yield text
    for one in found.levels[:LEVELS_MAX]:
        yield plain(level_sentence(one, analysis))
    if found.noise:
        if text := spread_words(found.noise.between_hosts):
            yield f"Hosts differ by a standard deviation of {text}."
        yield odd_text(found.noise)
