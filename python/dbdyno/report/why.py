"""Why a verdict came out as it did, in words: where an event's time goes, what changed, what limits either side."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.explanation import MOST, PARTS, Changed, Figures, Kind, TimeSpent
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.model.word import Word
from dbdyno.model.wording import listed
from dbdyno.report.amounts import SAME, digits, duration, one_or_two, rounded, share, signed
from dbdyno.report.client_hosts import network_sentence
from dbdyno.report.values import fields
from dbdyno.report.why_opening import noun, opening_of_difference, opening_where_alike
from dbdyno.report.why_parts import WORTH_SAYING, Parted, parted

LITTLE = 0.005  # of the change: less is left out of its sum
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
              "write_ms": "other writes", "rest_ms": "the rest"}  # fmt: skip


def explanation(verdict: Finding, analysis: Analysis) -> str:
    """Return one paragraph about a verdict; empty where nothing was watched that could explain it."""
    changed = changed_of(verdict, analysis)
    if not changed:
        return ""
    sentences = [*_sentences(verdict, changed), *filter(None, [network_sentence(verdict, analysis)])]
    return f"Why: {' '.join(map(_capitalised, sentences))}"


def _capitalised(sentence: str) -> str:
    """Return a sentence that begins with a capital letter, but where it begins with a label."""
    small = ("a ", "an ", "about ", "with ", "most ", "the ")
    return f"{sentence[0].upper()}{sentence[1:]}" if sentence.startswith(small) else sentence


def changed_of(verdict: Finding, analysis: Analysis) -> Changed | None:
    """Return what changed of an event's time, where that is known."""
    found = analysis.why.changes.get((verdict.baseline_id, verdict.level_id))
    return found if found and "latency_ms" in found.differences else None


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


def _both_on_the_processor(changed: Changed) -> bool:
    return _processor_bound(changed.level) and _processor_bound(changed.baseline)


def _processor_bound(one: TimeSpent) -> bool:
    return one.limit.kind in {"processor", "client"} and one.limit.full


def _what_changed(changed: Changed) -> Iterator[str]:
    """Yield the change of the whole, the parts that it consists of, and the CPU if that is not among them."""
    level, baseline, found = changed.level, changed.baseline, parted(changed)
    whole = found.whole_ms
    said = "more" if whole > 0 else "less"
    takes = f"{duration(level.figures['latency_ms'])} instead of {duration(baseline.figures['latency_ms'])}"
    yield f"{noun(level)} takes {takes} on average, {duration(abs(whole))} {said}."
    if found.opposed:
        yield _against_each_other(changed, found)
    elif found.parts_ms:
        parts = [_part(changed, name, abs(delta)) for name, delta in found.parts_ms.items()]
        yield f"Of the {duration(abs(whole))}, {listed(parts)}."
    if "cpu_ms" not in found.parts_ms and "cpu_ms" in level.figures:
        yield f"Server CPU is {one_or_two(level.figures['cpu_ms'], baseline.figures.get('cpu_ms', 0.0))}."
    yield from _seeks(changed)
    yield from _syncs(changed)
    yield from _full_buffers(changed)
    yield from _unexplained(level)


def _against_each_other(changed: Changed, found: Parted) -> str:
    """Return the parts as signed amounts that add up to the whole."""
    amounts = [
        f"{signed(delta)} of {_words(changed.level, name)}{_how(changed, name)}"
        for name, delta in found.parts_ms.items()
    ]
    rest = found.rest_of_it_ms
    amounts += [f"{signed(rest)} of all others"] if abs(rest) >= LITTLE * abs(found.whole_ms) else []
    return f"The parts work against each other; {signed(found.whole_ms)} is the sum of {listed(amounts)}."


def _seeks(changed: Changed) -> Iterator[str]:
    """Yield what order the device saw its requests in, where there is a block trace and the two differ."""
    new, old = changed.level.figures, changed.baseline.figures
    if not {"seek_bytes", "sorted_run"} <= new.keys() & old.keys():
        return
    if all(abs(new[name] - old[name]) <= SAME * max(new[name], old[name]) for name in ("seek_bytes", "sorted_run")):
        return
    seeks = one_or_two(new["seek_bytes"], old["seek_bytes"], _distance)
    runs = one_or_two(new["sorted_run"], old["sorted_run"], rounded)
    yield f"From one request to the next the device went {seeks}, in sorted runs of {runs} requests."


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


def _delta(changed: Changed, name: str) -> float:
    return changed.level.figures[name] - changed.baseline.figures[name]


def _part(changed: Changed, name: str, ms: float) -> str:
    return f"{duration(ms)} are {_words(changed.level, name)}{_how(changed, name)}"


def _words(one: TimeSpent, part: str) -> str:
    return f"the rest ({_rest(one)})" if part == "rest_ms" else PART_WORDS[part]


def _rest(one: TimeSpent) -> str:
    """Return what the rest of an event's time may be, by what was not watched."""
    server = "" if "cpu_ms" in one.figures else "the server's CPU, "
    device = "" if "write_ms" in one.figures else "the device, "
    return (
        f"{server}{device}{'other ' if 'lock_ms' in one.figures else ''}locks, waiting for a processor, network, client"
    )


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
    return f" ({per}, each {long}{_shared(changed.level) if part == 'flush_ms' else _queued(new, old)})"


