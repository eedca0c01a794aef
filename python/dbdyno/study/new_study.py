"""A study for a person to go on with: from a few answers, or from the option file of a server."""

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from dbdyno.errors import UserError
from dbdyno.model.similar import did_you_mean
from dbdyno.model.wording import listed
from dbdyno.mysql.my_cnf import Options
from dbdyno.mysql.server_url import is_url
from dbdyno.mysql.settings import DISTRIBUTION
from dbdyno.study.defaults import DEFAULT_MARGIN
from dbdyno.study.document import Setting, WorkloadSection
from dbdyno.study.drives import device_kind, is_emulated
from dbdyno.study.levels import NAME_CHARACTERS_MAX, SETTINGS
from dbdyno.study.rules import LOAD
from dbdyno.study.schema import (
    ArraySection,
    CacheSection,
    EncryptionSection,
    FilesystemSection,
    HostSection,
    QueueSection,
    ServerSection,
    StackSection,
    VolumeSection,
)
from dbdyno.study.study import with_files
from dbdyno.study.workloads import KINDS

if TYPE_CHECKING:
    from tomlkit.items import InlineTable


# The text of a study file that dbdyno writes for a person to read and change: sections in order, with comments.


Path_ = tuple[str, ...]


def written(
    sections: Mapping[Path_, Mapping[str, Any]],
    remarks: Mapping[Path_, str] | None = None,
    head: Sequence[str] = (),
) -> str:
    """Return the text of a study: its sections by their paths, such as ``("server", "settings")``.

    ``remarks`` are comments of one line: beside a field, by ``(*section, field)``, or above a section, by its path.
    ``head`` stands above everything.
    """
    import tomlkit

    remarks = remarks or {}
    document = tomlkit.document()
    for line in head:
        document.add(tomlkit.comment(line))
    document.add("version", tomlkit.item(1))
    parts = [tomlkit.dumps(document)]
    for path, fields in sections.items():
        table = tomlkit.table()
        for name, value in fields.items():
            table.add(name, _in_a_line(value) if isinstance(value, Mapping) else value)
            if remark := remarks.get((*path, name)):
                table[name].comment(remark)
        for outer in reversed(path[1:]):
            inner, table = table, tomlkit.table(is_super_table=True)
            table.add(outer, inner)
        # A document of its own for each: so they stand in this order, whatever is nested in what.
        above = f"# {remarks[path]}\n" if path in remarks else ""
        parts.append(above + tomlkit.dumps({path[0]: table}).lstrip("\n"))
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _in_a_line(fields: Mapping[str, Any]) -> "InlineTable":
    from tomlkit import inline_table

    table = inline_table()
    table.update(fields)
    return table


# A study from ``FIELD=LEVEL,LEVEL`` on a command line, as the text of a study file that can be kept.


BLOCKS = 8
DURATION = "5s"
MARGIN = f"{DEFAULT_MARGIN:.0%}"
_RECORDED = ("replay-log", "trace")  # kinds that replay a recording, which has its own clients and its own end
SIZE, FILESYSTEM = "2GiB", "ext4"  # of a disk that is made for the study
# Commas between levels are those outside of brackets and quotes: "raid1(hdd-15k, 2)" is one level.
_LEVEL = re.compile(r'(?:"[^"]*"|\([^()]*\)|[^,"()])+')
_SECTIONS: dict[str, type[BaseModel]] = {
    "stack": StackSection,
    "queue": QueueSection,
    "array": ArraySection,
    "cache": CacheSection,
    "encryption": EncryptionSection,
    "volume": VolumeSection,
    "filesystem": FilesystemSection,
    "server": ServerSection,
    "host": HostSection,
}


def study_text(
    fields: Sequence[str], workload: Mapping[str, Any], folder: Path = Path(), *, blocks: int = BLOCKS
) -> str:
    """Return a study of these fields; one of several levels is a factor. Its own checks come when it is loaded.

    Files that are named stand beside the user; ``folder`` is where the study will stand.

    Raises:
        UserError: A field is not of the form ``FIELD=LEVEL``, is given twice, or is misspelled.

    """
    kind = _load_called(str(workload.get("kind")))
    sections: dict[str, dict[str, Any]] = {"stack": {}, "workload": dict(workload)}
    factors = put(sections, fields, kind)
    if not factors:
        raise UserError("give a field with levels to compare, as in: dbdyno try device=hdd-7200,ssd-sata --load write")
    _check_fields(kind, sections["workload"], "FIELD=VALUE")
    stack = sections["stack"]
    if "device" not in stack and not _is_external(stack):
        raise UserError(
            "choose a device: device=here (a folder on this disk) or device=ssd-sata (emulated); or name a server "
            "that runs: server=mysql://USER@HOST/DATABASE"
        )
    complete(stack)
    if "duration" not in unasked_fields(kind.named(), sections["workload"]):
        sections["workload"].setdefault("duration", DURATION)
    return _text(_paths_from(sections, folder), factors, blocks)


