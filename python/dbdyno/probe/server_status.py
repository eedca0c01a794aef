"""The server's own counters, by SHOW GLOBAL STATUS over a connection of the probe's own."""

from pathlib import Path

import pymysql

from dbdyno.servers import process
from dbdyno.servers.address import Address

# Counters become rates per second; gauges are shown as they stand.
COUNTERS = ("Questions", "Innodb_data_fsyncs", "Innodb_os_log_fsyncs", "Innodb_os_log_written", "Innodb_log_waits",
            "Innodb_pages_written", "Innodb_buffer_pool_wait_free", "Innodb_rows_inserted",
            "Key_write_requests", "Key_writes")  # fmt: skip
GAUGES = ("Innodb_buffer_pool_pages_dirty", "Innodb_checkpoint_age", "Threads_running", "Key_blocks_not_flushed")
_QUERY = "SHOW GLOBAL STATUS WHERE Variable_name IN ({})".format(",".join(f"'{n}'" for n in (*COUNTERS, *GAUGES)))


class ServerStatusSource:
    """Status of one server. A counter that this server lacks is left out."""

    name = "server_status"

    def __init__(self, where: Address | Path) -> None:
        try:
            self._connection = process.connect(where)
        except pymysql.Error as error:
            raise ConnectionError(str(error)) from error

    def sample(self) -> dict[str, float]:
        """The counters and gauges as they stand."""
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(_QUERY)
                return {name: float(value) for name, value in cursor.fetchall()}
        except (pymysql.Error, AttributeError) as error:
            raise ConnectionError(str(error)) from error

    def interval(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """Counters per second, gauges as they stand."""
        rates = {f"{name}/s": (after[name] - before[name]) / seconds for name in COUNTERS if name in after}
        return rates | {name: after[name] for name in GAUGES if name in after}

    def close(self) -> None:
        """End the connection."""
        self._connection.close()
