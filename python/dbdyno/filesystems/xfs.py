"""xfs."""

from collections.abc import Sequence

from dbdyno.filesystems.kind import MIB, Kind, words


class _Xfs(Kind):
    def known_by(self, uuid: str) -> Sequence[str]:
        return ["-m", f"uuid={uuid}"]


XFS = _Xfs(
    "xfs",
    "mkfs.xfs",
    "xfsprogs",
    ("mkfs.xfs", "-q", "-f"),
    size_min=300 * MIB,
    flags_with_value=words("b d i l L m n r s"),
    flags_alone=words("K"),
    unlisted=words("attr2 inode64 noquota"),
)
