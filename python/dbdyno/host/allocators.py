"""Memory allocators that a server can be started with, and which of them a process has.

Cannot: tell an allocator that is linked into a program from the system's.
"""

import re
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path

from dbdyno.host.read import UNKNOWN, text_of

SYSTEM = "system"
# By their names in a folder of libraries, the one that is taken first.
LIBRARIES: Mapping[str, tuple[str, ...]] = {
    "jemalloc": ("libjemalloc.so.2", "libjemalloc.so.1"),
    "tcmalloc": ("libtcmalloc_minimal.so.4", "libtcmalloc.so.4"),
}
PACKAGES = {"jemalloc": "libjemalloc2", "tcmalloc": "libtcmalloc-minimal4"}  # of Debian
# As each library has its version in its own bytes.
_VERSIONS = {
    "jemalloc": re.compile(rb"\b(\d+\.\d+\.\d+)-\d+-g[0-9a-f]{7,40}\b"),
    "tcmalloc": re.compile(rb"gperftools (\d+\.\d+(?:\.\d+)?)"),
    SYSTEM: re.compile(rb"GNU C Library [^\0]{0,100}? version (\d+\.\d+)"),
}
_FILES = {
    "jemalloc": re.compile(r"libjemalloc\.so"),
    "tcmalloc": re.compile(r"libtcmalloc(?:_\w+)?\.so"),
    SYSTEM: re.compile(r"libc[.-](?:so|\d)"),
}


def library_of(allocator: str, root: Path = Path("/")) -> Path | None:
    """The library to preload for an allocator; ``None`` where this host has none."""
    folders = [f"usr/lib/{triplet}" for triplet in filter(None, [sysconfig.get_config_var("MULTIARCH")])]
    folders += ["usr/lib64", "usr/lib", "usr/local/lib64", "usr/local/lib"]
    places = (root / folder / name for name in LIBRARIES[allocator] for folder in folders)
    return next((place for place in places if place.is_file()), None)


def install_remedy(*allocators: str) -> str:
    """How to get allocators that are not there."""
    return f"apt-get install {' '.join(PACKAGES[name] for name in allocators)}"


def allocator_of(pid: int) -> tuple[str, str]:
    """The allocator of a process and its version, by the libraries that are mapped into it.

    ``"unknown"`` is what can't be found out. Raises ``OSError`` where the process may not be looked at.
    """
    files = list(_mapped_files(Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")))
    for name, pattern in _FILES.items():  # the system's is mapped beside the others
        if file := next((file for file in files if pattern.match(file.name)), None):
            return name, version_of(name, file)
    return UNKNOWN, UNKNOWN


def version_of(allocator: str, file: Path) -> str:
    """The version of a library, as its bytes have it."""
    try:
        version = _VERSIONS[allocator].search(file.read_bytes())
    except OSError:
        return UNKNOWN
    return version[1].decode() if version else UNKNOWN


def _mapped_files(maps: str) -> Iterator[Path]:
    for line in dict.fromkeys(line.split(maxsplit=5)[5] for line in maps.splitlines() if line.count("/")):
        yield Path(line)


def memory_policy_of(pid: int) -> str:
    """From which NUMA nodes a process takes its memory, as the kernel has it: ``"interleave:0-1"``, ``"default"``."""
    words = text_of(Path(f"/proc/{pid}/numa_maps")).split(maxsplit=2)
    return words[1] if len(words) > 1 else UNKNOWN
