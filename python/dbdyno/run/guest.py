"""Trials in a virtual machine, from its host: the request sent in, the disk's questions answered, the results taken.

The guest runs the same code as a host does (``run.guest_side``). Here its disk is switched between answering at once
and behaving as the drive, and everything that it hands over is checked as what a host of a fleet hands over.
"""

import base64
import importlib._bootstrap_external as importing
import json
import math
import os
import pickle
import shlex
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from dbdyno.errors import HostError, TrialError, UserError
from dbdyno.hosts.contract import LieError
from dbdyno.model.printable import printable, short
from dbdyno.plan.order import Slot
from dbdyno.run import sparse_tar
from dbdyno.run.trial import Measured, TrialStep, TrialTerms
from dbdyno.stack.disk_client import relay
from dbdyno.stack.guest.channel import GuestLostError
from dbdyno.stack.guest.kernels import PYTHON, find_kernel
from dbdyno.stack.guest.machine import DiskOfGuest, Guest, Machine, accelerator, booted, cpus
from dbdyno.stack.layer import Image, StackContext
from dbdyno.stack.layers.data import Disks
from dbdyno.stack.layers.device import PREPARED
from dbdyno.stack.layers.emulated_disk import EmulatedDisk, compensate_file, is_rotational
from dbdyno.stack.undo_log import Journal
from dbdyno.store.cuts import CUT_ID, is_at_its_place
from dbdyno.store.events import Finished
from dbdyno.store.latencies import COLUMNS, LATENCIES, latencies_in
from dbdyno.store.parts import sums_of
from dbdyno.store.records import Disturbance, Trial
from dbdyno.store.series import SeriesRequest, read_each
from dbdyno.store.trials import TRIAL, read_trial, trial_file
from dbdyno.study.schema import TrialSpec
from dbdyno.system.interrupt import now_ns
from dbdyno.system.state import state_folder

# The Python of a guest: the modules that its program imports, compiled, so that a guest need not look for each.
#
# A guest reads files of its host by 9p, and each look into a folder is a message: an import that takes 18 s so takes
# a fraction of it from memory. So the modules are put into the archive that the guest boots with; whatever else it
# imports it finds on its host.


_LIST = """\
import importlib, json, sys
importlib.import_module(sys.argv[1])
found = {}
for name, module in list(sys.modules.items()):
    file = getattr(module, "__file__", None)
    if file and file.endswith((".py", ".so")) and name != "__main__":
        found[name] = [file, hasattr(module, "__path__")]
print(json.dumps(found))
"""
_SECONDS_MAX = 120


@cache
def python_bundle(program: str) -> dict[str, bytes]:
    """The modules that a module imports, itself among them: path below a folder of modules -> content.

    Raises ``HostError`` where it can't be imported.
    """
    argv = [sys.executable, "-c", _LIST, program]
    done = subprocess.run(argv, check=False, capture_output=True, timeout=_SECONDS_MAX)
    if done.returncode:
        raise HostError(f"{program} can't be imported: {done.stderr.decode(errors='replace').strip()[-400:]}")
    listed: dict[str, tuple[str, bool]] = json.loads(done.stdout)
    return dict(_module(name, Path(file), is_package=is_package) for name, (file, is_package) in listed.items())


def _module(name: str, file: Path, *, is_package: bool) -> tuple[str, bytes]:
    base = name.replace(".", "/")
    if file.suffix == ".so":
        return f"{base}{file.name[file.name.index('.') :]}", file.read_bytes()
    code = compile(file.read_bytes(), str(file), "exec", dont_inherit=True, optimize=0)
    content: bytes = bytes(importing._code_to_timestamp_pyc(code))  # type: ignore[attr-defined]  # noqa: SLF001
    return f"{base}/__init__.pyc" if is_package else f"{base}.pyc", content


# Whether a trial that another machine has handed over is one: a host of a fleet or a guest may be broken, or lie.


def check_trial(folder: Path, slot: Slot) -> Trial:
    """The trial of a slot whose files lie below ``folder``/trials. Raises ``LieError`` where they are none of it."""
    place = folder / "trials" / slot.id
    try:
        names = [path.name for path in sorted(place.iterdir())]
        sums = sums_of(
            folder, [trial_file(slot.id, name) for name in names if name == TRIAL or name.endswith(".parquet")]
        )
        event = Finished(slot.id, slot.block, slot.attempt, slot.treatment, sha256=sums)
        trial = read_trial(folder, event)
        check_numbers(trial)
        check_series(folder, [event])
    except (OSError, UserError, ValueError) as error:
        raise LieError(f"{slot.id}: {error}") from None
    if trial.position != slot.position:
        raise LieError(f"{slot.id} has the wrong position")
    return trial


