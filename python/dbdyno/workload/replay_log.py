"""The workload ``replay-log``: a server's log, with its sessions and times."""

from dataclasses import dataclass

from dbdyno.stack.layer import Endpoint
from dbdyno.study.workloads import ReplayLogSection
from dbdyno.workload.generator import Generated, flags_of


@dataclass(frozen=True)
class ReplayLog(Generated[ReplayLogSection]):
    """The replay of one treatment; its tables are what the setup makes, which may be none."""

    STARTS_WITHOUT_TABLES = True

    def own_flags(self) -> list[str]:
        """The log, and what is sent of it when."""
        section = self.section
        writes = ["--writes"] if section.writes else []
        # One schema of a log is replayed in the load's own, whatever else the log has.
        return [section.file, *flags_of(section, "speed", "setup", "from_schema", "duration"), *writes]

    def login_flags(self, endpoint: Endpoint) -> list[str]:
        """By which account: on every server the load's own, as a log may hold anything."""
        return [f"--account={endpoint.account}"] if endpoint.account else []
