"""Two profiles of the server beside each other: which functions took more of its processors' time, and which less."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from dbdyno.model.design import Comparison, Design
from dbdyno.store.profiles import BETWEEN, Profile


@dataclass
class StackFrame:
    """A function in its place below its callers, with all that it calls: time in both profiles."""

    name: str
    level: float = 0.0
    baseline: float = 0.0
    callees: "dict[str, StackFrame]" = field(default_factory=dict)

    @property
    def difference(self) -> float:
        """Time of the level less that of the baseline."""
        return self.level - self.baseline


@dataclass(frozen=True)
class FunctionTime:
    """The time inside a function itself, wherever it was called."""

    name: str
    level: float
    baseline: float

    @property
    def difference(self) -> float:
        """Time of the level less that of the baseline."""
        return self.level - self.baseline


@dataclass(frozen=True)
class ProfilesCompared:
    """The profiles of a comparison. Times are microseconds a query, or shares in percent of unknown queries."""

    comparison: Comparison
    root: StackFrame
    functions: list[FunctionTime]  # those whose own time differs most first
    per_query: bool
    samples: tuple[int, int]  # of the level, of the baseline


def compared_profiles(design: Design, profiles: Mapping[str, Profile]) -> list[ProfilesCompared]:
    """Return each comparison of which both treatments have a profile, in the order of the study."""
    return [
        _compared(pair, profiles[pair.level], profiles[pair.baseline])
        for pair in design.comparisons
        if pair.level in profiles and pair.baseline in profiles
    ]


def _compared(pair: Comparison, level: Profile, baseline: Profile) -> ProfilesCompared:
    per_query = bool(level.queries and baseline.queries)
    root = StackFrame("all")
    own: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for side, profile in enumerate((level, baseline)):
        each = profile.us_per_sample if per_query else 100 / (profile.samples or 1)
        for stack, count in profile.stacks.items():
            names, frame, time = stack.split(BETWEEN), root, count * each
            _add(root, side, time)
            for name in names:
                frame = frame.callees.setdefault(name, StackFrame(name))
                _add(frame, side, time)
            own[names[-1]][side] += time
    functions = [FunctionTime(name, *times) for name, times in own.items()]
    functions.sort(key=lambda function: (-abs(function.difference), function.name))
    return ProfilesCompared(pair, root, functions, per_query, (level.samples, baseline.samples))


def _add(frame: StackFrame, side: int, time: float) -> None:
    if side:
        frame.baseline += time
    else:
        frame.level += time
