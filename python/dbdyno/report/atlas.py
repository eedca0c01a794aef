"""An atlas of many results: its gallery, and drives and versions side by side with what that comparison can't tell."""

import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.quick import Quick
from dbdyno.analysis.two_runs import obstacle_of
from dbdyno.model.metrics import METRICS, metric_of, part_of
from dbdyno.model.printable import json_text, one_line
from dbdyno.model.wording import count, listed, three_digits
from dbdyno.mysql.settings import product_name
from dbdyno.report.document import Cell, Details, Document, List, Paragraph, Section, Table, bullets
from dbdyno.report.quick import WORDS
from dbdyno.report.render.html import render_gallery
from dbdyno.report.sections.badges import host_text
from dbdyno.report.several import NOT_INTERLEAVED
from dbdyno.report.simulation import Row
from dbdyno.store.records import Run, Trial

How = Literal["measured", "simulated", "quick look"]
FACETS = {"drive": "Drive", "filesystem": "Filesystem", "server": "Server", "kernel": "Kernel", "load": "Load"}
NONE = "none"
_DRIVES = {
    "here": "this host's disk", "file": "disk in a file", "memory": "memory (tmpfs)", "real": "real disk",
    "external": "of an external server",
}  # fmt: skip
HOSTS_NAMED = 4
_OF_JOB = "fio:"  # how a factor of a sweep begins that is of its load
TABLES = ("results", "figures", "verdicts", "trials")
QUERY = """\
SELECT drive, server, count(*) AS treatments, round(median(value)) AS queries_per_second
FROM 'data/figures.parquet'
WHERE metric = 'queries_per_second' AND comparable
GROUP BY ALL ORDER BY ALL;
"""


@dataclass(frozen=True)
class AtlasFigure:
    """What one treatment of a result came to, and on what it stood; an unknown end of its interval is NaN."""

    result: str  # its name in the atlas
    label: str
    how: How
    drive: str
    filesystem: str
    server: str
    kernel: str
    load: str
    clients: int  # 0: not known
    metric: str
    value: float
    low: float
    high: float
    blocks: int
    host: str  # of what make it is, not its name
    measured_here: bool
    comparable: bool = True  # it is the treatment's own: its run did not drop it, and no client host was the limit


@dataclass(frozen=True)
class AtlasEntry:
    """One result of an atlas, as its gallery shows it."""

    name: str
    title: str
    answer: str
    how: How
    when: str  # its first day, or nothing
    measured_here: bool
    has_names: bool  # whether it may hold names of hosts, paths and SQL: it was not exported
    figures: Sequence[AtlasFigure]
    verdicts: Sequence[Mapping[str, Any]] = field(default_factory=list)  # rows of a table
    trials: Sequence[Mapping[str, Any]] = field(default_factory=list)
    disks: Sequence[Mapping[str, Any]] = field(default_factory=list)  # of a quick look, as its JSON has them

    def facet(self, name: str) -> list[str]:
        """Return what its figures stand on, by the name of a field of theirs."""
        return list(dict.fromkeys(str(getattr(figure, name)) for figure in self.figures))

    @property
    def facets(self) -> str:
        """Return what it is found by, as JSON: field -> values."""
        return json_text(json.dumps({"how": [self.how], **{name: self.facet(name) for name in FACETS}}))

    @property
    def searched(self) -> str:
        """Return the words that a search looks in, in small letters."""
        texts = [self.title, self.answer, self.how, self.when, *(text for name in FACETS for text in self.facet(name))]
        return one_line(" ".join(texts)).lower()


# What each kind of result comes to.


