"""What the kernel remembers of btrfs devices, and has to forget.

It keeps a list of the devices of every filesystem of several, also of those no longer mounted. Were a disk set back to
an earlier state while it is on that list, the kernel would take it for a stale copy and not mount it.
"""

import fcntl
import os
import struct
from contextlib import suppress
from pathlib import Path

CONTROL = Path("/dev/btrfs-control")
BTRFS_IOC_FORGET_DEV = 0x50009405  # linux/btrfs.h: _IOW(0x94, 5, struct btrfs_ioctl_vol_args)
_VOLUME = struct.Struct("=q4088s")  # struct btrfs_ioctl_vol_args: fd, name


def forget_device(path: Path) -> None:
    """Have the kernel forget a device that no mounted filesystem uses; without btrfs there is nothing to forget."""
    with suppress(OSError):  # no btrfs here, or not one of its devices; one in use stays known
        control = os.open(CONTROL, os.O_RDWR | os.O_CLOEXEC)
        try:
            # As it is changeable, any length will do: Python copies no more than 1 KiB of plain bytes.
            fcntl.ioctl(control, BTRFS_IOC_FORGET_DEV, bytearray(_VOLUME.pack(0, os.fsencode(path))))
        finally:
            os.close(control)