def check_series(folder: Path, events: Sequence[Finished]) -> None:
    """Raise ``UserError`` where the series of the trials can't be read within what is allowed to all of them."""
    requests = [
        SeriesRequest(event.trial, series, COLUMNS if series == LATENCIES else ".*")
        for event in events
        for series in sorted(Path(name).stem for name in event.sha256 if name.endswith(".parquet"))
    ]
    for request, columns in read_each(folder, requests, {event.trial: event.sha256 for event in events}):
        if request.series == LATENCIES:
            latencies_in(folder, request.trial, columns)


def check_numbers(trial: Trial) -> None:
    """Raise ``ValueError`` where a figure is none, or a cut names a state outside of its own folder."""
    for name, value in [*trial.metrics.items(), *trial.seconds.items(), *trial.host_speed.items()]:
        if not math.isfinite(value) or value < 0:
            raise ValueError(f"{trial.id}: {name} is {value}")
    ids = [cut.id for cut in trial.cuts]
    if len(set(ids)) != len(ids):
        raise ValueError(f"{trial.id} has a cut twice")
    for cut in trial.cuts:
        if not CUT_ID.fullmatch(cut.id) or (cut.kept and not is_at_its_place(cut)):
            raise ValueError(f"{trial.id}: a cut has an invalid name or folder")
        for name, value in [*asdict(cut).items(), *cut.recovery_s.items()]:
            least = -math.inf if name == "at_s" else 0  # where a load starts slowly, a cut comes before it is measured
            if isinstance(value, int | float) and not (math.isfinite(value) and value >= least):
                raise ValueError(f"{trial.id}: {name} of cut {cut.id} is {value}")


PROGRAM = "dbdyno.run.guest_side"
STATE = "/run/dbdyno"  # the state folder, in the guest
BOOT_SECONDS, SILENCE_SECONDS = 240.0, 120.0
LOAD_TIMES_MAX, OTHER_SECONDS_MAX = 10, 1800.0  # what a trial may take, of its load's time and beside it
RESULT_BYTES_MAX = 256 * 1024**2

# What a guest may have its disk do: nothing that names a file of the host, and no content but its own.
_DISK_OPERATIONS = {
    "mode",
    "stats",
    "gauges",
    "cuts-arm",
    "cuts-disarm",
    "cut",
    "cut-on",
    "cuts",
    "cut-restore",
    "cut-forget",
    "cuts-forget",
}


@dataclass(frozen=True)
class _GuestDisk:
    """An emulated disk that a guest has, and what it may ask of it."""

    disk: EmulatedDisk
    drive: str
    is_prepared: bool

    def answer(self, asked: Mapping[str, Any], next_: EmulatedDisk | None = None) -> dict[str, Any]:
        """What the disk says to a question of the guest's, with the time of this host's monotonic clock.

        ``next_`` is the guest's disk that the question calls the next, whose socket the guest does not know.
        """
        op, asked = asked.get("op"), {**asked, **({"next": str(next_.control)} if next_ else {})}
        allowed = isinstance(op, str) and (
            (op in _DISK_OPERATIONS and (next_ is not None or asked.get("next") is None))  # no other socket of the host
            or (op == "model" and asked.get("name") == self.drive)
            or (op == "restore" and self.is_prepared and asked.get("name") == PREPARED)
            or (op == "clear" and not self.is_prepared)
        )
        if not allowed:
            return {"ok": False, "error": f"this command of the disk is not allowed to a guest: {short(str(op), 40)}"}
        return {**relay(self.disk.client, asked), "now_ns": now_ns()}


def prepare_in_guest(spec: TrialSpec, image: Image, journal: Journal, say: Callable[[str], None]) -> None:
    """Make the prepared data of a treatment on its disks, by its kernel. Raises ``TrialError`` or ``HostError``."""
    asked = {"prepare": {"spec": _packed(spec), "key": _key(image)}}
    with _running(spec, image, journal, say, is_prepared=False) as guest:
        guest.ask(asked)


def run_in_guest(step: TrialStep, image: Image, terms: TrialTerms) -> Measured:
    """Run one trial in a machine that boots for it, as ``run_steps`` does on a host. Raises as that does.

    Nothing is erased: the disks of a guest are emulated.
    """
    slot, spec, ports = step.slot, step.spec, step.ports
    began = ports.monotonic()
    asked = {
        "trial": {
            "spec": _packed(spec),
            "key": _key(image),
            "slot": asdict(slot),
            "seed": terms.seed,
            "rest_seconds": terms.rest_seconds,
        }
    }
    with _running(spec, image, terms.journal, terms.say, is_prepared=True) as guest:
        booted_seconds, began_ns = ports.monotonic() - began, now_ns()
        with ports.background(StackContext(terms.journal, Path()), []) as background:
            result = guest.ask(asked)
        ended_ns = now_ns()
        if result is None:
            raise TrialError("the guest ended without the results of its trial")
        trial = guest.take(result, slot, step.folder)
    disturbance = background.within(_window_ns(trial, result, (began_ns, ended_ns)))
    disturbance["in_guest"] = in_guest(trial.disturbance)
    observed = {**trial.observed, "guest": guest.observed}
    seconds = {"boot guest": round(booted_seconds, 3), **trial.seconds}
    return Measured(replace(trial, observed=observed, seconds=seconds, disturbance=disturbance), {})


