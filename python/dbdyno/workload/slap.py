"""The workload ``slap``: mysqlslap's auto-generated SQL."""

from dataclasses import dataclass

from dbdyno.study.workloads import MysqlslapSection, SlapSection
from dbdyno.workload.generator import Generated


@dataclass(frozen=True)
class Slap(Generated[SlapSection]):
    """The slap load of one treatment; its flags are mysqlslap's."""

    def common_flags(self) -> list[str]:
        """Schema, engine, clients and queries by their names in mysqlslap."""
        section = self.section
        flags = [f"--create-schema={self.schema}", f"--engine={self.engine}", f"--concurrency={section.clients}"]
        return flags if section.queries is None else [*flags, f"--number-of-queries={section.queries}"]

    def own_flags(self) -> list[str]:
        """What the table is like, and which statements are generated."""
        return generated_sql(self.section)

    def step_flags(self, step: str) -> list[str]:
        """What asks for one step only."""
        return [f"--phase={step}"]


def generated_sql(section: SlapSection | MysqlslapSection) -> list[str]:
    """The table and the statements in mysqlslap's words, which ``dbdyno-load slap`` takes too."""
    values = {
        "auto-generate-sql-load-type": section.load,
        "number-int-cols": section.int_cols,
        "number-char-cols": section.char_cols,
        "auto-generate-sql-secondary-indexes": section.secondary_indexes,
        "auto-generate-sql-write-number": section.initial_rows,
        "auto-generate-sql-unique-query-number": section.unique_queries,
        "auto-generate-sql-unique-write-number": section.unique_writes,
        "commit": section.commit_every,
    }
    switches = {"add-autoincrement": section.autoincrement, "guid-primary": section.guid_primary}
    flags = ["--auto-generate-sql", *(f"--{name}={value}" for name, value in values.items())]
    return [*flags, *(f"--auto-generate-sql-{name}" for name, on in switches.items() if on)]
