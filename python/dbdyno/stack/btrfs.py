"""btrfs on a host: its profiles, as its own tool lists them, and the devices that the kernel has to forget."""

import fcntl
import os
import re
import struct
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from dbdyno.errors import TrialError
from dbdyno.filesystems import mkfs_profiles
from dbdyno.stack.tools import run_tool

_LINE = re.compile(r"^([A-Za-z+]+), ([A-Za-z0-9]+): total=", re.MULTILINE)  # Data, RAID0: total=..., used=...
_RESERVE = "globalreserve"  # part of the metadata
CONTROL = Path("/dev/btrfs-control")
BTRFS_IOC_FORGET_DEV = 0x50009405  # linux/btrfs.h: _IOW(0x94, 5, struct btrfs_ioctl_vol_args)
_VOLUME = struct.Struct("=q4088s")  # struct btrfs_ioctl_vol_args: fd, name


def observed_profiles(directory: Path) -> dict[str, str]:
    """The profile of each kind of block: ``{"data": "raid0", "system": "raid1", "metadata": "raid1"}``."""
    return profiles_in(run_tool(["btrfs", "filesystem", "df", str(directory)]))


def profiles_in(listing: str) -> dict[str, str]:
    """What ``btrfs filesystem df`` said; a kind of block that lies in several ways, joined by ``+``."""
    profiles_of: dict[str, list[str]] = {}
    for kind, profile in _LINE.findall(listing):
        if kind.lower() != _RESERVE:
            profiles_of.setdefault(kind.lower(), []).append(profile.lower())
    return {kind: "+".join(profiles) for kind, profiles in profiles_of.items()}


def check_profiles(mkfs: str, observed: Mapping[str, str]) -> None:
    """Raises ``TrialError`` where a profile that was asked for is not the one there is."""
    for kind, profile in mkfs_profiles(mkfs).items():
        observed_profile = observed.get(kind, observed.get("data+metadata"))  # which --mixed puts together
        if observed_profile != profile:
            raise TrialError(f"btrfs profile of {kind}: asked for {profile}, it is {observed_profile}")


def forget_device(path: Path) -> None:
    """Have the kernel forget a device that no mounted filesystem uses; without btrfs there is nothing to forget.

    It keeps a list of the devices of every filesystem of several, also of those no longer mounted. Were a disk set back
    to an earlier state while it is on that list, the kernel would take it for a stale copy and not mount it.
    """
    with suppress(OSError):  # no btrfs here, or not one of its devices; one in use stays known
        control = os.open(CONTROL, os.O_RDWR | os.O_CLOEXEC)
        try:
            # As it is changeable, any length will do: Python copies no more than 1 KiB of plain bytes.
            fcntl.ioctl(control, BTRFS_IOC_FORGET_DEV, bytearray(_VOLUME.pack(0, os.fsencode(path))))
        finally:
            os.close(control)
