"""What the rest of dbdyno asks of a database server, whichever product it is; ``products.py`` lists which is which.

Every method that asks a server raises ``ServerError``.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from dbdyno.errors import TrialError
from dbdyno.model.printable import one_line
from dbdyno.mysql.server_url import CLIENT_PASSWORD_VARIABLE
from dbdyno.mysql.settings import Setting

if TYPE_CHECKING:
    import subprocess


# Where a server listens and how one logs in, for the control connection and for the load generator alike.


Mode = Literal["disabled", "preferred", "required", "verify_ca", "verify_identity"]


@dataclass(frozen=True)
class Tls:
    """How a connection is encrypted, in the words of MySQL's own clients; files are paths."""

    mode: Mode = "disabled"
    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    def flags(self) -> list[str]:
        """The load generator's flags."""
        files = {"ssl-ca": self.ca, "ssl-cert": self.cert, "ssl-key": self.key}
        return [f"--ssl-mode={self.mode}", *(f"--{name}={value}" for name, value in files.items() if value)]


@dataclass(frozen=True)
class Listening:
    """Where a server of dbdyno's own listens for other hosts, beside its socket."""

    host: str  # one of this machine's own addresses
    port: int


@dataclass(frozen=True)
class Address:
    """A server as a client reaches it: by its socket, or by host and port. The password is in no text of it."""

    user: str
    socket: Path | None = None
    host: str = "localhost"
    port: int = 3306
    tls: Tls = Tls()
    password: str = field(default="", repr=False)

    @property
    def is_private(self) -> bool:
        """Whether no third party can listen: a unix socket, or TLS with a server that is verified."""
        return self.socket is not None or self.tls.mode.startswith("verify")

    def flags(self) -> list[str]:
        """The load generator's flags; the password goes by ``environment``."""
        place_flags = [f"--socket={self.socket}"] if self.socket else [f"--host={self.host}", f"--port={self.port}"]
        place_flags += [] if self.socket else ["--protocol=tcp"]
        return ["--no-defaults", *place_flags, f"--user={self.user}", *self.tls.flags()]

    def environment(self) -> dict[str, str]:
        """Where MySQL's own clients and the load generator look for a password."""
        return {CLIENT_PASSWORD_VARIABLE: self.password} if self.password else {}


Value = int | float | str | None  # of a variable, as JSON keeps it


class ServerError(TrialError):
    """What a server refused, or how it broke off; the text is one line and fit to print."""

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(one_line(text))
        self.code = code  # the product's own; 0 where it gave none


class NotStartedError(TrialError):
    """A server of dbdyno's own that does not come to answer; ``code`` is how its process ended, None while it runs."""

    def __init__(self, text: str, code: int | None) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True)
class Settings:
    """What a server says of itself."""

    version: str
    data_folder: Path
    variables: Mapping[str, str]
    worth_showing: frozenset[str]  # the variables that decide how a load fares, whether or not a study sets them
    comparable: Mapping[str, str]  # all variables that are settings: no place, no build, no moment
    engines: Sequence[str]
    tls: str  # of the connection that asked; "none" where it is not encrypted


How = Literal[
    "as asked",
    "another name",  # the same value, as the server calls it
    "not granted",  # it shows what was asked for, and says in its log that the host does not give it
    "no effect",  # it is taken, and changes nothing on this host
    "in name only",  # of tables: it is kept in their definition, and they are otherwise
    "adjusted",  # another value
    "limited",  # another value, as the process may open so many files and no more
    "unknown",  # no variable that it shows
    "refused",  # it does not start with it
    "not tried",  # as the host has too little for a trial of it
]
# Those with which a trial goes on.
HOLDS: frozenset[How] = frozenset({"as asked", "another name", "not granted", "no effect", "in name only", "not tried"})


@dataclass(frozen=True)
class SettingOutcome:
    """What a server made of one setting."""

    name: str
    asked: Setting
    how: How
    got: str = ""  # as the server shows it; empty where it shows nothing
    said: str = ""  # by the server, in its log

    @property
    def holds(self) -> bool:
        """Whether a trial may go on with it."""
        return self.how in HOLDS

    @property
    def text(self) -> str:
        """What became of it, in a sentence that follows the setting's name."""
        setting, because = _setting_text(self.asked), f" ({self.said})" if self.said else ""
        texts: dict[How, str] = {
            "as asked": f"is {setting}",
            "another name": f"{setting} is taken; the server calls it {self.got}",
            "not granted": f"{setting} is shown by the server but not granted by this host: {self.said}",
            "no effect": f"{setting} changes nothing here: {self.said}",
            "in name only": f"the server takes {setting}, and tables have it in name only: {self.said}",
            "adjusted": f"asked for {setting}, the server took {self.got}{because}",
            "limited": f"asked for {setting}, the server took {self.got}, "
            f"limited by how many files it may open{because}",
            "unknown": f"the server shows no such variable, so it can't be read back{because}",
            "refused": self.said,
            "not tried": f"{setting} was not tried here: {self.said}",
        }
        return texts[self.how]


