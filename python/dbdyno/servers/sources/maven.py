"""A server inside a Java archive of Maven's central repository, fetched by mvn."""

import os
import shutil
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import HostError
from dbdyno.servers.sources.source import FetchProgress, OneFile, run_client
from dbdyno.servers.user import own_folder, unprivileged
from dbdyno.system.files import TEXT_LIMIT_BYTES, open_regular, read_regular

# It is code from elsewhere, so it never runs as root, and Maven from 3.9 on runs it only if it is what is listed here:
# the SHA-256 of all that this version of it consists of. Older ones know no such list.
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:get"
_PLUGIN_SUMS = Path(__file__).with_name("maven_plugin.sha256")
_LISTED = "checksums.sha256"  # as Maven calls such a list
_SUMS, _CHECK = (
    "-Daether.trustedChecksumsSource.summaryFile",
    "-Daether.artifactResolver.postProcessor.trustedChecksums",
)
_REMEDY = "is Maven's repository reachable? it is named in ~/.m2/settings.xml, if not the central one"


@dataclass(frozen=True)
class Maven(OneFile):
    """An artifact, and where in it the parts of a server lie."""

    group: str
    artifact: str
    version: str
    sha256: str  # of the archive, as it was seen
    places: Mapping[str, str]  # folder, file or archive inside it -> path in the tree
    packaging: str = "jar"
    classifier: str = ""
    kind: str = "Maven"

    @property
    def coordinates(self) -> str:
        """Group, artifact and version; kind of file and classifier where it has one."""
        rest = f":{self.packaging}:{self.classifier}" if self.classifier else ""
        return f"{self.group}:{self.artifact}:{self.version}{rest}"

    @property
    def file(self) -> str:
        """The archive."""
        return "-".join(filter(None, (self.artifact, self.version, self.classifier))) + f".{self.packaging}"

    def _get(self, part: Path, progress: FetchProgress) -> Path:
        """Have Maven download as the unprivileged user, and take over what it left, which is anybody's until then."""
        home, sums = part / "maven", part / "sums"
        for folder in (home, sums):
            shutil.rmtree(folder, ignore_errors=True)
        part.chmod(0o711)
        own_folder(home)
        sums.mkdir()
        sums.chmod(0o755)
        (sums / _LISTED).write_bytes(_PLUGIN_SUMS.read_bytes())
        (sums / _LISTED).chmod(0o644)
        argv = ["mvn", "-B", "-ntp", "-C", _PLUGIN, f"-Dartifact={self.coordinates}", "-Dtransitive=false"]
        argv += [f"-Dmaven.repo.local={home}", f"-Duser.home={home}", "-Daether.connector.connectTimeout=30000"]
        argv += [f"{_CHECK}=true", f"{_CHECK}.checksumAlgorithms=SHA-256"]
        argv += [f"{_SUMS}=true", f"{_SUMS}.basedir={sums}", f"{_SUMS}.originAware=false"]
        with _settings() as (options, handles):
            run_client(
                unprivileged([*argv, *options]),
                home,
                progress,
                remedy=_REMEDY,
                package="maven",
                env={"HOME": str(home)},
                pass_fds=handles,
            )
        download = home.joinpath(*self.group.split("."), self.artifact, self.version, self.file)
        copy = part / self.file
        try:
            with open(open_regular(download, os.O_RDONLY), "rb") as read, copy.open("wb") as write:  # noqa: PTH123
                shutil.copyfileobj(read, write)
        except OSError as error:
            raise HostError(f"mvn left no {self.file}: {error.strerror}; {_REMEDY}") from None
        for folder in (home, sums):
            shutil.rmtree(folder, ignore_errors=True)
        return copy

    def unpack(self, downloads: Path, files: Mapping[str, str], tree: Path) -> None:
        """Unpack the parts to where a server has them."""
        for name in files:
            try:
                with zipfile.ZipFile(downloads / name) as archive:
                    for inside, place in self.places.items():
                        _extract(archive, inside, tree / place)
            except (zipfile.BadZipFile, tarfile.TarError, OSError, KeyError) as error:
                raise HostError(f"{name} can't be unpacked: {error}") from None


@contextmanager
def _settings() -> Iterator[tuple[list[str], tuple[int, ...]]]:
    """Give Maven the caller's own settings, which name a mirror, though it runs as a user that can't read them."""
    try:
        content = read_regular(Path.home() / ".m2/settings.xml", TEXT_LIMIT_BYTES)
    except OSError:
        yield [], ()
        return
    handle = os.memfd_create("settings.xml")
    try:
        os.write(handle, content)
        yield ["-s", f"/proc/self/fd/{handle}"], (handle,)
    finally:
        os.close(handle)


def _extract(archive: zipfile.ZipFile, inside: str, place: Path) -> None:
    """One file, one folder (its name ends in a slash), or all of an archive within the archive."""
    if inside.endswith(".jar"):
        with archive.open(inside) as file, zipfile.ZipFile(file) as inner:
            inner.extractall(place)  # noqa: S202  (a zip: no path leads out of it)
        return
    if inside.endswith(".tar.gz"):
        with archive.open(inside) as file, tarfile.open(fileobj=file) as packed:
            packed.extractall(place, filter="data")
        return
    folder = inside.endswith("/")
    files = (member for member in archive.infolist() if not member.is_dir() and member.filename.startswith(inside))
    members = list(files) if folder else [archive.getinfo(inside)]
    if not members:
        raise KeyError(inside)
    for member in members:
        target = place / member.filename.removeprefix(inside) if folder else place
        target.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(member) as read, target.open("wb") as write:
            shutil.copyfileobj(read, write)
