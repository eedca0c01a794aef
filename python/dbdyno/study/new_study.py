"""A study for a person to go on with: from a few answers, or from the option file of a server."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from dbdyno.errors import UserError
from dbdyno.model.wording import listed
from dbdyno.study.drives import device_kind, is_emulated
from dbdyno.study.levels import NAME_CHARACTERS_MAX, SETTINGS
from dbdyno.study.option_file import Options
from dbdyno.study.rules import LOAD
from dbdyno.study.schema import FilesystemSection, HostSection, QueueSection, ServerSection, StackSection
from dbdyno.study.section import WorkloadSection
from dbdyno.study.server_url import is_url
from dbdyno.study.workloads import KINDS, GeneratedSection

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
MARGIN = "3%"
SIZE, FILESYSTEM = "2GiB", "ext4"  # of a disk that is made for the study
# Commas between levels are those outside of brackets and quotes: "raid1(hdd-15k, 2)" is one level.
_LEVEL = re.compile(r'(?:"[^"]*"|\([^()]*\)|[^,"()])+')
_SECTIONS: dict[str, type[BaseModel]] = {
    "stack": StackSection,
    "queue": QueueSection,
    "filesystem": FilesystemSection,
    "server": ServerSection,
    "host": HostSection,
}


def study_text(fields: Sequence[str], workload: Mapping[str, Any], *, blocks: int = BLOCKS) -> str:
    """Return a study of these fields; one of several levels is a factor. Its own checks come when it is loaded.

    Raises:
        UserError: A field is not of the form ``FIELD=LEVEL``, is given twice, or is misspelled.

    """
    kind = KINDS.get(str(workload.get("kind")))
    if kind is None:
        raise UserError(f"--kind {workload.get('kind')} is no kind of load; there are {listed(sorted(KINDS))}")
    sections: dict[str, dict[str, Any]] = {"stack": {}, "workload": dict(workload)}
    factors = put(sections, fields, kind)
    if not factors:
        raise UserError(
            "give a field with levels to compare, as in: dbdyno try scheduler=none,mq-deadline --load write"
        )
    stack = sections["stack"]
    if "device" not in stack:
        raise UserError("say what to stand on, as in device=hdd-7200 (emulated), device=here or device=/dev/sdb")
    complete(stack)
    return _text(sections, factors, blocks)


def put(
    sections: dict[str, dict[str, Any]], fields: Sequence[str], kind: type[WorkloadSection]
) -> list[tuple[str, list[Any]]]:
    """Put fields into their sections; return those of several levels. Raises ``UserError`` as above."""
    factors, given_at = [], set()
    for given in fields:
        name, levels = _field(given)
        section, field = _place(name, kind)
        if (section, field) in given_at:
            raise UserError(f"{name} is given twice")
        given_at.add((section, field))
        sections.setdefault(section, {})[field] = levels if len(levels) > 1 else levels[0]
        factors += [(name, levels)] if len(levels) > 1 else []
    return factors


def complete(stack: dict[str, Any]) -> None:
    """Add to a stack that has a device the size and the filesystem that its kind needs."""
    devices = stack["device"] if isinstance(stack["device"], list) else [stack["device"]]
    kinds = {device_kind(str(device)) for device in devices}
    if "emulated" in kinds:
        stack.setdefault("size", SIZE)
    if kinds <= {"emulated", "real"}:
        stack.setdefault("filesystem", FILESYSTEM)


def _field(given: str) -> tuple[str, list[Any]]:
    name, equals, text = given.partition("=")
    levels = [_level(level.strip()) for level in _LEVEL.findall(text)]
    if not (name and equals and levels):
        raise UserError(f"{given!r} is not FIELD=LEVEL,LEVEL..., as in scheduler=none,mq-deadline")
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
        raise UserError(f'{name} is no field of a study. Did you mean "{near[0]}"?')
    return "server.settings", name


def _text(sections: Mapping[str, Mapping[str, Any]], factors: Sequence[tuple[str, Sequence[Any]]], blocks: int) -> str:
    title = "; ".join(f"{name}: {' or '.join(map(str, levels))}" for name, levels in factors)
    design: dict[str, Any] = {"compare": "one-factor", "blocks": blocks, "margin": MARGIN}
    tables = {"study": {"title": title}, **sections, "design": design}
    return written({tuple(name.split(".")): table for name, table in tables.items()})


DEFAULTS = "defaults"
KIND = "slap"

_REMARKS: dict[Path_, str] = {
    ("stack", "device"): '"here": a folder on this disk; or "ssd-sata", ... (dbdyno disk models); or a disk',
    ("stack", "size"): "of the disk that is emulated, in memory",
    ("stack", "server"): "dbdyno servers lists what there is",
    ("workload", "kind"): "docs/workloads.md has them all",
    ("workload", "duration"): "of a trial; longer ones differ less",
    ("design", "blocks"): "how often each treatment is measured",
    ("crash", "cuts"): "of each treatment; none lost of 59 shows at most 5 %, of 300 at most 1 %",
    ("crash", "mode"): "the server alone is killed: only an emulated drive can lose its power",
    ("design", "margin"): "differences smaller than this don't matter to you",
}


@dataclass(frozen=True)
class Asked:
    """What a study is asked to have."""

    vary: Sequence[str] = ()  # FIELD=LEVEL,LEVEL
    device: str = "here"
    server: str = "mariadb"
    kind: str = KIND
    load: str | None = None
    clients: int = 8
    duration: str = "5s"
    blocks: int = BLOCKS
    cuts: int | None = None  # power cuts of each treatment, or kills of the server: a study of what they lose


def new_study(asked: Asked, options: Options | None = None, source: str = "") -> str:
    """Return the text of the study; ``options`` are those of an option file, which is called ``source``.

    With nothing to vary, what the file says is compared as a whole with the server's defaults. Raises ``UserError``.
    """
    if not source.isprintable() or "/" in source or len(source) > NAME_CHARACTERS_MAX // 2:
        source = "the file"
    kind = _kind_of(asked)
    load = KINDS.get(kind)
    if load is None or not _writable(load):
        able = listed(sorted(name for name, kind in KINDS.items() if _writable(kind)))
        raise UserError(f"--kind {asked.kind} is no load that dbdyno new can write; it can write {able}")
    if asked.load and "load" not in load.model_fields:
        raise UserError(f"--load is not for --kind {kind}, which has one load only")
    if is_url(asked.server):
        raise UserError("--server is an external server, whose settings are its own; see docs/servers.md")
    sections: dict[str, dict[str, Any]] = {"stack": {"device": asked.device, "server": asked.server}}
    if options and asked.vary:
        sections[".".join(SETTINGS)] = dict(options.settings)
    what = {"load": asked.load} if asked.load else {}
    sections["workload"] = {"kind": kind, **what, "clients": asked.clients, "duration": asked.duration}
    factors = put(sections, asked.vary, load)
    complete(sections["stack"])
    if not factors and not (options and not asked.vary):
        raise UserError("nothing varies; give a field with levels to compare, as in scheduler=none,mq-deadline")
    levels = {} if asked.vary or not options else _levels(options, source)
    title = f"{source} against the server's defaults" if levels else " and ".join(f"which {n}" for n, _ in factors)
    about = {"title": title if levels else title[:1].upper() + title[1:]}
    design: dict[str, Any] = {"baseline": {"configuration": DEFAULTS}} if levels else {"compare": "one-factor"}
    tables: dict[Path_, dict[str, Any]] = {("study",): about}
    tables |= {tuple(name.split(".")): table for name, table in sections.items() if name != "workload"}
    tables |= levels | {("workload",): sections["workload"], ("design",): design}
    if asked.cuts is None:
        design |= {"blocks": asked.blocks, "margin": MARGIN}
    else:
        tables["crash",] = {**_mode(sections["stack"]["device"]), "cuts": asked.cuts}
    return written(tables, _REMARKS | _of_levels(levels), list(_head(options, source)))


def _kind_of(asked: Asked) -> str:
    """The kind of load: of what cuts lose only one kind knows. Raises ``UserError`` where another is asked for."""
    if asked.cuts is None:
        return asked.kind
    if asked.kind not in {KIND, LOAD}:
        raise UserError(f"--cuts is for --kind {LOAD}, which alone knows what was acknowledged; leave out --kind")
    return LOAD


def _mode(device: object) -> dict[str, str]:
    """How it is cut: a device that is not emulated keeps its power."""
    each = device if isinstance(device, list) else [device]
    return {} if all(is_emulated(str(one)) for one in each) else {"mode": "kill"}


def _writable(kind: type[WorkloadSection]) -> bool:
    """Whether a load needs no more than clients and a duration."""
    needed = {name for name, field in kind.model_fields.items() if field.is_required()} - {"kind"}
    return issubclass(kind, GeneratedSection) and not needed and {"clients", "duration"} <= kind.model_fields.keys()


def _levels(options: Options, source: str) -> dict[Path_, dict[str, Any]]:
    return {("levels", DEFAULTS): {}, ("levels", f"as in {source}", *SETTINGS): dict(options.settings)}


def _of_levels(levels: dict[Path_, dict[str, Any]]) -> dict[Path_, str]:
    said = ("Nothing is set here: all is as the server itself has it.", "All that the file sets, together.")
    return dict(zip(levels, said, strict=False))


def _head(options: Options | None, source: str) -> Iterator[str]:
    yield f"Written by dbdyno new{f' from {source}' if options else ''}: change it as you like."
    yield "dbdyno plan FILE shows what it would do, dbdyno run FILE does it; docs/study-file.md explains the fields."
    yield 'Before you run it, add to [study]: expect = "...", what you expect to see.'
    if options and options.changed:
        yield "Other than written there, as the server takes it:"
        yield from (f"  {one.place} {one.name}: {one.reason}" for one in options.changed.values())
    if options and options.left_out:
        yield "Left out, as a study can't or need not have it:"
        yield from (f"  {one.place} {one.name}: {one.reason}" for one in options.left_out)
