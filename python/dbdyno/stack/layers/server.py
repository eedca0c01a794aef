"""The server: started on the data below, its version and settings read back, its error log kept."""

import os
import socket as socketlib
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dbdyno.errors import HostError, TrialError
from dbdyno.model.printable import short
from dbdyno.mysql.settings import Setting
from dbdyno.servers.contract import (
    Address,
    Listening,
    Membership,
    NotStartedError,
    OwnServer,
    Replicating,
    SettingOutcome,
    Settings,
)
from dbdyno.servers.products import own_server
from dbdyno.servers.sources.installation import Installation
from dbdyno.servers.user import own_folder, read_log, unprivileged
from dbdyno.stack.layer import Endpoint, StackContext
from dbdyno.stack.layers.memory import killed_for_memory
from dbdyno.stack.layers.placement import Placement
from dbdyno.stack.tools import run_tool
from dbdyno.stack.undo.actions import TOKEN_VARIABLE, EndProcesses
from dbdyno.store.records import NOT_GRANTED
from dbdyno.system.child import exit_words
from dbdyno.system.state import new_token

DATA = "server"  # its folder, on whatever is below
TEMPORARY = "tmpdir"  # of what it has places for: empty as long as nothing is sorted
# In the scratch folder: what making the system tables said, and what the server says before it opens its error log.
INSTALL_LOG, SAID = "install.log", "server.said"


