"""What a virtual machine runs: one request from its host, prepared data or a trial, by the code that a host runs.

Started by the guest's first program as root, with two arguments: the host's state folder, where servers lie, and the
host's list of folders of Python modules, in JSON.
"""

import base64
import json
import os
import pickle
import platform
import socket
import sys
import tarfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dbdyno.errors import DbdynoError, TrialError
from dbdyno.model.design import BOOTED
from dbdyno.plan.order import Slot
from dbdyno.run import sparse_tar
from dbdyno.run.ports import Ports
from dbdyno.run.trial import TrialStep, TrialTerms, run_steps
from dbdyno.stack.erase import Erasing
from dbdyno.stack.guest.channel import LINE_BYTES_MAX, PORT, GuestChannel
from dbdyno.stack.kinds.booted import KIND
from dbdyno.stack.kinds.kind import Raising
from dbdyno.stack.layer import raised
from dbdyno.stack.layers.data import Disks
from dbdyno.stack.layers.device import serial_in_guest
from dbdyno.stack.layers.emulated_disk import EmulatedDisk
from dbdyno.stack.layers.scratch import scratch
from dbdyno.stack.undo_log import Journal
from dbdyno.store.series import write_series
from dbdyno.store.trials import TRIAL
from dbdyno.study.schema import TrialSpec
from dbdyno.system.interrupt import now_ns
from dbdyno.system.state import state_folder
from dbdyno.workload.kinds import workload_of

REQUEST_SECONDS, ANSWER_SECONDS, BEAT_SECONDS = 600.0, 600.0, 5.0


@dataclass
class GuestClocks:
    """How far this machine's clock is ahead of its host's: between two bounds, which each answer draws closer."""

    least_ns: int = -(2**63)
    most_ns: int = 2**63

    def meet(self, before_ns: int, after_ns: int, host_ns: int) -> None:
        """The host's clock said ``host_ns`` at a moment between two of this machine's."""
        least_ns, most_ns = before_ns - host_ns, after_ns - host_ns
        self.least_ns, self.most_ns = max(self.least_ns, least_ns), min(self.most_ns, most_ns)
        if self.least_ns > self.most_ns:  # one of the clocks has drifted
            self.least_ns, self.most_ns = least_ns, most_ns

    @property
    def ahead_ns(self) -> int:
        """About how far."""
        return (self.least_ns + self.most_ns) // 2

    def moved(self, answer: dict[str, Any]) -> dict[str, Any]:
        """An answer of the disk, its moments moved from the host's clock to this machine's.

        A cut's two moments are moved apart by what is not known: what was acknowledged before the first is in its
        state, and what was sent after the second is not.
        """
        for cut in [answer, *answer.get("cuts", [])]:
            if "cut_ns" in cut:
                cut["cut_ns"] += self.least_ns
                cut["cut_end_ns"] += self.most_ns
        if (cache := answer.get("fast_cache")) and cache.get("ran_out_ns") is not None:
            cache["ran_out_ns"] += self.ahead_ns
        return answer


@dataclass
class Port:
    """The way to the host, shared by the threads that ask something of the disk and the one that says how it goes."""

    channel: GuestChannel
    clocks: GuestClocks = field(default_factory=GuestClocks)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, kind: str, value: object) -> None:
        """Say something."""
        with self._lock:
            self.channel.send(kind, value)

    def ask_disk(self, request: Mapping[str, Any], number: int) -> dict[str, Any]:
        """Ask something of the disk of that number, whose times are then those of this machine's clock."""
        with self._lock:
            before_ns = now_ns()
            self.channel.send("disk", {**request, "disk": number})
            kind, answer = self.channel.receive(ANSWER_SECONDS)
            after_ns = now_ns()
            if kind != "answer":
                raise TrialError(f"the host sent {kind} instead of an answer")
            if (host_ns := answer.pop("now_ns", None)) is not None:
                self.clocks.meet(before_ns, after_ns, host_ns)
            return self.clocks.moved(answer)


@contextmanager
def disk_sockets(port: Port, controls: Sequence[Path]) -> Iterator[None]:
    """Sockets at which the disks can be asked as on a host, one question for each connection."""
    with ExitStack() as closing:
        for number, control in enumerate(controls):
            listening = closing.enter_context(socket.socket(socket.AF_UNIX))
            listening.bind(str(control))
            listening.listen(16)
            given = listening, port, number, controls
            threading.Thread(target=_answer_all, args=given, name="disk", daemon=True).start()
        yield


def _answer_all(listening: socket.socket, port: Port, number: int, controls: Sequence[Path]) -> None:
    while True:
        try:
            client, _ = listening.accept()
        except OSError:
            return
        threading.Thread(target=_answer, args=(client, port, number, controls), daemon=True).start()


def _answer(client: socket.socket, port: Port, number: int, controls: Sequence[Path]) -> None:
    with client, client.makefile("rwb") as lines:
        try:
            request = json.loads(lines.readline(LINE_BYTES_MAX))
            if next_ := request.get("next"):  # a socket of this machine's, which the host knows by its number
                request["next"] = controls.index(Path(next_))
            answer = port.ask_disk(request, number)
        except (DbdynoError, ValueError) as error:
            answer = {"ok": False, "error": str(error)}
        lines.write(json.dumps(answer).encode() + b"\n")


