"""docs/study-reference.md: every field of the study file, from the schema that checks it."""

import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args, get_origin

from dbdyno.filesystems import ANY_MOUNT, OPENZFS, Kind
from dbdyno.filesystems import KINDS as FILESYSTEMS
from dbdyno.model.metrics import METRICS
from dbdyno.study.beside import AlterBeside, BesideSection, DumpBeside, MariabackupBeside
from dbdyno.study.document import FileSection, WorkloadSection
from dbdyno.study.levels import LevelsSection
from dbdyno.study.rules import TUNABLES
from dbdyno.study.schema import (
    FACTOR_SECTIONS,
    ArraySection,
    BootSection,
    CacheSection,
    ClaimSection,
    ClusterSection,
    CostSection,
    CrashSection,
    DesignSection,
    DeviceCostSection,
    DiskSection,
    EncryptionSection,
    FailIfSection,
    FilesystemSection,
    FleetSection,
    HostSection,
    NamedDiskSection,
    PlaceSection,
    ProbesSection,
    QueueSection,
    ReplicaSection,
    ReportedSection,
    RowSection,
    ServerSection,
    StackSection,
    StudySection,
    VolumeSection,
)
from dbdyno.study.suite import SuiteSection
from dbdyno.study.units import format_bytes
from dbdyno.study.workloads import KINDS
from scripts.docs.fields import filled, item, own_fields

# Sections in the order of the page; ``[workload]`` has a chapter of its own.
SECTIONS: dict[str, type[FileSection]] = {
    "study": StudySection,
    "suite": SuiteSection,
    "stack": StackSection,
    "stack.disks.NAME": NamedDiskSection,
    "queue": QueueSection,
    "array": ArraySection,
    "cache": CacheSection,
    "encryption": EncryptionSection,
    "volume": VolumeSection,
    "filesystem": FilesystemSection,
    "server": ServerSection,
    "server.place": PlaceSection,
    "server.replica": ReplicaSection,
    "server.cluster": ClusterSection,
    "host": HostSection,
    "probes": ProbesSection,
    "design": DesignSection,
    "fail_if": FailIfSection,
    "crash": CrashSection,
    "workload.beside": BesideSection,
    "workload.beside, dump": DumpBeside,
    "workload.beside, mariabackup": MariabackupBeside,
    "workload.beside, alter": AlterBeside,
    "reported": ReportedSection,
    "reported.rows": RowSection,
    "reported.claims": ClaimSection,
    "cost": CostSection,
    "cost.NAME": DeviceCostSection,
    "levels": LevelsSection,
    "hosts": FleetSection,
    "hosts.disk.NAME": DiskSection,
    "hosts.boot": BootSection,
}

HEAD = """\
# Study file reference

Every field of the study file, written by `make docs` from the schema that checks it (`python/dbdyno/study/`).
[study-file.md](study-file.md) explains sections, factors, units and mistakes.

{factors}

Brackets hold what a field takes; without, a text. A field without a default is not set, or left to the kernel, unless
its sentence says otherwise. `version = 1` stands before the first section.
"""
OWN_FIELDS = """\
### Each kind's own

See [workloads.md](workloads.md) for dbdyno's own loads, [tools.md](tools.md) for other programs.
"""
_MARKED = re.compile(r"(<!-- fields of ([\w-]+), by make docs -->\n).*?(?=<!-- end -->)", re.DOTALL)


def study_reference() -> str:
    """The whole page."""
    names = [f"`[{name}]`" for name in (*FACTOR_SECTIONS, "stack.disks.NAME")]
    factors = f"A field of {', '.join(names[:-1])} or {names[-1]} (but `kind`) may be a list of values: a factor."
    factors += " So may one of `[[workload.beside]]`, there also its `kind`."
    parts = [HEAD.format(factors=textwrap.fill(factors, 120, break_on_hyphens=False))]
    for name, model in SECTIONS.items():
        parts += [f"## {heading(name, model)}\n", _fields(model), ""]
        parts += _AFTER.get(name, _nothing)()
    parts += ["## `[workload]`: the load\n"]
    for model, kinds in groups().items():
        parts += [f"### {_kinds_words(kinds)}\n", _fields(model), ""]
    parts += [OWN_FIELDS]
    return "\n".join([*parts, *_metrics()]).rstrip("\n") + "\n"


def with_fields(page: Path) -> str:
    """A page of kinds of load with each kind's own fields between its marks."""
    return _MARKED.sub(lambda found: f"{found[1]}{kinds_fields(found[2])}\n", page.read_text(encoding="utf-8"))


def kinds_fields(kind: str) -> str:
    """What bounds a kind of load, what its verdicts are about, and its own fields."""
    own = {name: field for name, field in own_fields(KINDS[kind]).items() if name != "kind"}  # the heading has it
    return "\n".join([_bound(KINDS[kind]), *(item(KINDS[kind], name, field) for name, field in own.items())])


