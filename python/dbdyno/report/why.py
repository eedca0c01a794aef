"""Why a verdict came out as it did, in words: where an event's time goes, what changed, what limits either side."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.explanation import MOST, PARTS, Changed, Figures, Kind, TimeSpent
from dbdyno.analysis.query_costs import cost_word
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.analysis.verdict.reasons import Dropped, InNameOnly, Lack, LimitedClients, NextStep, Reason, ZeroFigures
from dbdyno.model.disks import DATA_DISK
from dbdyno.model.metrics import METRICS
from dbdyno.model.word import Word
from dbdyno.model.wording import TWICE, count, listed, margin_text, percent
from dbdyno.report.reasons import (
    SAME,
    about,
    about_the_same,
    agreeing_text,
    clients_named,
    digits,
    duration,
    one_or_two,
    rounded,
    share,
    signed,
)
from dbdyno.report.sections.client_hosts import network_sentence
from dbdyno.report.source import fields

# What a difference in time consists of: parts of the whole, or signed amounts where they work against each other.


WORTH_SAYING = 0.1  # of the time, or of its change
LITTLE_OF_WHOLE = 0.02  # of the whole: what works against it by less is taken off the others in proportion


@dataclass(frozen=True)
class Parted:
    """A difference, level minus baseline, and the parts worth saying, the largest first: ms, signed.

    Parts that do not ``oppose`` each other have the sign of the whole, and neither one nor all of them exceed it.
    """

    whole_ms: float
    parts_ms: Mapping[str, float]
    rest_of_it_ms: float  # of the parts that are not worth saying, in all
    opposed: bool


def parted(changed: Changed) -> Parted:
    """Return what the difference in latency consists of."""
    level, baseline = changed.level.figures, changed.baseline.figures
    whole = level["latency_ms"] - baseline["latency_ms"]
    deltas = {name: level[name] - baseline[name] for name in PARTS if name in changed.differences}
    worth = {name: delta for name, delta in deltas.items() if abs(delta) >= WORTH_SAYING * abs(whole) and delta}
    ordered = dict(sorted(worth.items(), key=lambda item: -abs(item[1])))
    in_all = sum(map(abs, ordered.values()))
    opposed = in_all > abs(whole) * (1 + LITTLE_OF_WHOLE) or any(delta * whole < 0 for delta in ordered.values())
    if in_all > abs(whole) and not opposed:
        ordered = {name: delta * abs(whole) / in_all for name, delta in ordered.items()}
    return Parted(whole, ordered, whole - sum(ordered.values()), opposed)


def main_part(changed: Changed) -> str:
    """Return the part that changed most in the direction of the whole."""
    difference = parted(changed)
    with_it = {name: delta for name, delta in difference.parts_ms.items() if delta * difference.whole_ms > 0}
    return max(with_it, key=lambda name: abs(with_it[name]), default="rest_ms")


# The plain sentence that an explanation opens with: what is waited for, from the measured parts.


SEVERAL = 1.5  # with this many events in flight, they wait for each other's flushes
EACH_ITS_OWN = 0.9  # flushes of an event


def noun(time_spent: TimeSpent) -> str:
    """Return whose latency it is."""
    queries = time_spent.figures.get("queries", 1.0)
    return "a query" if about_the_same(queries, 1.0) else f"an event of {rounded(queries)} queries"


def opening_of_difference(changed: Changed) -> str:
    """Return what is waited for less, or more, than with the baseline."""
    new, old = changed.level.figures, changed.baseline.figures
    event, part = noun(changed.level), main_part(changed)
    match part:
        case "flush_ms" if "flushes" in new and "flushes" in old:
            return f"{_flushes(changed)}{_each_or_count(changed, 'flush_each_ms', 'flushes')}{_never_empty(changed)}."
        case "read_ms" if "reads" in new and "reads" in old:
            waits = f"{event} waits for the device's reads"
            return f"{waits}{_each_or_count(changed, 'read_each_ms', 'reads')}{_never_empty(changed)}."
        case "cpu_ms":
            return f"{event} keeps the server's processors busy for {_of(changed, part)}."
        case "lock_ms":
            return f"{event} waits {_of(changed, part)} for rows that others have locked."
        case "write_ms" | "flush_ms" | "read_ms":
            what = {"write_ms": "other writes to", "flush_ms": "flushes of", "read_ms": "reads from"}[part]
            return f"{event} waits {_of(changed, part)} for {what} the device{_never_empty(changed)}."
        case _:
            return "most of the difference is in waits that were not measured."


def opening_where_alike(changed: Changed) -> str:
    """Return what both wait for, where the same limits both; else nothing."""
    new, old = changed.level.limit, changed.baseline.limit
    if new.kind != old.kind or not (new.full and old.full):
        return ""
    match new.kind:
        case "flushes":
            return f"{_flushes(changed)} with either."
        case "device":
            each = changed.level.figures.get("read_each_ms", 0.0)
            takes = f", which takes {duration(each)} for each read" if each else ""
            return f"with either, the disk's queue never empties{takes}."
        case "processor":
            return "with either, the processors are fully busy."
        case _:
            return "the load generator is fully busy, so neither server is at its limit."


def _flushes(changed: Changed) -> str:
    """Return ``"ten queries at a time wait for one shared flush of the device"``."""
    level = changed.level.figures
    at_a_time, each = level["under_way"], level.get("flushes", 0.0)
    many = noun(changed.level).split()[1].replace("query", "queries").replace("event", "events")
    if at_a_time >= SEVERAL:
        shared = "one shared flush" if each < EACH_ITS_OWN else "one flush after another"
        return f"about {about(at_a_time)} {many} at a time wait for {shared} of the device"
    return f"{noun(changed.level)} waits until the device is flushed"


def _each_or_count(changed: Changed, each: str, count: str) -> str:
    """Return how long each takes, or how many they are, whichever changed more."""
    new, old = changed.level.figures, changed.baseline.figures
    long, many = _factor(new[each], old[each]), _factor(new[count], old[count])
    if max(long, many) == 1.0:
        return ""
    if long >= many:
        return f", {one_or_two(new[each], old[each])} for each"
    return f" ({one_or_two(new[count], old[count], digits)} for each {noun(changed.level).split()[1]})"


def _factor(new: float, old: float) -> float:
    if about_the_same(new, old):
        return 1.0
    return max(new, old) / min(new, old) if min(new, old) > 0 else float("inf")


def _never_empty(changed: Changed) -> str:
    """Return of which side's disk the queue never empties."""
    sides = [
        time_spent.label
        for time_spent in (changed.level, changed.baseline)
        if time_spent.limit.full and time_spent.limit.kind == "device"
    ]
    match sides:
        case [label]:
            return f", and with {label} the disk's queue never empties"
        case [_, _]:
            return ", and with either the disk's queue never empties"
        case _:
            return ""