def _spec(request: Mapping[str, Any]) -> TrialSpec:
    """The treatment, as this machine's own host has packed it."""
    spec = pickle.loads(base64.b64decode(request["spec"]))  # noqa: S301  (the host runs all code here anyway)
    assert isinstance(spec, TrialSpec)  # noqa: S101  (it sends nothing else)
    return spec


class _OnHost:
    """The process that serves the disk runs on the host, which says so itself where it ends."""

    pid = 0

    def poll(self) -> None:
        """As far as can be seen from here, it runs."""


def the_disks(spec: TrialSpec, controls: Sequence[Path], key: bytes) -> Disks:
    """The prepared data as the layers know them: disks that are asked at ``controls``, and what encrypts them.

    The file of each is called by its serial, by which this machine finds it; those of the data come first.
    """
    disks = [
        EmulatedDisk(control, Path("/dev") / serial_in_guest(number), _OnHost(), {})  # type: ignore[arg-type]
        for number, control in enumerate(controls)
    ]
    count = spec.stack.devices
    return Disks(tuple(disks[:count]), dict(zip(spec.by_disk, disks[count:], strict=True)), key)


def prepare(request: Mapping[str, Any], image: Disks, journal: Journal) -> None:
    """Make a treatment's prepared data on its disks."""
    spec = _spec(request)
    load = workload_of(spec)
    with scratch(journal) as ground:
        raising = Raising(ground.scratch / "prepare.log", load.prepare, install=True)
        with raised(KIND.stack(spec, image, raising).layers, ground) as context:
            load.prepare(context)
    os.sync()


def measure(request: Mapping[str, Any], image: Disks, journal: Journal, port: Port) -> Path:
    """Run a trial; the file that holds all of it."""
    spec, slot = _spec(request), Slot(**request["slot"])
    folder = state_folder() / "results" / "trials" / slot.id
    folder.mkdir(parents=True)
    ports = Ports(kinds={BOOTED: KIND}, smart_of=lambda _: "an emulated disk")
    came = run_steps(
        [TrialStep(slot, spec, folder, ports)],
        image,
        TrialTerms(
            seed=int(request["seed"]),
            journal=journal,
            erase=Erasing(frozenset()),
            rest_seconds=float(request["rest_seconds"]),
            say=lambda text: port.send("say", text),
        ),
    )
    if came.error:
        raise came.error
    measured = came.measured[0]
    for name, columns in measured.series.items():
        write_series(folder / f"{name}.parquet", columns)
    (folder / TRIAL).write_text(json.dumps(asdict(measured.trial)), encoding="utf-8")
    packed = state_folder() / "results.tar"
    with tarfile.open(packed, "w") as file:
        for path in sorted(folder.iterdir()):
            if path.is_file() and not path.is_symlink():
                sparse_tar.add(file, path, f"trials/{slot.id}/{path.name}", plain=True)
    return packed


def beat(port: Port, ended: threading.Event) -> None:
    """Say from time to time that the machine is alive."""
    while not ended.wait(BEAT_SECONDS):
        port.send("beat", 1)


def serve(port: Port) -> None:
    """Answer the one request."""
    port.send("runs", platform.release())
    kind, request = port.channel.receive(REQUEST_SECONDS)
    ended = threading.Event()
    threading.Thread(target=beat, args=(port, ended), daemon=True).start()
    try:
        spec = _spec(request)
        count = spec.stack.devices + len(spec.by_disk)
        controls = [state_folder() / f"disk{number or ''}.sock" for number in range(count)]
        with disk_sockets(port, controls):
            image = the_disks(spec, controls, base64.b64decode(request["key"]))
            journal = Journal(f"{kind} in a guest")
            if kind == "prepare":
                prepare(request, image, journal)
                done: tuple[dict[str, Any], Path | None] = {}, None
            else:
                packed = measure(request, image, journal, port)
                done = {"bytes": packed.stat().st_size, "ahead_ns": port.clocks.ahead_ns}, packed
            journal.close()
    except DbdynoError as error:
        ended.set()
        port.send("failed", str(error))
        return
    ended.set()
    port.send("done", done[0])
    if done[1]:
        port.channel.send_file(done[1])


def open_port() -> int:
    """The port that leads to the host. Raises ``TrialError`` where there is none."""
    for about in Path("/sys/class/virtio-ports").glob("*/name"):
        if about.read_text(encoding="ascii").strip() == PORT:
            return os.open(Path("/dev") / about.parent.name, os.O_RDWR | os.O_CLOEXEC)
    raise TrialError("the guest has no virtio-serial port that leads to its host")


def main() -> None:
    """Serve the host that booted this machine."""
    host_state, folders = sys.argv[1], json.loads(sys.argv[2])
    sys.path += folders
    for name, module in list(sys.modules.items()):  # of a package, only what is imported here is in the archive
        if hasattr(module, "__path__"):
            module.__path__ = [*module.__path__, *(f"{folder}/{name.replace('.', '/')}" for folder in folders)]
    state_folder().mkdir(parents=True, exist_ok=True)
    (state_folder() / "servers").symlink_to(Path(host_state) / "servers")
    serve(Port(GuestChannel(open_port())))
