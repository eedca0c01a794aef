"""dbdyno as it runs here, with all that it needs, as wheels: what is put on hosts, so that all run the very same.

Made of what is installed here, so no registry is asked, neither here nor there. What a wheel holds beside Python
(manual, completion) stays here.
"""

import base64
import hashlib
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePosixPath

from dbdyno.errors import HostError
from dbdyno.stack.tools import own_binary

OURS = "dbdyno"
PROGRAMS = ("dbdyno-disk", "dbdyno-load", "dbdyno-probe")
_OF_AN_INSTALLATION = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json"}
_AFTER_NAME = re.compile(r"[^A-Za-z0-9._-]")  # in a requirement
_EXTRA = re.compile(r"\bextra\b")
_MEMBER_TIME = (1980, 1, 1, 0, 0, 0)  # the first that a zip can have: the same files make the same bytes


@dataclass(frozen=True)
class Package:
    """A wheel."""

    name: str
    sha256: str
    path: Path

    @property
    def description(self) -> dict[str, object]:
        """As a host is asked whether it has it."""
        return {"name": self.name, "sha256": self.sha256, "size_bytes": self.path.stat().st_size}


@dataclass(frozen=True)
class Bundle:
    """All that an environment consists of."""

    packages: tuple[Package, ...]

    @property
    def environment(self) -> str:
        """What stands for this very list."""
        return hashlib.sha256("".join(package.sha256 for package in self.packages).encode()).hexdigest()[:16]


@contextmanager
def bundle(folder: Path) -> Iterator[Bundle]:
    """Wheels of all that is needed, in a folder that is there meanwhile. Raises ``HostError``."""
    shutil.rmtree(folder, ignore_errors=True)  # of one that was killed
    try:
        folder.mkdir(parents=True)
        distributions = sorted(requirements_of(OURS).values(), key=lambda distribution: distribution.name)
        wheels = Bundle(tuple(_wheel(distribution, folder) for distribution in distributions))
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise HostError(f"{error.filename or folder}: {error.strerror}; dbdyno packs itself in {folder}") from None
    try:
        yield wheels
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def our_digest() -> str:
    """SHA-256 over the names and contents of all files of this dbdyno: the same here and there if they are the same."""
    return _digest(_files(metadata.distribution(OURS)))


def requirements_of(*names: str) -> dict[str, metadata.Distribution]:
    """Every distribution that these need here, they among them, by its name. Raises ``HostError`` where one lacks.

    One that is needed under a condition is needed here if it is installed; extras are not.
    """
    distributions: dict[str, metadata.Distribution] = {}
    wanted = [(name, "") for name in names]
    while wanted:
        text, condition = wanted.pop()
        name = re.sub(r"[-_.]+", "-", _AFTER_NAME.split(text.strip(), maxsplit=1)[0]).lower()
        if name in distributions or _EXTRA.search(condition):
            continue
        try:
            distributions[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            if condition:
                continue
            raise HostError(
                f"{name} is not installed here as a package, so it can't be installed on other hosts"
            ) from None
        wanted += [(text, mark) for text, _, mark in (it.partition(";") for it in distributions[name].requires or [])]
    return distributions


def _files(distribution: metadata.Distribution) -> dict[str, Path]:
    """Name inside a wheel -> file here."""
    files = {}
    label = f"{distribution.name}-{distribution.version}".replace("-", "_", distribution.name.count("-"))
    own_scripts = {point.name for point in distribution.entry_points if point.group == "console_scripts"}
    for member in distribution.files or []:
        path = Path(str(distribution.locate_file(member)))
        if member.suffix == ".pyc" or member.name in _OF_AN_INSTALLATION or not path.is_file():
            continue
        if ".." not in member.parts:
            files[str(PurePosixPath(member))] = path
        elif path.parent == Path(sys.executable).parent and path.name not in own_scripts:
            files[f"{label}.data/scripts/{path.name}"] = path
    if distribution.name != OURS:
        return files
    return dict(_ours(files, label))


def _ours(recorded: dict[str, Path], label: str) -> Iterator[tuple[str, Path]]:
    """The same of dbdyno, which may be installed in place: then no list of its modules is kept."""
    for name, path in recorded.items():
        if ".dist-info/" in name:
            yield name, path
    folder = Path(__file__).parents[1]
    for path in folder.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield f"{OURS}/{path.relative_to(folder)}", path
    for program in PROGRAMS:
        yield f"{label}.data/scripts/{program}", Path(own_binary(program))


def _digest(files: dict[str, Path]) -> str:
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        with path.open("rb") as file:
            digest.update(f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()


def _wheel(distribution: metadata.Distribution, folder: Path) -> Package:
    """The wheel of a distribution."""
    name = f"{distribution.name}-{distribution.version}"
    path = folder / f"{name}.whl"
    _write(_files(distribution), f"{name}.dist-info".replace("-", "_", distribution.name.count("-")), path)
    with path.open("rb") as file:
        return Package(name, hashlib.file_digest(file, "sha256").hexdigest(), path)


def _write(files: dict[str, Path], info: str, into: Path) -> None:
    """Write a wheel, with the list of hashes that belongs into one."""
    info = next((name.partition("/")[0] for name in files if name.endswith(".dist-info/METADATA")), info)
    lines = []
    with zipfile.ZipFile(into, "w") as wheel:  # packing takes longer than a network of a lab does; ssh can pack
        for name, path in sorted(files.items()):
            member = zipfile.ZipInfo(name, _MEMBER_TIME)
            member.external_attr = (path.stat().st_mode & 0o777) << 16
            with path.open("rb") as source, wheel.open(member, "w") as target:
                shutil.copyfileobj(source, target, 1024**2)
                size = source.tell()
                source.seek(0)
                encoded = base64.urlsafe_b64encode(hashlib.file_digest(source, "sha256").digest()).decode().rstrip("=")
            lines.append(f"{name},sha256={encoded},{size}\n")
        record = f"{info}/RECORD"
        wheel.writestr(zipfile.ZipInfo(record, _MEMBER_TIME), "".join(lines) + f"{record},,\n")
