"""What a further server beside the measured one has of its own: a copy of the data, a disk, a log, a folder."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dbdyno.mysql.settings import Setting
from dbdyno.servers.contract import OwnServer
from dbdyno.servers.products import own_server
from dbdyno.servers.user import own_folder
from dbdyno.stack.layer import Endpoint, StackContext
from dbdyno.stack.layers.scratch import let_server_pass
from dbdyno.stack.layers.server import DATA, ServerLayer, how_it_ended
from dbdyno.stack.tools import run_tool
from dbdyno.system.state import make_private

CATCH_UP_SECONDS, CATCH_UP_FACTOR = 60.0, 10.0  # how long it may take until it has all: so long, and so often the load


def own_of(layer: ServerLayer) -> OwnServer:
    """The server that a layer starts."""
    return own_server(layer.installation, layer.engine, layer.settings, layer.clients)


def beside(measured: ServerLayer, name: str, settings: Mapping[str, Setting]) -> ServerLayer:
    """The measured server's build and settings, but for its own ``settings``; its log is ``NAME.log``."""
    own = {variable: value for variable, value in {**measured.settings, **settings}.items() if variable != "port"}
    return replace(measured, settings=own, log=measured.log.with_name(f"{name}.log"), places={}, listen="")


def place_of(below: StackContext, disk: str, name: str) -> Path:
    """The folder of that server on a disk of ``[stack.disks]``, or, if that is empty, beside the data."""
    directory = below.disks[disk].directory if disk else below.directory
    assert directory is not None  # noqa: S101  (a disk has a filesystem)
    return directory / name


def copy_data(measured: ServerLayer, below: StackContext, place: Path) -> int:
    """Copy the measured server's prepared data to ``place`` and sync them; returns the number of files and folders.

    Logs and what names the server are left out. Neither server runs yet.
    """
    assert below.directory is not None  # noqa: S101  (a filesystem or ``here`` is always below)
    own = own_of(measured)
    own_folder(place)
    own_folder(place / DATA)
    parts = [str(path) for path in sorted((below.directory / DATA).iterdir()) if own.is_copied(path.name)]
    copy = ["cp", "--archive", "--reflink=never", "--sparse=auto", "--target-directory", str(place / DATA)]
    run_tool([*copy, "--", *parts], timeout_seconds=3600)
    run_tool(["sync", "--file-system", str(place)], timeout_seconds=3600)
    return len(parts)


def ground_of(below: StackContext, disk: str, name: str) -> StackContext:
    """What that server is raised on: its own scratch folder and place, and no memory limit.

    The memory limit is the measured server's: a further one stands for another machine in all but that.
    """
    scratch = below.scratch / name
    make_private(scratch)
    let_server_pass(scratch)
    place = place_of(below, disk, name)
    return replace(below, scratch=scratch, directory=place, endpoint=None, cgroup=None, observed={})


def with_end(error: object, endpoint: Endpoint) -> str:
    """An error, and how the server has ended, if it has."""
    ended = how_it_ended(endpoint)
    return f"{error}; {ended}" if ended else str(error)


def catch_up_limit_seconds(window_ns: tuple[int, int]) -> float:
    """How long after a load it may take until that server has applied all."""
    start_ns, end_ns = window_ns
    return CATCH_UP_SECONDS + CATCH_UP_FACTOR * (end_ns - start_ns) / 1e9