def in_guest(said: Disturbance) -> dict[str, float]:
    """What a guest says of itself: the share of its CPUs that others took, and of the time in which tasks waited."""
    given = {"foreign_cpu": said.get("foreign_cpu"), **(said.get("pressure") or {})}
    return {
        name: float(value) for name, value in given.items() if isinstance(value, int | float) and 0 <= value < math.inf
    }


def _window_ns(trial: Trial, result: Mapping[str, Any], asked_ns: tuple[int, int]) -> tuple[int, int]:
    """The measured window by this host's clock, which lies inside that in which the guest was asked.

    Raises ``TrialError`` where what the guest says gives none.
    """
    clock = trial.load.get("clock")
    clock = clock if isinstance(clock, dict) else {}
    told = [result.get("ahead_ns"), clock.get("measure_start_ns"), clock.get("measure_end_ns")]
    ahead_ns, *window = (value if isinstance(value, int) else 0 for value in told)
    start_ns, end_ns = (min(max(moment - ahead_ns, asked_ns[0]), asked_ns[1]) for moment in window)
    if start_ns >= end_ns:
        raise TrialError("the guest reports a measured window outside of its trial")
    return start_ns, end_ns


@contextmanager
def _running(
    spec: TrialSpec, image: Image, journal: Journal, say: Callable[[str], None], *, is_prepared: bool
) -> Iterator["_Conversation"]:
    """A machine of a treatment that has booted, and waits for a request."""
    assert isinstance(image, Disks)  # noqa: S101  (of this kind)
    kernel = find_kernel(str(spec.stack.kernel))
    how = accelerator(kernel)
    owned = [*((disk, spec) for disk in image.disks), *((image.named[name], on) for name, on in spec.by_disk.items())]
    disks = [_disk_of_guest(disk, on, number, is_prepared=is_prepared) for number, (disk, on) in enumerate(owned)]
    machine = Machine(kernel, spec.stack.guest_memory, _command(), python_bundle(PROGRAM), disks)
    with booted(machine, journal, how) as guest:
        asked_of = tuple(_GuestDisk(disk, on.stack.device, is_prepared) for disk, on in owned)
        talk = _Conversation(guest, asked_of, spec, say, how)
        try:
            talk.wait_for_boot()
            yield talk
        except GuestLostError as error:
            raise TrialError(f"{error}; its console: {talk.last_words()}") from None


def _disk_of_guest(disk: EmulatedDisk, spec: TrialSpec, number: int, *, is_prepared: bool) -> DiskOfGuest:
    """A disk of a guest's, with the content that it boots with; ``spec`` is the treatment as if its data lay there."""
    drive = spec.stack.device
    disk.client.set_mode("instant")
    disk.client.set_model(drive, 0)
    if is_prepared:
        disk.client.restore(PREPARED)
    else:
        disk.client.clear()
    compensate_file(disk)
    cache = disk.client.stats()["write_cache"] == "volatile"
    return DiskOfGuest(disk.file, spec.stack.bus, is_rotational(drive), cache, number=number)


def _key(image: Image) -> str:
    """The key of prepared data as it is sent into a guest, through memory alone; empty where nothing is encrypted."""
    return base64.b64encode(image.key).decode("ascii") if isinstance(image, Disks) else ""


def _packed(spec: TrialSpec) -> str:
    """A treatment as it is sent into a guest, which trusts its host; what comes back is never unpickled."""
    return base64.b64encode(pickle.dumps(spec)).decode("ascii")


def _command() -> str:
    """What a guest runs: this Python, with the modules of the archive before those of the host."""
    given = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin",
        "HOME": "/root",
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": PYTHON,
        "PYTHONDONTWRITEBYTECODE": "1",
        "DBDYNO_STATE_DIR": STATE,
        "DM_DISABLE_UDEV": "1",  # no udev runs in it, so device mapper's own library makes the names
    }
    # What is imported stays: looking through all of it for garbage, again and again, is a tenth of that time.
    program = f"import gc; gc.disable(); from {PROGRAM} import main; gc.freeze(); gc.enable(); main()"
    words = ["env", "-i", *(f"{name}={value}" for name, value in given.items()), sys.executable, "-S", "-c", program]
    return shlex.join([*words, str(state_folder()), json.dumps([one for one in sys.path if one])])