def figures_of_run(name: str, run: Run, analysis: Analysis) -> Iterator[AtlasFigure]:
    """Yield a figure for each treatment with usable trials: of what its verdicts are about."""
    treatments = {treatment.id: treatment for treatment in run.design.treatments}
    metric = metric_of(run.design).name
    for row in analysis.treatments:
        trials = analysis.blocks.of(row.id)
        if not trials or not math.isfinite(row.metric_mean):
            continue
        first, estimate = trials[0], row.metric
        known = estimate.known and estimate.bounded
        facts = run.hosts.get(first.host) or run.host
        yield AtlasFigure(
            result=name,
            label=row.label,
            how="simulated" if run.is_simulated else "measured",
            **_stack(run, row.levels, first, facts),
            load=_load(run, first),
            clients=_whole(first.load.get("clients")),
            metric=metric,
            value=estimate.value if estimate.known else row.metric_mean,
            low=estimate.low if known else math.nan,
            high=estimate.high if known else math.nan,
            blocks=row.n,
            host="simulated" if run.is_simulated else _host(trials, facts),
            measured_here=not run.imported,
            comparable=obstacle_of(analysis.blocks, treatments[row.id], metric) is None,
        )


def _host(trials: Sequence[Trial], facts: Mapping[str, Any]) -> str:
    """Return what host figures are from; with an emulated CPU it is another one."""
    is_emulated = any(trial.has_emulated_cpu for trial in trials)
    return f"{host_text(facts)}{', CPU emulated by QEMU' * is_emulated}"


def _stack(run: Run, levels: Mapping[str, str], trial: Trial, facts: Mapping[str, Any]) -> dict[str, str]:
    """Return what a treatment stood on: what was read back, or else what the study says."""
    filesystem = part_of(trial.observed, "filesystem").get("kind") or part_of(trial.observed, "device").get(
        "filesystem"
    )
    observed = {"device": _drive(trial), "filesystem": one_line(str(filesystem or "")), "server": _server(trial)}
    planned = {name: levels.get(name) or part_of(run.study, "stack").get(name) for name in observed}
    stood = {
        name: text or (one_line(level) if isinstance(level := planned[name], str) else "") or NONE
        for name, text in observed.items()
    }
    drive = stood.pop("device")
    return {"drive": "unknown" if drive == NONE else drive, **stood, "kernel": _kernel(run, trial, facts)}


def _drive(trial: Trial) -> str:
    device = part_of(trial.observed, "device")
    kind = str(device.get("kind") or "")
    return one_line(str(device.get("model") or "")) or _DRIVES.get(kind, one_line(kind))


def _server(trial: Trial) -> str:
    server, tool = part_of(trial.observed, "server"), part_of(trial.observed, "tool")
    if server.get("version"):
        return product_name(one_line(str(server["version"])), str(server.get("version_comment", "")))
    return one_line(str(tool.get("name") or tool.get("version") or ""))


def _kernel(run: Run, trial: Trial, facts: Mapping[str, Any]) -> str:
    for layer in ("guest", "boot", "queue"):
        if kernel := part_of(trial.observed, layer).get("kernel"):
            return one_line(str(kernel))
    of_host = facts.get("kernel")
    release = of_host.get("release") if isinstance(of_host, dict) else of_host
    return one_line(str(release or run.versions.get("kernel") or "unknown"))


def _load(run: Run, trial: Trial) -> str:
    of_study = part_of(run.study, "workload")
    words = [trial.load.get(name) or of_study.get(name) for name in ("kind", "load")]
    return one_line(" ".join(word for word in words if isinstance(word, str))) or "unknown"


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else 0


def figures_of_sweep(name: str, rows: Sequence[Row], load: str) -> Iterator[AtlasFigure]:
    """Yield a figure for each combination: requests a second."""
    for row in rows:
        levels = {factor: one_line(level) for factor, level in row.levels.items()}
        jobs = [f"{factor.removeprefix(_OF_JOB)}={level}" for factor, level in levels.items() if _OF_JOB in factor]
        yield AtlasFigure(
            result=name, label=row.name(list(row.levels)), how="simulated", drive=levels.get("device", "unknown"),
            filesystem=levels.get("filesystem", NONE), server=NONE, kernel=levels.get("kernel", "unknown"),
            load=", ".join(jobs) or one_line(load), clients=0, metric="iops", value=row.requests_per_s(),
            low=math.nan, high=math.nan, blocks=len(row.outcomes), host="simulated", measured_here=True,
        )  # fmt: skip


