"""Encryption at rest of a server of dbdyno's own: which settings need a key, and the key that such a server gets.

MariaDB takes its keys from a module that it is started with, and the module takes them from a file. The file lies in
the trial's scratch folder, readable by the server's user alone, and goes with it; no run folder holds it. All trials
get the same key, as they start from the same prepared data, which is encrypted when it is made. It keeps no secret:
what is encrypted with it was made up, and what is measured is the cost.
"""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from dbdyno.model.quantity import is_off
from dbdyno.mysql.settings import Setting
from dbdyno.servers.sources.installation import Installation
from dbdyno.servers.user import server_user

MODULE = "file_key_management"
KEY_FILE = "encryption.keys"
# Settings that need a key where they are on.
NEEDS_KEY: Mapping[str, frozenset[str]] = {
    "mariadb": frozenset({"aria_encrypt_tables", "encrypt_binlog", "encrypt_tmp_disk_tables", "encrypt_tmp_files",
                          "innodb_encrypt_log", "innodb_encrypt_tables", "innodb_encrypt_temporary_tables"}),
    "mysql": frozenset({"binlog_encryption", "default_table_encryption", "innodb_redo_log_encrypt",
                        "innodb_undo_log_encrypt"}),
}  # fmt: skip
_KEY = hashlib.sha256(b"dbdyno: encryption at rest is measured, and nothing is kept secret").hexdigest()


def encrypting(product: str, settings: Mapping[str, Setting]) -> list[str]:
    """Those of the settings that are on and need a key."""
    return [name for name, value in settings.items() if name in NEEDS_KEY[product] and not is_off(str(value))]


def encryption_mistakes(installation: Installation, settings: Mapping[str, Setting]) -> dict[str, str]:
    """Why a server can't have each setting that needs a key, where it can't."""
    names = encrypting(installation.product, settings)
    if installation.product != "mariadb":
        why = "needs a keyring, which dbdyno gives to MariaDB alone"
    elif not _has_module(installation):
        why = (
            f"needs the module {MODULE}, which {installation.title} ({installation.name}) has not; take a server with "
            "its modules, such as a vendor's archive: dbdyno servers add URL|FILE"
        )
    else:
        return {}
    return dict.fromkeys(names, why)


def key_options(installation: Installation, settings: Mapping[str, Setting], folder: Path) -> list[str]:
    """Options by which the server has a key, which is written into ``folder``; none where no setting needs one."""
    if not encrypting(installation.product, settings) or not _has_module(installation):
        return []
    file = folder / KEY_FILE
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(handle, 0o600)
        if user := server_user():
            os.fchown(handle, user.pw_uid, user.pw_gid)
        os.write(handle, f"1;{_KEY}\n".encode())
    finally:
        os.close(handle)
    return [f"--plugin-load-add={MODULE}", f"--file-key-management-filename={file}"]


def _has_module(installation: Installation) -> bool:
    return installation.plugins is not None and (installation.plugins / f"{MODULE}.so").is_file()
