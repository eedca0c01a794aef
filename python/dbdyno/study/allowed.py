"""What a study may not pass on to mkfs, mount and the server: whatever reaches beyond the device it names.

dbdyno runs these as root, or beside somebody's production server. A study is untrusted text: it may say how a
filesystem is made or what a server does with its own data, never which other device or file is touched.
"""

import re

from dbdyno.filesystems.catalogue import KINDS
from dbdyno.study.section import Setting

_OTHER_PLACES = {"device", "dev", "logdev", "rtdev", "name", "file", "journal_path", "journal_dev"}
_MOUNT_REFUSED = {
    "bind",
    "rbind",
    "remount",
    "move",
    "loop",
    "ro",
    "user",
    "users",
    "owner",
    "group",
}

# Where the server finds and writes its files, and what it loads, is ours to say.
_SETTINGS_REFUSED = {"admin_address", "admin_port", "basedir", "bind_address", "bootstrap", "chroot", "daemonize",
                     "datadir", "early_plugin_load", "init_rpl_role", "initialize", "initialize_insecure", "language",
                     "log_error", "mysqlx", "pid_file", "plugin_load", "plugin_load_add", "plugin_maturity",
                     "secure_file_priv", "skip_bind_address", "skip_grant_tables", "skip_mysqlx", "skip_networking",
                     "socket", "tmpdir", "user"}  # fmt: skip
_SETTINGS_REFUSED_STARTS = ("defaults_", "loose_", "mysqlx_", "wsrep_")
_SETTINGS_REFUSED_ENDS = ("_dir", "_file", "_file_path", "_home_dir", "_path", "_directory", "_basename", "_index")


def mkfs_mistake(kind: str, text: str) -> str | None:
    """What is wrong with mkfs options for a filesystem, if anything."""
    with_value, without = KINDS[kind].flags_with_value, KINDS[kind].flags_alone
    words = iter(text.split())
    for word in words:
        flag, joined, value = word.partition("=") if word.startswith("--") else (word[:2], word[2:], word[2:])
        name = flag if flag.startswith("--") else flag.removeprefix("-")
        if not word.startswith("-"):
            return f"holds {word!r}, which belongs to no option; the device is dbdyno's to name"
        if name in without and not joined:
            continue
        if name not in with_value:
            known = " ".join(other if other.startswith("--") else f"-{other}" for other in sorted(with_value | without))
            return f"holds {flag!r}; for {kind} a study may give {known or 'none'}"
        value = value if joined else next(words, "")
        if not value or value.startswith("-"):
            return f"gives {flag!r} no value"
        if elsewhere(value):
            return f"holds {value!r}, which may name another device or file"
        if said := KINDS[kind].values_mistake(flag, value):
            return said
    return None


def mount_mistake(kind: str, text: str) -> str | None:
    """What is wrong with mount options for a filesystem, if anything."""
    if not KINDS[kind].mountable and text not in {"", "defaults"}:
        return f"is for other filesystems; {kind} takes its properties in filesystem.mkfs, such as -O atime=off"
    for option in filter(None, text.split(",")):
        if elsewhere(option) or " " in option:
            return f"holds {option!r}, which may name another device or file"
        if option.partition("=")[0] in _MOUNT_REFUSED | KINDS[kind].mount_refused:
            return f"holds {option!r}, which is dbdyno's to say"
    return None


def setting_mistake(name: str, value: Setting) -> str | None:
    """What is wrong with a server setting, if anything."""
    if name in _SETTINGS_REFUSED or name.endswith(_SETTINGS_REFUSED_ENDS) or name.startswith(_SETTINGS_REFUSED_STARTS):
        return "is dbdyno's to say: it decides which files the server touches or who may reach it"
    if isinstance(value, str) and "/" in value:
        return f"is {value!r}; a setting must not name a file: the server's files are dbdyno's to place"
    return None


def elsewhere(value: str) -> bool:
    """Whether an option's value may name a device or a file."""
    keys = {part.partition("=")[0] for part in value.split(",") if "=" in part}
    return "/" in value or bool(keys & _OTHER_PLACES) or bool(re.search(r"\b(?:UUID|LABEL)=", value))
