"""By which settings a power cut may take commits, in words."""

from dbdyno.analysis.checks.durability import Gap, Lacking
from dbdyno.model.printable import one_line

_LACKING: dict[Gap, str] = {
    "engine": "tables of {} have no durable commits",
    "redo log": "with innodb_flush_log_at_trx_commit = {} the log is synced about once a second",
    "binary log": "with sync_binlog = {} the binary log is not synced at each commit",
    "doublewrite": "with innodb_doublewrite = {} a page that is being written may be left half old and half new",
    "flush method": "innodb_flush_method = {} leaves out syncs",
    "memory": "the data is in memory",
    "no flush": "a sync does not make the device empty its cache",
    "drive": "the drive ignores FLUSH: what it says is safe is still in its volatile cache",
}


def lacking_text(reason: Lacking) -> str:
    """Return ``"with innodb_flush_log_at_trx_commit = 2 the log is synced about once a second"``."""
    return _LACKING[reason.gap].format(one_line(reason.value))
