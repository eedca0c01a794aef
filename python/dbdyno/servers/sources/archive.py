"""A vendor's archive of a server, from a file or an address: checked by what the user gives, unpacked within bounds.

Nothing of it is opened before its checksum, or its signature by a key of the user's, is right. What is unpacked is what
a server needs and no more: no device, no link that leads out of the tree, no path outside of it.
"""

import gzip
import io
import lzma
import re
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from dbdyno.errors import HostError, UserError
from dbdyno.servers.sources.source import FetchProgress, run_client
from dbdyno.system.files import file_sha256

ARCHIVE_BYTES_MAX = 4 * 10**9  # MySQL's largest are of 1 GB
UNPACKED_BYTES_MAX = 20 * 10**9  # all that it holds, tests and debug builds too
MEMBERS_MAX = 200_000
_PIECE_BYTES_MAX = 4 * 1024**2  # that is read at once: a header of more is none of a server's
_PARTS = frozenset({"bin", "sbin", "libexec", "lib", "lib64", "share", "usr"})  # that a server needs
_LEFT_OUT = re.compile(r"(-debug|\.a)$|(^|/)(man|doc|info)/")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_ENDINGS = (".tar.gz", ".tgz", ".tar.xz", ".tar")
_ADDRESS = re.compile(r"https?://[^\s\x00-\x1f]{1,2000}")


@dataclass(frozen=True)
class Archive:
    """An archive, and what it is checked by."""

    place: str  # a file or an address
    sha256: str = ""
    signature: Path | None = None
    key: Path | None = None
    kind: str = "an archive"

    @property
    def coordinates(self) -> str:
        """Where it comes from."""
        return self.place

    @property
    def is_address(self) -> bool:
        """Whether it has to be downloaded."""
        return bool(_ADDRESS.fullmatch(self.place))

    @property
    def file(self) -> str:
        """What the archive is called."""
        return PurePosixPath(self.place.split("?")[0]).name

    def check(self) -> None:
        """Raise ``UserError`` where it can't be got, or where nothing shows that it is the vendor's."""
        if not self.file.endswith(_ENDINGS):
            raise UserError(f"{self.place}: is none of {', '.join(_ENDINGS)}")
        if not self.is_address and not Path(self.place).is_file():
            raise UserError(f"{self.place}: is neither a file nor an address that begins with https://")
        if self.sha256 and not _SHA256.fullmatch(self.sha256):
            raise UserError(f"--sha256 {self.sha256}: is not 64 hexadecimal digits; the vendor lists it by the archive")
        if (self.signature is None) != (self.key is None):
            raise UserError("--signature and --key belong together: the vendor's signature, and the key of it")
        if not self.sha256 and self.signature is None:
            raise UserError(
                f"{self.place}: nothing shows that it is the vendor's; give --sha256, as the vendor lists it, or "
                "--signature with --key"
            )

    def fetch(self, downloads: Path, progress: FetchProgress) -> dict[str, str]:
        """Download or copy it, and check it; returns file name -> sha256. Raises ``HostError``."""
        file = downloads / self.file
        if self.is_address:
            progress.step(f"downloading {self.place}")
            argv = ["curl", "--fail", "--location", "--silent", "--show-error", "--proto", "=https,http"]
            argv += ["--proto-redir", "=https", "--max-filesize", str(ARCHIVE_BYTES_MAX), "--continue-at", "-"]
            argv += ["--output", str(file), self.place]
            if not file.exists() or not self.sha256 or file_sha256(file) != self.sha256:
                run_client(argv, downloads, progress, remedy="is the address right?", package="curl")
        else:
            progress.step(f"copying {self.place}")
            if Path(self.place).stat().st_size > ARCHIVE_BYTES_MAX:
                raise HostError(f"{self.place}: is larger than {ARCHIVE_BYTES_MAX / 1e9:g} GB")
            shutil.copyfile(self.place, file)
        digest = file_sha256(file)
        try:
            self._prove(file, digest, progress)
        except HostError:
            file.unlink()  # else the next download would go on from it
            raise
        return {self.file: digest}

    def _prove(self, file: Path, digest: str, progress: FetchProgress) -> None:
        """See that it is the vendor's. Raises ``HostError``."""
        if self.sha256 and digest != self.sha256:
            raise HostError(f"{self.place}: its sha256 is {digest}, but {self.sha256} was given; it was not unpacked")
        if self.signature and self.key:
            progress.step("checking the signature")
            check_signature(file, self.signature, self.key)

    def unpack(self, downloads: Path, files: Mapping[str, str], tree: Path) -> None:
        """Unpack what a server needs, without the folder that holds all. Raises ``HostError``."""
        for name in files:
            try:
                with _opened(downloads / name) as content:
                    _unpack(content, tree)
            except (tarfile.TarError, lzma.LZMAError, EOFError, OSError, ValueError, RecursionError) as error:
                raise HostError(f"{name} can't be unpacked: {error}") from None


