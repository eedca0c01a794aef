"""What can be asked of an emulated disk: one method an operation of its control socket.

The other side is the enum ``ControlRequest`` of crates/dbdyno-disk/src/control.rs, which a test holds against this.
"""

import json
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, cast, get_args

from dbdyno.errors import DbdynoError, TrialError
from dbdyno.model.cut import Survivors
from dbdyno.model.results import DiskFigures

MOVE_SECONDS = 600.0  # for an answer to what moves all of the content

Mode = Literal["instant", "model"]
TraceFormat = Literal["csv", "binary"]
CutOn = Literal["flush", "write"]
MODES: tuple[Mode, ...] = get_args(Mode)
TRACE_FORMATS: tuple[TraceFormat, ...] = get_args(TraceFormat)
CUT_ON: tuple[CutOn, ...] = get_args(CutOn)


@dataclass(frozen=True)
class Fault:
    """What goes wrong, and with which requests; fields as ``FaultSpec`` of crates/dbdyno-disk/src/faults.rs."""

    kind: Literal["latency", "eio", "stuck"]
    target: Literal["read", "write", "all"] = "all"
    extra_ns: int = 0  # of a latency
    range_bytes: tuple[int, int] | None = None  # first byte, first byte after
    every: int | None = None  # hits each nth request
    probability: float | None = None
    for_ns: int | None = None  # until it is cleared, if not given
    seed: int = 0


@dataclass(frozen=True)
class PowerCut:
    """What a loss of power took."""

    cut_ns: int  # CLOCK_MONOTONIC; what was acknowledged before this and had been flushed is kept
    cut_end_ns: int  # nothing that was sent after this was written
    in_flight_failed: int  # requests
    write_cache: str
    sector_bytes: int
    unflushed_sectors: int
    lost_sectors: int


@dataclass(frozen=True)
class TraceEnd:
    """A trace that has ended."""

    file: str
    records: int
    dropped: int  # requests that came too fast to be recorded


@dataclass(frozen=True)
class CutTaken:
    """A state that a power cut would have found, taken while the load went on."""

    name: str
    cut_ns: int  # CLOCK_MONOTONIC; what was acknowledged before this is in the state
    cut_end_ns: int  # what was sent after this is not
    unflushed_bytes: int  # of writes that were not durable
    unflushed_writes: int
    limit_reached: bool  # something counts as durable because there was too much to keep track of
    flushes_in_flight: int


@dataclass(frozen=True)
class Survived:
    """What a cut took, with survivors as they were drawn; sectors have 4096 bytes, with ``random-512`` 512."""

    writes_unflushed: int
    writes_lost: int  # of which a part is not there
    sectors_unflushed: int
    sectors_lost: int  # that are not as last written