def _setting_text(value: Setting) -> str:
    return str(value).lower() if isinstance(value, bool) else one_line(str(value))


@dataclass(frozen=True)
class LoadTable:
    """One table of a load."""

    name: str
    engine: str
    row_format: str
    options: str = ""  # that the server keeps of the statement that made it


@dataclass(frozen=True)
class TableFormats:
    """What a server made of the options that its tables were to have."""

    shown: Mapping[str, str]  # facts of the tables, as the server shows them
    missing: str  # what they have in name only or not at all, and in which table; empty if nothing


class Status(Protocol):
    """A reader of one server's counters, over a connection of its own."""

    counters: tuple[str, ...]  # that become rates per second
    gauges: tuple[str, ...]  # that are shown as they stand

    def text(self) -> str:
        """All as they stand, by one question."""

    def numbers(self, text: str) -> dict[str, float]:
        """What ``text`` holds, by name. Raises ``ServerError`` where it is none."""

    def thread(self) -> int | None:
        """The number that the server's host knows the thread by that answers; ``None`` where it does not say."""

    def close(self) -> None:
        """End the connection."""


class Server(Protocol):
    """A server that answers, whoever started it."""

    def settings(self) -> Settings:
        """Its version, variables and engines."""

    def status(self) -> Status:
        """A reader of its counters."""

    def tables(self, schema: str) -> list[LoadTable]:
        """The tables of a schema, without dbdyno's own mark."""

    def table_formats(self, schema: str, tables: Sequence[LoadTable], options: str) -> TableFormats:
        """What ``tables``, one at least, have of the options that were added to CREATE TABLE."""

    def encrypted_files(self, schema: str) -> int:
        """How many files of a schema's tables are encrypted, as far as it shows that."""

    def encrypts(self, schema: str) -> bool:
        """Whether tables of a schema, which has some, are encrypted unless they say otherwise, as far as shown."""

    def try_table(self, engine: str, options: str) -> SettingOutcome:
        """What it makes of options in CREATE TABLE, by making a table in a schema of its own."""

    def create_schema(self, schema: str) -> None:
        """Make an empty schema."""

    def admit(self, user: str, password: str, schema: str) -> None:
        """Make an account that any host may log in to, with all rights on one schema and none elsewhere."""

    def cause(self, log: Path) -> str:
        """Why it ended, in one sentence, from its error log."""

    def setting_outcomes(self, settings: Mapping[str, Setting], readback: Settings, log: str) -> list[SettingOutcome]:
        """What it made of each setting, by what it shows and by its error log."""

    def not_granted(self, readback: Settings, log: str) -> dict[str, str]:
        """Variables that are on though the host does not give what they ask for, each with the server's sentence."""


# A source and its replica: two servers of dbdyno's own; the second carries out what the first wrote to its log.


ReplicaMode = Literal["async", "semisync"]
WaitPoint = Literal["after_sync", "after_commit"]  # of the replica's word: before or after the engine's own commit


@dataclass(frozen=True)
class ReplicaTerms:
    """How commits at a source and its replica go together."""

    mode: ReplicaMode
    wait_point: WaitPoint = "after_sync"
    timeout_seconds: float = 10.0  # after which a semi-synchronous source no longer waits


@dataclass(frozen=True)
class Replicating:
    """What a server of dbdyno's own is in replication."""

    role: Literal["source", "replica"]
    terms: ReplicaTerms


@dataclass(frozen=True)
class ReplicaPosition:
    """How far a replica is, in bytes of its source's binary log since its first file."""

    written_bytes: float  # by the source
    received_bytes: float
    applied_bytes: float
    seconds_behind: float  # the replica's own figure, in whole seconds; NaN where it gives none


@dataclass(frozen=True)
class ReplicaHealth:
    """Whether a replica follows, and whether the source waits for it."""

    trouble: str  # why it does not, in one sentence; empty where it does
    waited: int = 0  # times that commits waited for the replica's word, of a semi-synchronous source
    waited_seconds: float = 0.0  # all of them together
    not_waited: int = 0  # those that did not wait, as there was no replica or it was too slow


class ReplicaReader(Protocol):
    """A reader of a replica's position, over connections of its own."""

    def position(self) -> ReplicaPosition:
        """Where source and replica are."""

    def close(self) -> None:
        """End the connections."""


