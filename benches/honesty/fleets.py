"""Studies on several hosts: the treatment's effect differs from host to host, and nothing holds on average.

Host x treatment interaction 3 %, noise of a block 1 %, ten blocks on each host unless a row says so. Beside what the
product says of hosts like these stands naive pooling, which takes all blocks for repetitions.
"""

from collections.abc import Callable, Iterator

import numpy as np

from benches.honesty.designs import MARGIN, sequential
from benches.honesty.noise import Floats, independent, reference
from benches.honesty.row import Row
from dbdyno.analysis.fleet import Groups, evidence_over_hosts, excluded_kinds, in_halves, odd_p, of_one_host, share_of
from dbdyno.analysis.looks import Looks
from dbdyno.analysis.statistics import Bools, log_margin
from dbdyno.analysis.unpaired import unpaired_evidence
from dbdyno.analysis.verdict.evidence import Evidence, evidence
from dbdyno.model.design import ALPHA, HOSTS_OF_LEVEL_MIN

HOSTS = range(3, 11)
BLOCKS, INTERACTION, NOISE = 10, 0.03, 0.01
MACHINES = 0.1  # SD of ln(metric) between machines of one level
UNEQUAL_MACHINES = 4  # times as far, those of the first level
HOSTS_OF_SKEWED = 5  # With fewer hosts, "equivalent" is wrong too often where effects are skewed.
EQUIVALENT_MOST = 2000  # replicates
ONE_BY_ONE = 1000  # replicates of what is no array
Interaction = Callable[[np.random.Generator, int, int], Floats]


def normal(rng: np.random.Generator, replicates: int, hosts: int) -> Floats:
    """As the product takes it for below 6 hosts."""
    return rng.normal(0, INTERACTION, (replicates, hosts))


def heavy_tailed(rng: np.random.Generator, replicates: int, hosts: int) -> Floats:
    """Student's t with 2 degrees of freedom, which has no variance."""
    return INTERACTION * rng.standard_t(2, (replicates, hosts))


def one_far_off(rng: np.random.Generator, replicates: int, hosts: int) -> Floats:
    """One host is ten standard deviations off, to either side by chance."""
    found = normal(rng, replicates, hosts)
    found[:, 0] += rng.choice([-10 * INTERACTION, 10 * INTERACTION], replicates)
    return found


def skewed(rng: np.random.Generator, replicates: int, hosts: int) -> Floats:
    """Exponential: most hosts lose a little, few gain much."""
    return INTERACTION * (rng.exponential(size=(replicates, hosts)) - 1)


def two_kinds(rng: np.random.Generator, replicates: int, hosts: int) -> Floats:
    """Half of all hosts gain what the other half loses."""
    return INTERACTION * rng.choice([-1.0, 1.0], (replicates, hosts))


JUDGED = {"normal": normal, "heavy tails": heavy_tailed, "one host far off": one_far_off}
SHOWN = {"skewed": skewed, "two kinds of hosts": two_kinds}


def rows(replicates: int, seed: int) -> list[Row]:
    """Return every row about hosts."""
    rng = np.random.default_rng(seed)
    return [
        *_like_these(rng, replicates),
        *_attacks(rng, replicates),
        *_equivalent(rng, min(replicates, EQUIVALENT_MOST)),
        *_stopped_early(rng, min(replicates, ONE_BY_ONE)),
        *_levels(rng, replicates),
        *_odd(rng, replicates),
        *_components(rng, min(replicates, ONE_BY_ONE)),
        *_seem_to_differ(rng, min(replicates, ONE_BY_ONE)),
    ]


def limit(level: float, replicates: int) -> float:
    """Return a share's limit in percent with three standard errors: t is wrong in 5 % exactly, not in fewer."""
    return 100 * (level + 3 * (level * (1 - level) / replicates) ** 0.5)


def different(found: Evidence) -> Bools:
    """Return whether a single comparison is called different, whatever the margin; shape (replicates,)."""
    return np.asarray((found.p <= ALPHA) & ((found.low > 0) | (found.high < 0)))


def _share(which: Bools | Floats) -> float:
    return 100 * float(np.mean(which))


def _covers(found: Evidence, truth: float) -> float:
    return _share((found.low <= truth) & (truth <= found.high))


def _blocks(rng: np.random.Generator, effects: Floats, blocks: int = BLOCKS) -> Floats:
    """Return log ratios, shape (replicates, hosts, blocks), of hosts with these effects."""
    return effects[..., None] + rng.normal(0, NOISE, (*effects.shape, blocks))


