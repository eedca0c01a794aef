"""The workload ``bulk``: tables filled, then indexed, as sysbench prepares them."""

from dataclasses import dataclass

from dbdyno.study.workloads import BulkSection
from dbdyno.workload.generator import Generated, flags_of


@dataclass(frozen=True)
class Bulk(Generated[BulkSection]):
    """The bulk load of one treatment."""

    def own_flags(self) -> list[str]:
        """What the tables are like, and what is said to them."""
        return [*flags_of(self.section, "tables", "table_size")]
