"""What is mounted where, as ``mountinfo`` lists it (proc_pid_mountinfo(5))."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dbdyno.host.read import UNKNOWN


@dataclass(frozen=True)
class Mount:
    """A line of mountinfo."""

    place: str
    kind: str
    source: str
    options: str  # of the mount, then of the filesystem
    device: str = ""  # its number: "8:1"


def mounts_in(text: str) -> Iterator[Mount]:
    """The mounts that a mountinfo lists; of those upon each other the last is the one that is seen."""
    for line in text.splitlines():
        about, _, rest = line.partition(" - ")
        _, _, device, _, place, options, *_ = about.split(" ")
        kind, source, of_filesystem = map(unescaped, (*rest.split(" "), "", "")[:3])
        every = dict.fromkeys([*options.split(","), *of_filesystem.split(",")])
        yield Mount(unescaped(place), kind, source, ",".join(every), device)


def mounts() -> list[Mount]:
    """The mounts of this process's view."""
    return [*mounts_in(Path("/proc/self/mountinfo").read_text(encoding="utf-8"))]


def mounted_at(path: Path) -> Mount:
    """What a path lies on; of kind "unknown" in a chroot whose root is no mount point."""
    best = Mount("", UNKNOWN, UNKNOWN, "")
    for one in mounts():
        inside = one.place == "/" or str(path) == one.place or str(path).startswith(f"{one.place}/")
        if inside and len(one.place) >= len(best.place):
            best = one
    return best


def is_mounted(path: str) -> bool:
    """Whether a folder is a mount point."""
    return any(one.place == path for one in mounts())


def unescaped(text: str) -> str:
    """A text as /proc shows it, with its blanks back: the kernel writes them as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)
