"""What stands in the way of Ray on this host: found before it is started, as Ray itself waits a minute and guesses."""

import os
import socket
from collections.abc import Iterable
from pathlib import Path

from dbdyno.system.open_to_others import why_open_to_others


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
