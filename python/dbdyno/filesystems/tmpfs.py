"""tmpfs: memory in place of a device, as a ceiling for all that stand on one."""

from dbdyno.filesystems.kind import Kind, words

TMPFS = Kind(
    "tmpfs",
    "mount",
    "mount",
    mount_options=words("huge=always|never|within_size|advise inode32 inode64 noswap nr_inodes=#"),
    unlisted=words("huge=never"),
)