def _of(changed: Changed, part: str) -> str:
    return one_or_two(changed.level.figures[part], changed.baseline.figures[part])


LITTLE = 0.005  # of the change: less is left out of its sum
COSTS_SAID = 4
SERVER_CPU = "server_cpu_us_per_query"
IDLE = 0.1  # a device busy for less than that can't matter
BELOW_THE_SERVER = {"device", "scheduler", "filesystem", "size"}
IN_THE_QUEUE = {"scheduler", "nr_requests"}
SELDOM = 0.01  # times per event
FEW_REQUESTS = 4  # on average; of so few there is little to choose

PART_WORDS: dict[str, str] = {
    "cpu_ms": "server CPU",
    "lock_ms": "waiting for row locks",
    "read_ms": "reads from the device",
    "flush_ms": "time under a flush of the device",
    "write_ms": "other writes to the device",
}
PART_NAMES = {"cpu_ms": "server CPU", "lock_ms": "row locks", "read_ms": "reads", "flush_ms": "flushes",
              "write_ms": "other writes", "rest_ms": "waits that were not measured"}  # fmt: skip


def explanation(verdict: Finding, analysis: Analysis) -> str:
    """Return one paragraph about a verdict; empty where nothing was watched that could explain it."""
    changed = changed_of(verdict, analysis)
    if not changed:
        return ""
    costs = costs_sentence(verdict, analysis) if verdict.verdict.is_different else ""
    sentences = [*_sentences(verdict, changed), *filter(None, [costs, network_sentence(verdict, analysis)])]
    return f"Why: {' '.join(map(_capitalise, sentences))}"


