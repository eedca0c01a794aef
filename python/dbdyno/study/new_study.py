"""A study for a person to go on with: from a few answers, or from the option file of a server."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.errors import UserError
from dbdyno.model.wording import listed
from dbdyno.study.crash_rules import LOAD
from dbdyno.study.drives import is_emulated
from dbdyno.study.levels import NAME_CHARACTERS_MAX, SETTINGS
from dbdyno.study.option_file import Options
from dbdyno.study.server_url import is_url
from dbdyno.study.short_form import BLOCKS, MARGIN, complete, put
from dbdyno.study.toml_text import Path_, written
from dbdyno.study.workload_section import WorkloadSection
from dbdyno.study.workloads import KINDS, GeneratedSection

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
