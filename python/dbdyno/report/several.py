"""What a report of several runs says of them as a whole."""

from collections.abc import Sequence

from dbdyno.analysis.several import Member, Several
from dbdyno.analysis.wording import count
from dbdyno.report.differences import ABSENT, OF_A_MOMENT
from dbdyno.report.observed import flattened

NOT_INTERLEAVED = (
    "These runs were not interleaved with each other: each had its own blocks, at its own time. Inside a run treatments"
    " are compared inside blocks; between runs whatever changed on the host meanwhile counts as well."
)
DIFFERENCES_HEADING = "What differs between the runs"
DIFFERENCES_MAX = 40  # rows


def heading(several: Several) -> str:
    """Return the title of the whole report: that of the runs, if they have one in common."""
    titles = {member.run.title for member in several.members}
    runs = count(len(several.members), "run")
    return f"{next(iter(titles))}: {runs}" if len(titles) == 1 else f"{runs} side by side"


def member_line(member: Member) -> str:
    """Return when a run was measured and how much of it there is."""
    trials = member.run.trials
    usable = f"{count(len(member.analysis.blocks.trials), 'usable block')}, {count(len(trials), 'trial')}"
    days = sorted({trial.started_at[:10] for trial in trials if trial.started_at})
    when = f", measured {days[0]}{f' to {days[-1]}' if len(days) > 1 else ''} (UTC)" if days else ""
    scale = f", at scale {member.run.scale}" if member.run.scale else ""
    ended = "" if member.run.ended == "done" else f", {member.run.ended}"
    return f"{usable}{when}{scale}, judged by {member.analysis.metric.words}{ended}"


def unranked_line(several: Several) -> str:
    """Return why there is no ranking; empty where there is one."""
    return f"No ranking over these runs: {several.unranked}." if several.unranked else ""


def differences(several: Several) -> list[tuple[str, ...]]:
    """Return (fact, its value in each run) for versions, host and study, where the runs differ."""
    facts = [_facts(member) for member in several.members]
    names = dict.fromkeys(name for each in facts for name in each)
    rows = [(name, *(each.get(name, ABSENT) for each in facts)) for name in names]
    return [row for row in rows if len(set(row[1:])) > 1]


def differences_lines(several: Several) -> list[str]:
    """Return the same as one line each."""
    rows = differences(several)
    lines = [f"{row[0]}: {_values(row[1:], several.members)}" for row in rows[:DIFFERENCES_MAX]]
    rest = len(rows) - DIFFERENCES_MAX
    return [*lines, f"{rest} more are in the HTML report."] if rest > 0 else lines


def _facts(member: Member) -> dict[str, str]:
    run = member.run
    kinds = (("version", run.versions), ("host", run.host), ("study", run.study))
    return {
        f"{kind}: {name}": value
        for kind, facts in kinds
        for name, value in flattened(facts).items()
        if name not in OF_A_MOMENT
    }


def _values(values: Sequence[str], members: Sequence[Member]) -> str:
    return "; ".join(f"{value} ({member.name})" for value, member in zip(values, members, strict=True))