def _capitalise(sentence: str) -> str:
    """Return a sentence that begins with a capital letter, but where it begins with a label."""
    small = ("a ", "an ", "about ", "with ", "most ", "the ")
    return f"{sentence[0].upper()}{sentence[1:]}" if sentence.startswith(small) else sentence


def changed_of(verdict: Finding, analysis: Analysis) -> Changed | None:
    """Return what changed of an event's time, where that is known and its mean did not change against the word."""
    changed = analysis.why.changes.get((verdict.baseline_id, verdict.level_id))
    if changed is None or "latency_ms" not in changed.differences:
        return None
    against = {Word.FASTER: 1, Word.SLOWER: -1}.get(verdict.verdict, 0)
    return changed if against * _delta_or_0(changed, "latency_ms") <= 0 else None


def _sentences(verdict: Finding, changed: Changed) -> Iterator[str]:
    effect = verdict.effect
    different = verdict.verdict != Word.EQUIVALENT and (effect.low > 0 or effect.high < 0)
    limits, opened = _limits(changed), ""
    if different:
        yield opening_of_difference(changed)
        yield from _what_changed(changed)
    else:
        opened = opening_where_alike(changed)
        yield opened or limits
        yield _on_the_processor(changed) if _both_on_the_processor(changed) else _alike(changed)
    if different or opened:
        yield limits
    if not different:
        yield from _seeks(changed)
        yield from _cannot_matter(changed)
    if verdict.verdict == Word.UNDECIDED and not different:
        yield from _noise(changed)


def costs_sentence(verdict: Finding, analysis: Analysis) -> str:
    """Return which costs of a query are more or less, the CPU first, then the largest; empty where none is."""
    changes = analysis.query_costs.of_comparison((verdict.baseline_id, verdict.level_id))
    moved = [change for change in changes if cost_word(change, analysis.margin) in {"more", "less"}]
    moved.sort(key=lambda change: (change.metric != SERVER_CPU, -abs(math.log1p(change.effect.value))))
    said = []
    for change in moved[:COSTS_SAID]:
        size, metric = change.effect.value, METRICS[change.metric]
        less = "fewer" if metric.unit == "1" else "less"
        by = percent(size) if size >= TWICE else f"{percent(abs(size), sign=False)} {'more' if size > 0 else less}"
        said.append(f"{by} {metric.words.removesuffix(' per query')}")
    return f"Per query it takes {listed(said)}." if said else ""


def _both_on_the_processor(changed: Changed) -> bool:
    return _processor_bound(changed.level) and _processor_bound(changed.baseline)


def _processor_bound(time_spent: TimeSpent) -> bool:
    return time_spent.limit.kind in {"processor", "client"} and time_spent.limit.full


def _what_changed(changed: Changed) -> Iterator[str]:
    """Yield the change of the whole, the parts that it consists of, and the CPU if that is not among them."""
    level, baseline, difference = changed.level, changed.baseline, parted(changed)
    whole = difference.whole_ms
    direction = "more" if whole > 0 else "less"
    takes = f"{duration(level.figures['latency_ms'])} instead of {duration(baseline.figures['latency_ms'])}"
    yield f"{noun(level)} takes {takes} on average, {duration(abs(whole))} {direction}."
    if difference.opposed:
        yield _against_each_other(changed, difference)
    elif difference.parts_ms:
        parts = [_part(changed, name, abs(delta)) for name, delta in difference.parts_ms.items()]
        yield f"Its parts: {listed(parts)}."
    if "cpu_ms" not in difference.parts_ms and "cpu_ms" in level.figures:
        yield f"Server CPU is {one_or_two(level.figures['cpu_ms'], baseline.figures.get('cpu_ms', 0.0))}."
    yield from _on_disks(changed)
    yield from _seeks(changed)
    yield from _syncs(changed)
    yield from _full_buffers(changed)
    yield from _unmeasured_rest(level)


def _against_each_other(changed: Changed, difference: Parted) -> str:
    """Return the parts as signed amounts that add up to the whole."""
    amounts = [
        f"{signed(delta)} of {_words(changed.level, name)}{_how(changed, name)}"
        for name, delta in difference.parts_ms.items()
    ]
    rest = difference.rest_of_it_ms
    amounts += [f"{signed(rest)} of all others"] if abs(rest) >= LITTLE * abs(difference.whole_ms) else []
    return f"The parts work against each other; {signed(difference.whole_ms)} is the sum of {listed(amounts)}."