class Replication(Protocol):
    """A source and a replica that both answer."""

    def begin(self, host: str, port: int, password: str) -> None:
        """Have the replica follow the source, which listens there, from where that stands now.

        It logs in by an account made for it. Raises ``TrialError`` where it does not come to follow.
        """

    def health(self) -> ReplicaHealth:
        """Whether the replica follows, and how commits wait."""

    def round_trip_ms(self, host: str, port: int, password: str) -> float:
        """The shortest of a few pings to the source over the replica's way to it."""

    def settle(self, limit_seconds: float) -> None:
        """Wait until the replica of a source that is gone has applied what it had received.

        Raises ``TrialError`` where that takes longer, or where the replica does not apply it.
        """

    def observed(self) -> dict[str, str]:
        """What both show of themselves in replication. Raises ``TrialError`` where it is not what was asked for."""

    def reader(self) -> ReplicaReader:
        """A reader of the replica's position."""


# A cluster: servers of dbdyno's own that all have the same data, and commit in the same order.


@dataclass(frozen=True)
class ClusterTerms:
    """What the nodes of a cluster have in common."""

    nodes: int
    options: Mapping[str, int | float] = field(default_factory=dict)  # of what connects them, by its own names


@dataclass(frozen=True)
class Membership:
    """What a server of dbdyno's own is in a cluster."""

    terms: ClusterTerms
    number: int  # 1 begins the cluster
    host: str  # one of this machine's own addresses, at which it listens for the other nodes
    port: int = 0  # 0: one that is free
    cluster: str = ""  # its name, which no other cluster has; empty: it gets one
    peer: str = ""  # HOST:PORT of a node by which it joins; empty where it begins the cluster


@dataclass(frozen=True)
class NodeStatus:
    """What a node of a cluster has done so far, and what is still to do."""

    sent: float  # write sets of its own clients, which all nodes have
    applied: float  # the number of the last write set that it has committed, of any node
    failed: float  # write sets of its own clients that were refused, as others had changed the same rows
    paused_seconds: float  # in which a node that fell behind had all others wait
    queue: float  # write sets that it has received and not begun to apply
    ordered: float  # messages of its own that all nodes have received
    ordering_seconds: float  # that these have taken, together


class ClusterReader(Protocol):
    """A reader of what all nodes have done, over a connection to each."""

    def statuses(self) -> list[NodeStatus]:
        """Of each node, in their order."""

    def close(self) -> None:
        """End the connections."""


class Cluster(Protocol):
    """Nodes of one cluster that answer, in the order in which they joined."""

    def position(self) -> tuple[str, str]:
        """Name and content of the file by which a copy of the data that the nodes have now joins as it is."""

    def await_joined(self) -> None:
        """Wait until each node says that all of them are there, and that it has all. Raises ``TrialError``."""

    def observed(self) -> dict[str, str]:
        """What they show of themselves. Raises ``TrialError`` where it is not what was asked for."""

    def await_applied(self, limit_seconds: float) -> None:
        """Wait until each node has applied all that the first had committed. Raises ``TrialError``."""

    def settle(self, limit_seconds: float) -> None:
        """Wait until the nodes that are left, once the first is gone, have agreed on that and applied all they have.

        Raises ``TrialError`` where that takes longer.
        """

    def reader(self) -> ClusterReader:
        """A reader of what all have done."""


