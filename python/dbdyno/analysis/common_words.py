"""Facts of two runs, one of which was shared without names, in words that can be compared."""

from collections.abc import Mapping
from typing import Any, TypeVar

from dbdyno.model.stand_in import has_stand_in, may_stand_for
from dbdyno.store.records import Run

Name = TypeVar("Name", str, tuple[str, str])


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
