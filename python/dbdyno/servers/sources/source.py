"""Where a server product comes from: the contract of a source, and how a registry's own client is run."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

from dbdyno.errors import HostError
from dbdyno.model.printable import printable
from dbdyno.system.child import DIES_WITH_US, child
from dbdyno.system.files import file_sha256

# A client that adds no byte for so long has no answer to wait for.
STALL_SECONDS = 180.0
SAID_MAX = 400  # characters of what a client said that an error repeats
_LOOK_SECONDS = 0.25
_SPARE = 1.1  # a filesystem takes a little more than the sum of its files


class FetchProgress(Protocol):
    """Where a source says how far it is."""

    def step(self, text: str) -> None:
        """What begins now."""

    def size(self, downloaded_bytes: int) -> None:
        """How much has been downloaded."""


class Registry(Protocol):
    """A registry, asked by its own client as this host has that configured."""

    @property
    def kind(self) -> str:
        """What it is, in a word or two."""

    @property
    def coordinates(self) -> str:
        """What the product is called there."""

    def fetch(self, downloads: Path, progress: FetchProgress) -> dict[str, str]:
        """Download into a folder that may hold an earlier try; returns file name -> sha256 of what was verified.

        Raises ``HostError``.
        """

    def unpack(self, downloads: Path, files: Mapping[str, str], tree: Path) -> None:
        """Unpack what was fetched into a new folder ``tree``. Raises ``HostError``."""


def run_client(  # noqa: PLR0913  (what a client is given)
    argv: Sequence[str],
    grows: Path,
    progress: FetchProgress | None = None,
    *,
    remedy: str,
    package: str,
    env: Mapping[str, str] | None = None,
    pass_fds: tuple[int, ...] = (),
) -> str:
    """Run a registry's client, or an unpacker, to its end while a folder grows; returns its standard output.

    ``remedy`` is what to do when it fails, ``package`` what brings the program. Raises ``HostError``.
    """
    path = shutil.which(argv[0])
    if path is None:
        raise HostError(f"{argv[0]} is not installed; install it: apt-get install {package}")
    shown = " ".join(argv)
    bound = [*DIES_WITH_US, path, *argv[1:]]
    environment, cwd = {**os.environ, "LC_ALL": "C", **(env or {})}, grows if grows.is_dir() else "/"
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with child(bound, env=environment, stdout=out, stderr=err, cwd=cwd, pass_fds=pass_fds) as process:
            stalled = _watch(process, grows, progress)
        output, complaint = _text(out), _text(err)
    if stalled:
        raise HostError(f"{shown}: nothing arrived for {STALL_SECONDS:g} s, so it was ended; {remedy}")
    if process.returncode != 0:
        raise HostError(f"{shown}: exit {process.returncode}: {_complaint(complaint, output)}; {remedy}")
    return output


def _watch(process: "subprocess.Popen[bytes]", grows: Path, progress: FetchProgress | None) -> bool:
    """Wait for its end; whether it had to be given up."""
    size, grown_at = -1, time.monotonic()
    while True:
        try:
            process.wait(_LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            bytes_now = folder_bytes(grows)
            if bytes_now != size:
                size, grown_at = bytes_now, time.monotonic()
                if progress:
                    progress.size(bytes_now)
            elif time.monotonic() - grown_at > STALL_SECONDS:
                return True
        else:
            return False


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _complaint(stderr: str, stdout: str) -> str:
    """The lines that say what was wrong, on one line."""
    lines = [line.strip() for line in (stderr + "\n" + stdout).splitlines() if line.strip()]
    marked = [line for line in lines if line.lower().startswith(("e:", "err:", "npm error", "npm err!", "[error]"))]
    telling = [line for line in marked if "checksum" in line.lower()]  # what was served is not what was to come
    explanation = " / ".join(dict.fromkeys(telling or marked or lines[-5:])) or "it said nothing"
    return printable(explanation)[:SAID_MAX]


def folder_bytes(folder: Path) -> int:
    """Bytes of all files below a folder; what disappears while it is counted is nothing."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(Path(parent) / name).st_size
            except OSError:
                continue
    return total


def check_room(name: str, mb: float, downloads: Path, into: Path) -> None:
    """Raise ``HostError`` where a product and its downloads of so many MB do not fit; what is there already counts."""
    needed = int(mb * 1e6 * _SPARE) - folder_bytes(downloads)
    free = shutil.disk_usage(downloads).free
    if free < needed:
        raise HostError(
            f"{name} needs {needed / 1e6:.0f} MB in {into}, which has {free / 1e6:.0f} MB free; "
            "make room, or set DBDYNO_STATE_DIR"
        )


def unpack(source: Registry, downloads: Path, files: Mapping[str, str], tree: Path, progress: FetchProgress) -> None:
    """Unpack what was fetched into ``tree``, made anew. Raises ``HostError``."""
    progress.step("unpacking")
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir()
    source.unpack(downloads, files, tree)


def put_in_place(tree: Path, record: Mapping[str, Any], file: Path) -> None:
    """Have a tree that was unpacked in the folder of a try in its place, whole, with its record; the try is over."""
    (tree / file.name).write_text(json.dumps(record, indent=1), encoding="utf-8")
    os.sync()
    tree.rename(file.parent)
    shutil.rmtree(tree.parent)


class OneFile(ABC):
    """A source whose product is one file, and the checksum that was seen of it."""

    sha256: str

    @property
    @abstractmethod
    def coordinates(self) -> str:
        """What the product is called there."""

    @property
    @abstractmethod
    def file(self) -> str:
        """What the file is called."""

    @abstractmethod
    def _get(self, part: Path, progress: FetchProgress) -> Path:
        """Download the file into a folder of its own; where it lies there. Raises ``HostError``."""

    def fetch(self, downloads: Path, progress: FetchProgress) -> dict[str, str]:
        """Take the file of an earlier try, or download it; returns name -> sha256, verified. Raises ``HostError``."""
        file = downloads / self.file
        if not file.exists():
            progress.step(f"downloading {self.coordinates}")
            part = downloads / "part"
            part.mkdir(exist_ok=True)
            self._get(part, progress).rename(file)
        check_sum(file, self.sha256)
        return {self.file: self.sha256}


def check_sum(path: Path, sha256: str) -> None:
    """See that a download is what was recorded. Raises ``HostError`` and removes it where it is not."""
    digest = file_sha256(path)
    if digest != sha256:
        path.unlink()
        raise HostError(
            f"{path.name}: its sha256 is {digest}, but {sha256} was expected; it was removed. "
            "Try once more; if it happens again, the registry serves another file than the one that was recorded"
        )
