"""Ray on this host: started with its undo on disk before each step, found again, and ended."""

import fcntl
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import psutil

from dbdyno.errors import HostError
from dbdyno.model.printable import short
from dbdyno.stack.undo.leftovers import Leftover, leftovers, replay, taken
from dbdyno.stack.undo.log import Journal
from dbdyno.stack.undo.undos import TOKEN_VARIABLE, EndProcesses, RemoveRayFolder, marked
from dbdyno.store.documents import json_object, value_of
from dbdyno.system.files import read_regular, why_open_to_others
from dbdyno.system.state import make_state_folder, new_token

# What stands in the way of Ray on this host: found before it is started, as Ray itself waits a minute and guesses.


def lacking_for_ray(ray_folder: Path, ports: Iterable[int]) -> list[str]:
    """Return a sentence for each; none where it can be started."""
    wrong = [f"{ray_folder}: {why}; name another by ray_folder in the hosts file" for why in _why_unusable(ray_folder)]
    if taken := [str(port) for port in ports if not _is_free(port)]:
        which = f"port {taken[0]} is" if len(taken) == 1 else f"ports {', '.join(taken)} are"
        wrong.append(f"{which} in use (ss -tlnp shows by whom); name others by first_port in [cluster]")
    return wrong


def _why_unusable(folder: Path) -> Iterable[str]:
    if not folder.is_dir():
        yield "there is no such folder"
    elif not os.access(folder, os.W_OK | os.X_OK):
        yield "this user may not write to it"
    elif why := why_open_to_others(folder):  # so could replace the folder of Ray in it
        yield why


def _is_free(port: int) -> bool:
    """Whether no program listens there; what is left of closed connections does not count (socket(7))."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("", port))
        except OSError:
            return False
        return True


HOST_LABEL, HERE_LABEL = "dbdyno-host", "dbdyno-here"  # of nodes of Ray
START_SECONDS = 120.0
_GRACE_SECONDS = 3.0  # a raylet takes one or two to end; what holds the head's tables takes no SIGTERM
_RECORD = "node.json"  # what a node was to be
_RECORD_MAX_BYTES = 1024**2
# Ray lets all users write to what it is given, and follows links there; so it is given a folder that no other user gets
# to: the one around it is the user's alone. Names are short, as the name of a socket below has 107 bytes (unix(7)).
_RAY_OWN = "r"
_MARK_LENGTH = 10
_WHAT = "Ray of dbdyno hosts"  # how the undo logs of this file begin; others may have theirs in the same folder
_MIB = 1024**2
# What Ray reads from its environment. A disk that is busy with a study holds up its answers, which is no reason to take
# the host for dead; nor is memory that a server's buffer pool fills, or a disk that is nearly full, one to end actors.
SETTINGS = {
    "RAY_AUTH_MODE": "token",
    "RAY_NUM_REDIS_GET_RETRIES": "5",  # seconds that joining a head may take
    "RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL": "minor",
    "RAY_ROTATION_BACKUP_COUNT": "1",
    "RAY_ROTATION_MAX_BYTES": str(4 * _MIB),
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_enable_metrics_collection": "0",
    "RAY_health_check_failure_threshold": "10",
    "RAY_health_check_period_ms": "3000",
    "RAY_health_check_timeout_ms": "30000",
    "RAY_local_fs_capacity_threshold": "1",
    "RAY_memory_monitor_refresh_ms": "0",
    "RAY_worker_niceness": "0",  # else what is started there yields to all else, a server under test as well
    "SPT_NOENV": "1",  # its processes rename themselves; by what they have of their environment they are ended
    # What an idle node costs: looks that Ray makes five to ten times a second, and statistics and threads of its own.
    "RAY_debug_dump_period_milliseconds": "0",
    "RAY_event_stats": "0",
    "RAY_free_objects_period_milliseconds": "10000",
    "RAY_io_context_monitor_probe_interval_ms": "60000",
    "RAY_kill_idle_workers_interval_ms": "5000",
    "RAY_local_fs_monitor_interval_ms": "60000",
    "RAY_object_manager_client_connection_num": "1",
    "RAY_object_manager_rpc_threads_num": "1",
    "RAY_object_manager_timer_freq_ms": "1000",
    "RAY_prestart_worker_first_driver": "0",
    "RAY_raylet_check_for_unexpected_worker_disconnect_interval_ms": "5000",
    "RAY_raylet_check_gc_period_milliseconds": "10000",
    "RAY_raylet_report_resources_period_milliseconds": "5000",
    "RAY_task_events_report_interval_ms": "0",
}
# Ports from the first one of a node on, by Ray's own names; its workers have those from 10 to 89.
_PORTS = ("node-manager-port", "object-manager-port", "metrics-export-port", "runtime-env-agent-port",
          "dashboard-agent-listen-port", "dashboard-agent-grpc-port")  # fmt: skip
_WORKER_PORTS = (10, 89)
NODE_PORTS = 100
_AGENTS = ("ray::DashboardAgent", "ray::RuntimeEnvAgent")
_VITAL = {"raylet": "Ray's node", "gcs_server": "Ray's head"}


@dataclass(frozen=True)
class Node:
    """What a host's Ray is to be."""

    cluster: str  # which bringing-up it belongs to
    label: str  # of the host; empty for the machine that brings up, which no study's work is placed on
    gcs: str  # address and port that the cluster is joined at
    head: bool
    address: str
    first_port: int
    ray_folder: str
    object_store_bytes: int
    token: bool = True  # whether the cluster asks for one
    joined: bool = False  # whether it is another's cluster

    def command(self, folder: Path) -> list[str]:
        """Ray's command line, its files in a folder."""
        low, high = (self.first_port + port for port in _WORKER_PORTS)
        ports = [f"--{name}={self.first_port + place}" for place, name in enumerate(_PORTS)]
        head = ["--head", f"--port={self.gcs.rpartition(':')[2]}", "--include-dashboard=false", "--no-monitor"]
        where = head if self.head else [f"--address={self.gcs}"]
        cores = [] if self.label else ["--num-cpus=0"]
        label = f"--labels={HOST_LABEL}={self.label}" if self.label else f"--labels={HERE_LABEL}=yes"
        common = ["--include-log-monitor=false", "--disable-usage-stats"]
        common += ["--log-color=false", f"--temp-dir={folder}", f"--object-store-memory={self.object_store_bytes}"]
        workers = [f"--min-worker-port={low}", f"--max-worker-port={high}", f"--node-ip-address={self.address}"]
        ray = [sys.executable, "-m", "ray.scripts.scripts", "start"]
        return [*ray, *where, *cores, label, *common, *ports, *workers]


