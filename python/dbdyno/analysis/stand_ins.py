"""What stands in a shared result for a text that may not leave its machine, and facts of two runs in spite of that.

A stand-in is a number, or the version that the text begins with.
"""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from dbdyno.store.records import Run

Name = TypeVar("Name", str, tuple[str, str])
VERSION = re.compile(r"(\d{1,4}\.\d{1,4}(?:\.\d{1,4})?(?:-\d{1,4})?)(?![.\w:/])")  # at the beginning of a text
_STAND_IN = re.compile(r"(?:name|host)-\d+")
_NUMBER = re.compile(r" \(\d+\)")  # behind a version, where two texts have the same


def numbered(kind: str, version: str, number: int) -> str:
    """Return the stand-in with a number: of a ``kind``, "name" or "host", or behind a version where there is one."""
    return f"{version} ({number})" if version else f"{kind}-{number}"


def has_stand_in(text: str) -> bool:
    """Whether a text holds the stand-in of a name."""
    return bool(_STAND_IN.search(text))


def may_stand_for(shared: object, text: object) -> bool:
    """Whether a value of a shared result may be what became of a ``text`` when it was shared."""
    if not (isinstance(shared, str) and isinstance(text, str)):
        if isinstance(shared, list | tuple) and isinstance(text, list | tuple) and len(shared) == len(text):
            return all(map(may_stand_for, shared, text))
        return bool(shared == text)
    if shared == text or _STAND_IN.fullmatch(shared):
        return True
    version = VERSION.match(text)
    if version and version[1] == _NUMBER.sub("", shared):
        return True
    parts, own = (re.split(r"(, | / | of )", side) for side in (shared, text))
    return len(parts) == len(own) > 1 and all(map(may_stand_for, parts, own))


def in_common_words(
    before: Run, after: Run, old: Mapping[Name, Any], new: Mapping[Name, Any]
) -> tuple[dict[Name, Any], dict[Name, Any]]:
    """Return facts of two runs by name so that only those differ that are known to.

    Where one run alone was shared and imported, names and parts of versions were taken out of its facts: what it does
    not have is left out of the other's, and what may be the same gets the other's words.
    """
    if before.imported == after.imported:
        return dict(old), dict(new)
    if before.imported:
        own, shared = in_common_words(after, before, new, old)
        return shared, own
    shared = {name: value for name, value in new.items() if name in old or not has_stand_in(str(name))}
    return (
        {name: value for name, value in old.items() if name in shared},
        {name: old[name] if may_stand_for(value, old.get(name)) else value for name, value in shared.items()},
    )