def check_signature(file: Path, signature: Path, key: Path) -> None:
    """See that a file is signed with a key, and with no other. Raises ``HostError``."""
    with tempfile.TemporaryDirectory(prefix="dbdyno-gpg-") as home:  # which is 0700, and holds this key alone
        gpg = ["gpg", "--batch", "--no-autostart", "--no-tty", "--homedir", home]
        remedy = "--key must be the vendor's public key, as a file"
        run_client([*gpg, "--quiet", "--import", str(key)], Path(home), remedy=remedy, package="gpg")
        remedy = f"{file.name} is not what was signed, or was signed with another key; it was not unpacked"
        argv = [*gpg, "--status-fd", "1", "--verify", str(signature), str(file)]
        said = run_client(argv, Path(home), remedy=remedy, package="gpg")
        states = set(re.findall(r"^\[GNUPG:\] (\w+)", said, re.MULTILINE))
        if not {"GOODSIG", "VALIDSIG"} <= states or states & {"BADSIG", "EXPSIG", "EXPKEYSIG", "REVKEYSIG"}:
            raise HostError(f"{signature}: gpg does not call it a good signature ({', '.join(sorted(states))})")


class _Pieces(io.RawIOBase):
    """A decompressed archive of which no more is read at once, and in all, than an archive of a server has."""

    def __init__(self, content: IO[bytes]) -> None:
        super().__init__()
        self._content = content

    def read(self, size: int = -1, /) -> bytes:
        if not 0 <= size <= _PIECE_BYTES_MAX:
            raise ValueError(f"it has a header of {size} bytes")
        return self._content.read(size)

    def seek(self, place: int, whence: int = 0, /) -> int:
        if place > UNPACKED_BYTES_MAX:
            raise ValueError(f"it holds more than {UNPACKED_BYTES_MAX / 1e9:g} GB")
        return self._content.seek(place, whence)

    def tell(self) -> int:
        return self._content.tell()

    def close(self) -> None:
        self._content.close()
        super().close()


def _opened(path: Path) -> _Pieces:
    if path.name.endswith(".xz"):
        return _Pieces(cast("IO[bytes]", lzma.open(path)))
    if path.name.endswith("gz"):
        return _Pieces(cast("IO[bytes]", gzip.open(path)))
    return _Pieces(path.open("rb"))


def _unpack(content: _Pieces, tree: Path) -> None:
    total = members = 0
    with tarfile.open(fileobj=cast("IO[bytes]", content), mode="r:") as archive:
        for member in archive:
            cast("Any", archive).members = []  # else it keeps a list of all
            members, total = members + 1, total + max(0, member.size)
            if members > MEMBERS_MAX or total > UNPACKED_BYTES_MAX:
                raise ValueError(
                    f"it holds more than {MEMBERS_MAX:,} files or {UNPACKED_BYTES_MAX / 1e9:g} GB, which no server has"
                )
            place = _place(member.name)
            if place is None:
                continue
            if member.islnk():
                target = _place(member.linkname)
                if target is None:
                    raise ValueError(f"{member.name!r} is a link to {member.linkname!r}, which is not unpacked")
                member = member.replace(linkname=str(target), deep=False)  # noqa: PLW2901
            if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
                raise ValueError(f"{member.name!r} is a device or a pipe")
            member = tarfile.data_filter(member.replace(name=str(place), deep=False), str(tree))  # noqa: PLW2901
            _check_parents(tree, place)
            archive.extract(member, tree, set_attrs=True, filter="data")


def _place(name: str) -> PurePosixPath | None:
    """Where a member goes, without the folder that holds all; ``None`` for what a server does not need."""
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts:
        raise ValueError(f"{name!r} leads out of it")
    parts = parts if parts[:1] and parts[0] in _PARTS else parts[1:]
    if not parts or parts[0] not in _PARTS or _LEFT_OUT.search("/".join(parts)):
        return None
    return PurePosixPath(*parts)


def _check_parents(tree: Path, place: PurePosixPath) -> None:
    """No link of the archive's stands where a folder of it should be."""
    folder = tree
    for part in place.parts[:-1]:
        folder /= part
        if folder.is_symlink():
            raise ValueError(f"{str(place)!r} would be written through the link {folder.relative_to(tree)}")
