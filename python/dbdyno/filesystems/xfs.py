"""xfs."""

from collections.abc import Sequence

from dbdyno.filesystems.kind import MIB, NAME, Kind, words


class _Xfs(Kind):
    def known_by(self, uuid: str) -> Sequence[str]:
        return ["-m", f"uuid={uuid}"]


XFS = _Xfs(
    "xfs",
    "mkfs.xfs",
    "xfsprogs",
    ("mkfs.xfs", "-q", "-f"),
    trying=("-N",),
    check=("xfs_repair", "-n"),
    as_it_is="ro,norecovery",
    damage=frozenset({1, 2}),  # 2: the log is not clean, though it was mounted and unmounted
    size_min=300 * MIB,
    # A UUID is dbdyno's to give; a log or a realtime part elsewhere would be on another device.
    flags={
        "-b": words("size=# log=#"),
        "-d": words(
            "agcount=# agsize=# concurrency=# cowextsize=# extszinherit=# noalign size=# su=# sunit=# sw=# swidth=#"
        ),
        "-i": words("align=# attr=# exchange=# maxpct=# nrext64=# perblock=# projid32bit=# size=# sparse=#"),
        "-l": words("agnum=# concurrency=# lazy-count=# size=# su=# sunit=# version=#"),
        "-L": NAME,
        "-m": words("autofsck=# bigtime=# crc=# finobt=# inobtcount=# reflink=# rmapbt=#"),
        "-n": words("ftype=# size=# version=# version=ci parent=#"),
        "-r": words("extsize=#"),
        "-s": words("size=# log=#"),
    },
    flags_alone=words("-K"),
    mount_options=words("""
        allocsize=# attr2 noattr2 barrier nobarrier discard nodiscard filestreams ikeep noikeep inode32 inode64 largeio
        nolargeio logbsize=# logbufs=# noalign noquota sunit=# swalloc swidth=# wsync
        """),
    unlisted=words("attr2 inode64 noquota"),
)
