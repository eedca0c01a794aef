"""Files that calls on other hosts read: sent to each once, and known there by their content."""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.errors import HostError, UserError
from dbdyno.hosts.contract import Hosts
from dbdyno.hosts.spread import Spread
from dbdyno.hosts.workers import Work, Workers
from dbdyno.study.units import format_bytes

if TYPE_CHECKING:
    from dbdyno.hosts.connect import Connected

_AT_ONCE = 16  # hosts that are sent to at once


def input_name(path: Path) -> str:
    """The name of a file on all hosts: its SHA-256, and the ending that tells its kind. Raises ``UserError``."""
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path}: can't be read: {error.strerror}") from None
    return digest + (path.suffix if re.fullmatch(r"\.[A-Za-z0-9]{1,10}", path.suffix) else "")


def send(hosts: Hosts, workers: Workers, files: Mapping[str, Path], say: Callable[[str], None]) -> None:
    """Have files on all hosts under their names of ``input_name``; a host that can't take them is left out."""

    def sent(host: str) -> None:
        try:
            send_to(host, hosts, workers, files, say)
        except HostError as error:
            workers.leave_out(host, str(error))

    if files:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(sent, workers.cores()))


def send_to(host: str, hosts: Hosts, workers: Workers, files: Mapping[str, Path], say: Callable[[str], None]) -> None:
    """Have on one host what it lacks of them. Raises ``HostError``."""
    folder, lacking = workers.lacking(host, sorted(files)) if files else ("", [])
    if lacking:
        say(f"{host}: sending {format_bytes(sum(files[name].stat().st_size for name in lacking))}")
    for name in lacking:
        if not name.startswith(hosts.put(host, files[name], f"{folder}/{name}")):
            raise HostError(f"{host}: {files[name]} did not arrive as it was, or has changed meanwhile")


@contextmanager
def spread_over(
    connected: "Connected", work: Work, files: Mapping[str, Path], say: Callable[[str], None]
) -> Iterator[Spread]:
    """Calls of ``work`` over hosts, which have these files. Raises ``HostError`` where none can take part."""
    workers = connected.hosts.workers(work, connected.why_lost)
    try:
        send(connected.hosts, workers, files, say)
        with Spread(workers, say, lambda host: send_to(host, connected.hosts, workers, files, say)) as spread:
            yield spread
    finally:
        workers.close()