def _load_called(name: str) -> type[WorkloadSection]:
    if name not in KINDS:
        known = f"there are {listed(sorted(KINDS))}{did_you_mean(name, KINDS)}"
        raise UserError(f"--kind {name} is not a kind of load; {known}")
    return KINDS[name]


def _check_fields(kind: type[WorkloadSection], fields: Mapping[str, Any], flag: str) -> None:
    """Raise ``UserError`` where the load needs a field that was not given; ``flag`` is how a field is given."""
    for name in missing_fields(kind.named(), fields):
        example = {"file": "file=slow.log"}.get(name, f"{name}=...")
        raise UserError(f"--kind {kind.named()} needs {name}; give {flag.replace('FIELD=VALUE', example)}")


def missing_fields(kind: str, fields_set: Iterable[str] = ()) -> list[str]:
    """The fields without which there is no load of this kind, but for those that are given."""
    fields = KINDS[kind].model_fields if kind in KINDS else {}
    return [name for name, field in fields.items() if field.is_required() and name not in {"kind", *fields_set}]


def unasked_fields(kind: str, fields_set: Iterable[str] = ()) -> set[str]:
    """The usual fields that a load of this kind has not: of ``load``, ``clients``, ``duration`` and ``server``.

    ``fields_set`` are fields of the load that are set: a job file of fio has its own duration.
    """
    load = KINDS[kind]
    absent = {name for name in ("load", "clients", "duration") if name not in load.model_fields}
    absent |= {"clients", "duration"} if kind in _RECORDED or "job" in fields_set else set()
    absent |= {"clients"} if kind == "bulk" else set()  # which fills each table by one
    return absent | ({"server"} if load.SERVER == "none" else set())


def _is_external(stack: Mapping[str, Any]) -> bool:
    servers = stack.get("server", "")
    return all(is_url(str(server)) for server in (servers if isinstance(servers, list) else [servers]))


def _paths_from(sections: dict[str, dict[str, Any]], folder: Path) -> dict[str, dict[str, Any]]:
    """The sections with files that the user names from here as a study in ``folder`` names them."""
    start = os.path.realpath(folder)

    def path(name: str) -> str:
        return name if name.startswith("/") else os.path.relpath(os.path.realpath(name), start)

    try:
        return with_files(sections, path)
    except ValueError:  # no path, or a command with an open quote: the study's own checks say so
        return sections


def put(
    sections: dict[str, dict[str, Any]], fields: Sequence[str], kind: type[WorkloadSection]
) -> list[tuple[str, list[Any]]]:
    """Put fields into their sections; return those of several levels. Raises ``UserError`` as above."""
    factors, given_at = [], set()
    for assignment in fields:
        name, levels = _field(assignment)
        section, field = _place(name, kind)
        if (section, field) in given_at:
            raise UserError(f"{name} is given twice")
        given_at.add((section, field))
        sections.setdefault(section, {})[field] = levels if len(levels) > 1 else levels[0]
        factors += [(name, levels)] if len(levels) > 1 else []
    return factors


def complete(stack: dict[str, Any]) -> None:
    """Add to a stack that has a device the size and the filesystem that its kind needs."""
    if "device" not in stack:
        return
    devices = stack["device"] if isinstance(stack["device"], list) else [stack["device"]]
    kinds = {device_kind(str(device)) for device in devices}
    if "emulated" in kinds:
        stack.setdefault("size", SIZE)
    if kinds <= {"emulated", "real"}:
        stack.setdefault("filesystem", FILESYSTEM)


def varies(assignment: str, setting: str, level: Setting) -> bool:
    """Whether ``FIELD=LEVEL,LEVEL`` gives a setting of the server that level."""
    name, levels = _field(assignment)
    return name.rpartition(".")[2] == setting and level in levels


def without_level(assignment: str, setting: str, level: Setting) -> str:
    """Return ``FIELD=LEVEL,LEVEL`` without that level of a setting of the server; empty if none is left."""
    if not varies(assignment, setting, level):
        return assignment
    name, equals, text = assignment.partition("=")
    left = [level_text for level_text in map(str.strip, _LEVEL.findall(text)) if _level(level_text) != level]
    return f"{name}{equals}{','.join(left)}" if left else ""


