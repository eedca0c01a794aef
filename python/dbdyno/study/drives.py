"""The names of emulated drives in a study: ``hdd-15k``, ``mine.toml``, ``raid1(mine.toml, 2)``."""

import os
import re
from collections.abc import Callable
from pathlib import Path

HERE = "here"
MEMORY = "memory"  # no device at all: a tmpfs
OF_HOST = "the disk of each host"  # no study says so: [hosts.disk] names a real disk for each
NOT_GIVEN = ""  # no study says so: what an external server stands on is its own
# What can be done with a volume or an array of the host's.
A_VOLUME_THERE_IS = (
    "A linear or striped volume of LVM is a real disk, which is erased if it is empty: name it by "
    "/dev/disk/by-id/dm-uuid-LVM-...; of any other volume or array mount a filesystem and give a folder there: "
    'device = "file:/srv/bench"'
)

# A drive file where it is not the whole name: its numbers follow, or it is a member of an array.
_FILE = re.compile(r"[^(),=]+\.toml(?=\s*[(),])")


# A kind of stack before the place that it is to use: ``KIND:PLACE``.
_AT_A_PLACE = re.compile(r"([a-z]+):(?!.*\.toml)(.*)")


def device_kind(device: str) -> str:
    """What a device names: ``here``, ``memory``, KIND of ``KIND:PLACE``, ``real``, ``emulated``; nothing of none."""
    if device in {HERE, MEMORY, NOT_GIVEN}:
        return device
    if device == OF_HOST:
        return "real"
    if match := _AT_A_PLACE.fullmatch(device):
        return match[1]
    path = "/" in device and not device.endswith(".toml") and not _FILE.search(device)
    return "real" if path else "emulated"


def device_place(device: str) -> str:
    """PLACE of a device ``KIND:PLACE``; empty of any other."""
    match = _AT_A_PLACE.fullmatch(device)
    return match[2] if match else ""


def is_emulated(device: str) -> bool:
    """Whether a device is a model rather than a real block device, ``here`` or ``memory``."""
    return device_kind(device) == "emulated"


def is_real(device: str) -> bool:
    """Whether a device is a block device of the host's, however its path is spelled."""
    return device_kind(device) == "real"


def drive_files(device: str) -> list[str]:
    """The paths of drive files in a drive's name."""
    if not is_emulated(device):
        return []
    return [device] if device.endswith(".toml") else [match.strip() for match in _FILE.findall(device)]


def with_drive_files(device: str, name: Callable[[str], str]) -> str:
    """A drive's name with other names for its drive files, each made of its own."""
    if not is_emulated(device):
        return device
    return name(device) if device.endswith(".toml") else _FILE.sub(lambda match: name(match[0].strip()), device)


def resolved_drive(device: str, folder: Path) -> str:
    """A drive's name with its drive files as absolute paths; ``folder`` is where relative ones are looked for."""
    return with_drive_files(device, lambda file: os.path.realpath(folder / file))


def is_base_name(device: str) -> bool:
    """Whether a drive's name is a word that ``dbdyno disk models`` would list, without file, numbers or array."""
    return "(" not in device and not drive_files(device)