def _like_these(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    for hosts in HOSTS:
        d = _blocks(rng, normal(rng, replicates, hosts))
        found, what = evidence_over_hosts(of_one_host(d), MARGIN), f"{hosts} hosts of {BLOCKS} blocks"
        naive = evidence(d.reshape(replicates, -1), Looks.single(hosts * BLOCKS), MARGIN)
        yield Row("fleets: all blocks pooled, wrong", what, _share(different(naive)), "%", None, None)
        yield Row("fleets: like these, wrong", what, _share(different(found)), "%", None, limit(ALPHA, replicates))
        yield Row("fleets: like these, coverage", what, _covers(found, 0), "%", 93, limit(0.97, replicates))
        edge = evidence_over_hosts(of_one_host(d / 6 + log_margin(MARGIN)), MARGIN).p_equivalence <= ALPHA
        yield Row("fleets: equivalent at the margin", what, _share(edge), "%", None, limit(ALPHA, replicates))
        five = different(evidence_over_hosts(of_one_host(d + np.log(1.05)), MARGIN))
        yield Row("fleets: like these, +5 % found", what, _share(five), "%", None, None)


def _attacks(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    """Hosts with 1 to 40 blocks, and effects that are not normal; those shown only, t and ranks can't withstand."""
    most = limit(ALPHA, replicates)
    for hosts in (3, 4, 5, 6, 10):
        sizes = np.concatenate(([1.0], np.geomspace(2, 40, hosts - 1).round()))
        for spread in (0.0, 1.0):
            values = spread * normal(rng, replicates, hosts) + rng.normal(0, NOISE, (replicates, hosts)) / np.sqrt(
                sizes
            )
            wrong = _share(different(evidence_over_hosts(values, MARGIN)))
            what = f"{hosts} hosts, 1 to 40 blocks, interaction {100 * spread * INTERACTION:.0f} %"
            yield Row("fleets: like these, wrong", what, wrong, "%", None, most)
        for name, interaction in {**JUDGED, **SHOWN}.items():
            values = of_one_host(_blocks(rng, interaction(rng, replicates, hosts)))
            wrong = _share(different(evidence_over_hosts(values, MARGIN)))
            yield Row("fleets: like these, wrong", f"{hosts} hosts, {name}", wrong, "%", None, most, name in JUDGED)


def _equivalent(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    """At exactly the margin, effects a third as far apart as elsewhere: whether "equivalent" holds for further hosts.

    Of a rare kind, all others having no effect at all, the mean is at the margin: no test of the usual kind alone can
    tell. What is promised of such is what so many hosts exclude.
    """
    most, bound = limit(ALPHA, replicates), log_margin(MARGIN)
    for hosts in (3, 4, 5, 6, 8, 10, 20):
        for name, interaction in {**JUDGED, **SHOWN}.items():
            for side in (1, -1) if name == "skewed" else (1,):
                values = of_one_host(_blocks(rng, bound + side * interaction(rng, replicates, hosts) / 3))
                judged = name in JUDGED or (name == "skewed" and hosts >= HOSTS_OF_SKEWED)
                what = f"{hosts} hosts, {name}{' the other way' * (side < 0)}"
                yield Row("fleets: equivalent at the margin", what, _share(_same(values)), "%", None, most, judged)
        for share in (0.1, 0.2, excluded_kinds(hosts)):
            values = np.where(rng.random((replicates, hosts)) < share, bound / share, 0.0)
            found, excluded = _same(of_one_host(_blocks(rng, values))), share >= excluded_kinds(hosts)
            what = f"{hosts} hosts, a kind of {100 * share:.0f} %{', which they exclude' * excluded}"
            yield Row("fleets: equivalent at the margin", what, _share(found), "%", None, most, excluded)


def _same(values: Floats) -> Bools:
    """Return whether hosts like these are called equivalent, by their figures; shape (replicates,)."""
    found = evidence_over_hosts(values, MARGIN)
    return np.asarray((found.p_equivalence <= ALPHA) & np.isfinite(found.low))


def _stopped_early(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    """Measuring stops when the pooled blocks are decided, which knows nothing of hosts."""
    for hosts in (3, 4, 6):
        effects = normal(rng, replicates, hosts)
        d = np.stack([_blocks(rng, effects, 1)[..., 0] for _ in range(-(-40 // hosts))], axis=1)
        d = d.reshape(replicates, -1)[:, :40]
        studies = sequential(d[:, None])
        wrong, covered = np.zeros(replicates), np.zeros(replicates)
        for blocks in np.unique(studies.blocks):
            those = np.flatnonzero(studies.blocks.reshape(-1) == blocks)
            part = d[those, :blocks]
            values = np.stack([of_one_host(part[:, host::hosts]) for host in range(hosts)], axis=-1)
            found = evidence_over_hosts(values, MARGIN)
            wrong[those], covered[those] = different(found), (found.low <= 0) & (found.high >= 0)
        what = f"{hosts} hosts, stopped when decided"
        yield Row("fleets: like these, wrong", what, _share(wrong), "%", None, limit(ALPHA, replicates))
        yield Row("fleets: like these, coverage", what, _share(covered), "%", 100 - limit(0.07, replicates), None)


def _levels(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    """A drive in each host that makes no difference, where machines differ by 10 %."""
    for m, n in ((HOSTS_OF_LEVEL_MIN, HOSTS_OF_LEVEL_MIN), (4, 6), (5, 5), (8, 4)):
        each = [_blocks(rng, rng.normal(0, MACHINES, (replicates, size))) for size in (m, n)]
        found, what = unpaired_evidence(*map(of_one_host, each), MARGIN), f"{m} against {n} hosts"
        few = [part[: min(replicates, ONE_BY_ONE)].reshape(min(replicates, ONE_BY_ONE), -1) for part in each]
        naive = unpaired_evidence(few[0], few[1], MARGIN)
        yield Row("fleets: levels, all blocks pooled, wrong", what, _share(different(naive)), "%", None, None)
        yield Row("fleets: levels, wrong", what, _share(different(found)), "%", None, limit(ALPHA, replicates))
        yield Row("fleets: levels, coverage", what, _covers(found, 0), "%", 93, None)
    for m, n in ((4, 8), (4, 20), (8, 4)):
        x, y = UNEQUAL_MACHINES * rng.normal(0, MACHINES, (replicates, m)), rng.normal(0, MACHINES, (replicates, n))
        found, what = unpaired_evidence(x, y, MARGIN), f"{m} against {n} hosts, the first {UNEQUAL_MACHINES} times"
        yield Row("fleets: levels, wrong", what, _share(different(found)), "%", None, limit(0.06, replicates))
        yield Row("fleets: levels, coverage", what, _covers(found, 0), "%", 100 - limit(0.06, replicates), None)


def _odd(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    """No host is odd; then one is 10 % off where the others differ by 1 %."""
    for hosts in (4, 6, 10):
        for name, sizes in (("equal blocks", np.full(hosts, 10.0)), ("1 to 40 blocks", np.geomspace(1, 40, hosts))):
            errors = NOISE**2 / sizes
            means = rng.normal(0, NOISE, (replicates, hosts)) + rng.normal(0, np.sqrt(errors), (replicates, hosts))
            wrong = np.any(odd_p(means, errors)[1] <= ALPHA, axis=-1)
            what = f"{hosts} hosts, {name}"
            yield Row("fleets: odd host, wrong", what, _share(wrong), "%", None, limit(ALPHA, replicates))
            means[:, -1] += np.log(1.1)
            yield Row("fleets: odd host, found", what, _share(odd_p(means, errors)[1][:, -1] <= ALPHA), "%", None, None)


def _components(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    """How often intervals of the deviation between hosts, and of their share in the variance, hold the truth."""
    low, high = 100 - limit(0.07, replicates), limit(0.97, replicates)
    for hosts in (3, 5, 10):
        for name, sizes in (("equal blocks", [10] * hosts), ("4 to 30 blocks", np.geomspace(4, 30, hosts).astype(int))):
            held = np.zeros((replicates, 2))
            for at in range(replicates):
                blocks = [rng.normal(rng.normal(0, INTERACTION), NOISE, n) for n in sizes]
                between = Groups.of([in_halves(one) for one in blocks]).deviation()
                truths = INTERACTION, INTERACTION**2 / (INTERACTION**2 + NOISE**2)
                pairs = zip((between, share_of(between, Groups.of(blocks).inside)), truths, strict=True)
                held[at] = [one.low <= truth <= one.high for one, truth in pairs]
            for place, of in enumerate(("deviation", "share")):
                measured, what = _share(held[:, place]), f"{hosts} hosts, {name}"
                yield Row(f"fleets: {of} between hosts, coverage", what, measured, "%", low, high)


def _seem_to_differ(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    """Hosts that are alike, by the interval of what lies between them; drift and memory look like hosts."""
    most, noises = limit(ALPHA, replicates), {"iid": independent, "drifting noise": reference}
    for name, noise in noises.items():
        blocks = noise(rng, replicates * 5, 2 * BLOCKS).reshape(replicates, 5, BLOCKS, 2).mean(axis=-1)
        each, what = np.array(_apart(blocks)), f"5 hosts, {name}"
        yield Row("fleets: alike hosts seem to differ", what, _share(each[:, 0]), "%", None, most, name == "iid")
        yield Row("fleets: the same, by neighbours", what, _share(each[:, 1]), "%", None, None)
        odd = np.any(odd_p(blocks.mean(axis=-1), np.full(5, 1e-9))[1] <= ALPHA, axis=-1)
        yield Row("fleets: odd host, wrong", what, _share(odd), "%", None, most, name == "iid")


def _apart(blocks: Floats) -> list[tuple[bool, bool]]:
    """Return of each study whether the interval of the deviation excludes 0: by halves, and by neighbouring blocks."""
    return [
        (Groups.of([in_halves(host) for host in one]).deviation().low > 0, Groups.of(list(one)).deviation().low > 0)
        for one in blocks
    ]