def _field(assignment: str) -> tuple[str, list[Any]]:
    name, equals, text = assignment.partition("=")
    levels = [_level(level.strip()) for level in _LEVEL.findall(text)]
    if not (name and equals and levels):
        raise UserError(f"{assignment!r} is not FIELD=LEVEL,LEVEL..., as in scheduler=none,mq-deadline")
    return name, levels


def _level(text: str) -> Any:  # noqa: ANN401 - a level is text, a number or a truth
    """Return a level as TOML would have it: whole numbers and truths as such, all else as text."""
    if text in {"true", "false"}:
        return text == "true"
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else text.removeprefix('"').removesuffix('"')


def _place(name: str, kind: type[WorkloadSection]) -> tuple[str, str]:
    """Return the section of a field; what no section has is a variable of the server, but for a slip of the pen."""
    section, dot, field = name.rpartition(".")
    if dot:
        return section, field
    homes = {**_SECTIONS, "workload": kind}
    for section, model in homes.items():
        if name in model.model_fields:
            return section, name
    known = [field for model in homes.values() for field in model.model_fields]
    if near := difflib.get_close_matches(name, known, n=1, cutoff=0.75):
        raise UserError(f"{name} is not a field of a study{did_you_mean(name, near)}")
    return "server.settings", name


def _text(sections: Mapping[str, Mapping[str, Any]], factors: Sequence[tuple[str, Sequence[Any]]], blocks: int) -> str:
    title = "; ".join(f"{name}: {' or '.join(map(str, levels))}" for name, levels in factors)
    design: dict[str, Any] = {"compare": "one-factor", "blocks": blocks, "margin": MARGIN}
    tables = {"study": {"title": title}, **sections, "design": design}
    return written({tuple(name.split(".")): table for name, table in tables.items()})


DEFAULTS = "defaults"
KIND = "slap"
CLIENTS = 8

_REMARKS: dict[Path_, str] = {
    ("stack", "device"): '"here": a folder on this disk; or "ssd-sata", ... (dbdyno disk models); or a disk',
    ("stack", "size"): "size of the emulated disk, which is in memory",
    ("stack", "server"): "dbdyno servers lists the servers",
    ("workload", "kind"): "docs/workloads.md lists all kinds",
    ("workload", "duration"): "how long a trial is measured; longer trials differ less",
    ("design", "blocks"): "how often each treatment is measured",
    ("crash", "cuts"): "cuts of each treatment; no loss in 59 shows at most 5 %, in 300 at most 1 %",
    ("crash", "mode"): "the server alone is killed: only an emulated drive can lose its power",
    ("design", "margin"): "differences smaller than this don't matter to you",
}


@dataclass(frozen=True)
class NewStudyRequest:
    """What a study is asked to have."""

    vary: Sequence[str] = ()  # FIELD=LEVEL,LEVEL
    device: str | None = None  # None: "here", unless the server is an external one
    server: str = DISTRIBUTION
    kind: str = KIND
    load: str | None = None
    clients: int | None = None  # None: as a load of its kind usually has them; likewise the duration
    duration: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)  # further ones of the load
    blocks: int = BLOCKS
    cuts: int | None = None  # power cuts of each treatment, or kills of the server: a study of what they lose


class NothingToVaryError(UserError):
    """No field has levels to compare: what is to vary has to be said again, and nothing else."""


def check_request(request: NewStudyRequest, *, has_options: bool = False) -> type[WorkloadSection]:
    """Return the load that is asked for. Raises ``UserError`` where no answer to a question could mend the request."""
    load = _load_called(_kind_of(request))
    kind = load.named()
    for name in ("load", "clients", "duration"):
        if getattr(request, name) and name not in load.model_fields:
            raise UserError(f"--{name} is not for --kind {kind}, which has no such field; leave it out")
    if has_options and is_url(request.server):
        raise UserError(
            "--from is for a server that dbdyno starts; an external server keeps its options: leave out --from or "
            "--server"
        )
    if has_options and load.SERVER == "none":
        raise UserError(f"--from is for loads of a server; --kind {kind} uses none: leave out --from or --kind")
    return load


