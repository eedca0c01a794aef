"""JSON objects on one line with a checksum of their own, so that a line that was changed is known from a whole one."""

import json
import re
import zlib
from collections.abc import Mapping

SEAL = re.compile(rb', "sum": "([0-9a-f]{8})"\}')


def sealed(fields: Mapping[str, object]) -> bytes:
    """Return the object as a line, with its checksum as the last field and its line end."""
    body = json.dumps(fields).encode()[:-1]
    return body + b', "sum": "%08x"}\n' % zlib.crc32(body)


def is_sealed(line: bytes) -> bool:
    """Return whether a line, without its end, is as ``sealed`` wrote it."""
    end = SEAL.search(line, max(0, len(line) - 20))
    return bool(end and end.end() == len(line) and zlib.crc32(line[: end.start()]) == int(end[1], 16))