def _queued(new: Figures, old: Figures) -> str:
    """Return how much of a request's time passed in the queue, where there is a block trace."""
    if "queued_share" not in new or "queued_share" not in old:
        return ""
    return f", of a request's time {one_or_two(new['queued_share'], old['queued_share'], share)} in the queue"


def _shared(one: TimeSpent) -> str:
    """Return how many wait at a time where they are several: they share flushes, and wait for those of others."""
    under_way = one.figures["under_way"]
    return f", while {rounded(under_way)} are in flight at a time" if under_way >= 1 + WORTH_SAYING else ""


def _unexplained(one: TimeSpent) -> Iterator[str]:
    rest, whole = one.figures["rest_ms"], one.figures["latency_ms"]
    if rest < WORTH_SAYING * whole:
        return
    waited = one.figures.get("cpu_wait_share", 0.0)
    hint = f"; some task waited for a processor during {share(waited)} of the time" if waited >= WORTH_SAYING else ""
    unexplained = f"{duration(rest)} of it ({share(rest / whole)}) is not explained by what was watched{hint}"
    yield f"With {one.label}, {unexplained}."


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


def _on_cores(one: TimeSpent) -> str:
    return f", on {rounded(one.limit.of)} processors" if one.limit.kind == "processor" and one.limit.of > 1 else ""


_FULL: dict[Kind, str] = {
    "client": "the load generator, which keeps its {of} {share} busy",
    "processor": "the processors, {share} busy{others}",
    "flushes": "the device's flushes, with one in flight {share} of the time",
    "device": "the device, {share} busy",
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
    if new.kind == old.kind and new.full == old.full:
        shares = one_or_two(new.share, old.share, share)
        return (
            f"Both are limited by {_limit(changed.level, shares)}." if new.full else _both_mostly(changed.level, shares)
        )
    text = f"{_limited(changed.level)}; {_limited(changed.baseline)}."
    return f"W{text[1:]}" if text.startswith("with ") else text


def _both_mostly(one: TimeSpent, shares: str) -> str:
    if one.limit.kind == "rate":
        return "Both keep up with the rate that is offered."
    return f"With both, nothing is full, and {_part_of_time(one, shares)}."


def _limited(one: TimeSpent) -> str:
    found = one.limit
    if found.full:
        return f"{one.label} is limited by {_limit(one, share(found.share))}"
    if found.kind == "rate":
        return f"{one.label} keeps up with the rate that is offered"
    return f"with {one.label} nothing is full, and {_part_of_time(one, share(found.share))}"


def _part_of_time(one: TimeSpent, shares: str) -> str:
    most = "most" if one.limit.share >= MOST else "the largest part"
    what = f"what was not watched: {_rest(one)}" if one.limit.kind == "rest_ms" else _MOSTLY[one.limit.kind]
    return f"{most} of the time ({shares}) is {what}"


def _limit(one: TimeSpent, busy: str) -> str:
    found = one.limit
    others = f", {share(found.others)} by other processes" if found.others >= WORTH_SAYING else ""
    threads = "thread" if found.of == 1 else f"{found.of:.0f} threads"
    return _FULL[found.kind].format(share=busy, others=others, of=threads)


def _cannot_matter(changed: Changed) -> Iterator[str]:
    """Yield why what was varied has nothing to act on, where that is so."""
    varied = {name.rpartition(".")[2] for section, name in changed.factors if section != "workload"}
    sections = {section.split(".")[0] for section, _ in changed.factors}
    figures = (changed.level.figures, changed.baseline.figures)
    if not varied or not all("busy_share" in one for one in figures):
        return
    below = varied <= BELOW_THE_SERVER or sections <= {"queue", "filesystem"}
    busy = max(one["busy_share"] for one in figures)
    if below and busy < IDLE:
        yield f"The device is busy for {share(busy)} of the time: what it does can hardly matter to this load."
        return
    waiting = max(one["requests_under_way"] for one in figures)
    if (varied <= IN_THE_QUEUE or sections == {"queue"}) and waiting < FEW_REQUESTS:
        average = f"{rounded(waiting)} requests are in queue and device on average"
        yield f"No more than {average}: there is little to sort."


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
    verdicts = {(one.baseline_id, one.level_id): one for one in (*analysis.every_pair, *analysis.verdicts)}
    return {
        "treatments": [
            {**fields(one, "id label"), "trials": one.n, "limit": asdict(one.limit), "figures": dict(one.figures)}
            for one in analysis.why.treatments
        ],
        "comparisons": [
            {
                **fields(one, "baseline_id level_id"),
                "differences": {name: asdict(estimate) for name, estimate in one.differences.items()},
                **fields(one, "variance_shares spread_parts_ms spread_ms"),
                "text": explanation(verdicts[ids], analysis),
            }
            for ids, one in analysis.why.changes.items()
        ],
    }
