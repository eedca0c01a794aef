"""What a study may pass on to mkfs and mount: what is known to reach nothing beyond the device that it names.

dbdyno runs these as root. A study is untrusted text: it may say how a filesystem is made and mounted, never which other
device or file is touched, or how mount itself goes about it.
"""

from dbdyno.filesystems.catalogue import KINDS
from dbdyno.filesystems.kind import fits
from dbdyno.study.mistakes import did_you_mean


def mkfs_mistake(kind: str, text: str) -> str | None:
    """What is wrong with mkfs options for a filesystem, if anything."""
    with_value, without = KINDS[kind].flags, KINDS[kind].flags_alone
    words = iter(text.split())
    for word in words:
        flag, joined, value = word.partition("=") if word.startswith("--") else (word[:2], word[2:], word[2:])
        if not word.startswith("-"):
            return f"holds {word!r}, which belongs to no option; the device is dbdyno's to name"
        if flag in without and not joined:
            continue
        if flag not in with_value:
            return f"holds {flag!r}; for {kind} a study may give {' '.join(sorted({*with_value, *without})) or 'none'}"
        value = value if joined else next(words, "")
        if not value or value.startswith("-"):
            return f"gives {flag!r} no value"
        if why := KINDS[kind].flag_mistake(flag, value):
            return why
    return None


def mount_mistake(kind: str, text: str) -> str | None:
    """What is wrong with mount options for a filesystem, if anything."""
    if not KINDS[kind].mountable and text not in {"", "defaults"}:
        return f"is for other filesystems; {kind} takes its properties in filesystem.mkfs, such as -O atime=off"
    known = sorted(KINDS[kind].mounts_with())
    for option in filter(None, text.split(",")):
        if not fits(option, known):
            near = did_you_mean(option, (one.removesuffix("#") for one in known))
            return f"holds {option!r}; for {kind} a study may give {', '.join(known)}{near}"
    return None