@dataclass(frozen=True)
class DiskClient:
    """The control socket of one disk process. Every method raises ``TrialError`` if the disk refuses or is gone."""

    control: Path
    name: str = "emulated disk"  # in messages
    answer_seconds: float = 60.0

    def set_mode(self, mode: Mode) -> None:
        """Answer at once, or when the model says so; the model then starts idle, with empty caches."""
        self._ask("mode", mode=mode)

    def set_model(self, name: str, seed: int) -> None:
        """Behave like this drive from now on, idle and with empty caches."""
        self._ask("model", name=name, seed=seed)

    def set_path(self, path_ns: int) -> None:
        """Answer requests of unknown start ``path_ns`` before the model's time, as far as that is known so early."""
        self._ask("path", path_ns=path_ns)

    def follow(self, device: Path) -> bool:
        """Count each request from when it was handed to this loop device; false where the host does not allow it."""
        followed: bool = self._ask("follow", device=str(device))["followed"]
        return followed

    def snapshot(self, name: str) -> None:
        """Keep the content under a name."""
        self._ask("snapshot", name=name)

    def restore(self, name: str) -> None:
        """Put the content back to a snapshot."""
        self._ask("restore", name=name)

    def forget(self, name: str) -> None:
        """Drop a snapshot."""
        self._ask("forget", name=name)

    def clear(self) -> None:
        """Drop the content."""
        self._ask("clear")

    def save(self, file: Path) -> None:
        """Write the content to a sparse file."""
        self._ask("save", MOVE_SECONDS, file=str(file))

    def load(self, file: Path) -> None:
        """Replace the content by a saved one."""
        self._ask("load", MOVE_SECONDS, file=str(file))

    def stats(self, *, reset: bool = False) -> DiskFigures:
        """All that the disk counts, as ``dbdyno disk stats --json`` has it; ``reset`` starts counting anew."""
        return cast("DiskFigures", self._ask("stats", reset=reset))

    def gauges(self) -> dict[str, float]:
        """The inside of the model as it stands, by name."""
        gauges: dict[str, float] = self._ask("gauges")["gauges"]
        return gauges

    def start_trace(self, file: Path, format_: TraceFormat) -> None:
        """Write every request with its times to a file."""
        self._ask("trace", file=str(file), format=format_)

    def stop_trace(self) -> TraceEnd:
        """End the trace."""
        ended = self._ask("trace-stop")
        return TraceEnd(ended["file"], ended["records"], ended["dropped"])

    def cut_power(self, seed: int, sector_bytes: int) -> PowerCut:
        """Lose a random part of what was not flushed; everything fails until the power is on again."""
        return PowerCut(**self._ask("power-cut", seed=seed, sector_bytes=sector_bytes))

    def power_on(self) -> None:
        """Switch the power on again."""
        self._ask("power-on")

    def add_fault(self, spec: Fault) -> None:
        """Put a fault into the disk."""
        self._ask("fault", spec=asdict(spec))

    def pull_out(self, seed: int) -> PowerCut:
        """Take the drive away, and with it its power; ``clear_faults`` puts it back."""
        return PowerCut(**self._ask("fault-gone", seed=seed))

    def clear_faults(self) -> None:
        """End all faults."""
        self._ask("fault-clear")

    def arm_cuts(self, hold_ns: int = 0, next_: "DiskClient | None" = None) -> None:
        """Record writes from now on, so that cuts can be taken; what was written so far counts as durable.

        A write that a FLUSH made durable is remembered ``hold_ns`` longer, for survivors ``lying``. Refused of content
        in a file. On an armed disk only these change. The disk has a ``next_`` one take each cut too, before it answers
        any request again.
        """
        self._ask("cuts-arm", hold_ns=hold_ns, next=str(next_.control) if next_ else None)

    def disarm_cuts(self) -> None:
        """End the recording; cuts that were taken stay, those still waited for are forgotten."""
        self._ask("cuts-disarm")

    def cut(self, name: str) -> CutTaken:
        """Take the state that a power cut now would find; the load goes on."""
        return CutTaken(**self._ask("cut", name=name))

    def cut_on(
        self, name: str, on: CutOn, nth: int, ranges_bytes: Sequence[tuple[int, int]] = (), seed: int = 0
    ) -> None:
        """Have the disk take a cut by itself, at the nth such request from now.

        With ``flush`` at its arrival or before its completion, drawn by the seed; with ``write`` at the arrival of one
        that touches one of the ranges (first byte, first byte after), or of any where none is given.
        """
        self._ask("cut-on", name=name, on=on, nth=nth, ranges_bytes=list(ranges_bytes), seed=seed)

    def cuts(self) -> list[CutTaken]:
        """The cuts that were taken, by time."""
        return [CutTaken(**cut) for cut in self._ask("cuts")["cuts"]]

    def restore_cut(self, name: str, survivors: Survivors, seed: int) -> Survived:
        """Make the content that of a cut; the cut stays, the drive is idle with empty caches. Detach the device before.

        The same cut, survivors and seed give the same bytes. Refused while requests are in flight.
        """
        return Survived(**self._ask("cut-restore", MOVE_SECONDS, name=name, survivors=survivors, seed=seed))

    def forget_cut(self, name: str) -> None:
        """Drop a cut, or one still waited for."""
        self._ask("cut-forget", name=name)

    def forget_cuts(self) -> None:
        """Drop all cuts, and those still waited for."""
        self._ask("cuts-forget")

    def save_cut(self, name: str, folder: Path) -> None:
        """Write a cut to a new folder: what is durable (sparse), the writes beyond it, and when they were."""
        self._ask("cut-save", MOVE_SECONDS, name=name, folder=str(folder))

    def load_cut(self, name: str, folder: Path) -> None:
        """Take in a saved cut of a disk of the same size, as if it had been taken on this one."""
        self._ask("cut-load", MOVE_SECONDS, name=name, folder=str(folder))

    def _ask(self, op: str, answer_seconds: float | None = None, **arguments: object) -> dict[str, Any]:
        answer = self._answer(op, answer_seconds or self.answer_seconds, {"op": op, **arguments})
        if not answer.pop("ok", False):
            raise self._refusal(op, answer.get("error", "closed the connection"))
        return answer

    def _answer(self, op: str, answer_seconds: float, fields: Mapping[str, Any]) -> dict[str, Any]:
        request = json.dumps(fields).encode() + b"\n"
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(answer_seconds)
                client.connect(str(self.control))
                client.sendall(request)
                with client.makefile("r", encoding="utf-8") as reply:
                    answer: dict[str, Any] = json.loads(reply.readline() or "{}")
        except (OSError, ValueError) as error:
            raise self._refusal(op, f"no answer: {error}") from None
        return answer

    def _refusal(self, op: str, why: str) -> DbdynoError:
        return TrialError(f"{self.name}, {op}: {why}")


