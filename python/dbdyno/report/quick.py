"""The report of a quick look at storage: a sentence, a table, what limits it."""

import math
from collections.abc import Iterator
from dataclasses import replace

from dbdyno.analysis.quick import ALIKE_MAX, FLUSH_WRITES_MAX, MARGIN, STUDY_BLOCKS, DepthStep, Quick, Target
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.model.wording import TWICE, count, drive_bytes, percent, percent_range, three_digits
from dbdyno.report.charts import drives
from dbdyno.report.charts.depths import chart
from dbdyno.report.document import Abridged, Badge, Badges, Cell, Document, Paragraph, Section, Table, bullets, pieces
from dbdyno.report.sentences import certainty, sentence_of
from dbdyno.report.source import effect_values, fields, p_values

WORDS = {
    "fsync": "durable commit (4 KiB + fdatasync)",
    "randread": "random read, 16 KiB",
    "randwrite": "random write, 16 KiB",
}
PLURAL = {"fsync": "durable commits", "randread": "random reads", "randwrite": "random writes"}
TOO_NOISY = 10.0  # tenfold: a larger least difference is no figure to plan by
_LATENCIES = (("p50", "p50 ms"), ("p99", "p99 ms"), ("max", "max ms"))


def document(quick: Quick) -> Document:
    """Return the report; its values are what ``--json`` prints."""
    warnings = tuple(Paragraph(line, "warning") for line in _warnings(quick))
    badges = Badges(
        tuple(_badges(quick)),
        f"{count(quick.noise.n, 'round')} counted",
        "no power cut was tried",
        0 if not warnings else None,
    )
    opening = Section("headline", "", (Paragraph(headline(quick), "headline"), badges), opening=True)
    sections = (
        opening,
        *_among_drives(quick),
        *([Section("warnings", "", warnings, opening=True)] if warnings else []),
        *(_comparison(quick) if quick.against else ()),
        _curves(quick),
        *_figures(quick),
        Section("trust", "How far to trust it", bullets(list(_notes(quick))), opening=True),
        Section("facts", "What was measured", (_facts(quick),)),
    )
    return Document(f"Storage of {quick.target.name}", (), sections, _values(quick), tuple(_card_figures(quick)))


def _card_figures(quick: Quick) -> Iterator[tuple[str, str]]:
    """Yield the figures of a summary card."""
    steps = quick.target.steps
    if (commit := steps.get(("fsync", 1))) is not None:
        yield f"{_ms(commit, 'p50')} ms", "a durable commit, one client"
    for operation in ("fsync", "randread"):
        if depths := [depth for name, depth in steps if name == operation]:
            yield f"{_rate(steps[(operation, max(depths))])}/s", f"{PLURAL[operation]}, {max(depths)} clients"


def _badges(quick: Quick) -> Iterator[Badge]:
    """Yield on what and when it was measured, then what makes it less sure."""
    facts, kind = quick.facts, quick.target.kind
    what = {"device": ("device, only read", "Nothing was written, so the cost of a commit is unknown.")}
    filesystem = facts.get("filesystem") or "an unknown filesystem"
    text, title = what.get(kind, (f"folder on {filesystem}", f"{quick.target.name} on {filesystem}"))
    yield Badge(text.partition(" (")[0], title, "facts")
    for name, value in ((name, facts.get(name, "")) for name in ("disk", "host", "measured")):
        if value:
            yield Badge(value, f"{name.capitalize()}: {value}", "facts")
    if quick.flush_is_cheap:
        title = "A flush costs hardly more than a write: only a power cut would show whether commits are durable."
        yield Badge("flushes may do nothing", title, "trust", beware=True, safety=True)
    elif kind == "directory":
        title = "A flush costs time, as it should; only a power cut would show whether commits are durable."
        yield Badge("flushes cost time", title, "trust", safety=True)
    if quick.noisy_host:
        yield Badge("noisy host", "Others or a hypervisor used the processors meanwhile.", "trust", beware=True)


