"""What stands in a shared result for a text that may not leave its machine: a number, or its version alone."""

import re

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
