"""What a result rests on, in a few words each: on what it was measured, when, and what to beware of."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.lateness import Lateness, is_late, lateness
from dbdyno.analysis.load_checks import cache_ran_out, errors_met
from dbdyno.analysis.verdict.pairs import not_granted
from dbdyno.model.metrics import metric_of, part_of
from dbdyno.model.printable import one_line
from dbdyno.model.wording import UNKNOWN, count, listed
from dbdyno.mysql.durability import CommitRisk, Durability, durability, risk_clause
from dbdyno.mysql.settings import product_name
from dbdyno.report.crash import tried_in
from dbdyno.report.document import Badge, Badges, Section
from dbdyno.report.notes import errors_named, errors_text, how_it_ended, is_unwatched
from dbdyno.report.reasons import beside_the_request, late_text, share
from dbdyno.report.sections.warnings import warnings_of
from dbdyno.report.sentences import treatments_named
from dbdyno.report.source import Source
from dbdyno.store.records import Run, Trial, processor_model

LISTED_MAX = 2  # names in a badge
_STACKS = {
    "emulated": (
        "emulated disk",
        "A program emulated the drive, using figures of such drives.",
    ),
    "real": ("real disk", "The data was on a disk of this host that was erased for it."),
    "file": ("disk in a file", "The data was on a disk in a file on this host's own storage."),
    "here": ("this host's disk", "The data was in a folder on this host's own storage."),
    "memory": ("in memory", "The data was in memory (tmpfs): there was no disk."),
    "external": ("external server", "The server runs elsewhere: its disks are not known, and it was not restarted."),
    "simulated": ("simulated", "Nothing was run on a disk: its behaviour was computed."),
}
_FILLING = "The buffer pool was still being filled while it was measured: figures are those of a warm-up."
EMULATED_CPU = (
    "KVM does not work on this host, so QEMU translated every instruction of the virtual machines: work of the CPU "
    "took 10 to 20 times as long. Compare only what the disk decides."
)
_BY_SETTINGS = "By settings that were read back;"
Measured = Sequence[tuple[Run, UsableBlocks]]


def section(source: Source) -> Section:
    """Return the badges of a run."""
    beside = [source.beside.run] if source.beside else []
    measured = [(source.run, source.analysis.blocks)]
    filling, tried = bool(source.analysis.pools_filling), tried_in([source.run, *beside])
    return badges(measured, filling=filling, tried=tried, warnings=len(warnings_of(source)))


def badges(
    measured: Measured, *, linked: bool = True, filling: bool = False, tried: str = "", warnings: int | None = None
) -> Section:
    """Return the badges over one run or several, and the same as values; ``linked`` where the sections are there.

    ``filling``: whether a buffer pool was still being filled; ``tried``: which cuts were made, if not in these alone;
    ``warnings``: how many of them the page has further below.
    """
    trials = [trial for run, _ in measured for trial in run.trials]
    tried = tried or tried_in([run for run, _ in measured])
    all_badges = [
        *_stack(trials),
        *_guests(trials),
        *_servers(trials),
        *_dates(trials),
        _host([run for run, _ in measured]),
        *_elsewhere([run for run, _ in measured]),
        *_unfinished([run for run, _ in measured]),
        *_beware(measured),
        *([Badge("buffer pool filling", _FILLING, "verdicts", beware=True)] if filling else []),
        *_durable(measured, f"{_BY_SETTINGS} {tried}."),
    ]
    shown = tuple(all_badges) if linked else tuple(replace(badge, section="") for badge in all_badges)
    apart = f" in {count(len(measured), 'run')} that were not interleaved" if len(measured) > 1 else ""
    counted = f"{count(sum(len(blocks.trials) for _, blocks in measured), 'block')} counted{apart}"
    data = {"badges": [badge.values for badge in shown]}
    return Section("badges", "", (Badges(shown, counted, tried, warnings),), data=data, opening=True)


def _stack(trials: Sequence[Trial]) -> Iterator[Badge]:
    by_kind: dict[str, dict[str, None]] = {}
    for device in (part_of(trial.observed, "device") for trial in trials):
        named_as = str(device.get("model") or device.get("source") or "")
        by_kind.setdefault(str(device.get("kind", UNKNOWN)), {})[one_line(named_as)] = None
    for kind, models in by_kind.items():
        text, title = _STACKS.get(kind, (f"disk {one_line(kind)}", "The device below the data was not read back."))
        names = ", ".join(filter(None, models))
        yield Badge(text, f"{title} ({names})" if names else title, "observed", beware=kind == "simulated")


def _guests(trials: Sequence[Trial]) -> Iterator[Badge]:
    """Yield that virtual machines booted for the trials, and whether their processor was real."""
    guests = [guest for trial in trials if (guest := part_of(trial.observed, "guest"))]
    if not guests:
        return
    kernels = dict.fromkeys(one_line(str(guest.get("kernel", UNKNOWN))) for guest in guests)
    title = f"A virtual machine of this host booted for each trial: kernel {', '.join(kernels)}."
    yield Badge("booted", title, "observed")
    if any(trial.has_emulated_cpu for trial in trials):
        yield Badge("CPU emulated", EMULATED_CPU, "observed", beware=True)


def _servers(trials: Sequence[Trial]) -> Iterator[Badge]:
    served = filter(None, (part_of(trial.observed, "server") for trial in trials))
    servers = dict.fromkeys(
        (str(server.get("version", UNKNOWN)), str(server.get("version_comment", ""))) for server in served
    )
    versions = dict.fromkeys(version for version, _ in servers)
    tools = dict.fromkeys(" ".join(map(str, part_of(trial.observed, "tool").values())) for trial in trials)
    names = list(dict.fromkeys(product_name(one_line(version), comment) for version, comment in servers))
    if names:
        text = listed(names) if len(names) <= LISTED_MAX else count(len(names), "server version")
        yield Badge(text, f"Server: {', '.join(map(one_line, versions))}", "observed")
    for tool in filter(None, tools):
        yield Badge(_short(tool), f"Load by another program: {one_line(tool)}", "observed")


def _short(text: str, most: int = 40) -> str:
    line = one_line(text)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _dates(trials: Sequence[Trial]) -> Iterator[Badge]:
    began = sorted(trial.started_at for trial in trials if trial.started_at)
    if began:
        first, last = began[0], began[-1]
        days = dict.fromkeys((first[:10], last[:10]))
        yield Badge(" to ".join(days), f"The first trial began at {first}, the last at {last} (UTC).", "reproduce")


def _host(runs: Sequence[Run]) -> Badge:
    hosts = dict.fromkeys(host_text(facts) for run in runs for facts in (run.hosts.values() or [run.host]))
    number = max(len(hosts), *(len(run.hosts) for run in runs))
    text = _short(next(iter(hosts))) if number == 1 else count(number, "host")
    return Badge(text, f"Host: {'; '.join(hosts)}", "reproduce")


def host_text(host: Mapping[str, Any]) -> str:
    """Return what a host is in a few words, such as its processor and cores."""
    model = one_line(processor_model(host))
    cores = host.get("cores")
    virtual = part_of(host, "virtualisation").get("hypervisor_flag") in {True, "yes"} or host.get("virtual") is True
    facts = [model, count(cores, "core") if isinstance(cores, int) else "", "virtual" if virtual else ""]
    return ", ".join(filter(None, facts)) if model or facts[1] else "host unknown"


def _elsewhere(runs: Sequence[Run]) -> Iterator[Badge]:
    """Yield that runs were imported: their figures are what others say."""
    if imported := sum(run.imported for run in runs):
        of_all = "" if imported == len(runs) else f": {imported} of {count(len(runs), 'run')}"
        title = "It was measured elsewhere and shared without names: the file was checked, its figures can't be."
        yield Badge(f"not measured here{of_all}", title, "reproduce", beware=True)


def _unfinished(runs: Sequence[Run]) -> Iterator[Badge]:
    titles = dict.fromkeys(how_it_ended(run) for run in runs if run.ended != "done")
    if titles:
        yield Badge("not finished", " ".join(titles), "notes", beware=True)


def _beware(measured: Measured) -> Iterator[Badge]:
    """Yield what was met in trials that count, from interference to errors that were ignored."""
    counting = [trial for _, blocks in measured for row in blocks.trials.values() for trial in row.values()]
    if disturbed := sum(trial.disturbed for trial in counting):
        title = f"Others used the host in {disturbed} of {count(len(counting), 'trial')} that verdicts rest on."
        yield Badge(f"interference in {disturbed} of {count(len(counting), 'trial')}", title, "disturbed", beware=True)
    yield from _unknown_interference(counting)
    yield from _late(measured)
    full = [
        treatment.label
        for run, blocks in measured
        for treatment in run.design.treatments
        if cache_ran_out(blocks.of(treatment.id))
    ]
    if full:
        what = f"The drive's fast cache ran out while it was measured: {'; '.join(dict.fromkeys(full))}."
        yield Badge("cache ran out", what, "verdicts", beware=True)
    lacking = not_granted(counting)
    if tables := [setting.said for setting in lacking if setting.is_of_tables]:
        yield Badge("table options in name only", f"{one_line('; '.join(tables))}.", "verdicts", beware=True)
    settings = [setting for setting in lacking if not setting.is_of_tables]
    in_vain = dict.fromkeys(f"{setting.name} = {setting.value}" for setting in settings if setting.by_server)
    if in_vain:
        title = (
            f"The host did not grant this setting, says the server's error log: {'; '.join(map(one_line, in_vain))}."
        )
        yield Badge("a setting was not granted", title, "verdicts", beware=True)
    if idle := [f"{one.name} = {one.value} ({one.said})" for one in settings if not one.by_server]:
        title = f"These settings change nothing on this host: {'; '.join(map(one_line, idle))}."
        yield Badge("a setting without effect", title, "verdicts", beware=True)
    if met := errors_met(counting):
        yield Badge(errors_named(met), f"{errors_text(met)}.", "notes", beware=True)


def _unknown_interference(counting: Sequence[Trial]) -> Iterator[Badge]:
    """Yield that nobody could see what others did beside a server."""
    if unwatched := sum(map(is_unwatched, counting)):
        which = "" if unwatched == len(counting) else f" in {unwatched} of {count(len(counting), 'trial')}"
        title = (
            "The server's process was out of sight, so nobody knows what others did on its host; no block was repeated "
            "for that."
        )
        yield Badge(f"interference unknown{which}", title, "notes", beware=True)


def _late(measured: Measured) -> Iterator[Badge]:
    """Yield by how much the emulated disk was late, where that bears on a figure by more than the margin."""
    late_treatments: list[tuple[str, Lateness]] = []
    for run, blocks in measured:
        metric = metric_of(run.design)
        for treatment in run.design.treatments:
            late = lateness(blocks.of(treatment.id), metric)
            if late is not None and is_late(late, run.design.margin):
                late_treatments.append((treatment.label, late))
    if not late_treatments:
        return
    label, worst = max(late_treatments, key=lambda late_treatment: abs(late_treatment[1].late_us))
    most = max(abs(late.share) for _, late in late_treatments)
    how = f"{late_text(worst.late_us)} per request, {beside_the_request(worst.late_us, worst.request_us)} ({label})"
    title = f"Its answers came {how}: up to {share(most)} of the time measured may not be the drive's."
    amount, which = late_text(worst.late_us).rsplit(" ", 1)
    yield Badge(f"emulated disk {which} by {amount}", title, "notes", beware=True)


def _durable(measured: Measured, untried: str) -> Iterator[Badge]:
    """Yield one badge: not durable where any treatment is not, unknown where that is not known of one."""
    known = [
        (treatments_named([treatment.id], run.design.treatments), commits)
        for run, blocks in measured
        for treatment in run.design.treatments
        if (observed := [trial.observed for trial in blocks.of(treatment.id) if "server" in trial.observed])
        and (commits := durability(observed))
    ]
    answers = Counter(commits.durable for _, commits in known)
    if answers[False]:
        part_of = "" if answers[False] == len(known) else f" in {answers[False]} of {len(known)}"
        yield Badge(
            f"commits not durable{part_of}", f"{_why_not(known)} {untried}", "observed", beware=True, safety=True
        )
    elif answers[None]:
        title = "The durability settings were not read back."
        yield Badge("durability unknown", title, "observed", beware=True, safety=True)
    elif known:
        title = f"Each commit waits until the device says it is safe. {untried}"
        yield Badge("commits durable", title, "observed", safety=True)


def _why_not(known: Iterable[tuple[str, Durability]]) -> str:
    """Return what is against durable commits, and with which treatments."""
    by_reason: dict[CommitRisk, list[str]] = {}
    for label, commits in known:
        for reason in commits.lacking:
            by_reason.setdefault(reason, []).append(label)
    each = (f"{risk_clause(reason)} ({', '.join(dict.fromkeys(labels))})" for reason, labels in by_reason.items())
    text = "; ".join(each)
    return f"A power cut may take commits: {text}."