@dataclass
class _Conversation:
    """What is said with a guest that has booted."""

    guest: Guest
    disks: Sequence[_GuestDisk]
    spec: TrialSpec
    say: Callable[[str], None]
    accelerator: str
    release: str = ""
    line: dict[int, int] = field(default_factory=dict)  # number of a disk -> of that whose power is cut next

    @property
    def observed(self) -> dict[str, Any]:
        """What is known of the machine: its kernel as it says itself, the rest as QEMU was told."""
        stack = self.spec.stack
        machine = {"accelerator": self.accelerator, "bus": stack.bus, "cpus": cpus()}
        return {"kernel": self.release, **machine, "memory_bytes": stack.guest_memory}

    def wait_for_boot(self) -> None:
        """Wait until its program runs. Raises ``TrialError`` where another kernel does."""
        kind, value = self.guest.channel.receive(BOOT_SECONDS)
        release = find_kernel(str(self.spec.stack.kernel)).release
        if kind != "runs":
            raise GuestLostError(f"the guest sent an unknown message: {short(kind, 40)}")
        if value != release:
            raise TrialError(f"the guest runs kernel {short(str(value), 60)}, not {release}")
        self.release = release

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any] | None:
        """Send a request, and answer the guest until it is done; what it has to hand over, if anything."""
        ((kind, value),) = request.items()
        self.guest.channel.send(kind, value)
        until = time.monotonic() + OTHER_SECONDS_MAX + LOAD_TIMES_MAX * (self.spec.workload.seconds_bound or 600.0)
        while time.monotonic() < until:
            kind, value = self.guest.channel.receive(SILENCE_SECONDS)
            match kind:
                case "beat":
                    pass
                case "say":
                    self.say(short(printable(str(value)), 400))
                case "disk":
                    self.guest.channel.send("answer", self.answer(value))
                case "failed":
                    raise _failure(value)
                case "done":
                    return value if isinstance(value, dict) else None
                case _:
                    raise GuestLostError(f"the guest sent an unknown message: {short(kind, 40)}")
        raise GuestLostError("the guest took longer than it may")

    def answer(self, value: object) -> dict[str, Any]:
        """What the disk says that a guest asks something of, by its number."""
        asked = dict(value) if isinstance(value, dict) else {}
        number, next_ = asked.pop("disk", 0), asked.pop("next", None)
        for named in (number, *([] if next_ is None else [next_])):
            if not isinstance(named, int) or not 0 <= named < len(self.disks):
                return {"ok": False, "error": f"the guest has no disk {short(str(named), 20)}"}
        disk: _GuestDisk = self.disks[number]
        if asked.get("op") == "cuts-arm":
            self.line.pop(number, None)
        if next_ is None:
            return disk.answer(asked)
        if number in self._line_from(next_):  # each would wait for the other
            return {"ok": False, "error": f"the disks {number} and {next_} can't be cut in a circle"}
        self.line[number] = next_
        return disk.answer(asked, self.disks[next_].disk)

    def _line_from(self, number: int) -> list[int]:
        """A disk, and those that lose their power after it, in order."""
        line = [number]
        while (number := self.line.get(number, -1)) >= 0:
            line.append(number)
        return line

    def take(self, result: Mapping[str, Any], slot: Slot, folder: Path) -> Trial:
        """Take the files of a trial into its folder. Raises ``TrialError`` where they are none of it."""
        size = result.get("bytes")
        if not isinstance(size, int) or not 0 < size <= RESULT_BYTES_MAX:
            raise GuestLostError("the guest handed over results of an invalid size")
        packed, unpacked = folder / ".guest.tar", folder / ".guest"
        try:
            self.guest.channel.receive_file(packed, size, SILENCE_SECONDS)
            (unpacked / "trials").mkdir(parents=True)
            sparse_tar.extract(packed, unpacked, lambda name: _limit(name, slot.id))
            trial = check_trial(unpacked, slot)
            for path in sorted((unpacked / "trials" / slot.id).iterdir()):
                if path.name != TRIAL:
                    path.rename(folder / path.name)
        except (tarfile.TarError, LieError) as error:
            raise TrialError(f"what the guest handed over is refused: {short(str(error))}") from None
        finally:
            packed.unlink(missing_ok=True)
            shutil.rmtree(unpacked, ignore_errors=True)
        return trial

    def last_words(self) -> str:
        """The end of its console; it is ended for that."""
        self.guest.process.kill()
        return self.guest.console.text


def _limit(name: str, trial: str) -> int | None:
    match name.split("/"):
        case ["trials", which] | ["trials", which, _] if which == trial:
            return RESULT_BYTES_MAX
    return None


def _failure(value: object) -> Exception:
    """What a guest says went wrong: of its own doing, and no more than its trial."""
    return TrialError(short(printable(str(value)), 2000))
