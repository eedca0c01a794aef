"""The workload ``bulk``: tables made, filled and indexed, as sysbench prepares them."""

from dataclasses import dataclass

from dbdyno.study.workloads import BulkSection
from dbdyno.workload.generator import Generated, flags_of
from dbdyno.workload.oltp import TABLES
from dbdyno.workload.time_limit import DAY_SECONDS


@dataclass(frozen=True)
class Bulk(Generated[BulkSection]):
    """The bulk load of one treatment; it starts from an empty schema and makes its tables itself."""

    STARTS_WITHOUT_TABLES = True

    def own_flags(self) -> list[str]:
        """What the tables are like. A CREATE INDEX answers nothing until it is done, however long that takes."""
        return [*flags_of(self.section, *TABLES, "batch_bytes"), f"--stall-timeout={DAY_SECONDS:.0f}"]
