"""The workload ``ingest``: rows into a table with three secondary indexes, as fast as it takes them."""

from dataclasses import dataclass

from dbdyno.study.workloads import IngestSection
from dbdyno.workload.generator import Generated, flags_of

FIELDS = ("mode", "rows_per_call", "rows_per_insert", "rows_per_commit", "value_range", "initial_rows")


@dataclass(frozen=True)
class Ingest(Generated[IngestSection]):
    """The ingest load of one treatment."""

    def own_flags(self) -> list[str]:
        """What the tables are like, and what is said to them."""
        return [*flags_of(self.section, *FIELDS)]
