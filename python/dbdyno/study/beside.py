"""``[[workload.beside]]``: second loads, such as a backup, beside the one that is judged; one class for each kind."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import ConfigDict, Field, StrictBool, StrictInt

from dbdyno.study.document import Identifier, Line, WorkloadSection, matching
from dbdyno.study.units import Duration
from dbdyno.study.workloads import (
    CommandSection,
    IngestSection,
    LoopSection,
    OltpSection,
    ScriptSection,
    SlapSection,
    SmackSection,
    TpccSection,
)

# One statement on the judged load's tables. The client runs programs by its commands that begin with a backslash.
Statement = Annotated[
    Line,
    matching(
        r"(?is)(ALTER\s+TABLE|CREATE\s+(UNIQUE\s+)?INDEX|DROP\s+INDEX|OPTIMIZE\s+TABLE|ANALYZE\s+TABLE)\s[^;\\]+",
        "is not a single ALTER TABLE, CREATE INDEX, DROP INDEX, OPTIMIZE TABLE or ANALYZE TABLE, without ; and \\",
    ),
]
Into = Literal["disk", "nowhere"]


BACKUPS = ("dump", "mariabackup")  # kinds that need no other field


class BesideSection(WorkloadSection):
    """``[[workload.beside]]``: a second load beside the judged one, such as a backup; it is not judged itself."""

    name: Identifier
    """What reports call it. With a list as its `kind` it is the factor's name."""
    kind: str
    """`dump`, `mariabackup`, `alter`; or `command`, `script`, `slap`, `smack`, `oltp`, `tpcc`, `ingest`, with the
    fields of these kinds; or `none`. A list is a factor: `["none", "dump"]` asks what the dump costs.
    """
    start: Annotated[Duration, Field(ge=0)] = 0.0
    """When it begins, after measuring began."""

    @property
    def has_data(self) -> bool:
        """Whether it prepares tables of its own, beside those of the judged load."""
        return isinstance(self, LoopSection)


class NoneBeside(BesideSection):
    """Nothing: the level that the others are compared with; what the other levels need is not looked at."""

    model_config = ConfigDict(extra="ignore")

    kind: Literal["none"]

    @property
    def connections(self) -> int:
        """No connection."""
        return 0


class DumpBeside(BesideSection):
    """``[[workload.beside]]``, ``dump``: a logical backup of the judged load's tables by mariadb-dump."""

    FILES: ClassVar[bool] = True

    kind: Literal["dump"]
    """A logical backup of the judged load's tables by mariadb-dump."""
    into: Into = "disk"
    """A file on the measured filesystem, or thrown away."""
    single_transaction: StrictBool = True
    """mariadb-dump's `--single-transaction`. Else it locks the tables."""


class MariabackupBeside(BesideSection):
    """``[[workload.beside]]``, ``mariabackup``: a copy of the running server's files, of MariaDB alone."""

    FILES: ClassVar[bool] = True

    kind: Literal["mariabackup"]
    """A copy of the running server's files by mariabackup, which must be of the server's version; MariaDB alone."""
    into: Into = "disk"
    """A folder on the measured filesystem, or a stream that is thrown away."""
    throttle: Annotated[StrictInt, Field(ge=1, le=1_000_000)] | None = None
    """mariabackup's `--throttle`: reads and writes per second."""
    parallel: Annotated[StrictInt, Field(ge=1, le=64)] = 1
    """mariabackup's `--parallel`: threads that copy."""


class AlterBeside(BesideSection):
    """``[[workload.beside]]``, ``alter``: one statement that changes, rebuilds or looks through tables."""

    kind: Literal["alter"]
    """One statement of DDL on the judged load's tables."""
    statement: Statement
    """Such as `"ALTER TABLE sbtest1 ADD COLUMN note INT"`, in the judged load's schema."""


class CommandBeside(BesideSection, CommandSection):
    """``command`` beside."""

    kind: Literal["command"]


class ScriptBeside(BesideSection, ScriptSection):
    """``script`` beside; with the `setup` of the judged script it works on the same tables."""

    kind: Literal["script"]


class SlapBeside(BesideSection, SlapSection):
    """``slap`` beside."""

    kind: Literal["slap"]


class SmackBeside(BesideSection, SmackSection):
    """``smack`` beside."""

    kind: Literal["smack"]


class OltpBeside(BesideSection, OltpSection):
    """``oltp`` beside."""

    kind: Literal["oltp"]


class TpccBeside(BesideSection, TpccSection):
    """``tpcc`` beside."""

    kind: Literal["tpcc"]


class IngestBeside(BesideSection, IngestSection):
    """``ingest`` beside."""

    kind: Literal["ingest"]


Beside = (
    NoneBeside
    | DumpBeside
    | MariabackupBeside
    | AlterBeside
    | CommandBeside
    | ScriptBeside
    | SlapBeside
    | SmackBeside
    | OltpBeside
    | TpccBeside
    | IngestBeside
)
BESIDE_KINDS: dict[str, type[BesideSection]] = {section.named(): section for section in get_args(Beside)}


def running(beside: Mapping[str, BesideSection]) -> dict[str, BesideSection]:
    """Those that are loads, by name."""
    return {name: load for name, load in beside.items() if not isinstance(load, NoneBeside)}
