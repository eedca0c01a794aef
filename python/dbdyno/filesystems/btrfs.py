"""btrfs, on one device."""

from dbdyno.filesystems.kind import MIB, Kind, words

BTRFS = Kind(
    "btrfs",
    "mkfs.btrfs",
    "btrfs-progs",
    ("mkfs.btrfs", "-q", "-f"),
    size_min=256 * MIB,
    flags_with_value=words("d L m n O R s --checksum --csum --features --nodesize --runtime-features"),
    flags_alone=words("K M --mixed --nodiscard"),
    mount_refused=words("subvol subvolid"),
    unlisted=words("barrier commit=30 datacow datasum ssd discard=async"),
)
