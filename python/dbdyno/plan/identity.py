"""What prepared data depends on: treatments of the same key start from the same bytes."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dbdyno.filesystems import OPENZFS
from dbdyno.model.design import BOOTED
from dbdyno.study.document import Setting, WorkloadSection
from dbdyno.study.schema import StackSection, TrialSpec
from dbdyno.system.files import file_sha256

VERSION = 2  # of how data are prepared; what was kept under another one is not used


def image_key(
    spec: TrialSpec, server: str | None, settings: Mapping[str, Setting], between: Mapping[str, object] | None = None
) -> str:
    """Names the prepared data of a treatment; ``server`` identifies the build, if there is one.

    Of its ``settings`` those on which data may depend; ``between`` is what of the layers between disks and filesystem
    is on the disks. The drive's model is not among it.
    """
    stack = spec.stack
    emulated = stack.model is not None
    what: dict[str, Any] = {
        "version": VERSION,
        "place": [stack.size, stack.devices] if emulated else "tree",
        "filesystem": [_maker(stack), spec.filesystem.mkfs, spec.filesystem.mount] if emulated else None,
        "server": server,
        "settings": dict(settings),
        "engine": stack.engine if server else None,
        "data": _data(spec.workload),
    }
    if emulated and between:
        what["between"] = between
    if beside := {name: _data(load) for name, load in spec.with_own_tables.items()}:
        what["beside"] = beside
    if spec.by_disk:
        what["disks"] = {name: _on_disk(disk) if emulated else None for name, disk in spec.by_disk.items()}
        what["places"] = spec.places
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()


def _maker(stack: StackSection) -> str | None:
    """What made the filesystem: of ZFS there are two, and one can't open the pools of the other."""
    is_openzfs = stack.filesystem == OPENZFS.name and stack.kind == BOOTED
    return "OpenZFS" if is_openzfs else stack.filesystem


def _on_disk(disk: TrialSpec) -> list[object]:
    return [disk.stack.size, disk.stack.filesystem, disk.filesystem.mkfs, disk.filesystem.mount]


def _data(load: WorkloadSection) -> dict[str, Any]:
    """What the workload's data depends on; a file of the user's own goes by its content."""
    fields = load.data()
    files = load.own_files() | load.secret_files()
    return fields | {name: file_sha256(Path(path)) for name, path in files.items() if name in fields}