@dataclass(frozen=True)
class Running:
    """Ray as it runs here."""

    cluster: str
    processes: int
    raylet: bool  # the process that stands for the host in its cluster
    head: bool  # the process that all hosts join
    python: str  # that its workers run
    folder: str  # with its files; no two nodes ever have the same


def ports_of(first_port: int) -> list[int]:
    """Those of a node that must be free; its workers pass over one that is taken."""
    return [first_port + place for place in range(len(_PORTS))]


def ray_settings(token_file: Path | None) -> dict[str, str]:
    """The environment of everything that belongs to a cluster, with the file of its token, if it has one."""
    if token_file is None:
        return {**SETTINGS, "RAY_AUTH_MODE": "disabled"}
    return {**SETTINGS, "RAY_AUTH_TOKEN_PATH": str(token_file)}


def running() -> Running | None:
    """What was started here and has not been put back."""
    for found in _ours():
        pids = marked({undo.token for _, undo in found.undos if isinstance(undo, EndProcesses)})
        for folder in _folders(found):
            said = _record_of(folder)
            names = {_name_of(pid) for pid in pids}
            here, head = "raylet" in names, "gcs_server" in names
            return Running(said.cluster, len(pids), here, head, said.python, str(folder))
    return None


@dataclass(frozen=True)
class _Record:
    """What a node was to be, as far as it is asked for later."""

    cluster: str = ""
    python: str = ""
    joined: bool = False


def _record_of(folder: Path) -> _Record:
    """What a node was to be, by its folder; nothing where that is gone. Raises ``HostError`` where that is damaged."""
    path = folder / _RECORD
    try:
        found = json_object(read_regular(path, _RECORD_MAX_BYTES, follow=False))
        return value_of(_Record, {one.name: found[one.name] for one in fields(_Record)})
    except (FileNotFoundError, NotADirectoryError):
        return _Record()
    except (OSError, ValueError, KeyError) as error:
        lacking = f"{error} is missing" if isinstance(error, KeyError) else ""
        why = lacking or getattr(error, "strerror", None) or str(error)
        raise HostError(
            f"{path}: can't be read, so it is unknown what Ray runs for here: {short(why)}; "
            "dbdyno hosts down ends that Ray, then up starts it anew"
        ) from None


def vital() -> dict[int, str]:
    """The processes without which this host is in no cluster, by their numbers, and what each is."""
    tokens = {undo.token for found in _ours() for _, undo in found.undos if isinstance(undo, EndProcesses)}
    names = {pid: _name_of(pid) for pid in marked(tokens)}
    return {pid: _VITAL[name] for pid, name in names.items() if name in _VITAL}


