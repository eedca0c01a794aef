"""ext2, ext3, ext4: one program makes them all."""

from dbdyno.filesystems.kind import NAME, NAMES, NUMBER, Kind, Values, words

# Lazy initialisation would write in the background while the trial measures.
NOT_LAZY = "lazy_itable_init=0,lazy_journal_init=0"

_FLAGS: dict[str, Values] = {
    **dict.fromkeys(words("-b -C -g -G -i -I -m -N"), NUMBER),
    "-L": NAME,
    "-O": NAMES,
    "-E": words("desc_size=# discard nodiscard lazy_itable_init=# lazy_journal_init=# num_backup_sb=# "
                "orphan_file_size=# packed_meta_blocks=# resize=# stride=# stripe_width=# stripe-width=#"),
    "-J": words("fast_commit_size=# size=#"),
}  # fmt: skip
# Not errors=panic, which is the host's.
_MOUNT = words("""
    acl noacl auto_da_alloc noauto_da_alloc barrier nobarrier barrier=0|1 block_validity noblock_validity commit=#
    data=journal|ordered|writeback data_err=abort|ignore delalloc nodelalloc dioread_lock dioread_nolock discard
    nodiscard errors=continue|remount-ro init_itable init_itable=# noinit_itable inode_readahead_blks=#
    journal_async_commit journal_checksum nojournal_checksum journal_ioprio=# max_batch_time=# max_dir_size_kb=#
    min_batch_time=# mb_optimize_scan=# nombcache prefetch_block_bitmaps no_prefetch_block_bitmaps stripe=# user_xattr
    nouser_xattr
    """)
_UNLISTED = words("barrier barrier=1 delalloc data=ordered commit=5")


# man 8 e2fsck: 4, errors are left; 8, it can't go on, as with a superblock that it does not know.
_DAMAGE = frozenset({4, 8})


class Ext(Kind):
    """One of the three."""

    def making(self, options: str, uuid: str | None) -> list[str]:
        """Of several -E only the last counts, so they are put together with our own."""
        others: list[str] = []
        extended = [NOT_LAZY]
        words = iter(options.split())
        for word in words:
            if word.startswith("-E"):
                extended.append(word[2:] or next(words))
            else:
                others.append(word)
        return [*super().making(" ".join(others), uuid), "-E", ",".join(extended)]


def _ext(name: str, *, usual: bool) -> Ext:
    command = (f"mkfs.{name}", "-q", "-F")
    return Ext(
        name,
        command[0],
        "e2fsprogs",
        command,
        trying=("-n",),
        check=("e2fsck", "-fn"),
        as_it_is="ro" if name == "ext2" else "ro,noload",
        damage=_DAMAGE,
        flags=_FLAGS,
        mount_options=_MOUNT,
        unlisted=_UNLISTED,
        usual=usual,
    )


EXT2, EXT3, EXT4 = _ext("ext2", usual=False), _ext("ext3", usual=False), _ext("ext4", usual=True)