def figures_of_quick(name: str, quick: Quick) -> Iterator[AtlasFigure]:
    """Yield a figure for each step: operations a second."""
    for target in [quick.target, *([quick.against] if quick.against else [])]:
        is_model, facts = target.kind == "model", quick.facts
        disk = target.name if is_model else one_line(facts.get("disk") or target.name)
        for step in target.steps.values():
            known = step.rate.known and step.rate.bounded
            yield AtlasFigure(
                result=name, label=target.name, how="simulated" if is_model else "quick look", drive=disk,
                filesystem=NONE if is_model else (facts.get("filesystem") or NONE).partition(" (")[0], server=NONE,
                kernel=NONE if is_model else facts.get("kernel") or "unknown",
                load=WORDS.get(step.operation, step.operation), clients=step.depth, metric="iops",
                value=step.rate.value, low=step.rate.low if known else math.nan,
                high=step.rate.high if known else math.nan, blocks=len(step.by_round),
                host="simulated" if is_model else "host unknown", measured_here=True,
            )  # fmt: skip


# Drives and versions side by side, a section for each load; what differs beside them is said there.


Key = tuple[str, int, str]  # load, clients, metric


def side_by_side(entries: Sequence[AtlasEntry]) -> Document:
    """Return the page that compares over results."""
    groups: dict[Key, list[AtlasFigure]] = {}
    for figure in (figure for entry in entries for figure in entry.figures if figure.comparable):
        groups.setdefault((figure.load, figure.clients, figure.metric), []).append(figure)
    titles = {entry.name: entry.title for entry in entries}
    shown = sorted(filter(_is_compared, groups.items()), key=lambda group: -len({figure.result for figure in group[1]}))
    sections = [_group(place, key, figures, titles) for place, (key, figures) in enumerate(shown, 1)]
    apart = NOT_INTERLEAVED.replace("These runs", "These results")
    head = [Paragraph(apart, "warning")] if len(entries) > 1 else []
    text = f"{count(len(shown), 'load')} that several results have, or that stood on several drives or servers."
    if alone := len(groups) - len(shown):
        text += f" {count(alone, 'more load')} stood on one drive in one result: see its page."
    values = {"loads": [dict(zip(("load", "clients", "metric"), key, strict=True)) for key, _ in shown]}
    return Document("Drives and versions side by side", (*head, Paragraph(text, "soft")), tuple(sections), values)


def _is_compared(group: tuple[Key, Sequence[AtlasFigure]]) -> bool:
    return any(len({getattr(figure, name) for figure in group[1]}) > 1 for name in ("result", "drive", "server"))


def _group(place: int, key: Key, figures: Sequence[AtlasFigure], titles: Mapping[str, str]) -> Section:
    load, clients, metric = key
    about = METRICS.get(metric)
    by = f", {count(clients, 'client')}" if clients else ""
    simulated = " (simulated)" if all(figure.how == "simulated" for figure in figures) else ""
    heading = f"{load}{by}: {about.heading if about else metric}{simulated}"
    sign = -1 if about is None or about.more_is_better else 1
    ordered = sorted(figures, key=lambda figure: sign * figure.value)
    tables = [
        _by(name, ordered, sign) for name in ("drive", "server") if len({getattr(one, name) for one in figures}) > 1
    ]
    every = Details("Every treatment", (_every(ordered, titles),), len(ordered), open=len(ordered) <= 12)  # noqa: PLR2004
    return Section(f"load-{place}", heading, (*_warnings(figures), *tables, every), unfolded=place == 1)


