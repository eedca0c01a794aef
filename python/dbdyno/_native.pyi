"""The native part of dbdyno (crate ``dbdyno-py``)."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict, type_check_only

__all__ = [
    "device_models",
    "histogram",
    "histogram_log",
    "kernels",
    "option_lines",
    "read_parquet",
    "simulate",
    "toml_lines",
    "trace_contents",
    "trace_summary",
    "write_parquet",
]

@type_check_only
class _DeviceModel(TypedDict):
    """A drive that can be emulated."""

    name: str
    kind: str  # "hdd", "ssd", "cloud", "raid" or "ideal"
    title: str
    rotational: bool
    fast_cache_bytes: int | None  # of a disk of that size, or of the whole drive; None where it has no such cache
    drive_fast_cache_bytes: int | None

def toml_lines(text: str) -> dict[str, int]:
    """Line (from 1) of every key and array element of a TOML text, by dotted path, e.g. ``stack.device.1``.

    Raises ``ValueError`` where the text is not TOML.
    """

def option_lines(text: str) -> list[tuple[int, str, str, str, str | None]]:
    """Return what the lines of an option file (``my.cnf``) say, as MySQL's and MariaDB's own programs read them.

    Each has its number (from 1), its group in small letters (empty before the first), what it is ("group", "option",
    "include", "includedir", "unknown"), a name (of the option, the file or the folder), and the value of an option that
    has one, without quotes and escapes.
    """

def device_models(drive: str | None = None, size_bytes: int | None = None) -> list[_DeviceModel]:
    """Return the drives that can be emulated; with a drive's name (see docs/disk.md), that drive alone.

    Raises ``ValueError`` where there is no such drive, its file is not one, or a disk of ``size_bytes`` does not fit.
    """

def histogram(payloads: Sequence[str], largest: int | None = None) -> tuple[bytes, bytes, str]:
    """Return the sum of histograms: values, how often each was met (doubles both), and their summary as JSON.

    A payload is an HdrHistogram of three digits as the programs write it: version 2, compressed, in base64. A value is
    the upper end of its bucket, at most ``largest``; the values ascend. Raises ``ValueError`` for what is no histogram.
    """

def histogram_log(log: str, largest: int | None = None) -> tuple[bytes, bytes, str]:
    """Return the same of a log of histograms: of its lines without a tag, which are of events."""

def trace_contents(
    files: Sequence[str],
    format: str | None = None,  # noqa: A002  (as the flag is called)
    time_unit: str | None = None,
    length_unit: str | None = None,
) -> str:
    """Return what is in a block trace as a JSON object; several files are those of blktrace, one a CPU.

    Raises ``ValueError`` where a file can't be read, is of no format that is known, or has numbers whose unit is open.
    """

def read_parquet(
    file: bytes, rows_max: int, wanted: Callable[[str], object]
) -> dict[str, bytearray | list[str | None] | None]:
    """Columns of a Parquet file whose names are ``wanted``: doubles as bytes, texts, or None where it holds neither.

    Numbers of all kinds become doubles; those that are unknown are NaN. Raises ``ValueError`` where the file can't be
    read or has more than ``rows_max`` rows.
    """

def write_parquet(columns: Mapping[str, bytes | Sequence[bool] | Sequence[int] | Sequence[str | None]]) -> bytes:
    """Return a Parquet file of columns of one length; a column in bytes holds doubles. Raises ``ValueError``."""

@type_check_only
class _Tunable(TypedDict):
    """A tunable of a scheduler."""

    default: int
    least: int
    most: int
    unit: str  # "ms", "us", "ns", "KiB", "0 or 1", or "" for a count

@type_check_only
class _Kernel(TypedDict):
    """A kernel that can be simulated."""

    name: str
    schedulers: dict[str, dict[str, _Tunable]]  # the default one first; tunables by their names in sysfs

def kernels() -> list[_Kernel]:
    """Return the kernels that can be simulated, the oldest first."""

def simulate(point: str, watch: Callable[[float, int], object] | None = None) -> str:
    """Return what comes of a simulated point (JSON, see docs/simulate.md) as JSON, without holding the GIL meanwhile.

    Some ten times a second ``watch`` is called with the simulated seconds and the requests so far; what it raises ends
    the simulation, as does a signal. Raises ``ValueError`` with the path of a wrong field, ``": "`` and what is wrong.
    """

def trace_summary(load: str, watch: Callable[[float, int], object] | None = None) -> str:
    """Return what a trace holds as JSON. ``load`` is that of a point whose kind is a trace, without ``kind``.

    Reads it to its end; ``watch`` is called with 0 and the requests so far. Raises as ``simulate``.
    """