class OwnServer(Protocol):
    """A server of dbdyno's own: what it is started with, and how."""

    @property
    def settings(self) -> Mapping[str, Setting]:
        """All that it is started with: the study's settings and what dbdyno adds."""

    @property
    def data_settings(self) -> Mapping[str, Setting]:
        """Those of the study's settings on which the bytes of prepared data may depend."""

    def mistakes(self) -> dict[str, str]:
        """What is wrong with the study's settings, by their names. Raises ``UserError``."""

    def place_mistakes(self, places: Collection[str]) -> dict[str, str]:
        """Why parts of it can't lie on a disk of their own, by the fields of ``[server.place]``."""

    def places_of(self, readback: Settings) -> dict[str, Path]:
        """The folder in which each part lies, by the same names, as far as the server says."""

    def amounts(self) -> tuple[dict[str, int], dict[str, int]]:
        """Bytes of memory, and bytes of the disk that data lie on, which it takes at once, by the settings for it."""

    def refusal(self, log: str) -> tuple[str, str]:
        """Which setting a server that would not start names in its logs, "" for none, and its sentence, "" for none."""

    def install(
        self, data: Path, environment: Mapping[str, str], log: Path, places: Mapping[str, Path] | None = None
    ) -> None:
        """Make the system tables in an empty folder, and what lies elsewhere. Raises ``TrialError``."""

    def command(  # noqa: PLR0913  (what a server is started with)
        self,
        data: Path,
        socket: Path,
        log: Path,
        *,
        preparing: bool = False,
        listening: Listening | None = None,
        places: Mapping[str, Path] | None = None,
        replicating: Replicating | None = None,
        membership: Membership | None = None,
    ) -> list[str]:
        """The command line that starts it; ``preparing`` data, it leaves nothing that depends on other settings.

        Without ``listening`` no other host can reach it. ``places`` are the folders of parts that lie elsewhere.
        """

    def replication_mistake(self, mode: ReplicaMode) -> str:
        """Why it can't be a source or a replica; empty where it can."""

    def cluster_mistake(self) -> str:
        """Why it can't be a node of a cluster on this host; empty where it can. Raises ``UserError``."""

    def is_copied(self, name: str) -> bool:
        """Whether a further server begins with a copy of this file or folder of the data."""

    def replication(self, source: Address, replica: Address, terms: ReplicaTerms) -> Replication:
        """It as a source, and a replica of the same build, once both answer."""

    def cluster(self, nodes: Sequence[Address], terms: ClusterTerms) -> Cluster:
        """Nodes of a cluster of the same build, as far as they have been started."""

    def await_ready(
        self, running: "subprocess.Popen[bytes]", socket: Path, log: Path, limit_seconds: float | None = None
    ) -> None:
        """Wait until it answers, not beyond the limit. Raises ``NotStartedError`` with the cause where it does not."""

    def page_files(self, data: Path) -> list[Path]:
        """The files whose pages it overwrites in place, and those of the doublewrite buffer, as far as they exist."""

    def stop(self, running: "subprocess.Popen[bytes]") -> None:
        """End it: politely, then for good. Raises ``TrialError``."""

    def at(self, address: Address) -> Server:
        """It, once it answers."""


@dataclass(frozen=True)
class Thing:
    """Something in a database."""

    kind: str
    name: str
    comment: str


@dataclass(frozen=True)
class Holdings:
    """What a database holds."""

    token: str | None  # of the mark, if it is there
    ours: list[Thing]  # what dbdyno made, but for the mark
    others: list[Thing]  # in a database without the mark, all of it


class Database(Protocol):
    """The database of an external server that a study may use."""

    def exists(self) -> bool:
        """Whether there is such a database, as far as this login may know."""

    def holdings(self) -> Holdings:
        """What it holds, and whose that is."""

    def lock(self) -> None:
        """Keep out other runs until the session ends. Raises ``HostError`` where one is at it."""

    def mark(self, token: str) -> None:
        """Mark it as this run's."""

    def unmark(self) -> None:
        """Take the mark away."""

    def drop(self, things: Sequence[Thing]) -> None:
        """Drop what dbdyno made."""


class Session(Protocol):
    """A login on an external server."""

    def variable(self, name: str) -> Value:
        """What a variable is."""

    def as_set(self, value: Setting, now: Value) -> Value:
        """A study's value the way ``set_variable`` takes it; ``now`` is what the variable is."""

    def set_variable(self, name: str, value: Value) -> None:
        """Set a variable for all users, and wait until that is done."""

    def why_not_settable(self, name: str, value: Setting) -> str:
        """What the server has against setting a variable while it runs; empty if nothing. Changes nothing."""

    def settings(self) -> Settings:
        """As ``Server`` has it."""

    def connections(self) -> tuple[Value, Value]:
        """How many connections the server allows, and how many are taken, as it says."""

    def version(self) -> str:
        """The version that it reports, with its build's comment."""

    def database(self, name: str) -> Database:
        """One of its databases."""

    def account(self, token: str) -> tuple[str, str]:
        """User and host of a run's account, confined to its database. Raises ``HostError`` where none can be made."""

    def why_no_account(self, database: str) -> tuple[str, str] | None:
        """Why no such account can be made, and what to do about it. Changes nothing but the session."""

    def drop_account(self, user: str, host: str) -> bool:
        """Drop an account and end its sessions; whether it was there."""

    def keep_open(self) -> None:
        """Keep the session through whole trials in which nothing is asked."""

    def ping(self) -> None:
        """Ask for a sign of life."""

    def close(self) -> None:
        """End it, and with it its locks."""


class ExternalServer(Protocol):
    """A server that dbdyno neither starts nor stops. Each member raises ``UserError`` for an option file of no use."""

    @property
    def address(self) -> Address:
        """Where it listens and how one logs in."""

    @property
    def server(self) -> Server:
        """What it can be asked."""

    def connected(self) -> Session:
        """Log in. Raises ``TrialError`` where the server is away, ``HostError`` where it refuses the login."""

    def session(self, patience_seconds: float = 0.0) -> AbstractContextManager[Session]:
        """The same for as long as the context lasts; what is refused in it names the server."""
