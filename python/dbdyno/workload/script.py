"""The workload ``script``: a SQL file of the user's own."""

from dataclasses import dataclass

from dbdyno.stack.layer import Endpoint
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

    def login_flags(self, endpoint: Endpoint) -> list[str]:
        """By which account the script runs.

        A server of dbdyno's own is the script's as a whole, and is thrown away. On an external one it has an
        account for its database alone, unless the study gives it the whole server.
        """
        return [f"--account={endpoint.account}"] if endpoint.account else ["--whole-server"]