def _on_disks(changed: Changed) -> Iterator[str]:
    """Yield on which disk the time passes, where either side stands on several."""
    sides = [_by_disk(time_spent.figures) for time_spent in (changed.level, changed.baseline)]
    if max(map(len, sides)) > 1 and all(sides):
        new, old = (listed([f"{duration(ms)} on the disk {disk}" for disk, ms in side.items()]) for side in sides)
        yield f"With {changed.level.label} it spends {new}; with {changed.baseline.label} {old}."


def _by_disk(figures: Figures) -> dict[str, float]:
    """Return what of an event's time passes on which disk, ms, at most."""
    by_disk = {
        name.removeprefix("on_").removesuffix("_ms"): ms for name, ms in figures.items() if name.startswith("on_")
    }
    if by_disk or "write_ms" not in figures:
        return by_disk
    return {DATA_DISK: sum(figures.get(name, 0.0) for name in ("read_ms", "flush_ms", "write_ms"))}


def _seeks(changed: Changed) -> Iterator[str]:
    """Yield what order the device saw its requests in, where there is a block trace and the two differ."""
    new, old = changed.level.figures, changed.baseline.figures
    if not {"seek_bytes", "sorted_run"} <= new.keys() & old.keys():
        return
    if all(abs(new[name] - old[name]) <= SAME * max(new[name], old[name]) for name in ("seek_bytes", "sorted_run")):
        return
    seeks = one_or_two(new["seek_bytes"], old["seek_bytes"], _distance)
    runs = one_or_two(new["sorted_run"], old["sorted_run"], rounded)
    yield f"The device moved {seeks} between requests, in sorted runs of {runs} requests."


def _syncs(changed: Changed) -> Iterator[str]:
    """Yield what the server and the kernel counted of waiting for a device that could not be watched."""
    new, old = changed.level.figures, changed.baseline.figures
    if "busy_share" in new or "busy_share" in old:
        return
    if "fsyncs" in new and "fsyncs" in old and max(new["fsyncs"], old["fsyncs"]) > 0:
        each = noun(changed.level).split()[1]
        yield f"InnoDB synced its files {one_or_two(new['fsyncs'], old['fsyncs'], digits)} times per {each}."
    if "io_wait_share" in new and "io_wait_share" in old:
        waited = one_or_two(new["io_wait_share"], old["io_wait_share"], share)
        yield f"Some task of the host waited for I/O during {waited} of the time."


def _full_buffers(changed: Changed) -> Iterator[str]:
    """Yield that events found the log buffer or the buffer pool full."""
    for name, what in (("log_waits", "the log buffer"), ("pool_waits", "the buffer pool")):
        new, old = changed.level.figures.get(name, 0.0), changed.baseline.figures.get(name, 0.0)
        if max(new, old) >= SELDOM:
            each = noun(changed.level).split()[1]
            yield f"InnoDB waited for room in {what} {one_or_two(new, old, digits)} times per {each}."


def _distance(count: float) -> str:
    return f"{digits(count / 1e6)} MB"


def _part(changed: Changed, name: str, ms: float) -> str:
    return f"{duration(ms)} are {_words(changed.level, name)}{_how(changed, name)}"


def _words(time_spent: TimeSpent, part: str) -> str:
    return f"the rest ({_rest(time_spent)})" if part == "rest_ms" else PART_WORDS[part]


def _rest(time_spent: TimeSpent) -> str:
    """Return what the rest of an event's time may be, by what was not watched."""
    server = "" if "cpu_ms" in time_spent.figures else "the server's CPU, "
    device = "" if "write_ms" in time_spent.figures else "the device, "
    locks = "other locks" if "lock_ms" in time_spent.figures else "locks"
    return f"{server}{device}{locks}, waiting for a processor, network, client"


def _how(changed: Changed, part: str) -> str:
    """Return how often and how long: ``" (0.31 per query, each 1.5 ms instead of 10.1 ms)"``."""
    count, each = {"flush_ms": ("flushes", "flush_each_ms"), "read_ms": ("reads", "read_each_ms")}.get(part, ("", ""))
    new, old = changed.level.figures, changed.baseline.figures
    if not count or count not in new or count not in old:
        return ""
    per = f"{one_or_two(new[count], old[count], digits)} per {noun(changed.level).split()[1]}"
    if not new[count]:
        return f" ({per})"
    long = one_or_two(new[each], old[each]) if old[count] else duration(new[each])
    return f" ({per}, each {long}{_in_flight_text(changed.level) if part == 'flush_ms' else _queue_text(new, old)})"


