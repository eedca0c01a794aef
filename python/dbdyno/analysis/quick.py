"""What a quick look at storage found: rates with their intervals, the host's noise, the drive it is most like.

Its rounds are blocks: every step is done once in each, so two targets that took turns are compared as treatments are.
But all rounds are of one short session. A disk that is slower for some minutes is slower in each of them, and nothing
inside the session tells that from a slower disk. So what is said of two targets is said of these seconds alone.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dbdyno.analysis.noise_floor import multiple
from dbdyno.analysis.scipy_special import special
from dbdyno.analysis.statistics import Estimate, geometric_mean, log_ratios, relative
from dbdyno.analysis.verdict.finding import Finding, Paired, judge
from dbdyno.model.design import ALPHA
from dbdyno.model.metrics import METRICS

OPERATIONS = ("fsync", "randread", "randwrite")
MARGIN = 0.05
ROUNDS_MAX = 100
STUDY_BLOCKS = 8  # what a small study has: what it can show is said
ALIKE_MAX = 2.0  # times: a drive that is usually farther off is none that this one is like
FLUSH_WRITES_MAX = 3.0  # a flush that leaves a write to the medium takes longer than so many writes into a cache
STOLEN_MAX, OTHERS_MAX = 0.02, 0.25  # of the processors' time; the kernel's own work counts among the others
Key = tuple[str, int]  # operation and depth


@dataclass(frozen=True)
class DepthStep:
    """One operation with ``depth`` requests outstanding: operations a second by round, and how long each took."""

    operation: str
    bytes: int
    depth: int
    rate: Estimate  # geometric mean over the rounds, with a 95 % t interval of the logarithms
    by_round: Mapping[int, float]
    latency_ns: Mapping[str, float]  # "p50", "p99", "p999", "max", from the histogram of all rounds


@dataclass(frozen=True)
class Target:
    """A folder, a device or a drive model, as measured."""

    name: str
    kind: str  # "directory", "device", "model"
    direct: bool  # past the page cache
    region_bytes: int
    fill_bytes_per_second: float  # NaN: nothing was written
    steps: Mapping[Key, DepthStep]
    seconds: float = math.nan  # that its steps took, in all rounds; of a model in virtual time


@dataclass(frozen=True)
class Likeness:
    """A drive of the catalogue, and how many times off its figures usually are: 1 is the same."""

    drive: str
    factor: float
    alike: bool


@dataclass(frozen=True)
class Host:
    """What else the host did meanwhile, as shares of all processors' time; NaN where it is unknown."""

    others: float
    stolen: float
    tool: float


