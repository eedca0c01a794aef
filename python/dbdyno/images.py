"""Prepared data: made once per server, engine, filesystem and data, and the same bytes for every trial.

An emulated disk holds it in memory, as a snapshot of its blocks; elsewhere it is a folder that is copied. Both are kept
from run to run (``image_cache``).
"""

import hashlib
import json
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from dbdyno import __version__, image_cache
from dbdyno.errors import TrialError
from dbdyno.filesystems.catalogue import KINDS
from dbdyno.layers import device_layer, layers
from dbdyno.plan.identity import file_sha256, image_key
from dbdyno.servers.installation import find_server
from dbdyno.stack.data import Image, Tree
from dbdyno.stack.device import PREPARED
from dbdyno.stack.emulated_disk import EmulatedDisk, running_disk
from dbdyno.stack.journal import Journal
from dbdyno.stack.layer import raised
from dbdyno.stack.lent_data import LentDatabase
from dbdyno.stack.scratch import scratch
from dbdyno.stack.tools import run_tool, tool_path
from dbdyno.stack.undo import RemoveTree
from dbdyno.state import make_traversable, new_token, scratch_path
from dbdyno.study.schema import TrialSpec
from dbdyno.workload.kinds import workload_of


class Images:
    """The images of one run; a context that ends their disks and removes their folders. ``fresh`` uses no kept one."""

    def __init__(
        self, journal: Journal, erase: frozenset[str], say: Callable[[str], None], *, fresh: bool = False
    ) -> None:
        self._journal, self._erase, self._say, self._fresh = journal, erase, say, fresh
        self._made: dict[str, Image] = {}
        self._databases: dict[str, LentDatabase] = {}  # by URL
        self._using: set[str] = set()  # kept images
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def of(self, spec: TrialSpec) -> Image:
        """The image of a treatment, made or loaded at first need. Raises ``TrialError`` or ``HostError``."""
        if spec.stack.runs_already:
            return self._lent(spec.stack.server, spec.server.option_file)
        key = image_key(spec, find_server(spec.stack.server).identity if spec.has_server else None)
        made = self._made.get(key)
        if made and any(disk.process.poll() is not None for disk in made.disks):
            self._say("an emulated disk has ended by itself; its data is loaded or prepared anew")
            del self._made[key]
        if key not in self._made:
            self._made[key] = self._make(spec, kept_key(spec, key))
        return self._made[key]

    def _lent(self, url: str, option_file: str | None) -> Image:
        """The database on a server that runs already, which this run may use until its end."""
        if url not in self._databases:
            database = LentDatabase(url, option_file, self._journal)
            self._databases[url] = self._closing.enter_context(database.taken())
        return Image(lent=self._databases[url])

    def _make(self, spec: TrialSpec, key: str) -> Image:
        stack = spec.stack
        kept = self._kept(key)
        self._using.add(key)
        with ExitStack() as undoing:
            if stack.on_emulated_disk and stack.size is not None:
                image = Image(
                    tuple(
                        undoing.enter_context(
                            running_disk(self._journal, model=stack.device, size=stack.size, sharing=stack.devices)
                        )
                        for _ in range(stack.devices)
                    )
                )
                if kept:
                    for disk, content in _contents(image, kept):
                        disk.ask("load", file=str(content))
                else:
                    self._prepare(spec, image, key)
                for disk in image.disks:
                    disk.ask("snapshot", name=PREPARED)
            elif kept:
                image = Image(tree=Tree(kept / "tree"))
            else:
                folder = scratch_path(new_token())
                undoing.enter_context(self._journal.undoing(RemoveTree(str(folder))))
                make_traversable(folder)
                image = Image(tree=Tree(folder / "image"))
                self._prepare(spec, image, key)
            self._closing.push(undoing.pop_all())
        return image

    def _kept(self, key: str) -> Path | None:
        """The kept image of a key, unless it is damaged or none is wanted."""
        try:
            kept = None if self._fresh else image_cache.find(key)
        except (TrialError, OSError) as error:
            self._say(str(error))
            return None
        if kept:
            self._say(f"using prepared data: {kept.about} (dbdyno images)")
        return kept.path if kept else None

    def _prepare(self, spec: TrialSpec, image: Image, key: str) -> None:
        """Make the data of an image, and keep it for later runs if there is room."""
        about = _about(spec)
        self._say(f"preparing data: {about}")
        began = time.monotonic()
        device = device_layer(spec, image, seed=0, erase=self._erase, blank=True)
        with scratch(self._journal) as ground:
            log = ground.scratch / "prepare.log"
            with raised(layers(spec, image, device, log=log, install=True), ground) as stand:
                workload_of(spec).prepare(stand)
        try:
            self._keep(image, key, about, time.monotonic() - began)
        except (TrialError, OSError) as error:
            self._say(f"the prepared data is not kept for later runs: {error}")

    def _keep(self, image: Image, key: str, about: str, seconds: float) -> None:
        needed = sum(disk.ask("stats")["content_bytes"] for disk in image.disks)
        needed += image_cache.room(image.tree.folder) if image.tree else 0
        image_cache.make_room(needed, self._using)
        with image_cache.adding(key, about, seconds, self._journal) as part:
            for disk, content in _contents(image, part):
                disk.ask("save", file=str(content))
            if image.tree:  # this run goes on with its own, whose files are the same ones
                run_tool(["cp", "--archive", "--link", str(image.tree.folder), str(part / "tree")])


def _contents(image: Image, folder: Path) -> Iterator[tuple[EmulatedDisk, Path]]:
    """Each disk of an image with the file that keeps its content."""
    for number, disk in enumerate(image.disks, 1):
        yield disk, folder / ("content" if number == 1 else f"content-{number}")


def kept_key(spec: TrialSpec, key: str) -> str:
    """What an image is kept by: also what must not change between two runs, though it can't within one."""
    programs = [workload_of(spec).program(), *map(Path, _mkfs(spec))]
    hashes = [file_sha256(path) for path in programs]
    what: list[object] = [key, __version__, platform.release(), hashes]
    if spec.has_server:
        daemon = Path(find_server(spec.stack.server).daemon).stat()
        what += [daemon.st_size, daemon.st_mtime_ns]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()


def _mkfs(spec: TrialSpec) -> list[str]:
    """The program that makes the filesystem of an image, if one is in it."""
    kind = KINDS.get(spec.stack.filesystem or "")
    found = tool_path(kind.program) if kind and spec.stack.on_emulated_disk else None
    return [found] if found else []


def _about(spec: TrialSpec) -> str:
    stack = spec.stack
    place = stack.filesystem if stack.on_emulated_disk else "files"
    place = f"{place} on {stack.devices} disks" if stack.devices > 1 else place
    server = [stack.server, stack.engine] if spec.has_server else []
    return ", ".join([*server, place or "files", spec.workload.kind])