@dataclass(frozen=True)
class DiskLine:
    """Emulated disks that lose their power together, asked about cuts as one disk is.

    The first takes each cut, and has the next one take it before it answers any request again; so does that one. What
    the later disk holds by then can't depend on what the earlier one had not yet made durable, so the states of all
    are what one cut at the last moment finds, where the drives before were slow to answer.
    """

    disks: Mapping[str, DiskClient]  # by name, in this order

    @property
    def first(self) -> DiskClient:
        """The one that takes cuts at its own requests."""
        return next(iter(self.disks.values()))

    @property
    def control(self) -> Path:
        """Where a program asks for a cut of all."""
        return self.first.control

    def arm_cuts(self, hold_ns: int = 0) -> None:
        """As of one disk; the last first, as each must be ready when the one before is."""
        *before, last = self.disks.values()
        last.arm_cuts(hold_ns)
        for client, next_ in reversed(list(pairwise([*before, last]))):
            client.arm_cuts(hold_ns, next_)

    def disarm_cuts(self) -> None:
        """As of one disk; the first first."""
        for client in self.disks.values():
            client.disarm_cuts()

    def cut(self, name: str) -> CutTaken:
        """As of one disk."""
        self.first.cut(name)
        return next(cut for cut in self.cuts() if cut.name == name)

    def cut_on(
        self, name: str, on: CutOn, nth: int, ranges_bytes: Sequence[tuple[int, int]] = (), seed: int = 0
    ) -> None:
        """As of one disk, at a request to the first."""
        self.first.cut_on(name, on, nth, ranges_bytes, seed)

    def cuts(self) -> list[CutTaken]:
        """The cuts that all took, by time: begun when the first, and over when the last was. Raises ``TrialError``."""
        by_disk = {disk: {cut.name: cut for cut in client.cuts()} for disk, client in self.disks.items()}
        taken = []
        for name in next(iter(by_disk.values())):
            if lacking := [disk for disk, cuts in by_disk.items() if name not in cuts]:
                raise TrialError(f"cut {name}: the power of disk {lacking[0]} was not cut with that of the others")
            taken.append(_together([cuts[name] for cuts in by_disk.values()]))
        return taken

    def forget_cut(self, name: str) -> None:
        """As of one disk."""
        for client in self.disks.values():
            client.forget_cut(name)

    def forget_cuts(self) -> None:
        """As of one disk."""
        for client in self.disks.values():
            client.forget_cuts()


def _together(cuts: Sequence[CutTaken]) -> CutTaken:
    return CutTaken(
        cuts[0].name,
        cut_ns=min(cut.cut_ns for cut in cuts),
        cut_end_ns=max(cut.cut_end_ns for cut in cuts),
        unflushed_bytes=sum(cut.unflushed_bytes for cut in cuts),
        unflushed_writes=sum(cut.unflushed_writes for cut in cuts),
        limit_reached=any(cut.limit_reached for cut in cuts),
        flushes_in_flight=sum(cut.flushes_in_flight for cut in cuts),
    )


def relay(client: DiskClient, request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a request as the socket takes it, for a guest whose disk it is; a refusal is an answer, too."""
    return client._answer(str(request.get("op")), MOVE_SECONDS, request)  # noqa: SLF001  (of the same file)
