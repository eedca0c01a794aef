"""An array of md over the disks below: level, chunk and bitmap, whole, without a disk, or rebuilding one.

Cannot: be made of real disks, or of disks of two kinds; lose a disk during the load, or after it began to rebuild;
keep its write-intent bitmap or a journal (`--write-journal`) on another disk; be cut off power.
"""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from dbdyno.errors import TrialError
from dbdyno.stack.between import Between, load_module
from dbdyno.stack.layer import Layer, StackContext
from dbdyno.stack.layers.queue import read_knob
from dbdyno.stack.tools import run_tool
from dbdyno.stack.undo.actions import StopArray, arrays_over
from dbdyno.stack.undo_log import Journal
from dbdyno.store.records import TrialDevice
from dbdyno.study.schema import ArraySection, TrialSpec
from dbdyno.system.state import new_token

MODULES = {"raid5": "raid456", "raid6": "raid456"}  # level -> module, where that is not its name
MDSTAT = Path("/proc/mdstat")
SETTLE_SECONDS, TRY_SECONDS = 30.0, 0.05
# Files of /sys/block/MD/md that a study sets, and those that are shown beside them (Documentation/admin-guide/md.rst).
KNOBS = ("sync_speed_min", "sync_speed_max", "stripe_cache_size")
SHOWN = ("level", "raid_disks", "chunk_size", "metadata_version", "degraded", "array_state", "layout", *KNOBS)