def headline(quick: Quick) -> str:
    """Return what a durable commit costs here, or a read where nothing was written, and what drive this is like."""
    steps = quick.target.steps
    operation = "fsync" if ("fsync", 1) in steps else "randread"
    single, most = steps[(operation, 1)], max(depth for name, depth in steps if name == operation)
    what = "durable commit" if operation == "fsync" else "read of 16 KiB"
    usual = _ms(single, "p50")
    cost = f"A {what} takes {usual} ms here (1 in 100 more than {_ms(single, 'p99')} ms)"
    rates = f"{_rate(single)} a second from one client, {_rate(steps[(operation, most)])} from {most}"
    like = _likeness(quick)
    return f"{cost}: {rates}. {like}".strip()


def _likeness(quick: Quick) -> str:
    likeness = quick.likeness
    if likeness is None:
        return ""
    if likeness.alike:
        return f"It is most like the drive {likeness.drive}, whose figures typically differ by {_off(likeness.factor)}."
    off = _off(likeness.factor)
    return f"It is like no drive of the catalogue (closest: {likeness.drive}, whose figures typically differ by {off})."


def _off(factor: float) -> str:
    """Return how far figures lie apart, as ``"12 %"`` or ``"2.4 times"``."""
    return f"{factor:.2g} times" if factor - 1 >= TWICE else percent(factor - 1, sign=False)


def _comparison(quick: Quick) -> Iterator[Section]:
    assert quick.against is not None  # noqa: S101
    names = quick.target.name, quick.against.name
    lines = tuple(
        Paragraph(
            (
                f"{PLURAL[verdict.level_id].capitalize()}, {_session(quick)}: ",
                *pieces(sentence_of(verdict, names, MARGIN, _figures_of(verdict))),
            )
        )
        for verdict in quick.verdicts
    )
    yield Section("comparison", "", lines, opening=True)


def _session(quick: Quick) -> str:
    """Return what a verdict holds for: ``"in these 80 seconds"``."""
    return f"in these {quick.session_seconds:,.0f} seconds"


def _figures_of(verdict: Finding) -> str:
    effect = verdict.effect
    return f": {percent(effect.value)} ({certainty(verdict, percent_range(effect.low, effect.high))})"


def _targets(quick: Quick) -> list[Target]:
    return [quick.target, *([quick.against] if quick.against else [])]


def _among_drives(quick: Quick) -> Iterator[Section]:
    """Yield the chart that a page begins with: this disk among the drives that there are models of, and an atlas's."""
    like = quick.likeness.drive if quick.likeness else ""
    others = (*quick.catalogue, *quick.atlas)
    if others and (drawn := drives.chart(_targets(quick), others, like)) is not None:
        named = ((quick.catalogue, "drive", "catalogue"), (quick.atlas, "disk", "atlas"))
        caption = f"{quick.target.name} among " + " and ".join(
            f"the {count(len(targets), noun)} of the {where}" for targets, noun, where in named if targets
        )
        yield Section("drives", "", (Abridged((replace(drawn, caption=caption),)),))


def _curves(quick: Quick) -> Section:
    """Return operations a second by how many clients there are; the first chart of a page without a catalogue."""
    heading = "By number of clients" if quick.catalogue else ""
    return Section("curves", heading, (Abridged((chart(_targets(quick), WORDS),)),))


def _figures(quick: Quick) -> Iterator[Section]:
    for place, target in enumerate(_targets(quick), 1):
        yield Section(f"figures-{place}", f"Figures of {target.name}", (_table(target),), opening=True)


def _table(target: Target) -> Table:
    rows = tuple(_row(step) for step in target.steps.values())
    headings = ("operation", "clients", "a second", "95 % interval", *(heading for _, heading in _LATENCIES))
    return Table("", headings, rows, "figures")


def _row(step: DepthStep) -> tuple[str | Cell, ...]:
    rate = step.rate
    interval = f"{three_digits(rate.low)} to {three_digits(rate.high)}" if rate.bounded else "unknown"
    return (WORDS[step.operation], str(step.depth), _rate(step), interval, *(_ms(step, key) for key, _ in _LATENCIES))


def _rate(step: DepthStep) -> str:
    return three_digits(step.rate.value)


def _ms(step: DepthStep, key: str) -> str:
    return three_digits(step.latency_ns[key] / 1e6)


