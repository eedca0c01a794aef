"""What each host lost, of a crash run on several; where they differ, a sentence says so."""

from dataclasses import asdict
from typing import Any

from dbdyno.analysis.safety.judge import ByHost, CrashSafety, OnHost
from dbdyno.model.wording import count, listed, p_value
from dbdyno.report.crash.names import Names
from dbdyno.report.crash.wording import SHORT, cuts, share_text
from dbdyno.report.document import Table

LINES_MAX = 3


def host_lines(safety: CrashSafety, names: Names) -> list[str]:
    """Return a sentence for each treatment whose hosts differ, and one on what bounds are of; none of one host."""
    if not safety.by_host:
        return []
    differing = [_line(one, safety, names) for one in safety.by_host if one.differs]
    more = [f"{count(len(differing) - LINES_MAX, 'more treatment')}: see By host."] if differing[LINES_MAX:] else []
    hosts = dict.fromkeys(one.host for each in safety.by_host for one in each.hosts)
    same = "" if differing else ", which show no difference between them"
    return [*differing[:LINES_MAX], *more, f"Runs of {len(hosts)} hosts together{same}: bounds hold for these hosts."]


def _line(one: ByHost, safety: CrashSafety, names: Names) -> str:
    """Return what each host lost, hosts that lost nothing together; and whether that may be chance."""
    name = _named(one.treatment, safety, names)
    lost = [f"{on.host} {SHORT[on.tally.worst]} in {_of(on, safety)}" for on in one.hosts if on.tally.lost.seen]
    spared = [on for on in one.hosts if not on.tally.lost.seen]
    nothing = sum(on.tally.cuts for on in spared)
    lost += [f"{listed([on.host for on in spared])} nothing in {cuts(safety.mode, nothing)}"] if spared else []
    odd = [f"{on.host}: {p_value(on.p)}" for on in one.hosts if on.is_odd]
    why = f"more than chance ({', '.join(odd)})" if odd else "which may be chance"
    return f"{name} differs by host: {'; '.join(lost)}; {why}."


def _of(on: OnHost, safety: CrashSafety) -> str:
    return f"{on.tally.lost.seen:,} of {cuts(safety.mode, on.tally.cuts)}"


def _named(id_: str, safety: CrashSafety, names: Names) -> str:
    control = safety.control
    if control is not None and control.id == id_ and not control.compared:
        return "control"
    return names.long(id_)


def host_table(safety: CrashSafety, names: Names) -> Table:
    """Return a row for each treatment on each host."""
    rows = tuple(
        (
            *(_named(on.treatment, safety, names), on.host, f"{on.tally.runs:,}"),
            f"{on.tally.lost.seen:,} of {on.tally.lost.cuts:,}",
            *(share_text(on.tally.lost.at_most), f"{on.tally.damage.seen:,}", SHORT[on.tally.worst]),
            p_value(on.p).removeprefix("p ").removeprefix("= "),
        )
        for each in safety.by_host
        for on in each.hosts
    )
    headings = (names.heading, "host", "runs", "lost in", "at most", "damage", "worst seen", "p against others (Holm)")
    return Table("By host", headings, rows, words=(1, 6))


def hosts_json(safety: CrashSafety) -> list[dict[str, Any]]:
    """Return it as values; empty of one host."""
    return [
        {
            "id": each.treatment,
            "differs": each.differs,
            "hosts": [
                {"host": on.host, "p": on.p, **asdict(on.tally), "worst": on.tally.worst if on.tally.cuts else None}
                for on in each.hosts
            ],
        }
        for each in safety.by_host
    ]