def _warnings(figures: Sequence[AtlasFigure]) -> tuple[Paragraph | List, ...]:
    """Return what else differs between the results, above all their hosts."""
    hosts = list(dict.fromkeys(figure.host for figure in figures))
    lines = []
    if len(hosts) > 1:
        named = listed(hosts[:HOSTS_NAMED]) + (" and more" if len(hosts) > HOSTS_NAMED else "")
        lines.append(
            f"These figures are from {count(len(hosts), 'kind')} of host ({named}): part of a difference may be the "
            "host's. Compare drives or versions inside one result, or between results of one host."
        )
    ways = sorted({figure.how for figure in figures})
    if len(ways) > 1:
        lines.append(f"Some are {listed(ways)}: only like ways of measuring can be compared.")
    if elsewhere := len({figure.result for figure in figures if not figure.measured_here}):
        lines.append(f"{count(elsewhere, 'result')} {'was' if elsewhere == 1 else 'were'} imported, not measured here.")
    return (Paragraph(lines[0], "warning"), *bullets(lines[1:])) if lines else ()


def _by(name: str, figures: Sequence[AtlasFigure], sign: int) -> Table:
    """Return a row for each drive, or server: the median over treatments and results, the ends, and how many."""
    groups: dict[str, list[AtlasFigure]] = {}
    for figure in figures:
        groups.setdefault(str(getattr(figure, name)), []).append(figure)
    medians = {level: statistics.median(figure.value for figure in of_level) for level, of_level in groups.items()}
    rows = tuple(
        (
            level, three_digits(medians[level]),
            f"{three_digits(min(values))} to {three_digits(max(values))}" if len(values) > 1 else "",
            str(len({figure.result for figure in of_level})), str(len({figure.host for figure in of_level})),
        )
        for level, of_level in sorted(groups.items(), key=lambda group: sign * medians[group[0]])
        for values in [[figure.value for figure in of_level]]
    )  # fmt: skip
    heading = FACETS[name].lower()
    return Table(f"By {heading}", (heading, "median", "least to most", "results", "kinds of host"), rows, "figures")


def _every(figures: Sequence[AtlasFigure], titles: Mapping[str, str]) -> Table:
    rows = tuple(
        (
            figure.drive, Cell(three_digits(figure.value), _interval(figure)), figure.server, figure.filesystem,
            figure.kernel, figure.label, figure.host, str(figure.blocks),
            Cell(titles[figure.result], link=f"runs/{figure.result}.html"),
        )
        for figure in figures
    )  # fmt: skip
    headings = ("drive", "figure", "server", "filesystem", "kernel", "treatment", "host", "blocks", "result")
    return Table("Every treatment", headings, rows, "figures")


def _interval(figure: AtlasFigure) -> str:
    known = math.isfinite(figure.low + figure.high)
    return f"{three_digits(figure.low)} to {three_digits(figure.high)}" if known else ""


# The gallery: a card for each result, found by what it stands on.


def gallery(entries: Sequence[AtlasEntry], lacking: Sequence[str] = ()) -> str:
    """Return the page that leads to all others, and names the studies that were not measured yet."""
    facets = {
        name: sorted({value for entry in entries for value in entry.facet(name)} - {NONE}, key=str.lower)
        for name in FACETS
    }
    ways = sorted({entry.how for entry in entries})
    return render_gallery(
        "atlas.html.j2",
        "atlas.js",
        entries=sorted(entries, key=lambda entry: entry.when, reverse=True),
        facets={FACETS[name]: values for name, values in facets.items() if len(values) > 1},
        names={FACETS[name]: name for name in FACETS},
        ways=ways if len(ways) > 1 else [],
        counted=count(len(entries), "result"),
        lacking=lacking,
        query=QUERY,
    )


def tables(entries: Sequence[AtlasEntry]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each table of the data, by its name."""
    return {
        "results": [
            {
                "result": entry.name, "title": entry.title, "answer": entry.answer, "how": entry.how,
                "when": entry.when, "measured_here": entry.measured_here, "page": f"runs/{entry.name}.html",
                **{name: ", ".join(entry.facet(name)) for name in FACETS},
            }
            for entry in entries
        ],
        "figures": [vars(figure) for entry in entries for figure in entry.figures],
        "verdicts": [{"result": entry.name, **row} for entry in entries for row in entry.verdicts],
        "trials": [{"result": entry.name, **row} for entry in entries for row in entry.trials],
    }  # fmt: skip
