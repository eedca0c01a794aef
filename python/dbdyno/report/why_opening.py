"""The plain sentence that an explanation opens with: what is waited for, from the measured parts."""

from dbdyno.analysis.explanation import Changed, TimeSpent
from dbdyno.report.amounts import about, about_the_same, digits, duration, one_or_two, rounded
from dbdyno.report.why_parts import main_part

SEVERAL = 1.5  # events in flight at a time, from which on they wait for each other's flushes
EACH_ITS_OWN = 0.9  # flushes of an event


def noun(one: TimeSpent) -> str:
    """Return whose latency it is."""
    queries = one.figures.get("queries", 1.0)
    return "a query" if about_the_same(queries, 1.0) else f"an event of {rounded(queries)} queries"


def opening_of_difference(changed: Changed) -> str:
    """Return what is waited for less, or more, than with the baseline."""
    new, old = changed.level.figures, changed.baseline.figures
    one, part = noun(changed.level), main_part(changed)
    match part:
        case "flush_ms" if "flushes" in new and "flushes" in old:
            return f"{_flushes(changed)}{_each_or_count(changed, 'flush_each_ms', 'flushes')}{_never_empty(changed)}."
        case "read_ms" if "reads" in new and "reads" in old:
            waits = f"{one} waits for the device's reads"
            return f"{waits}{_each_or_count(changed, 'read_each_ms', 'reads')}{_never_empty(changed)}."
        case "cpu_ms":
            return f"{one} keeps the server's processors busy for {_of(changed, part)}."
        case "lock_ms":
            return f"{one} waits {_of(changed, part)} for rows that others have locked."
        case "write_ms" | "flush_ms" | "read_ms":
            what = {"write_ms": "other writes to", "flush_ms": "flushes of", "read_ms": "reads from"}[part]
            return f"{one} waits {_of(changed, part)} for {what} the device{_never_empty(changed)}."
        case _:
            return "most of the difference is in what was not watched."


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
            return f"with either the queue of the disk never empties{takes}."
        case "processor":
            return "with either the processors have no time left."
        case _:
            return "the load generator has no time left, so neither server is at its limit."


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
    sides = [one.label for one in (changed.level, changed.baseline) if one.limit.full and one.limit.kind == "device"]
    match sides:
        case [one]:
            return f", and with {one} the disk's queue never empties"
        case [_, _]:
            return ", and with either the disk's queue never empties"
        case _:
            return ""


def _of(changed: Changed, part: str) -> str:
    return one_or_two(changed.level.figures[part], changed.baseline.figures[part])