@dataclass(frozen=True)
class ServerLayer:
    """A server of our own on the folder below."""

    installation: Installation
    settings: Mapping[str, Setting]
    engine: str
    clients: int
    install: bool  # create the system tables first
    log: Path  # kept with the trial
    tables: Path | None = None  # where system tables are kept for other starts, once they are made
    placement: Placement = field(default_factory=Placement)
    places: Mapping[str, str] = field(default_factory=dict)  # what of it lies on which named disk, beside the data
    ready_seconds: float | None = None  # in which it must answer; the product's own limit if not given
    is_killed: bool = False  # rather than stopped, in the end: what it leaves is not wanted
    listen: str = ""  # the address of this machine at which others reach it; empty: they do not
    replicating: Replicating | None = None
    membership: Membership | None = None
    name: str = "server"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The server, answering on its socket."""
        with self._running(below) as (own, endpoint):
            observed = self._observe(own, endpoint, below)
            if endpoint.process:
                observed |= self.placement.observed(endpoint.process.pid)
            yield below.raised(self.name, observed, endpoint=endpoint)

    def try_settings(self, below: StackContext, table_options: str = "") -> list[SettingOutcome]:
        """Start it, and return what it made of each setting, and of the options of a table.

        Raises ``TrialError`` where it does not answer.
        """
        with self._running(below) as (own, endpoint):
            readback = self._answer(own, endpoint, below)
            outcomes = endpoint.control.setting_outcomes(own.settings, readback, server_logs(below, endpoint))
            tried = [endpoint.control.try_table(self.engine, table_options)] if table_options else []
            return [*outcomes, *tried]

    @contextmanager
    def _running(self, below: StackContext) -> Iterator[tuple[OwnServer, Endpoint]]:
        """Its process, which need not answer yet, for as long as the context lasts."""
        own = own_server(self.installation, self.engine, self.settings, self.clients)
        for name, mistake in own.mistakes().items():
            raise HostError(f"server.settings.{name}: {mistake}")
        for purpose, mistake in own.place_mistakes(self.places).items():
            raise HostError(f"server.place.{purpose}: {mistake}")
        token, data = new_token(), _data(below)
        home = below.scratch / "server"
        environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", TOKEN_VARIABLE: token}
        with below.journal.undoing(EndProcesses(token, "the database server")):
            own_folder(home)
            places = self._folders(below)
            error_log = home / "error.log"
            if self.install and self.tables and self.tables.is_dir():
                run_tool(["cp", "--archive", "--sparse=auto", str(self.tables), str(data)])
            elif self.install:
                own.install(data, environment, below.scratch / INSTALL_LOG, places)
                if self.tables:
                    run_tool(["cp", "--archive", "--sparse=auto", str(data), str(self.tables)])
            address = Address("root", home / "server.sock")
            listening, membership = self._listening(), self._membership()
            argv = own.command(
                data,
                home / "server.sock",
                error_log,
                preparing=self.install,
                listening=listening,
                places=places,
                replicating=self.replicating,
                membership=membership,
            )
            running = self._start(argv, below, environment)
            remote = Address("", host=listening.host, port=listening.port) if listening else None
            try:
                endpoint = Endpoint(own.at(address), address, running, error_log, below.cgroup, remote=remote)
                yield own, replace(endpoint, membership=membership)
            finally:
                if self.is_killed:
                    running.kill()
                own.stop(running)
                self._keep_log(error_log)

    def _folders(self, below: StackContext) -> dict[str, Path]:
        """A folder for each part of it that lies on a named disk."""
        folders = {}
        for purpose, name in self.places.items():
            directory = below.disks[name].directory
            assert directory is not None  # noqa: S101  (a named disk has a filesystem)
            own_folder(directory / DATA)
            folders[purpose] = directory / DATA / purpose
            own_folder(folders[purpose])
        return folders

    def _observe_places(self, own: OwnServer, readback: Settings, below: StackContext) -> dict[str, str]:
        """On which disk each part lies, by what the server says and what it made there."""
        shown = own.places_of(readback)
        for purpose, folder in self._folders(below).items():
            name = f"server.place.{purpose}"
            if shown.get(purpose) != folder:
                raise TrialError(f"{name}: asked for {folder}, the server took {shown.get(purpose) or 'no such place'}")
            if purpose != TEMPORARY and not any(folder.iterdir()):
                raise TrialError(f"{name}: the server shows {folder}, and has no file there")
        return {f"place of {purpose}": disk for purpose, disk in self.places.items()}

    def page_files(self, directory: Path) -> list[Path]:
        """The files below ``directory``, where the server's folder is, that it overwrites in place."""
        return own_server(self.installation, self.engine, self.settings, self.clients).page_files(directory / DATA)

    def _listening(self) -> Listening | None:
        """The port that the study sets, else one that is free. Raises ``HostError`` where the address is not ours."""
        if not self.listen:
            return None
        if "port" in self.settings:
            return Listening(self.listen, int(self.settings["port"]))
        try:
            return Listening(self.listen, free_port(self.listen))
        except OSError as error:
            raise HostError(
                f"{self.listen}: the server can't listen there: {error.strerror or error}; in the file of "
                "hosts, set cluster.address, or address of the host under test, to an address of this machine"
            ) from None

    def _membership(self) -> Membership | None:
        """Its place in a cluster, with the port at which the other nodes reach it. Raises ``HostError``."""
        if self.membership is None:
            return None
        host, cluster = self.membership.host, self.membership.cluster or new_token()
        try:
            return replace(self.membership, port=free_port(host), cluster=cluster)
        except OSError as error:
            text = f"server.cluster: node {self.membership.number} can't listen at {host}: {error.strerror or error}"
            raise HostError(f"{text}; this host's loopback interface must have all of 127.0.0.0/8") from None

    def _start(self, argv: list[str], below: StackContext, environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        """Its process. Before it opens its log it says which limits it met, and which settings it can't read."""
        with (below.scratch / SAID).open("wb") as early_log:
            return subprocess.Popen(
                self.placement.around(unprivileged(self.placement.preloading(argv), below.cgroup)),
                stdin=subprocess.DEVNULL,
                stdout=early_log,
                stderr=early_log,
                env=dict(environment),
                cwd="/",
                start_new_session=True,
            )

    def _answer(self, own: OwnServer, endpoint: Endpoint, below: StackContext) -> Settings:
        """What it says of itself, once it answers. Raises ``NotStartedError``."""
        running, error_log = endpoint.process, endpoint.error_log
        assert running is not None and error_log is not None  # noqa: S101, PT018  (this layer started it)
        try:
            own.await_ready(running, endpoint.socket, error_log, self.ready_seconds)
            return endpoint.control.settings()
        except TrialError as error:
            code = running.poll()
            why = how_it_ended(endpoint) or f"the server does not report its settings: {error}"
            if not read_log(error_log) and (refusal := own.refusal(server_logs(below, endpoint))[1]):
                why = f"{why}; it said: {refusal}"
            raise NotStartedError(why, code) from None

    def _observe(self, own: OwnServer, endpoint: Endpoint, below: StackContext) -> dict[str, Any]:
        readback, data = self._answer(own, endpoint, below), _data(below)
        if readback.data_folder != data:
            raise TrialError(f"the server uses other data than {data}")
        if not readback.version.startswith(self.installation.version.partition("-")[0]):
            version = short(readback.version)
            raise TrialError(f"the server reports version {version}, its program {self.installation.version}")
        if self.engine.lower() not in map(str.lower, readback.engines):
            engines = ", ".join(readback.engines)
            raise TrialError(f"stack.engine: the server has no engine {self.engine}; it has {engines}")
        log = server_logs(below, endpoint)
        check_outcomes(endpoint.control.setting_outcomes(own.settings, readback, log))
        lacking = endpoint.control.not_granted(readback, log)
        observed = shown_settings(readback, own.settings) | self._observe_places(own, readback, below)
        return observed | ({NOT_GRANTED: lacking} if lacking else {})

    def _keep_log(self, error_log: Path) -> None:
        content = read_log(error_log)
        if content is not None and self.log.parent.is_dir():
            self.log.write_bytes(content)


def shown_settings(readback: Settings, settings: Collection[str]) -> dict[str, str]:
    """What a trial keeps of a server's settings: what was asked for, and what is worth showing anyway."""
    names = sorted((readback.worth_showing | set(settings)) & readback.variables.keys())
    return {name: short(readback.variables[name]) for name in names} | {"engines": ", ".join(readback.engines)}


def check_outcomes(outcomes: Iterable[SettingOutcome]) -> None:
    """Raises ``TrialError`` where a server did not take a setting as it was asked for."""
    for outcome in outcomes:
        if not outcome.holds:
            raise TrialError(f"server.settings.{outcome.name}: {outcome.text}")


def free_port(host: str) -> int:
    """A TCP port of one of this machine's addresses that is free now. Raises ``OSError``."""
    with socketlib.create_server((host, 0)) as free:
        return int(free.getsockname()[1])


def server_logs(below: StackContext, endpoint: Endpoint | None = None) -> str:
    """What a server of dbdyno's own has said so far, and last what it said while its system tables were made."""
    log = [endpoint.error_log] if endpoint and endpoint.error_log else []
    places = [below.scratch / SAID, *log, below.scratch / INSTALL_LOG]
    return "\n".join((read_log(place) or b"").decode(errors="replace") for place in places)


def _data(below: StackContext) -> Path:
    assert below.directory is not None  # noqa: S101  (a filesystem or ``here`` is always below)
    return below.directory / DATA


def how_it_ended(endpoint: Endpoint) -> str:
    """Why a server of dbdyno's own is gone, in one sentence; empty while it runs."""
    code = endpoint.process.poll() if endpoint.process else None
    if code is None or endpoint.error_log is None:
        return ""
    if endpoint.cgroup and killed_for_memory(endpoint.cgroup):
        return "the kernel killed the server for going beyond stack.memory; give it more, or smaller caches"
    return f"the server ended ({exit_words(code)}): {endpoint.control.cause(endpoint.error_log)}"
