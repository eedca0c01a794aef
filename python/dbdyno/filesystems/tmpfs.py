"""tmpfs: memory in place of a device, as a ceiling for all that stand on one."""

from dbdyno.filesystems.kind import Kind, words

TMPFS = Kind(
    "tmpfs",
    "mount",
    "mount",
    mount_refused=words("size nr_blocks mpol uid gid mode swap"),
    unlisted=words("huge=never"),
)
