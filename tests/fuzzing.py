"""A search for bytes that break a reader: kept inputs changed at random, a bounded number of them.

The kept inputs are in ``fuzz/seeds/python``; what they become is drawn from the seed of all that is sampled. A
reader may return a value or raise its own error, within a bounded time of a processor and bounded memory. What breaks
one is kept in ``fuzz/artifacts``: put it beside the kept inputs with the mend, and it is tried ever after.
"""

import hashlib
import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests import sampled

FUZZ = Path(__file__).parents[1] / "fuzz"
SECONDS = float(os.environ.get("DBDYNO_FUZZ_SECONDS", "0"))  # of a processor for each reader; 0: a number of inputs
CPU_SECONDS_MAX = 5.0  # for one input
MEMORY_MAX_BYTES = 256 * 1024**2  # beyond what is held before
INPUT_MAX_BYTES = 64 * 1024
NUMBERS = (b"0", b"-1", b"18446744073709551616", b"9223372036854775807", b"1e400", b"nan", b"inf", b"4294967295")
VALUES = (
    b"null", b"true", b"[]", b"{}", b'""', b"[1]", b"1", b'"\\u001b[2J\\u202e"', b"1e999", b"-0.0", b"[" * 2000,
    b'"\\ud800"', b'{"a":' * 1500, b"NaN",
)  # fmt: skip
BYTES = (b"\0", b"\xff", b"\n", b"\r", b'"', b"'", b"\x1b[2J", b"\xe2\x80\xae", b"../", b"\\", b"=", b"[", b"{")


@dataclass(frozen=True)
class Reader:
    """What reads bytes of others: ``read`` is given them and a folder of its own, and raises ``refuses`` at most."""

    name: str  # of the folder with its kept inputs
    read: Callable[[bytes, Path], object]
    refuses: tuple[type[Exception], ...]
    inputs: int = 150  # in a test that is not told how long to go on


def kept_inputs(name: str) -> list[bytes]:
    """The kept inputs of a reader, in the order of their names."""
    return [path.read_bytes() for path in sorted((FUZZ / "seeds" / "python" / name).iterdir())]


def search(reader: Reader, folder: Path) -> int:
    """Try the kept inputs and ones made of them; how many. Raises ``AssertionError`` at one that breaks the reader."""
    kept, rng = kept_inputs(reader.name), sampled.drawn(f"fuzz {reader.name}")
    for content in kept:
        attempt(reader, content, folder)
    tried, until = 0, time.process_time() + SECONDS
    while time.process_time() < until if SECONDS else tried < reader.inputs:
        attempt(reader, varied(kept, rng), folder)
        tried += 1
    return len(kept) + tried


def attempt(reader: Reader, content: bytes, folder: Path) -> None:
    """Have it read these bytes. Raises ``AssertionError`` where it breaks, with the file that they are kept in."""
    held, began = start_peak(), time.process_time()
    broken = ""
    try:
        reader.read(content, folder)
    except reader.refuses as error:
        broken = "shows control or direction characters" if has_controls(str(error)) else ""
    except (Exception, RecursionError) as error:  # noqa: BLE001  (whatever it is, it is the finding)
        broken = f"raises {type(error).__name__}: {error}"
    seconds, more = time.process_time() - began, peak_bytes() - held
    if not broken and seconds > CPU_SECONDS_MAX:
        broken = f"takes {seconds:.1f} s of a processor"
    if not broken and more > MEMORY_MAX_BYTES:
        broken = f"takes {more >> 20} MiB"
    if broken:
        path = FUZZ / "artifacts" / "python" / reader.name / hashlib.sha256(content).hexdigest()[:16]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        raise AssertionError(f"{reader.name} {broken[:500]!r}; its input is {path}")


def has_controls(text: str) -> bool:
    """Whether a text steers a terminal, or turns the direction in which it is read."""
    return any(character not in "\n\t" and not character.isprintable() for character in text)


def start_peak() -> int:
    """Begin to measure the most memory that this process holds; returns what it holds now."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return peak_bytes()


def peak_bytes() -> int:
    """The most memory that this process has held since then."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def varied(kept, rng) -> bytes:
    """One of the kept inputs, changed once or a few times."""
    content = bytearray(rng.choice(kept))
    for _ in range(rng.randint(1, 4)):
        change(content, kept, rng)
        del content[INPUT_MAX_BYTES:]
    return bytes(content)


def change(content: bytearray, kept, rng) -> None:
    """Change bytes, numbers, values or lines in one place."""
    if not content:
        content += rng.choice(BYTES)
    start = rng.randrange(len(content))
    end = min(len(content), start + rng.randint(1, 60))
    match rng.randrange(11):
        case 0:
            content[start] ^= 1 << rng.randrange(8)
        case 1:
            content[start:start] = rng.choice(BYTES)
        case 2:
            del content[start:]
        case 3:
            del content[start:end]
        case 4:
            content[start:start] = content[start:end] * rng.randint(1, 200)
        case 5:
            other = rng.choice(kept)
            content[start:] = other[rng.randrange(len(other) + 1) :]
        case 6 | 7:
            replace_value(content, start, rng)
        case 8 | 9:
            change_lines(content, rng)
        case _:
            content[start:end] = rng.randbytes(end - start)


def change_lines(content: bytearray, rng) -> None:
    """Have two lines change places, or one come twice."""
    lines = content.splitlines(keepends=True)
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    if rng.randrange(2):
        lines[one], lines[other] = lines[other], lines[one]
    else:
        lines.insert(one, lines[other])
    content[:] = b"".join(lines)


def replace_value(content: bytearray, start: int, rng) -> None:
    """Put another value behind the next ``:`` or ``=``, up to what ends it; or another number for the next one."""
    begins = [at + 1 for mark in (b":", b"=") if (at := content.find(mark, start)) >= 0]
    if not begins:
        return
    begin = min(begins)
    ends = [at for mark in (b",", b"}", b"\n", b"]") if (at := content.find(mark, begin)) >= 0]
    content[begin : min(ends, default=len(content))] = b" " + rng.choice((*VALUES, *NUMBERS))
