"""Words about a recording of block I/O."""

from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.model.wording import count

if TYPE_CHECKING:
    from dbdyno.probe.recording import Recorded


def remarks(device: str, file: Path, done: "Recorded") -> list[str]:
    """What a recording must be read with."""
    from dbdyno.host.storage import disks_under

    found = ["the file is full, so the recording ended; --max-size allows more"] if done.ended == "full" else []
    if done.lost:
        found.append(f"{count(done.lost, 'event')} did not fit into the kernel's buffer and are lost")
    if set(disks_under(file.parent)) & set(disks_under(Path("/dev") / device)):
        found.append(f"{file} is on {device} itself: what was written to it is in the trace")
    return found


def recorded_text(file: Path, done: "Recorded", said: list[str]) -> str:
    """One line, and the remarks."""
    cost = "" if done.cpu_us_per_request is None else f"; {done.cpu_us_per_request:.2f} us of CPU a request"
    text = f"{count(done.requests, 'request')} in {done.seconds:.1f} s, {done.bytes / 1e6:,.1f} MB in {file}{cost}"
    return "\n".join([text, *(f"note: {one}" for one in said)])
