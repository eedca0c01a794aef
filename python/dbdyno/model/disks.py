"""The disks of a stack: that of the data, and named ones beside it, in what a trial read back and in its series."""

from collections.abc import Iterator, Mapping
from typing import Any

from dbdyno.model.metrics import part_of

DATA_DISK = "data"  # what a study and a report call the disk that the data lie on
_DEVICE_OF = "device of "


def layer_name(layer: str, disk: str) -> str:
    """Return what a layer of a named disk is called, or of that of the data where ``disk`` is empty."""
    return f"{layer} of {disk}" if disk else layer


def layer_of(observed: Mapping[str, Any], layer: str, disk: str) -> Mapping[str, Any]:
    """Return what was read back of a layer of a disk, ``disk`` being as above; empty where nothing was."""
    return part_of(observed, layer_name(layer, disk))


def disk_names(observed: Mapping[str, Any]) -> list[str]:
    """Return the names of the disks beside that of the data on which a trial stood."""
    return [layer.removeprefix(_DEVICE_OF) for layer in observed if layer.startswith(_DEVICE_OF)]


def disks_aside(observed: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of disks that no query waits for alone: of a replica, or of the other nodes."""
    replica, cluster = part_of(observed, "replica"), part_of(observed, "cluster")
    names = [replica.get("disk"), *(disk for field, disk in cluster.items() if field.startswith("disk_"))]
    return frozenset(str(name) for name in names if name) - {DATA_DISK}


def disks_of(device: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the figures of each disk, of those that a trial's ``device`` holds: several have theirs side by side."""
    each = device.get("disks")
    yield from (disk for disk in each if isinstance(disk, Mapping)) if isinstance(each, list) else (device,)
    yield from named_disks_of(device)


def named_disks_of(device: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the figures of the disks beside that of the data."""
    return [disk for disk in part_of(device, "named").values() if isinstance(disk, Mapping)]


def series_name(probe: str, disk: str) -> str:
    """Return what the series of a probe is called that watches a disk, ``disk`` being as above."""
    return f"{probe}_{disk}" if disk else probe
