"""The workload ``tpcc``: the tables and transactions of TPC-C."""

from dataclasses import dataclass

from dbdyno.study.workloads import TpccSection
from dbdyno.workload.generator import Generated, flags_of


@dataclass(frozen=True)
class Tpcc(Generated[TpccSection]):
    """The tpcc load of one treatment."""

    def common_flags(self) -> list[str]:
        """As of any load, but terminals follow from the warehouses."""
        return [flag for flag in super().common_flags() if not (self.section.keying and flag.startswith("--clients="))]

    def own_flags(self) -> list[str]:
        """How much data, and how often each transaction comes."""
        return flags_of(self.section, "warehouses", "mix", "keying")
