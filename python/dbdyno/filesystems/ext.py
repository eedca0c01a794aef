"""ext2, ext3, ext4: one program makes them all."""

from dbdyno.filesystems.kind import Kind, words

# Lazy initialisation would write in the background while the trial measures.
NOT_LAZY = "lazy_itable_init=0,lazy_journal_init=0"

_WITH_VALUE = words("b C E g G i I J L m N O")
_UNLISTED = words("barrier barrier=1 delalloc data=ordered commit=5")


class Ext(Kind):
    """One of the three."""

    def making(self, options: str, uuid: str | None) -> list[str]:
        """Of several -E only the last counts, so they are put together with our own."""
        given = options.split()
        extended = [given.pop(at + 1) for at in reversed([n for n, word in enumerate(given) if word == "-E"])]
        given = [word for word in given if word != "-E"]
        return [*super().making(" ".join(given), uuid), "-E", ",".join([NOT_LAZY, *reversed(extended)])]


def _ext(name: str, *, usual: bool) -> Ext:
    command = (f"mkfs.{name}", "-q", "-F")
    return Ext(name, command[0], "e2fsprogs", command, flags_with_value=_WITH_VALUE, unlisted=_UNLISTED, usual=usual)


EXT2, EXT3, EXT4 = _ext("ext2", usual=False), _ext("ext3", usual=False), _ext("ext4", usual=True)