def new_study(request: NewStudyRequest, options: Options | None = None, source: str = "", folder: Path = Path()) -> str:
    """Return the text of the study; ``options`` are those of an option file, which is called ``source``.

    With nothing to vary, what the file says is compared as a whole with the server's defaults. Files that are named
    stand beside the user; ``folder`` is where the study will stand. Raises ``UserError``.
    """
    if not source.isprintable() or "/" in source or len(source) > NAME_CHARACTERS_MAX // 2:
        source = "the file"
    load = check_request(request, has_options=options is not None)
    sections: dict[str, dict[str, Any]] = {"stack": _stack(request, load)}
    if options and request.vary:
        sections[".".join(SETTINGS)] = dict(options.settings)
    sections["workload"] = {"kind": load.named(), **_load_fields(request, load)}
    factors = put(sections, request.vary, load)
    _check_fields(load, sections["workload"], "--vary FIELD=VALUE")
    complete(sections["stack"])
    if not factors and not (options and not request.vary):
        raise NothingToVaryError(
            "nothing varies; give a field with levels to compare, as in scheduler=none,mq-deadline"
        )
    sections = _paths_from(sections, folder)
    levels = {} if request.vary or not options else _levels(options, source)
    title = f"{source} against the server's defaults" if levels else " and ".join(f"which {n}" for n, _ in factors)
    about = {"title": title if levels else title[:1].upper() + title[1:]}
    design: dict[str, Any] = {"baseline": {"configuration": DEFAULTS}} if levels else {"compare": "one-factor"}
    tables: dict[Path_, dict[str, Any]] = {("study",): about}
    tables |= {tuple(name.split(".")): table for name, table in sections.items() if name != "workload"}
    tables |= levels | {("workload",): sections["workload"], ("design",): design}
    if request.cuts is None:
        design |= {"blocks": request.blocks, "margin": MARGIN}
    else:
        tables["crash",] = {**_mode(sections["stack"].get("device", "")), "cuts": request.cuts}
    return written(tables, _REMARKS | _of_levels(levels), list(_head(options, source)))


def _stack(request: NewStudyRequest, load: type[WorkloadSection]) -> dict[str, Any]:
    """The stack: a device, unless the server is an external one, and a server, where the load uses one."""
    device = {"device": request.device or "here"} if request.device or not is_url(request.server) else {}
    has_server = load.SERVER != "none" or request.server != DISTRIBUTION  # another is written, and refused
    return {**device, **({"server": request.server} if has_server else {})}


def _load_fields(request: NewStudyRequest, load: type[WorkloadSection]) -> dict[str, Any]:
    """What is said of the load beside its kind."""
    fields = {*request.fields, *(name for name, _ in map(_field, request.vary))}
    usual = {"clients": CLIENTS, "duration": DURATION}
    for name in unasked_fields(load.named(), fields):
        usual.pop(name, None)
    values = {"load": request.load, "clients": request.clients, "duration": request.duration}
    load_fields = {name: value for name in values if (value := values[name] or usual.get(name)) is not None}
    return load_fields | dict(request.fields)


def _kind_of(request: NewStudyRequest) -> str:
    """The kind of load: one kind alone knows what cuts lose. Raises ``UserError`` where another is asked for."""
    if request.cuts is None:
        return request.kind
    if request.kind not in {KIND, LOAD}:
        raise UserError(f"--cuts is for --kind {LOAD}, which alone knows what was acknowledged; leave out --kind")
    return LOAD


def _mode(device: object) -> dict[str, str]:
    """How it is cut: a device that is not emulated keeps its power."""
    drives = device if isinstance(device, list) else [device]
    return {} if all(is_emulated(str(drive)) for drive in drives) else {"mode": "kill"}


def _levels(options: Options, source: str) -> dict[Path_, dict[str, Any]]:
    return {("levels", DEFAULTS): {}, ("levels", f"as in {source}", *SETTINGS): dict(options.settings)}


def _of_levels(levels: dict[Path_, dict[str, Any]]) -> dict[Path_, str]:
    comments = ("Nothing is set here: the server has its own defaults.", "All that the file sets, together.")
    return dict(zip(levels, comments, strict=False))


def _head(options: Options | None, source: str) -> Iterator[str]:
    yield f"Written by dbdyno new{f' from {source}' if options else ''}: change it as you like."
    yield "dbdyno plan FILE shows what it would do, dbdyno run FILE does it; docs/study-file.md explains the fields."
    yield 'Before you run it, add to [study]: expect = "...", what you expect to see.'
    if options and options.changed:
        yield "Changed to what the server takes:"
        yield from (f"  {change}" for change in options.changed.values())
    if options and options.left_out:
        yield "Left out, because a study can't or need not set it:"
        yield from (f"  {option}" for option in options.left_out)