def hold_agents() -> None:
    """Hold Ray's agents here still: no program of dbdyno asks them for anything, and both look about all the time.

    In another's cluster they are left alone. What ends Ray ends them.
    """
    for found in _ours():
        if any(_record_of(folder).joined for folder in _folders(found)):
            continue
        for pid in marked({undo.token for _, undo in found.undos if isinstance(undo, EndProcesses)}):
            with suppress(psutil.Error):
                process = psutil.Process(pid)
                # Ray's node waits for them to be ready.
                if process.cmdline()[0].strip() in _AGENTS and process.net_connections("tcp"):
                    process.suspend()


def start(node: Node, token: str) -> bool:
    """Start Ray unless it runs for this very cluster and dbdyno; what else was started before is put back first.

    Returns whether anything was done. Raises ``HostError``, with everything put back.
    """
    with _alone():
        before = running()
        whole = before is not None and before.raylet and (before.head or not node.head)
        if before and whole and (before.cluster, before.python) == (node.cluster, sys.executable):
            return False
        _put_back(lambda _: None)
        head = [int(node.gcs.rpartition(":")[2])] if node.head else []
        if lacking := lacking_for_ray(Path(node.ray_folder), [*ports_of(node.first_port), *head]):
            raise HostError("; ".join(lacking))
        journal = Journal(f"{_WHAT}, for {node.label or 'this machine'}")
        try:
            _start(node, token, journal)
        except BaseException:
            journal.close()
            raise
        return True  # the log stays: stop, or dbdyno restore once this process is gone, does what it says


def stop() -> tuple[list[str], bool]:
    """Put back whatever was started here, also by a process that was killed; what was done, and whether it was all."""
    said: list[str] = []
    with _alone():
        return said, _put_back(said.append)


def _start(node: Node, token: str, journal: Journal) -> None:
    mark = new_token()
    folder = Path(node.ray_folder) / f"dbdyno-ray-{mark[:_MARK_LENGTH]}"
    journal.announce(RemoveRayFolder(str(folder)))
    try:
        folder.mkdir(mode=0o700)
        (folder / "node.part").write_text(json.dumps({**asdict(node), "python": sys.executable}), encoding="utf-8")
        (folder / "node.part").rename(folder / _RECORD)  # a reader sees the whole file or none
        token_file = folder / "token"
        token_file.touch(mode=0o600)
        token_file.write_text(token, encoding="ascii")
    except OSError as error:
        raise HostError(f"{error.filename or folder}: {error.strerror}") from None
    journal.announce(EndProcesses(mark, "Ray", _GRACE_SECONDS))
    environment = {**os.environ, **ray_settings(token_file if node.token else None), TOKEN_VARIABLE: mark}
    with (folder / "start.log").open("w+b") as log:  # Ray's daemons would keep a pipe open
        try:
            done = subprocess.run(
                node.command(folder / _RAY_OWN),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                cwd="/",
                timeout=START_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise HostError(f"ray start is not done after {START_SECONDS:g} s; ended") from None
        if done.returncode:
            log.seek(0)
            raise HostError(f"ray start: {_last_words(log.read().decode(errors='replace'))}")


def _last_words(said: str) -> str:
    """The end of what Ray said, without its dates: tracebacks end with the reason."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return short(" / ".join(lines[-3:])) or "it said nothing"


def _put_back(say: Callable[[str], None]) -> bool:
    whole = True
    for found in _ours():
        # Its owner may be this very process, or one of an ssh that was killed: nobody else is in here.
        with taken(found.path, say, though_alive=True) as held:
            whole = (held is None or replay(held, say)) and whole
    return whole


@contextmanager
def _alone() -> Iterator[None]:
    """Wait until nobody else starts or stops Ray here."""
    handle = os.open(make_state_folder() / "node.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _ours() -> list[Leftover]:
    return [found for found in leftovers() if is_of_ray(found)]


def is_of_ray(found: Leftover) -> bool:
    """Whether an undo log is of Ray as it was started here: its owner ends at once, and that is no accident."""
    return found.what.startswith(_WHAT)


def _folders(found: Leftover) -> list[Path]:
    return [Path(undo.path) for _, undo in found.undos if isinstance(undo, RemoveRayFolder)]


def _name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def token_file() -> Path | None:
    """Where the token of what runs here lies."""
    return next((folder / "token" for found in _ours() for folder in _folders(found)), None)
