"""The file that a shared result travels in: a copy of a run folder without names, as one compressed tar file.

What is read may come from anybody. So it is unpacked within bounds of bytes, members and ratio, names are those of a
copy alone, and nothing of it is trusted afterwards: the run folder that stays is written anew (``share/copy.py``).
"""

import gzip
import io
import json
import os
import re
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

from dbdyno import __version__
from dbdyno.errors import UserError
from dbdyno.model.printable import one_line, short
from dbdyno.run.sparse_tar import add, extract
from dbdyno.share.copy import TITLE_CHARACTERS_MAX
from dbdyno.share.words import ALLOWED_CHARACTERS_MAX, ALLOWED_MAX
from dbdyno.store.documents import json_object, value_of
from dbdyno.store.events import EVENTS
from dbdyno.store.header import RUN
from dbdyno.store.parts import EVENTS_LIMIT_BYTES, LIMIT_BYTES, MIB, read_part
from dbdyno.store.run_folder import HOST
from dbdyno.store.series import BYTES_MAX
from dbdyno.store.trials import TRIAL
from dbdyno.system.files import open_regular

FORMAT = 1
ABOUT, FOLDER = "export.json", "run"
SUFFIX = ".tar.gz"
PACKED_BYTES_MAX, UNPACKED_BYTES_MAX = 64 * MIB, 512 * MIB
RATIO_MAX = 100  # of what is unpacked to what is packed: trials of a run are much alike, but not so much
_SMALL_BYTES = MIB  # up to which the ratio is not asked for
_ABOUT_BYTES_MAX = 64 * 1024
_PIECE_BYTES = MIB // 4
_FILES = {
    ABOUT: _ABOUT_BYTES_MAX,
    f"{FOLDER}/{RUN}": LIMIT_BYTES,
    f"{FOLDER}/{HOST}": LIMIT_BYTES,
    f"{FOLDER}/{EVENTS}": EVENTS_LIMIT_BYTES,
}
_FOLDERS = re.compile(rf"{FOLDER}|{FOLDER}/trials|{FOLDER}/trials/[\w.-]+", re.ASCII)
_TRIAL = re.compile(rf"{FOLDER}/trials/[\w.-]+/{re.escape(TRIAL)}", re.ASCII)
_SERIES = re.compile(rf"{FOLDER}/trials/[\w.-]+/[\w.-]+\.parquet", re.ASCII)


@dataclass(frozen=True)
class About:
    """What the sender says of a shared result: its title, and the texts that were let out as they are."""

    format: int = FORMAT
    dbdyno: str = __version__
    title: str = ""
    allowed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Raise ``ValueError`` where it says more than it may."""
        if self.format != FORMAT:
            raise ValueError(f"it is of format {self.format}; this dbdyno reads format {FORMAT}")
        if len(self.allowed) > ALLOWED_MAX or max(map(len, self.allowed), default=0) > ALLOWED_CHARACTERS_MAX:
            raise ValueError(f"it lets out more than {ALLOWED_MAX} texts of {ALLOWED_CHARACTERS_MAX} characters")
        if len(self.title) > TITLE_CHARACTERS_MAX:
            raise ValueError(f"its title has more than {TITLE_CHARACTERS_MAX} characters")
        if strange := next((text for text in [self.title, *self.allowed] if text != one_line(text)), None):
            raise ValueError(f"a text in it is not one printable line: {short(strange, 40)!r}")


def pack(folder: Path, about: About) -> bytes:
    """Return a copy of a run folder as one file; the same copy gives the same bytes. Raises ``OSError``."""
    packed = io.BytesIO()
    content = json.dumps(asdict(about), indent=1).encode()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        first = tarfile.TarInfo(ABOUT)
        first.size, first.mode = len(content), 0o600
        tar.addfile(first, io.BytesIO(content))
        for name in (RUN, HOST, EVENTS, "trials"):
            add(tar, folder / name, f"{FOLDER}/{name}", plain=True)
    return packed.getvalue()


@contextmanager
def unpacked(file: Path) -> Iterator[tuple[Path, About]]:
    """The run folder in such a file, below a folder that is removed when the context ends, and what was said of it.

    Raises ``UserError`` where it is none.
    """
    with tempfile.TemporaryDirectory(prefix="dbdyno-import-") as place:
        plain, into = Path(place, "plain.tar"), Path(place, "content")
        into.mkdir()
        try:
            with os.fdopen(open_regular(file, os.O_RDONLY, follow=True), "rb") as packed, plain.open("wb") as target:
                _decompress(packed, target)
            extract(plain, into, _bytes_most)
            about = value_of(About, json_object(read_part(into, ABOUT, _ABOUT_BYTES_MAX)))
        except FileNotFoundError as error:
            if error.filename == str(file):
                raise UserError(f"{file}: can't be read: {error.strerror}") from None
            raise refused(file, "it holds no export.json") from None
        except tarfile.TarError as error:
            raise refused(file, str(error).removeprefix(f"{plain}: ")) from None
        except OSError as error:
            raise UserError(f"{file}: can't be read: {error.strerror}") from None
        except ValueError as error:
            raise refused(file, str(error)) from None
        yield into / FOLDER, about


def refused(file: Path, why: str) -> UserError:
    """Return what is said of a file that holds no shared result."""
    return UserError(f"{file}: is no shared result of dbdyno's: {why}; ask for a file made by dbdyno export")


def _bytes_most(name: str) -> int | None:
    """Return how large a file of this name may be; None where there may be none."""
    if name in _FILES or _FOLDERS.fullmatch(name):
        return _FILES.get(name, 0)
    return LIMIT_BYTES if _TRIAL.fullmatch(name) else BYTES_MAX if _SERIES.fullmatch(name) else None


def _decompress(packed: IO[bytes], target: IO[bytes]) -> None:
    """Unpack one stream of gzip within bounds. Raises ``ValueError``."""
    stream, taken, given, rest = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16), 0, 0, b""
    while not stream.eof:
        piece = rest or packed.read(_PIECE_BYTES)
        taken += 0 if rest else len(piece)
        if not piece:
            raise ValueError("it is cut short")
        if taken > PACKED_BYTES_MAX:
            raise ValueError(f"it has more than {PACKED_BYTES_MAX // MIB} MiB")
        try:
            content = stream.decompress(piece, _PIECE_BYTES)
        except zlib.error:
            raise ValueError("it is not compressed by gzip, or is damaged") from None
        rest, given = stream.unconsumed_tail, given + len(content)
        if given > UNPACKED_BYTES_MAX:
            raise ValueError(f"unpacked it has more than {UNPACKED_BYTES_MAX // MIB} MiB")
        if given > max(_SMALL_BYTES, RATIO_MAX * taken):
            raise ValueError(f"unpacked it is more than {RATIO_MAX} times as large")
        target.write(content)
    if stream.unused_data or packed.read(1):
        raise ValueError("something follows its end")
