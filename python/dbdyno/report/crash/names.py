"""How treatments are called beside cuts, one by one or together: by what varies, in as few words as that takes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from dbdyno.analysis.safety.judge import Control
from dbdyno.model.treatment import Treatment
from dbdyno.model.wording import listed

LISTED_MAX = 4  # levels of the one factor that varies
LABELS_MAX = 2  # labels of several factors, which are long
ALL_BUT = "all but "
_SAYS_NOTHING = {"none", "default", "off", "on", "true", "false", "yes", "no"}


def piece(factor: str, level: str) -> str:
    """Return ``"innodb_flush_log_at_trx_commit = 1"``; a level that says what it is stands alone: ``"xfs"``."""
    return level if level[:1].isalpha() and level.lower() not in _SAYS_NOTHING else f"{factor} = {level}"


@dataclass(frozen=True)
class Names:
    """The treatments of a run; one as it was written has no level that varies."""

    levels: Mapping[str, Mapping[str, str]]  # by treatment, in the order of the study

    @cached_property
    def factors(self) -> tuple[str, ...]:
        """What varies."""
        names = dict.fromkeys(name for each in self.levels.values() for name in each)
        return tuple(name for name in names if len({each.get(name) for each in self.levels.values()}) > 1)

    @property
    def heading(self) -> str:
        """What stands above the names of a table: ``"innodb_flush_log_at_trx_commit / sync_binlog"``."""
        return " / ".join(self.factors) or "treatment"

    def of_levels(self, levels: Mapping[str, str]) -> str:
        """Return the levels below ``heading``: ``"1 / 0"``."""
        return " / ".join(levels[name] for name in self.factors if name in levels) or Treatment("", dict(levels)).label

    def of_control(self, control: Control) -> str:
        """Return the control below ``heading``, or, where it has levels of its own, as the plan calls it."""
        if control.compared or set(self.factors) & set(control.levels):
            return self.of_levels(control.levels)
        named = control.label.removeprefix("control").strip().removeprefix("(").removesuffix(")")
        return named.removeprefix(f"{self.factors[0]} = ") if len(self.factors) == 1 else named

    def short(self, id_: str) -> str:
        """Return a treatment as ``of_levels``."""
        return self.of_levels(self.levels.get(id_, {}))

    def long(self, id_: str) -> str:
        """Return a treatment that nothing explains: ``"innodb_flush_log_at_trx_commit = 1 / sync_binlog = 0"``."""
        own = self.levels.get(id_, {})
        return " / ".join(piece(name, own[name]) for name in self.factors if name in own) or self.short(id_)

    def together(self, ids: Sequence[str], before: Collection[str] = ()) -> str:
        """Return several treatments by what they and no others have; ``before`` are those that were named already."""
        if len(self.factors) < 2:  # noqa: PLR2004
            left = [id_ for id_ in self.levels if id_ not in ids]
            most = len(ids) > LISTED_MAX and 0 < len(left) <= LABELS_MAX
            named = self._of_one_factor(left if most else ids, begun=bool(before))
            return f"{ALL_BUT if most else ''}{listed(named, LISTED_MAX)}"
        if len(ids) == 1:
            return self.long(ids[0])
        if len(ids) == len(self.levels):
            return f"all {len(ids)}"
        if found := self._in_common(ids) or self._of_levels_alone(ids):
            return f"{found} ({len(ids)} treatments)"
        if before and len(ids) + len(before) == len(self.levels):
            return f"the other {len(ids)}"
        return listed([self.long(id_) for id_ in ids], LABELS_MAX)

    def _of_one_factor(self, ids: Sequence[str], *, begun: bool) -> list[str]:
        """Return the levels; the first that is a number goes by its factor, unless one before did."""
        short, long = [self.short(id_) for id_ in ids], [self.long(id_) for id_ in ids]
        first = next((place for place, names in enumerate(zip(short, long, strict=True)) if len(set(names)) > 1), None)
        return [long[at] if at == first and not begun else name for at, name in enumerate(short)]

    def _having(self, factor: str, levels: Collection[str | None]) -> set[str]:
        return {id_ for id_, own in self.levels.items() if own.get(factor) in levels}

    def _in_common(self, ids: Sequence[str]) -> str:
        """Return the levels that all of these share, where no other treatment has them all."""
        first = self.levels[ids[0]]
        shared = [one for one in self.factors if len({self.levels[id_].get(one) for id_ in ids}) == 1 and one in first]
        having = [self._having(one, [first[one]]) for one in shared]
        if not shared or set.intersection(*having) != set(ids):
            return ""
        return " / ".join(piece(one, first[one]) for one in shared)

    def _of_levels_alone(self, ids: Sequence[str]) -> str:
        """Return some levels of one factor, where these treatments and no others have them."""
        for one in self.factors:
            levels = list(dict.fromkeys(self.levels[id_].get(one) for id_ in ids))
            if self._having(one, levels) == set(ids):
                known = [level for level in levels if level is not None]
                return listed([piece(one, known[0]), *known[1:]], LISTED_MAX)
        return ""


def names_of(treatments: Sequence[Treatment]) -> Names:
    """Return the names of a study's treatments."""
    return Names({one.id: one.levels for one in treatments})
