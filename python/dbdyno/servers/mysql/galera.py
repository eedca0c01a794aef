"""Nodes of a Galera cluster: the options of each, how a copy of the data joins, and what all have done.

Each node begins with a copy of the same data and is told so by the file in which Galera keeps a node's position, with
the position of the nodes that are there already: so no state is transferred, and none could be, as the method of
transfer that nodes are started with does not exist. Sources: Galera's and MariaDB's manuals, pages of the wsrep
variables, of ``wsrep_provider_options`` and of the status variables.
"""

import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import TrialError
from dbdyno.model.printable import short
from dbdyno.mysql.settings import CLUSTER_SETTINGS, GALERA_OPTIONS, NEEDED_BY_CLUSTER
from dbdyno.servers.contract import Address, ClusterTerms, Membership, NodeStatus, ServerError
from dbdyno.servers.mysql.connection import Cursor, connect, rows
from dbdyno.servers.sources.installation import Installation
from dbdyno.servers.user import answer

SINCE = (10, 4)  # the first MariaDB with Galera 4, all of whose versions it takes
LIBRARY = "libgalera_smm.so"
_PLACES = ("lib/galera-4", "lib64/galera-4", "lib/galera", "lib64/galera", "usr/lib/galera-4", "usr/lib/galera")
_HOST = Path("/usr")
_LIST_BYTES_MAX, _LIST_SECONDS = 65536, 20.0
_GALERA_4 = re.compile(r"(?:26\.)?4\.")  # of a version, with or without that of the interface
NO_TRANSFER = "none"  # a method that there is not
SAVED_STATE = "grastate.dat"
JOIN_SECONDS = 60.0  # in which a node must have joined
POLL_SECONDS = 0.02
_LOCK_WAIT_TIMEOUT = 1205  # how a node says that it has not applied all within repl.causal_read_timeout


def cluster_mistake(installation: Installation) -> str:
    """Why a build can be no node of a cluster on this host; empty where it can."""
    if installation.product != "mariadb" or installation.release < SINCE:
        return f"{installation.title} has no Galera 4, which comes with MariaDB since 10.4"
    library = library_of(installation)
    if library is None:
        return (
            f"neither {installation.title} ({installation.name}) nor this host has {LIBRARY}; "
            "apt-get install galera-4, which starts no service"
        )
    if missing := _missing_for(installation, library):
        return f"{library} does not fit {installation.title} ({installation.name}): {missing}; name another server"
    return ""


def library_of(installation: Installation) -> Path | None:
    """Galera's library: that of the server's own tree, or else that of this host."""
    folders = (base / place for base in (installation.basedir, _HOST) for place in _PLACES)
    return next((folder / LIBRARY for folder in folders if (folder / LIBRARY).is_file()), None)


def _missing_for(installation: Installation, library: Path) -> str:
    """What a server that is run by a loader of its own does not have for this host's library, in the loader's words."""
    runner = installation.runner
    if not runner or not Path(runner[0]).name.startswith("ld-"):
        return ""
    said = answer([*runner, "--list", str(library)], "both", _LIST_SECONDS, _LIST_BYTES_MAX).decode(errors="replace")
    return next((short(line.strip(), 200) for line in said.splitlines() if "not found" in line), "")


def cluster_options(installation: Installation, membership: Membership) -> list[str]:
    """What makes a server a node; after its other options."""
    place = f"{membership.host}:{membership.port}"
    # Figures of latency would else begin anew each minute.
    own = {
        "gmcast.listen_addr": f"tcp://{place}",
        "evs.stats_report_period": "PT24H",
    }
    provider = ";".join(f"{name}={value}" for name, value in {**membership.terms.options, **own}.items())
    options = {
        "wsrep_on": "ON",
        "wsrep_provider": library_of(installation),
        "wsrep_provider_options": provider,
        "wsrep_cluster_name": membership.cluster,
        "wsrep_cluster_address": f"gcomm://{membership.peer}",
        "wsrep_node_address": place,
        "wsrep_node_name": f"node{membership.number}",
        "wsrep_sst_method": NO_TRANSFER,
        **NEEDED_BY_CLUSTER,
    }
    begin = [] if membership.peer else ["--wsrep-new-cluster"]
    return [*(f"--{name.replace('_', '-')}={value}" for name, value in options.items()), *begin]


