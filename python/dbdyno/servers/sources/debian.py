"""Packages of another Debian suite, with all that they need, unpacked without being installed.

apt fetches and verifies them (signed lists, a hash for each package). Its configuration is the host's own, but for: a
list of sources made from the mirrors that the host uses; an *empty* list of installed packages, so that the C library
and all others come along and the tree runs on any host; folders of ours; no hooks.
"""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from dbdyno.errors import HostError
from dbdyno.servers.sources.source import FetchProgress, check_sum, run_client

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_RELEASES = {"bullseye", "bookworm", "trixie", "forky", "sid", "unstable", "testing", "stable", "oldstable",
             "oldoldstable"}  # fmt: skip
_REMEDY = "is the package mirror reachable? see apt-get update"
_FILE_LISTED = re.compile(r"^'[^']*' (?P<name>\S+) \d+ SHA256:(?P<sha256>[0-9a-f]{64})$", re.MULTILINE)
# No server needs these.
_UNUSED = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "usr/share/lintian")


@dataclass(frozen=True)
class Debian:
    """Packages and the suites they come from; a suite that ends in -security comes from the security mirror."""

    suites: tuple[str, ...]
    packages: tuple[str, ...]
    only: str = ""  # a regular expression of the packages that are wanted of these and all that they need; else all
    components: str = "main"  # of the suites
    kind: str = "Debian"

    @property
    def coordinates(self) -> str:
        """Packages and suite."""
        return f"{' '.join(self.packages)} of {self.suites[0]}"

    def fetch(self, downloads: Path, progress: FetchProgress) -> dict[str, str]:
        """Download the packages and all they need; apt goes on where an earlier try was ended."""
        for name in ("lists/partial", "archives/partial", "none"):
            (downloads / name).mkdir(parents=True, exist_ok=True)
        (downloads / "status").write_bytes(b"")  # no package is installed
        with _apt(downloads, self._sources()) as (env, fds):

            def apt_get(*words: str, folder: Path = downloads) -> str:
                argv = ["apt-get", "-q", "-y", *words]
                return run_client(argv, folder, progress, remedy=_REMEDY, package="apt", env=env, pass_fds=fds)

            progress.step("reading the lists of packages")
            apt_get("-o", "APT::Update::Error-Mode=any", "update")
            listed = apt_get("-o", f"Dir::Cache::Archives={downloads}/none", "--print-uris", "install", *self.packages)
            sums = {listing["name"]: listing["sha256"] for listing in _FILE_LISTED.finditer(listed)}
            if self.only:
                sums = {name: sum_ for name, sum_ in sums.items() if re.fullmatch(self.only, name.partition("_")[0])}
            if not sums:
                raise HostError(f"apt-get names no file for {self.coordinates}")
            progress.step(f"downloading {len(sums)} packages")
            if self.only:
                # Without those that they need; apt puts them into the folder that it works in.
                wanted = ["=".join(map(unquote, name.split("_", 2)[:2])) for name in sums]
                apt_get("download", *wanted, folder=downloads / "archives")
            else:
                apt_get("--download-only", "install", *self.packages)
        for name, sha256 in sums.items():
            check_sum(downloads / "archives" / name, sha256)
        return sums

    def unpack(self, downloads: Path, files: Mapping[str, str], tree: Path) -> None:
        """Unpack every package into one tree."""
        for name in files:
            argv = ["dpkg-deb", "-x", str(downloads / "archives" / name), str(tree)]
            run_client(argv, tree, remedy="is there room on the disk?", package="dpkg")
        for unused in _UNUSED:
            shutil.rmtree(tree / unused, ignore_errors=True)

    def _sources(self) -> str:
        mirrors = _mirrors()
        signed = f"[signed-by={KEYRING}] " if KEYRING.exists() else ""
        lines = []
        for suite in self.suites:
            kind = "security" if suite.endswith("-security") else "main"
            if kind not in mirrors:
                mirror = "security mirror" if kind == "security" else "mirror"
                raise HostError(
                    f"apt's sources on this host name no Debian {mirror}, which {self.coordinates} comes from; "
                    "on Debian run apt-get update, else unpack the package yourself and name its folder in the study"
                )
            lines.append(f"deb {signed}{mirrors[kind]} {suite} {self.components}\n")
        return "".join(lines)


def _mirrors() -> dict[str, str]:
    """The mirrors of Debian that this host's apt uses: ``main`` and ``security``."""
    argv = ["apt-get", "indextargets", "--format", "$(RELEASE)\t$(REPO_URI)", "Created-By: Packages"]
    listed = run_client(argv, Path("/nonexistent"), remedy=_REMEDY, package="apt")
    mirrors: dict[str, str] = {}
    for line in listed.splitlines():
        release, _, address = line.partition("\t")
        if release in _RELEASES:
            mirrors.setdefault("main", address)
        elif release.removesuffix("-security") in _RELEASES:
            mirrors.setdefault("security", address)
    return mirrors


@contextmanager
def _apt(downloads: Path, sources: str) -> Iterator[tuple[dict[str, str], tuple[int, ...]]]:
    """What makes apt-get work in a folder of ours: its environment, and the files to be handed over.

    Configuration and sources may hold a password for the mirror, so they are files in memory.
    """
    dumped = run_client(["apt-config", "dump"], Path("/nonexistent"), remedy=_REMEDY, package="apt")
    lines = [line for line in dumped.splitlines() if "-Invoke" not in line and "::DEP-11" not in line]
    with os.fdopen(os.memfd_create("sources"), "wb") as listing, os.fdopen(os.memfd_create("apt"), "wb") as config:
        listing.write(sources.encode())
        own = {
            "Dir::Etc::Main": "/dev/null",
            "Dir::Etc::Parts": "/dev/null",
            "Dir::Etc::SourceList": f"/proc/self/fd/{listing.fileno()}",
            "Dir::Etc::SourceParts": "/dev/null",
            "Dir::Etc::Preferences": "/dev/null",
            "Dir::Etc::PreferencesParts": "/dev/null",
            "Dir::State::Lists": downloads / "lists",
            "Dir::State::status": downloads / "status",
            "Dir::State::extended_states": downloads / "extended_states",
            "Dir::Cache": downloads,
            "Dir::Cache::Archives": downloads / "archives",
            "APT::Install-Recommends": 0,
            "APT::Install-Suggests": 0,
            "APT::Sandbox::User": "root",  # the folder is ours alone
            "Acquire::ForceHash": "SHA256",
            "Acquire::Languages": "none",
            "Acquire::Retries": 1,
            "Acquire::http::Timeout": 30,
            "Acquire::https::Timeout": 30,
            "Debug::NoLocking": 1,
        }
        config.write("\n".join([*lines, *(f'{name} "{value}";' for name, value in own.items()), ""]).encode())
        listing.flush()
        config.flush()
        handles = (listing.fileno(), config.fileno())
        yield {"APT_CONFIG": f"/proc/self/fd/{config.fileno()}", "DEBIAN_FRONTEND": "noninteractive"}, handles
