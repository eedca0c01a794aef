"""How much hosts differ, of an A/A run over several."""

from typing import Any

from dbdyno.analysis.fleet import ODD_MIN, FleetNoise, Left
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.model.wording import UNKNOWN, listed, number, p_value, percent
from dbdyno.report.document import Block, Table, bullets
from dbdyno.report.fleet.like_these import spread_words
from dbdyno.report.values import fields

PARTS = (
    ("between_hosts", "between hosts"),
    ("between_blocks", "between blocks of a host (its moments)"),
    ("between_starts", "between starts of the server in a block"),
    ("inside", "inside a trial"),
)
_ESTIMATE = "value low high n"


def noise_blocks(found: FleetNoise) -> tuple[Block, ...]:
    """Return what the parts of the variance are, each host against the others, and what follows."""
    parts = tuple((words, _size(getattr(found, name))) for name, words in PARTS)
    rows = tuple(
        (one.host.host, str(one.host.blocks), number(one.host.value), percent(one.difference), _word(one, found))
        for one in found.each
    )
    return (
        Table("Where variance comes from", ("part", "standard deviation (95 % interval)"), parts),
        *bullets(noise_lines(found)),
        Table("Each host against the others", ("host", "blocks", "mean", "against the others", "is it odd"), rows),
    )


def noise_lines(found: FleetNoise) -> list[str]:
    """Return the share of hosts, and which of them is odd."""
    lines = []
    if found.share_of_hosts.known:
        low, value, high = (f"{100 * getattr(found.share_of_hosts, one):.0f}" for one in ("low", "value", "high"))
        interval = f"95 % interval {low} to {high} %; intraclass correlation"
        lines.append(f"Hosts account for {value} % of the variance between two blocks ({interval}).")
    return [*lines, odd_text(found)]


def odd_text(found: FleetNoise) -> str:
    """Return which hosts are not like the others."""
    if len(found.each) < ODD_MIN:
        return f"Whether a host is odd can't be said of fewer than {ODD_MIN}."
    odd = [f"{one.host.host} ({percent(one.difference)} against the others, {p_value(one.p)})" for one in found.odd]
    if not odd:
        return "No host is shown to be odd: none is farther from the others than they are from each other."
    return f"Not like the others: {listed(odd)}."


def _word(one: Left, found: FleetNoise) -> str:
    if len(found.each) < ODD_MIN:
        return "-"
    return f"yes, {p_value(one.p)}" if one.odd else f"no, {p_value(one.p)}"


def _size(found: Estimate) -> str:
    return spread_words(found).replace("95 % interval ", "") or UNKNOWN


def noise_json(found: FleetNoise) -> dict[str, Any]:
    """Return it for programs; standard deviations of ln(metric), a share from 0 to 1."""
    return {
        **{name: fields(getattr(found, name), _ESTIMATE) for name, _ in PARTS},
        "share_of_hosts": fields(found.share_of_hosts, _ESTIMATE),
        "hosts": [
            {**fields(one.host, "host blocks value"), "difference": one.difference, "p": one.p, "odd": one.odd}
            for one in found.each
        ],
    }
