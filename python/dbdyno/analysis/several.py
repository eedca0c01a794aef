"""Several runs side by side: each with a name of its own, and one ranking over all of them where there is one."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.ranking.ranking import Ranking, rank_runs
from dbdyno.analysis.refused import RefusedError
from dbdyno.store.records import Run


@dataclass(frozen=True)
class Member:
    """One of several runs; ``name`` distinguishes it from the others."""

    name: str
    run: Run
    analysis: Analysis


@dataclass(frozen=True)
class Several:
    """Runs that are reported together."""

    members: tuple[Member, ...]
    ranking: Ranking | None
    unranked: RefusedError | None  # why there is no ranking


def together(members: Sequence[Member]) -> Several:
    """Return the runs with the ranking over all of them, or with the reason why they can't be ranked."""
    try:
        ranking = rank_runs([(member.name, member.run) for member in members])
    except RefusedError as error:
        return Several(tuple(members), None, error)
    return Several(tuple(members), ranking, None)


def distinct_names(titles: Sequence[str], folders: Sequence[Path]) -> list[str]:
    """Return a name for each run: its title, and where that repeats its folder too, as short as can be."""
    repeated = {title for title, times in Counter(titles).items() if times > 1}
    alike = [folder for title, folder in zip(titles, folders, strict=True) if title in repeated]
    names = Counter(folder.name for folder in alike)
    return [
        f"{title} ({folder.name if names[folder.name] == 1 else folder})" if title in repeated else title
        for title, folder in zip(titles, folders, strict=True)
    ]
