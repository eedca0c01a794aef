"""How btrfs lays data and metadata out over its devices, as its own tool tells it."""

import re
from collections.abc import Mapping
from pathlib import Path

from dbdyno.errors import TrialError
from dbdyno.filesystems.btrfs import asked_profiles
from dbdyno.stack.tools import run_tool

_LINE = re.compile(r"^([A-Za-z+]+), ([A-Za-z0-9]+): total=", re.MULTILINE)  # Data, RAID0: total=..., used=...
_RESERVE = "globalreserve"  # part of the metadata


def observed_profiles(directory: Path) -> dict[str, str]:
    """The profile of each kind of block: ``{"data": "raid0", "system": "raid1", "metadata": "raid1"}``."""
    return profiles_in(run_tool(["btrfs", "filesystem", "df", str(directory)]))


def profiles_in(said: str) -> dict[str, str]:
    """What ``btrfs filesystem df`` said; a kind of block that lies in several ways, joined by ``+``."""
    found: dict[str, list[str]] = {}
    for kind, profile in _LINE.findall(said):
        if kind.lower() != _RESERVE:
            found.setdefault(kind.lower(), []).append(profile.lower())
    return {kind: "+".join(profiles) for kind, profiles in found.items()}


def check_profiles(mkfs: str, observed: Mapping[str, str]) -> None:
    """Raises ``TrialError`` where a profile that was asked for is not the one there is."""
    for kind, asked in asked_profiles(mkfs).items():
        taken = observed.get(kind, observed.get("data+metadata"))  # which --mixed puts together
        if taken != asked:
            raise TrialError(f"btrfs profile of {kind}: asked for {asked}, it is {taken}")
