"""The workload ``script``: a SQL file of the user's own."""

from dataclasses import dataclass

from dbdyno.study.workloads import ScriptSection
from dbdyno.workload.generator import Generated, flags_of, statement_flags


@dataclass(frozen=True)
class Script(Generated[ScriptSection]):
    """The script of one treatment; its tables are what its setup makes, which may be none.

    Their engine is the study's, unless the script's CREATE TABLE names another: that fails the trial.
    """

    STARTS_WITHOUT_TABLES = True

    def own_flags(self) -> list[str]:
        """The file, and what is changed of it."""
        section = self.section
        changed = [name for name in ("weights", "set") if getattr(section, name)]
        return [section.file, *flags_of(section, *changed), *statement_flags(prepared=section.prepared)]
