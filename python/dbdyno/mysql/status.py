"""What a server of MySQL or MariaDB says of its work: counters, and conflicts of transactions by their error codes.

Counters (``SHOW GLOBAL STATUS``) are columns of the probe ``server_status``.
A counter is a column per second, ``NAME/s``; a gauge is one under its own name.
"""

import re

# What ends a transaction that may simply be sent again, as ``TRANSACTION_RETRYABLE`` of dbdyno-load has it.
CONFLICTS = {1213: "deadlock", 1205: "lock wait timeout", 1020: "conflicting change"}

QUESTIONS = "Questions/s"
FSYNCS = "Innodb_data_fsyncs/s"
LOG_WAITS = "Innodb_log_waits/s"  # for room in the log buffer
ROW_LOCK_TIME = "Innodb_row_lock_time/s"  # ms that transactions waited for rows
ROW_LOCK_WAITS = "Innodb_row_lock_waits/s"
POOL_READS = "Innodb_buffer_pool_reads/s"  # pages that a query waited for
POOL_WAITS = "Innodb_buffer_pool_wait_free/s"  # for a free page
PAGES_READ = "Innodb_pages_read/s"
POOL_DIRTY = "Innodb_buffer_pool_pages_dirty"
POOL_FREE = "Innodb_buffer_pool_pages_free"
POOL_TOTAL = "Innodb_buffer_pool_pages_total"
CHECKPOINT_AGE = "Innodb_checkpoint_age"  # bytes of log since the last checkpoint
TABLE_LOCK_WAITS = "Table_locks_waited/s"
KEY_BLOCKS = ("Key_reads/s", "Key_writes/s")  # of MyISAM, from and to disk
KEY_BLOCKS_DIRTY = "Key_blocks_not_flushed"
ARIA_PAGES = ("Aria_pagecache_reads/s", "Aria_pagecache_writes/s")
ARIA_PAGES_DIRTY = "Aria_pagecache_blocks_not_flushed"

# What an analysis needs of the probe, as a regular expression for names of columns.
ANALYSED = "|".join(
    re.escape(name)
    for name in (
        "t_s", QUESTIONS, FSYNCS, LOG_WAITS, ROW_LOCK_TIME, POOL_WAITS, PAGES_READ, POOL_FREE, POOL_TOTAL,
    )
)  # fmt: skip