def _queue_text(new: Figures, old: Figures) -> str:
    """Return how much of a request's time passed in the queue, where there is a block trace."""
    if "queued_share" not in new or "queued_share" not in old:
        return ""
    return f", of a request's time {one_or_two(new['queued_share'], old['queued_share'], share)} in the queue"


def _in_flight_text(time_spent: TimeSpent) -> str:
    """Return how many wait at a time where they are several: they share flushes, and wait for those of others."""
    under_way = time_spent.figures["under_way"]
    return f", while {rounded(under_way)} are in flight at a time" if under_way >= 1 + WORTH_SAYING else ""


def _unmeasured_rest(time_spent: TimeSpent) -> Iterator[str]:
    rest, whole = time_spent.figures["rest_ms"], time_spent.figures["latency_ms"]
    if rest < WORTH_SAYING * whole:
        return
    waited = time_spent.figures.get("cpu_wait_share", 0.0)
    hint = f"; some task waited for a processor during {share(waited)} of the time" if waited >= WORTH_SAYING else ""
    unexplained = f"{duration(rest)} of it ({share(rest / whole)}) was not measured{hint}"
    yield f"With {time_spent.label}, {unexplained}."


def _alike(changed: Changed) -> str:
    """Return what an event's time consists of where no difference was found."""
    level, baseline = changed.level, changed.baseline
    new, old = level.figures["latency_ms"], baseline.figures["latency_ms"]
    parts = sorted((name for name in PARTS if level.figures.get(name, 0.0) >= WORTH_SAYING * new),
                   key=lambda name: -level.figures[name])  # fmt: skip
    spent = [_part(changed, name, level.figures[name]) for name in parts]
    return (
        f"{noun(level)} takes {duration(new)} on average, with {baseline.label} {duration(old)};"
        f" of the {duration(new)}, {listed(spent)}."
    )


def _on_the_processor(changed: Changed) -> str:
    new, old = changed.level.figures, changed.baseline.figures
    takes = one_or_two(new["latency_ms"], old["latency_ms"])
    cpu = f" and {one_or_two(new['cpu_ms'], old.get('cpu_ms', 0.0))} of server CPU" if "cpu_ms" in new else ""
    return (
        f"{noun(changed.level)} takes {takes} on average{cpu}; {rounded(new['under_way'])} are in flight at a"
        f" time{_on_cores(changed.level)}."
    )


def _on_cores(time_spent: TimeSpent) -> str:
    limit = time_spent.limit
    return f", on {rounded(limit.of)} processors" if limit.kind == "processor" and limit.of > 1 else ""


_FULL: dict[Kind, str] = {
    "client": "the load generator, which keeps its {of} {share} busy",
    "processor": "the processors, {share} busy{others}",
    "flushes": "the {device}'s flushes, with one in flight {share} of the time",
    "device": "the {device}, {share} busy",
}
_MOSTLY: dict[Kind, str] = {
    "cpu_ms": "server CPU",
    "lock_ms": "waiting for row locks",
    "read_ms": "waiting for reads from the device",
    "flush_ms": "waiting while the device is flushed",
    "write_ms": "waiting for writes to the device",
}


def _limits(changed: Changed) -> str:
    new, old = changed.level.limit, changed.baseline.limit
    if (new.kind, new.full, new.disk) == (old.kind, old.full, old.disk):
        shares = one_or_two(new.share, old.share, share)
        return (
            f"Both are limited by {_limit(changed.level, shares)}." if new.full else _both_mostly(changed.level, shares)
        )
    text = f"{_limit_text(changed.level)}; {_limit_text(changed.baseline)}."
    return f"W{text[1:]}" if text.startswith("with ") else text


def _both_mostly(time_spent: TimeSpent, shares: str) -> str:
    if time_spent.limit.kind == "rate":
        return "Both keep up with the offered rate."
    return f"With both, nothing is full, and {_part_of_time(time_spent, shares)}."