@dataclass(frozen=True)
class GaleraCluster:
    """Nodes that answer, in the order in which they joined. Each method raises ``ServerError``."""

    nodes: tuple[Address, ...]
    terms: ClusterTerms

    def position(self) -> tuple[str, str]:
        """Name and content of the file by which a copy of the data that the nodes have now joins as it is."""
        status = _status_of(self.nodes[0])
        uuid, number = status.get("cluster_state_uuid", ""), status.get("last_committed", "")
        state = f"version: 2.1\nuuid:    {uuid}\nseqno:   {number}\nsafe_to_bootstrap: 0\n"
        return SAVED_STATE, f"# GALERA saved state\n{state}"

    def await_joined(self) -> None:
        """Wait until each node says that all of them are there, and that it has all. Raises ``TrialError``."""
        _await_size(self.nodes, len(self.nodes), JOIN_SECONDS)

    def observed(self) -> dict[str, str]:
        """What they show of themselves. Raises ``TrialError`` where it is not what was asked for."""
        shown: dict[str, str] = {}
        for number, node in enumerate(self.nodes, 1):
            with connect(node) as connection, connection.cursor() as cursor:
                cursor.execute("SHOW GLOBAL VARIABLES")
                variables = {str(name): str(value) for name, value in rows(cursor, 2)}
                status = _status(cursor)
            for name, value in NEEDED_BY_CLUSTER.items():
                if variables.get(name) != value:
                    got = variables.get(name, "no such variable")
                    raise TrialError(f"server.cluster: node {number} needs {name} = {value}, it has {got}")
            options = provider_options(variables.get("wsrep_provider_options", ""))
            for name, asked in self.terms.options.items():
                if not _is_same(options.get(name, ""), asked):
                    got = options.get(name) or "no such option"
                    raise TrialError(f"server.cluster: asked for {name} = {asked}, node {number} took {got}")
            version = status.get("provider_version", "")
            if not _GALERA_4.match(version):
                raise TrialError(f"server.cluster: node {number} runs Galera {version or 'of no version'}, not 4")
            shown = {"provider_version": version, "size": status.get("cluster_size", "")}
            shown |= {name: options[name] for name in GALERA_OPTIONS if name in options}
            shown |= {name: value for name, value in variables.items() if name in _SHOWN_VARIABLES}
        return {name: short(value) for name, value in sorted(shown.items())}

    def await_applied(self, limit_seconds: float) -> None:
        """Wait until each node has applied all that the first had committed. Raises ``TrialError``."""
        deadline = time.monotonic() + limit_seconds
        for node in self.nodes[1:]:
            _await_all_applied(node, deadline, limit_seconds)

    def settle(self, limit_seconds: float) -> None:
        """Wait until the nodes that are left have agreed that the first is gone, and applied all that they have."""
        deadline = time.monotonic() + limit_seconds
        _await_size(self.nodes[1:], len(self.nodes) - 1, limit_seconds)
        for node in self.nodes[1:]:
            _await_all_applied(node, deadline, limit_seconds)

    def reader(self) -> "GaleraReader":
        """A reader of what all have done."""
        return GaleraReader(self.nodes)


_SHOWN_VARIABLES = {*NEEDED_BY_CLUSTER, *CLUSTER_SETTINGS}


class GaleraReader:
    """All nodes, each over a connection of its own. Raises ``ServerError``."""

    def __init__(self, nodes: Sequence[Address]) -> None:
        self._connections = [connect(node) for node in nodes]
        self._cursors = [connection.cursor() for connection in self._connections]

    def statuses(self) -> list[NodeStatus]:
        """Of each node, in their order; the first is asked first, so that what others lack is never overstated."""
        return [node_status(_status(cursor)) for cursor in self._cursors]

    def close(self) -> None:
        """End the connections."""
        for connection in self._connections:
            connection.close()


def node_status(status: Mapping[str, str]) -> NodeStatus:
    """What a node has done, by its status. Raises ``ServerError`` where it does not say so."""
    try:
        # Seconds: least, mean, largest, standard deviation; and how many there were.
        _, mean, _, _, count = (float(part) for part in status["evs_repl_latency"].split("/"))
        return NodeStatus(
            sent=float(status["replicated"]),
            applied=float(status["last_committed"]),
            failed=float(status["local_cert_failures"]),
            paused_seconds=float(status["flow_control_paused_ns"]) / 1e9,
            queue=float(status["local_recv_queue"]),
            ordered=count,
            ordering_seconds=mean * count,
        )
    except (KeyError, ValueError) as error:
        raise ServerError(f"the node's status is not that of Galera 4: {error}") from error


def provider_options(text: str) -> dict[str, str]:
    """The options of Galera as the server shows them: ``gcs.fc_limit = 16; gcs.fc_factor = 1.0; ``."""
    pairs = (part.partition("=") for part in text.split(";") if "=" in part)
    return {name.strip(): value.strip() for name, _, value in pairs}


def _is_same(shown: str, asked: float) -> bool:
    try:
        return math.isclose(float(shown), asked)
    except ValueError:
        return False


_PREFIX = "wsrep_"


def _status(cursor: Cursor) -> dict[str, str]:
    """A node's counters, without what their names have in common."""
    cursor.execute(f"SHOW GLOBAL STATUS LIKE '{_PREFIX}%'")
    return {str(name).removeprefix(_PREFIX): str(value) for name, value in rows(cursor, 2)}


def _status_of(node: Address) -> dict[str, str]:
    with connect(node) as connection, connection.cursor() as cursor:
        return _status(cursor)


def _await_size(nodes: Sequence[Address], size: int, limit_seconds: float) -> None:
    """Wait until each of the nodes says that so many are there, that they may commit, and that it has all."""
    wanted = {"cluster_size": str(size), "cluster_status": "Primary", "local_state_comment": "Synced", "ready": "ON"}
    deadline = time.monotonic() + limit_seconds
    for node in nodes:
        while (status := _status_of(node)) | wanted != status:
            if time.monotonic() > deadline:
                lacking = (name for name, value in wanted.items() if status.get(name) != value)
                said = ", ".join(f"{_PREFIX}{name} = {short(status.get(name, 'nothing'), 40)}" for name in lacking)
                raise TrialError(f"server.cluster: after {limit_seconds:g} s a node still says {said}")
            time.sleep(POLL_SECONDS)


def _await_all_applied(node: Address, deadline: float, limit_seconds: float) -> None:
    """Wait until a node has applied all that was committed anywhere before this question."""
    with connect(node) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION wsrep_sync_wait = 1")
        while True:
            try:
                cursor.execute("SELECT COUNT(*) FROM mysql.global_priv")
                rows(cursor, 1)
            except ServerError as error:
                if error.code != _LOCK_WAIT_TIMEOUT or time.monotonic() > deadline:
                    waited = f"within {limit_seconds:.0f} s"
                    raise TrialError(f"server.cluster: a node has not applied all {waited}: {error}") from None
            else:
                return
