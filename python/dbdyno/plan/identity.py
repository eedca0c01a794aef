"""What prepared data depends on: treatments of the same key start from the same bytes."""

import hashlib
import json

from dbdyno.study.rules import is_emulated
from dbdyno.study.schema import TrialSpec

# The fields of the workload that shape its data; the others only shape the load.
DATA_FIELDS = {"kind", "int_cols", "char_cols", "autoincrement", "guid_primary", "secondary_indexes", "initial_rows"}


def image_key(spec: TrialSpec, server: str) -> str:
    """Names the prepared data of a treatment; ``server`` identifies the build. The drive's model is not among it."""
    stack = spec.stack
    emulated = is_emulated(stack.device)
    what = {
        "place": stack.size if emulated else "tree",
        "filesystem": [stack.filesystem, spec.filesystem.mkfs, spec.filesystem.mount] if emulated else None,
        "server": server,
        "settings": dict(spec.server.settings),
        "engine": stack.engine,
        "data": spec.workload.model_dump(include=DATA_FIELDS),
    }
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()
