"""The workload ``ingest``: rows into a table with three secondary indexes, as fast as it takes them."""

from dataclasses import dataclass

from dbdyno.study.workloads import IngestSection
from dbdyno.workload.generator import Generated, flags_of, statement_flags

FIELDS = ("mode", "rows_per_call", "rows_per_insert", "rows_per_commit", "value_range", "initial_rows")


@dataclass(frozen=True)
class Ingest(Generated[IngestSection]):
    """The ingest load of one treatment; its table starts with ``initial_rows``, which may be none."""

    def own_flags(self) -> list[str]:
        """What the table is like, and how rows come into it."""
        return [*flags_of(self.section, *FIELDS), *statement_flags(prepared=self.section.prepared)]
