"""ZFS, by the program zfs-fuse: no kernel module is needed, and no pool of the host's is in reach of it."""

from collections.abc import Iterator

from dbdyno.filesystems.kind import MIB, NAME, Kind, words

# Of a pool, and of its filesystem: what may be said of how data is stored; never where it is mounted, or shared.
POOL_PROPERTIES = words("ashift")
PROPERTIES = words("compression recordsize atime logbias primarycache checksum copies")
ASHIFT = "12"  # blocks of 4 KiB, the sector of an emulated disk


class _Zfs(Kind):
    def making(self, options: str, uuid: str | None) -> list[str]:
        """``zpool create``, with the disk's own sector size unless the study gives one; a pool takes no UUID."""
        assert uuid is None  # noqa: S101  (a rule of the study format: not on real disks)
        properties = dict(self.properties(options))
        default = [] if "ashift" in properties else ["-o", f"ashift={ASHIFT}"]
        return [*self.command, *default, *options.split()]

    def flag_mistake(self, flag: str, value: str) -> str | None:
        """A property that is none of those above."""
        known = POOL_PROPERTIES if flag == "-o" else PROPERTIES
        name, _, setting = value.partition("=")
        if name not in known or not NAME.fullmatch(setting):
            return f"holds {value!r}; {flag} may give {', '.join(f'{entry}=...' for entry in sorted(known))}"
        return None

    @staticmethod
    def properties(options: str) -> Iterator[tuple[str, str]]:
        """Each property that a study's options give, with its value."""
        for word in options.split():
            name, is_, value = word.removeprefix("-o").removeprefix("-O").partition("=")
            if is_:
                yield name, value


ZFS = _Zfs(
    "zfs",
    "zfs-fuse",
    "zfs-fuse",
    ("zpool", "create", "-f"),
    size_min=256 * MIB,
    flags={"-o": POOL_PROPERTIES, "-O": PROPERTIES},
    mountable=False,
    usual=False,
)