@dataclass(frozen=True)
class Array:
    """Makes one device of those below."""

    level: str
    section: ArraySection
    fresh: bool  # make it anew, of disks that hold nothing, rather than assemble what they hold
    title: str  # by which mdadm knows it on this host
    name: str = "array"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The array, in the state that the study asks for; stopped on the way down."""
        for module in ("md-mod", MODULES.get(self.level, self.level)):
            load_module(module)
        paths = [str(device.path) for device in below.devices]
        stopping = StopArray(tuple(paths))
        with below.journal.undoing(stopping):
            stopping.apply()  # where the system's own rules have assembled it when its disks came
            self._create(paths) if self.fresh else self._assemble(paths)
            (array,) = arrays_over(paths)
            folder = Path("/sys/block") / array / "md"
            if not self.fresh:  # prepared data are made on a whole array
                self._take_state(folder, paths[-1])
            for knob in KNOBS:
                if (value := getattr(self.section, knob)) is not None:
                    _write(folder / knob, str(value))
            observed = observe(folder)
            self._check(observed)
            devices = below
            if self.section.state == "degraded" and not self.fresh:
                devices = replace(below, beside=below.beside[:-1])  # what is watched and flushed from here on
            synced = devices.devices
            if self.section.state == "rebuilding" and not self.fresh:
                synced = synced[:-1]  # until the rebuild begins, the last is a spare, which gets no flush
            observed["state"] = self.section.state
            yield devices.raised(self.name, observed, volume=Path("/dev") / array, synced=synced)

    @contextmanager
    def measuring(self, _: Journal) -> Iterator[TrialDevice]:
        """A rebuild begins with the load, and must outlast it. Raises ``TrialError`` where it does not."""
        figures: TrialDevice = {}
        if self.section.state != "rebuilding":
            yield figures
            return
        folder = (Path("/dev/md") / self.title).resolve()
        folder = Path("/sys/block") / folder.name / "md"
        _write(folder / "sync_action", "recover")
        began = time.monotonic()
        yield figures
        seconds = time.monotonic() - began
        done = rebuilt_share(MDSTAT.read_text(encoding="ascii"), folder.parent.name)
        if read_knob(folder / "sync_action") != "recover":
            raise TrialError(
                f"the array was rebuilt before the load ended, within {seconds:.1f} s; give larger disks (stack.size), "
                "a shorter load, or a smaller array.sync_speed_max"
            )
        figures["rebuilt_share"] = done

    def _create(self, paths: list[str]) -> None:
        """Make it of disks that hold zeros, of which its parity is right as it is, so that nothing must be synced."""
        section = self.section
        options = [f"--level={self.level}", f"--raid-devices={len(paths)}", "--metadata=1.2", "--run"]
        options += [f"--chunk={section.chunk // 1024}K"] if section.chunk else []
        if self.level not in {"raid0", "linear"}:
            options += ["--assume-clean", *([f"--bitmap={section.bitmap}"] if section.bitmap else [])]
        run_tool(["mdadm", "--create", f"/dev/md/{self.title}", "--homehost=any", *options, *paths])

    def _assemble(self, paths: list[str]) -> None:
        run_tool(["mdadm", "--assemble", f"/dev/md/{self.title}", "--homehost=any", "--run", *paths])

    def _take_state(self, folder: Path, last: str) -> None:
        """Take the last disk out, where the study asks for that; to rebuild, put it in again as a new one."""
        if self.section.state == "clean":
            return
        disk = folder / f"dev-{Path(last).name}"
        if self.section.state == "rebuilding":
            _write(folder / "sync_action", "frozen")
        _write(disk / "state", "faulty")
        deadline = time.monotonic() + SETTLE_SECONDS
        while disk.exists():
            try:
                (disk / "state").write_text("remove", encoding="ascii")
            except OSError as error:  # what was sent to it has not come back yet
                if time.monotonic() > deadline:
                    raise TrialError(f"remove {last} from the array: {error.strerror}") from None
                time.sleep(TRY_SECONDS)
        if self.section.state == "rebuilding":
            run_tool(["mdadm", "--zero-superblock", last])
            run_tool(["mdadm", "--manage", f"/dev/{folder.parent.name}", "--add-spare", last])

    def _check(self, observed: dict[str, Any]) -> None:
        """Raises ``TrialError`` with every setting that did not take."""
        section = self.section
        asked: dict[str, Any] = {
            "level": self.level,
            "degraded": "0" if section.state == "clean" or self.fresh else "1",
        }
        if self.level in {"raid0", "linear"}:
            del asked["degraded"]
        if section.chunk:
            asked["chunk_size"] = str(section.chunk)
        if section.bitmap:
            asked["bitmap"] = section.bitmap
        asked |= {knob: str(value) for knob in KNOBS if (value := getattr(section, knob)) is not None}
        wrong = [f"{name} {value}, it is {observed.get(name)}" for name, value in asked.items()
                 if observed.get(name) != value]  # fmt: skip
        if wrong:
            raise TrialError(f"array: asked for {'; '.join(wrong)}")


def observe(folder: Path) -> dict[str, Any]:
    """What the kernel says of an array, by its folder /sys/block/MD/md."""
    # "100 (local)" is one of this array's own, "1000 (system)" the system's.
    found: dict[str, Any] = {
        name: read_knob(folder / name).partition(" ")[0] for name in SHOWN if (folder / name).exists()
    }
    found["disks"] = len(list(folder.glob("dev-*")))
    location = folder / "bitmap" / "location"
    if location.exists():
        found["bitmap"] = {"none": "none", "file": "file"}.get(read_knob(location), "internal")
    return found


def rebuilt_share(mdstat: str, array: str) -> float:
    """How much of an array a rebuild has done, from 0 to 1, by what /proc/mdstat says; 0 where none goes on.

    ``sync_completed`` in sysfs goes on in sixteenths alone.
    """
    of_array = re.search(rf"^{re.escape(array)} :.*?(?=^\S|\Z)", mdstat, re.MULTILINE | re.DOTALL)
    progress = re.search(r"recovery = *[\d.]+% \((\d+)/(\d+)\)", of_array[0] if of_array else "")
    return int(progress[1]) / int(progress[2]) if progress else 0.0


def _write(path: Path, value: str) -> None:
    try:
        path.write_text(value, encoding="ascii")
    except OSError as error:
        raise TrialError(f"write {value!r} to {path}: {error.strerror}") from None


class _Md(Between):
    FIELD: ClassVar[str] = "array"
    PROGRAMS: ClassVar[dict[str, str]] = {"mdadm": "mdadm"}
    TOUCHES: ClassVar[str] = "assembled: an md array of the disks of each trial; stopped afterwards"

    def modules(self, spec: TrialSpec) -> list[str]:
        return ["md-mod", MODULES.get(spec.stack.array, spec.stack.array)]

    def on_disk(self, spec: TrialSpec) -> list[object]:
        return [spec.stack.array, spec.array.chunk, spec.array.bitmap]

    def layer(self, spec: TrialSpec, *, fresh: bool, key: bytes) -> Layer:
        return Array(spec.stack.array, spec.array, fresh, f"dbdyno-{new_token()}")


BETWEEN = _Md()