def _limit_text(time_spent: TimeSpent) -> str:
    limit = time_spent.limit
    if limit.full:
        return f"{time_spent.label} is limited by {_limit(time_spent, share(limit.share))}"
    if limit.kind == "rate":
        return f"{time_spent.label} keeps up with the offered rate"
    return f"with {time_spent.label} nothing is full, and {_part_of_time(time_spent, share(limit.share))}"


def _part_of_time(time_spent: TimeSpent, shares: str) -> str:
    limit = time_spent.limit
    most = "most" if limit.share >= MOST else "the largest part"
    what = f"waits that were not measured: {_rest(time_spent)}" if limit.kind == "rest_ms" else _MOSTLY[limit.kind]
    return f"{most} of the time ({shares}) is {what}"


def _limit(time_spent: TimeSpent, busy: str) -> str:
    limit = time_spent.limit
    others = f", {share(limit.others)} by other processes" if limit.others >= WORTH_SAYING else ""
    threads = "thread" if limit.of == 1 else f"{limit.of:.0f} threads"
    device = f"disk {limit.disk}" if limit.disk else "device"
    return _FULL[limit.kind].format(share=busy, others=others, of=threads, device=device)


def _cannot_matter(changed: Changed) -> Iterator[str]:
    """Yield why what was varied has nothing to act on, where that is so."""
    varied = {name.rpartition(".")[2] for section, name in changed.factors if section != "workload"}
    sections = {section.split(".")[0] for section, _ in changed.factors}
    figures = (changed.level.figures, changed.baseline.figures)
    if not varied or not all("busy_share" in side for side in figures):
        return
    below = varied <= BELOW_THE_SERVER or sections <= {"queue", "filesystem"}
    busy = max(side["busy_share"] for side in figures)
    if below and busy < IDLE:
        yield f"The device is busy for {share(busy)} of the time: it can hardly matter to this load."
        return
    waiting = max(side["requests_under_way"] for side in figures)
    if (varied <= IN_THE_QUEUE or sections == {"queue"}) and waiting < FEW_REQUESTS:
        queued = "one request was" if waiting <= 1 else f"{rounded(waiting)} requests were"
        yield f"At most {queued} queued on average. A scheduler has little to sort."


def _noise(changed: Changed) -> Iterator[str]:
    """Yield how much the difference varies from block to block, and which parts vary with it."""
    spread, added = changed.spread_ms, changed.spread_parts_ms
    worth = sorted((name for name in added if abs(added[name]) >= WORTH_SAYING * spread), key=lambda n: -abs(added[n]))
    if not worth:
        return
    if shares := changed.variance_shares:
        parts = f"of that variance {listed([f'{share(shares[name])} in {PART_NAMES[name]}' for name in worth])}"
    else:
        amounts = listed([f"{signed(added[name])} are of {PART_NAMES[name]}" for name in worth])
        parts = f"its parts vary against each other: {amounts}"
    relative = spread / changed.baseline.figures["latency_ms"]
    yield (
        f"From block to block the difference varies by {duration(spread)} (standard deviation,"
        f" {100 * relative:.2g} % of the time); {parts}."
    )


def why_json(analysis: Analysis) -> dict[str, Any]:
    """Return treatments and comparisons with all figures; differences are level minus baseline, in ms of an event."""
    verdicts = {
        (verdict.baseline_id, verdict.level_id): verdict for verdict in (*analysis.every_pair, *analysis.verdicts)
    }
    return {
        "treatments": [
            {
                **fields(time_spent, "id label"),
                "trials": time_spent.n,
                "limit": {name: value for name, value in asdict(time_spent.limit).items() if name != "disk" or value},
                "figures": dict(time_spent.figures),
            }
            for time_spent in analysis.why.treatments
        ],
        "comparisons": [
            {
                **fields(changed, "baseline_id level_id"),
                "differences": {name: asdict(estimate) for name, estimate in changed.differences.items()},
                **fields(changed, "variance_shares spread_parts_ms spread_ms"),
                "text": explanation(verdicts[ids], analysis),
            }
            for ids, changed in analysis.why.changes.items()
        ],
    }


# The most important reason of a verdict, in about five words.


