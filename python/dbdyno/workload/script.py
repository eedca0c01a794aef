"""The workload ``script``: a SQL file of the user's own."""

from dataclasses import dataclass

from dbdyno.study.workloads import ScriptSection
from dbdyno.workload.generator import Generated, flags_of


@dataclass(frozen=True)
class Script(Generated[ScriptSection]):
    """The script load of one treatment."""

    def own_flags(self) -> list[str]:
        """What the tables are like, and what is said to them."""
        statements = f"--db-ps-mode={'auto' if self.section.prepared else 'disable'}"
        return [self.section.file, *flags_of(self.section, "weights"), statements]
