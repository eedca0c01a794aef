"""The workload ``slap``: mysqlslap's auto-generated SQL."""

from dataclasses import dataclass

from dbdyno.study.workloads import SlapSection
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
        """What the table is like, and what is said to it."""
        section = self.section
        flags = ["--auto-generate-sql", f"--auto-generate-sql-load-type={section.load}"]
        flags += [f"--number-int-cols={section.int_cols}", f"--number-char-cols={section.char_cols}"]
        flags += [f"--auto-generate-sql-secondary-indexes={section.secondary_indexes}"]
        flags += [f"--auto-generate-sql-write-number={section.initial_rows}"]
        flags += [f"--auto-generate-sql-unique-query-number={section.unique_queries}"]
        flags += [f"--auto-generate-sql-unique-write-number={section.unique_writes}"]
        flags += [f"--commit={section.commit_every}"]
        if section.autoincrement:
            flags.append("--auto-generate-sql-add-autoincrement")
        if section.guid_primary:
            flags.append("--auto-generate-sql-guid-primary")
        return flags

    def step_flags(self, step: str) -> list[str]:
        """What asks for one step only."""
        return [f"--phase={step}"]
