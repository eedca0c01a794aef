"""The workload ``smack``: Super-Smack's statements by random primary key, over rows of a given size."""

from dataclasses import dataclass

from dbdyno.study.workloads import SmackSection
from dbdyno.workload.generator import Generated, flags_of, statement_flags


@dataclass(frozen=True)
class Smack(Generated[SmackSection]):
    """The smack load of one treatment."""

    def own_flags(self) -> list[str]:
        """What the table is like, and what is said to it."""
        section = self.section
        table = flags_of(section, "rows", "row_size", "key", "compressible")
        keys = flags_of(section, "rand_type", *section.DISTRIBUTION)
        return [section.load, *table, *keys, *statement_flags(prepared=section.prepared)]