@dataclass(frozen=True)
class Quick:
    """Everything a quick look found."""

    target: Target
    host: Host
    noise: Estimate  # standard deviation of the log of the commit rate, or read rate, between rounds
    shown: float | None  # least difference that a study of 8 blocks with such noise shows; None: unknown
    likeness: Likeness | None
    against: Target | None = None
    verdicts: tuple[Finding, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    catalogue: tuple[Target, ...] = ()  # the drives that there are models of
    atlas: tuple[Target, ...] = ()  # disks that others looked at, of an atlas

    @property
    def session_seconds(self) -> float:
        """How long both targets were measured, which is what a verdict on them is about; models take no time."""
        targets = [self.target, *([self.against] if self.against else [])]
        return sum(target.seconds for target in targets if target.kind != "model")

    @property
    def flush_is_cheap(self) -> bool:
        """Whether a durable commit costs hardly more than a write: the cache is protected, or flushes do nothing."""
        commit, write = (self.target.steps.get((name, 1)) for name in ("fsync", "randwrite"))
        return bool(commit and write and commit.rate.value * FLUSH_WRITES_MAX > write.rate.value)

    @property
    def noisy_host(self) -> bool:
        """Whether the processors did much for others."""
        return self.host.stolen > STOLEN_MAX or self.host.others > OTHERS_MAX


def target_of(measured: Mapping[str, Any]) -> Target:
    """Return a target of what ``dbdyno-disk measure`` printed of it."""
    facts, fill = measured["facts"], measured["fill"]
    steps = [_step(step) for step in measured["steps"]]
    return Target(
        name=measured["target"],
        kind=facts["kind"],
        direct=facts.get("direct", True),
        region_bytes=facts["region_bytes"],
        fill_bytes_per_second=fill["bytes"] * 1e9 / max(1, fill["elapsed_ns"]) if fill else math.nan,
        steps={(step.operation, step.depth): step for step in steps},
        seconds=sum(measured_round["elapsed_ns"] for step in measured["steps"] for measured_round in step["rounds"])
        / 1e9,
    )


def _step(step: Mapping[str, Any]) -> DepthStep:
    by_round = {
        place: measured_round["operations"] * 1e9 / measured_round["elapsed_ns"]
        for place, measured_round in enumerate(step["rounds"], 1)
    }
    rate = geometric_mean(by_round.values(), ALPHA)
    return DepthStep(step["operation"], step["bytes"], step["depth"], rate, by_round, step["latency_ns"])


def quick_of(values: Mapping[str, Any]) -> Quick:
    """Return a quick look of what its report printed as JSON, but for verdicts and the catalogue, which are not kept.

    Raises ``KeyError``, ``TypeError`` or ``ValueError`` where it is none.
    """
    rounds = int(values["rounds"])
    targets = [target_from_values(target, rounds) for target in values["targets"]]
    host, noise, like = values["host"], values["noise"], values["likeness"]
    likeness = Likeness(str(like["drive"]), float(like["factor"]), bool(like["alike"])) if like else None
    shown = values["least_difference_shown"]
    return Quick(
        target=targets[0],
        host=Host(*(_number(host[name]) for name in ("others", "stolen", "tool"))),
        noise=_estimate(noise, "log_ratio_deviation", rounds),
        shown=None if shown is None else _number(shown),
        likeness=likeness,
        against=targets[1] if len(targets) > 1 else None,
        facts={str(name): str(value) for name, value in values["facts"].items()},
    )


def target_from_values(target: Mapping[str, Any], rounds: int) -> Target:
    """Return a target of what a report printed of it as JSON, the figures of its rounds being unknown.

    Raises ``KeyError``, ``TypeError`` or ``ValueError`` where it is none.
    """
    if not 1 <= rounds <= ROUNDS_MAX:
        raise ValueError(f"it says that it has {rounds} rounds")
    steps = {}
    for step in target["steps"]:
        rate = _estimate(step, "per_second", rounds)
        latency = {
            name.removeprefix("latency_ns_"): _number(value) for name, value in step.items() if "latency_ns" in name
        }
        if not all(math.isfinite(value) and value > 0 for value in (rate.value, latency["p50"])):
            raise ValueError("a rate or a latency in it is not above 0")
        operation, depth = str(step["operation"]), int(step["depth"])
        by_round = dict.fromkeys(range(1, rounds + 1), rate.value)
        steps[operation, depth] = DepthStep(operation, int(step["bytes"]), depth, rate, by_round, latency)
    fill = target["fill_bytes_per_second"]
    return Target(
        str(target["name"]),
        str(target["kind"]),
        bool(target["direct"]),
        int(target["region_bytes"]),
        _number(fill),
        steps,
    )


def _estimate(values: Mapping[str, Any], name: str, rounds: int) -> Estimate:
    return Estimate(_number(values[name]), _number(values["low"]), _number(values["high"]), rounds)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def noise_of(target: Target) -> Estimate:
    """Return the spread between rounds of one client's commits, or of its reads where nothing was written."""
    step = target.steps.get(("fsync", 1)) or target.steps[("randread", 1)]
    logs = np.log(list(step.by_round.values()))
    freedom = len(logs) - 1
    if freedom < 1:
        return Estimate.unknown(len(logs))
    sigma = float(np.std(logs, ddof=1))
    low, high = (sigma * math.sqrt(freedom / float(special.chdtri(freedom, tail))) for tail in (0.025, 0.975))
    return Estimate(sigma, low, high, len(logs))


def least_shown(noise: Estimate) -> float | None:
    """Return the least relative difference that 8 blocks show with 80 % power; a pair has two trials' noise."""
    if not noise.known or noise.n < 2:  # noqa: PLR2004 - no spread of one
        return None
    sigmas = multiple(STUDY_BLOCKS, ALPHA, noise.n - 1, 1)
    return None if sigmas is None else relative(sigmas * math.sqrt(2) * noise.value)


def likeness(target: Target, drives: Sequence[Target]) -> Likeness | None:
    """Return the drive whose rates are nearest: the root mean square of the log ratios over the steps both have."""
    distances = [(_distance(target, drive), drive.name) for drive in drives]
    distance, drive = min(((d, name) for d, name in distances if math.isfinite(d)), default=(math.nan, ""))
    return Likeness(drive, math.exp(distance), math.exp(distance) <= ALIKE_MAX) if drive else None


def _distance(target: Target, drive: Target) -> float:
    common = target.steps.keys() & drive.steps.keys()
    logs = [math.log(target.steps[key].rate.value / drive.steps[key].rate.value) for key in common]
    return math.sqrt(math.fsum(log**2 for log in logs) / len(logs)) if logs else math.inf


def verdicts(target: Target, against: Target) -> tuple[Finding, ...]:
    """Return a verdict per operation, over its depths: in each round the mean of their log ratios.

    One verdict a depth would be nine, too many for eight rounds to decide. All hold for the session alone.
    """
    pairs = [_pair_operation(operation, target, against) for operation in OPERATIONS]
    return tuple(judge([pair for pair in pairs if pair.log_ratios], METRICS["iops"], MARGIN))


def _pair_operation(operation: str, target: Target, against: Target) -> Paired:
    common = sorted(key for key in target.steps.keys() & against.steps.keys() if key[0] == operation)
    ratios = [log_ratios(target.steps[key].by_round, against.steps[key].by_round) for key in common]
    rounds = set.intersection(*(set(by_round) for by_round in ratios)) if ratios else set()
    mean = {place: math.fsum(by_round[place] for by_round in ratios) / len(ratios) for place in sorted(rounds)}
    return Paired(against.name, target.name, f"{operation} against", operation, mean)


# What was measured of a host: values only, NaN and "unknown" where there are none.


UNKNOWN = "unknown"


@dataclass(frozen=True)
class HostMeasurement:
    """Times in microseconds, shares of all processors' time, bytes."""

    cores: int
    guest: bool
    wake_up_us_p50: float = math.nan  # a byte to another processor and back
    wake_up_us_p99: float = math.nan
    timer_late_us_p50: float = math.nan  # of a sleep of 1 ms
    timer_late_us_p99: float = math.nan
    clock_read_ns: float = math.nan
    memory_bytes_per_second: float = math.nan  # copied by one thread
    stolen_share: float = math.nan
    busy_share: float = math.nan  # by whatever runs beside, before anything was measured
    clock_source: str = UNKNOWN
    clock_sources: tuple[str, ...] = ()  # that could be chosen
    governor: str = UNKNOWN
    memory_bytes: float = math.nan
    swap_bytes: float = math.nan
    disk_us_p50: float = math.nan  # a read of an emulated disk that itself takes no time
    disk_us_p99: float = math.nan
    disk_iops: float = math.nan
    no_disk: str = ""  # why there are no figures of it
    can_be_awake: bool = False
    why_not_awake: str = ""
    awake_remedy: str = ""
