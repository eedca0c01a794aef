"""What the same cuts came to on each of several hosts, and where hosts differ.

Runs are shared out between one host and the others, as between two treatments (``by_runs``); all hosts of all
treatments are one family, whose p are Holm's.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dbdyno.analysis.safety.bounds import Seen
from dbdyno.analysis.safety.by_runs import p_by_runs
from dbdyno.analysis.safety.correlation import Correlation
from dbdyno.analysis.safety.tally import Tally, is_damage, tally
from dbdyno.analysis.statistics.multiplicity import holm
from dbdyno.model.cut import Cut
from dbdyno.model.design import ALPHA
from dbdyno.store.records import Run

Of = Callable[[Cut], bool]


@dataclass(frozen=True)
class OnHost:
    """The cuts of one treatment on one host; of ``p`` that it loses, or does damage, as often as on the others."""

    treatment: str
    host: str
    tally: Tally
    p: float  # Holm's; 1 where no host has anything to count

    @property
    def is_odd(self) -> bool:
        """Whether it is shown to lose, or to do damage, more or less often here than on the other hosts."""
        return self.p <= ALPHA


@dataclass(frozen=True)
class ByHost:
    """One treatment on all hosts that have cuts of it."""

    treatment: str
    hosts: tuple[OnHost, ...]

    @property
    def differs(self) -> bool:
        """Whether hosts differ in the worst that was seen (nothing, a lost tail, damage), or are shown to differ."""
        kinds = {_kind(one.tally) for one in self.hosts}
        return len(kinds) > 1 or any(one.is_odd for one in self.hosts)


def by_host(run: Run, treatments: Sequence[str], related: Correlation) -> tuple[ByHost, ...]:
    """Return each treatment's cuts by host; nothing of a run on one host."""
    hosts = list(dict.fromkeys(trial.host for trial in run.trials if trial.cuts))
    if len(hosts) < 2:  # noqa: PLR2004
        return ()
    order = run.design.fleet.hosts if run.design.fleet else hosts
    hosts.sort(key=lambda host: order.index(host) if host in order else len(order))
    raw = [one for id_ in treatments for one in _of_treatment(run, id_, hosts, related)]
    asked = [one for one in raw if not math.isnan(one.p)]
    adjusted = dict(zip(map(id, asked), holm([one.p for one in asked]) if asked else (), strict=True))
    judged = [replace(one, p=float(adjusted.get(id(one), 1.0))) for one in raw]
    found = ((id_, tuple(one for one in judged if one.treatment == id_)) for id_ in treatments)
    return tuple(ByHost(id_, each) for id_, each in found if each)


def _of_treatment(run: Run, id_: str, hosts: Sequence[str], related: Correlation) -> list[OnHost]:
    runs = {host: [one.cuts for one in run.trials if one.treatment == id_ and one.host == host and one.cuts]
            for host in hosts}  # fmt: skip
    found = []
    for host, own in runs.items():
        others = [cuts for other, each in runs.items() if other != host for cuts in each]
        if own:
            found.append(OnHost(id_, host, tally(own, related), _p(own, others)))
    return found


def _p(own: Sequence[Sequence[Cut]], others: Sequence[Sequence[Cut]]) -> float:
    """Return the p of both questions together; NaN where there is nothing to count on either side (Tarone 1990)."""
    asked: tuple[Of, Of] = (lambda cut: cut.is_loss, is_damage)
    sides = [(_seen(own, of), _seen(others, of)) for of in asked]
    each = [p_by_runs(*both) for both in sides if any(seen for side in both for seen, _ in side)]
    return min(1.0, len(each) * min(each)) if each else math.nan


def _seen(runs: Sequence[Sequence[Cut]], of: Of) -> Seen:
    return [(sum(map(of, cuts)), len(cuts)) for cuts in runs]


def _kind(found: Tally) -> str:
    return "damage" if found.damage.seen else "tail" if found.lost.seen else "nothing"