def heading(name: str, model: type[FileSection]) -> str:
    """The first line of a section's docstring, as Markdown, with its name before it."""
    first = (inspect.getdoc(model) or "").split("\n", 1)[0].split(";")[0].replace("``", "`").rstrip(".")
    return first if first.startswith("`[") else f"`[[{name}]]`: {first[0].lower()}{first[1:]}"


def _fields(model: type[FileSection]) -> str:
    """The fields in a list, without a kind of one value, which the heading has."""
    own = {name: field for name, field in own_fields(model).items() if not _of_one_value(field.annotation)}
    return "\n".join(item(model, name, field) for name, field in own.items())


def _of_one_value(annotation: object) -> bool:
    return get_origin(annotation) is Literal and len(get_args(annotation)) == 1


def groups() -> dict[type[WorkloadSection], list[str]]:
    """The classes that several kinds share, the most general first, each with the kinds that have its fields."""
    shared: dict[type[WorkloadSection], list[str]] = {WorkloadSection: list(KINDS)}
    for kind, model in KINDS.items():
        for base in reversed(model.__mro__[1:]):
            if base is not WorkloadSection and issubclass(base, WorkloadSection) and own_fields(base):
                shared.setdefault(base, []).append(kind)
    return shared


def _kinds_words(kinds: list[str]) -> str:
    return "All kinds" if len(kinds) == len(KINDS) else ", ".join(f"`{kind}`" for kind in kinds)


def _bound(model: type[WorkloadSection]) -> str:
    """The words on a run's end and its verdicts; where the metric depends on other fields, the page has to say it."""
    amount = f"`{model.AMOUNT}`" if model.AMOUNT.isidentifier() else "what it does" if model.AMOUNT else "its data"
    duration = " or `duration`" if "duration" in model.model_fields else ""
    verdicts = f" Verdicts: `{model.METRIC}`." if model.metric is WorkloadSection.metric else ""
    return f"Bounded by {amount}{duration}.{verdicts}\n"


def _nothing() -> list[str]:
    return []


def _tunables() -> list[str]:
    rows = [f"| `{name}` | {', '.join(f'`{one}`' for one in known)} |" for name, known in TUNABLES.items() if known]
    return ["### `[queue.iosched]`: the scheduler's own\n", "| scheduler | tunables |\n|---|---|", *rows, ""]


def _filesystems() -> list[str]:
    rows = []
    for kind in FILESYSTEMS.values():
        flags = sorted({*kind.flags, *kind.flags_alone})
        given = f"`{' '.join(flags)}`" if flags else "none"
        mount = "yes" if kind.mountable else "no: its properties are in `mkfs`"
        rows.append(f"| `{kind.name}` | {format_bytes(kind.size_min)} | {given} | {mount} |")
    head = "| filesystem | least size | flags of mkfs that a study may give | `mount` |\n|---|---|---|---|"
    return [head, *rows, "", *_options(), ""]


def _options() -> Iterator[str]:
    yield "Inside a flag, and to `mount`, a study may give these; `#` is a number or a size, a bar separates words.\n"
    yield f"- any filesystem's `mount`: `{' '.join(sorted(ANY_MOUNT))}`"
    told = set()
    for kind in (*FILESYSTEMS.values(), OPENZFS):
        parts = [
            f"`{flag}` `{' '.join(sorted(known))}`"
            for flag, known in kind.flags.items()
            if isinstance(known, frozenset)
        ]
        parts += [f"`mount` `{' '.join(sorted(kind.mount_options))}`"] if kind.mount_options else []
        told_of = "; ".join(parts)
        if told_of and told_of not in told:
            alike = [f"`{one.name}`" for one in FILESYSTEMS.values() if _same(one, kind)]
            alike = alike or [f"`{kind.name}` in a virtual machine"]
            yield f"- {', '.join(alike)}: {told_of}"
        told.add(told_of)


def _same(one: Kind, other: Kind) -> bool:
    return one.flags == other.flags and one.mount_options == other.mount_options


def _metrics() -> Iterator[str]:
    yield "## Metrics\n\nNames say the unit."
    for heading, more in (("More is better", True), ("Less is better", False)):
        these = [one for one in METRICS.values() if one.more_is_better is more]
        plain = [f"`{one.name}`" for one in these if _named_by(one.name) >= set(one.words.lower().split())]
        yield f"\n{heading}:\n"
        yield filled(f"- {', '.join(plain)}")
        yield from (f"- `{one.name}`: {one.words}" for one in these if f"`{one.name}`" not in plain)


def _named_by(name: str) -> set[str]:
    """The words that a metric's name says, with those that join them."""
    parts = name.split("_")
    return {*parts, "a", "the", "in", "of", "time", "at", *(word for part in parts for word in _SAYS.get(part, ()))}


# What a part of a metric's name says.
_SAYS = {
    "max": ("largest",),
    "megabytes": ("mb",),
    "p50": ("median",),
    "p95": ("95th", "percentile"),
    "p99": ("99th", "percentile"),
    "p999": ("99.9th", "percentile"),
}
_AFTER = {"queue": _tunables, "filesystem": _filesystems}