def _warnings(quick: Quick) -> Iterator[str]:
    target, host = quick.target, quick.host
    if not target.direct:
        yield "The filesystem has no direct I/O, so reads and writes would measure memory: only commits were measured."
    if target.kind == "device":
        yield "Devices are only read; to measure commits, name a folder on the device."
    if quick.flush_is_cheap:
        yield (
            f"A durable commit takes less than {FLUSH_WRITES_MAX:.0f} times as long as a write: either the drive's"
            " write cache is protected, or something below does not honour flushes. Only a power cut would show which."
        )
    if quick.noisy_host:
        yield (
            f"Meanwhile others and the kernel used {percent(host.others, sign=False)} of the processors, and a"
            f" hypervisor kept {percent(host.stolen, sign=False)} for other machines; measure again when they are idle."
        )


def _least_text(difference: float) -> str:
    """Return what a study on this host can show; ``difference`` is a fraction, 0.05 for 5 %."""
    if difference >= TOO_NOISY:
        return f"With so much noise {STUDY_BLOCKS} blocks can detect no difference; measure when the host is idle."
    return f"{STUDY_BLOCKS} blocks can detect differences of {percent(difference, sign=False)} or more."


def _notes(quick: Quick) -> Iterator[str]:
    noise = quick.noise
    if noise.known:
        ends = f"{percent(noise.low, sign=False)} to {percent(noise.high, sign=False)}"
        least = "" if quick.shown is None else f" {_least_text(quick.shown)}"
        yield f"The same measurement differs by {percent(noise.value, sign=False)} from round to round ({ends}).{least}"
    if quick.verdicts:
        yield (
            f"Both are compared {_session(quick)} alone. A disk that is slow for some minutes is slow in every round,"
            " so two that are equal may well look different: to compare the disks, make them levels of a study, on"
            " another day as well."
        )
    yield "dbdyno wrote and read a file of its own with direct I/O; the figures include the filesystem."
    yield f"dbdyno itself used {percent(quick.host.tool, sign=False)} of the processors."


def _facts(quick: Quick) -> Table:
    target = quick.target
    fill = target.fill_bytes_per_second
    written = "" if math.isnan(fill) else f"{drive_bytes(target.region_bytes)}, first written at {fill / 1e6:,.0f} MB/s"
    rows = [*quick.facts.items(), ("file", written), ("rounds", str(quick.noise.n))]
    return Table("", (), tuple((name, value) for name, value in rows if value), "settings")


def _values(quick: Quick) -> dict[str, object]:
    likeness = quick.likeness
    return {
        "headline": headline(quick),
        "targets": [target_values(target) for target in (quick.target, quick.against) if target],
        "rounds": quick.noise.n,
        "noise": effect_values(quick.noise, "log_ratio_deviation"),
        "least_difference_shown": quick.shown,
        "likeness": likeness and {**fields(likeness, "drive factor alike"), "limit": ALIKE_MAX},
        "verdicts": [
            {
                "operation": verdict.level_id,
                "verdict": verdict.verdict,
                **effect_values(verdict.effect),
                **p_values(verdict),
            }
            for verdict in quick.verdicts
        ],
        "verdicts_hold_for_seconds": quick.session_seconds if quick.verdicts else None,
        "margin": MARGIN,
        "host": {"others": quick.host.others, "stolen": quick.host.stolen, "tool": quick.host.tool},
        "warnings": list(_warnings(quick)),
        "badges": [badge.values for badge in _badges(quick)],
        "atlas": [target.name for target in quick.atlas],
        "facts": dict(quick.facts),
    }


def target_values(target: Target) -> dict[str, object]:
    """Return what programs read of a target."""
    steps = [
        {
            "operation": step.operation,
            "bytes": step.bytes,
            "depth": step.depth,
            **effect_values(step.rate, "per_second"),
            **{f"latency_ns_{key}": value for key, value in step.latency_ns.items() if key != "count"},
        }
        for step in target.steps.values()
    ]
    return {
        **fields(target, "name kind direct region_bytes fill_bytes_per_second"),
        "steps": steps,
    }