_LIMITS: dict[Kind, str] = {
    "client": "load generator limits both",
    "processor": "CPUs limit both",
    "flushes": "flushes limit both",
    "device": "busy device limits both",
    "rate": "both keep the rate",
}
_LACKS = {
    Lack.QUIET_HOST: "interference",
    Lack.LONGER_WARM_UP: "the buffer pool was still being filled",
    Lack.A_GRANTED_SETTING: "a setting was not granted",
    Lack.STRONGER_LOAD_GENERATOR: "the load generator was the limit",
    Lack.HIGHER_RATE: "the load's rate was below the limit",
    Lack.A_TREATMENT_THAT_RUNS: "a treatment failed",
    Lack.REST_BETWEEN_TRIALS: "carry-over may explain it",
    Lack.A_REAL_CPU: "the CPU was emulated",
    Lack.A_DISK_IN_TIME: "the emulated disk was late",
    Lack.EQUAL_FAILURES: "one side failed or met interference more often",
    Lack.NO_STALLS_IN_TRIALS: "some trials stall and others don't",
    Lack.NO_STALLS: "average and typical block disagree",
    Lack.FINER_FIGURES: "the figures are too coarse",
    Lack.A_COMPARISON: "they were not compared",
    Lack.LESS_NOISE: "too noisy",
    Lack.A_WIDER_MARGIN: "too close to the margin",
}


def short_reason(verdict: Finding, analysis: Analysis) -> str:
    """Return where the difference comes from, what limits both, or what a decision lacks."""
    match verdict.verdict:
        case Word.FASTER | Word.SLOWER:
            in_blocks = f"in {agreeing_text(verdict.reason)}" if isinstance(verdict.reason, Reason) else ""
            return _largest_change_text(changed_of(verdict, analysis)) or in_blocks
        case Word.EQUIVALENT:
            return _same_limit(changed_of(verdict, analysis)) or f"{margin_text(analysis.margin)} or more ruled out"
        case Word.UNDECIDED:
            return what_is_lacking(verdict)
        case Word.NOT_COMPARABLE:
            return why_not_comparable(verdict)


def what_is_lacking(finding: Finding) -> str:
    """Return what it takes to decide: a quiet host, more blocks, or another study; empty where it is decided."""
    if finding.lack is None:
        return ""
    if finding.lack.lack is Lack.QUIET_HOST:
        return f"interference in {finding.disturbed} of {count(finding.blocks, 'block')}"
    if finding.lack.lack is Lack.REST_BETWEEN_TRIALS and _withheld(finding) is Word.EQUIVALENT:
        return "carry-over may hide a difference"
    return lack_text(finding.lack)


def _withheld(finding: Finding) -> Word:
    return finding.reason.withheld if isinstance(finding.reason, Reason) else Word.UNDECIDED


def lack_text(step: NextStep) -> str:
    """Return what is lacking, in about five words."""
    return f"about {count(step.blocks, 'more block')}" if step.lack is Lack.MORE_BLOCKS else _LACKS[step.lack]


def why_not_comparable(verdict: Finding) -> str:
    """Return what was in the way."""
    match verdict.reason:
        case Dropped():
            return "failed again and again"
        case ZeroFigures():
            return "a figure is 0"
        case InNameOnly(setting=setting, why=why):
            return f"{setting} changes nothing here" if why else f"{setting} was not granted"
        case LimitedClients(hosts=hosts):
            return f"limited by {clients_named(hosts)}"
        case _:
            return f"only {count(verdict.blocks, 'usable block')}" if verdict.blocks else "no usable block"


def _largest_change_text(changed: Changed | None) -> str:
    """Return the part of an event's time that changed most with the whole: ``"26.9 ms less in flushes"``."""
    if changed is None:
        return ""
    whole = _delta_or_0(changed, "latency_ms")
    most = max(
        (name for name in PARTS if name in changed.differences), key=lambda name: _delta_or_0(changed, name) * whole
    )
    delta = _delta_or_0(changed, most)
    if delta * whole < WORTH_SAYING * whole * whole or not whole:
        return ""
    return f"{duration(abs(delta))} {'more' if delta > 0 else 'less'} in {PART_NAMES[most]}"


def _delta_or_0(changed: Changed, name: str) -> float:
    return changed.level.figures.get(name, 0.0) - changed.baseline.figures.get(name, 0.0)


def _same_limit(changed: Changed | None) -> str:
    if changed is None or changed.level.limit.kind != changed.baseline.limit.kind:
        return ""
    return _LIMITS.get(changed.level.limit.kind, "")
