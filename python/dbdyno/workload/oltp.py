"""The workload ``oltp``: sysbench's OLTP loads."""

from dataclasses import dataclass

from dbdyno.study.workloads import OltpSection
from dbdyno.workload.generator import Generated, flags_of, statement_flags

TABLES = ("tables", "table_size", "auto_inc", "secondary", "create_secondary")
EVENT = ("skip_trx", "point_selects", "range_selects", "range_size", "simple_ranges", "sum_ranges", "order_ranges",
         "distinct_ranges", "index_updates", "non_index_updates", "delete_inserts")  # fmt: skip


@dataclass(frozen=True)
class Oltp(Generated[OltpSection]):
    """The oltp load of one treatment."""

    def own_flags(self) -> list[str]:
        """What the tables are like, and what an event consists of."""
        section = self.section
        fields = flags_of(section, *TABLES, *EVENT, "reconnect_every", "rand_type", *section.DISTRIBUTION)
        return [section.load, *fields, *statement_flags(prepared=section.prepared)]
