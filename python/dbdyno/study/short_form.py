"""A study from ``FIELD=LEVEL,LEVEL`` on a command line, as the text of a study file that can be kept."""

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from dbdyno.errors import UserError
from dbdyno.model.wording import listed
from dbdyno.study.drives import device_kind
from dbdyno.study.schema import FilesystemSection, HostSection, QueueSection, ServerSection, StackSection
from dbdyno.study.toml_text import written
from dbdyno.study.workload_section import WorkloadSection
from dbdyno.study.workloads import KINDS

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
