"""``python -m dbdyno.run.fleet.member``: a host's part in a study on several. Its request comes on standard input.

It says lines of JSON, and none while it measures; it ends with what started it, the host put back first.
"""

import json
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dbdyno.errors import DbdynoError, HostError
from dbdyno.model.design import StopReason
from dbdyno.plan.order import Slot, drawn
from dbdyno.plan.plan import Plan, erased_devices
from dbdyno.run.execute import RunOutcome, open_run, run_all
from dbdyno.run.fleet.message import NO_MORE, TASKS, HostImage, ImageTask, pack_block
from dbdyno.run.fleet.part import ClientsOffer
from dbdyno.run.fleet.request import Request
from dbdyno.run.host_program import Send, as_of_host, exclusive_host, heartbeat, request_and_send
from dbdyno.run.over_hosts import with_clients
from dbdyno.run.ports import HOST, Ports
from dbdyno.run.preflight import host_facts, needs_of, versions, with_host_decided
from dbdyno.run.stop import BlockPace, Outlook, StartAnew
from dbdyno.stack.capabilities import Capability, device_need
from dbdyno.stack.emptiness import identify
from dbdyno.store.events import Lost
from dbdyno.store.parts import DamageError
from dbdyno.store.run_folder import RunFolder
from dbdyno.study.schema import TrialSpec
from dbdyno.system.state import make_state_folder, parts_folder

GO = "go"  # the file that says up to which block may be run
_LOOK_AGAIN_SECONDS = 0.02
_WHOLE = 2.0**256  # of what is drawn
BLOCK_RESTARTED = "a block was restarted because the run on this host stopped in the middle of it"


class LinesOfJson:
    """Progress for who asked."""

    def __init__(self, send: Send) -> None:
        self._send = send

    def say(self, text: str) -> None:
        """A sentence."""
        self._send({"say": text})

    def trial(self, slot: Slot, note: str, done: int, outlook: Outlook) -> None:
        """A trial begins: from now on nothing is said until it is over."""
        self._send({"trial": asdict(slot), "note": note})

    def trial_done(self, seconds: float) -> None:
        """It is over."""
        self._send({"trial_done": seconds})


# Between two blocks: hand over the one that is over, wait until the next may begin.


@dataclass
class Gate:
    """Decides nothing by itself. Blocks are counted by this host's own count."""

    folder: Path  # of this host's part of the run
    run: RunFolder
    send: Callable[[dict[str, Any]], None]
    first: int
    seed: int
    stagger_seconds: float
    sleep: Callable[[float], None] = time.sleep
    kernel: Callable[[], str] = platform.release
    pace: BlockPace = field(default_factory=BlockPace)
    outlook: Outlook = field(default_factory=lambda: Outlook(None))

    def before(self, block: int, *, begun: bool) -> StopReason:
        """Hand over the block before; wait until this one may begin, then for as long as the seed says."""
        if block > self.first:
            self._hand_over(block - 1)
        self.send({"asks": block})
        if not self._may_begin(block):
            return "blocks"
        if not begun and self.stagger_seconds:
            share = int.from_bytes(drawn(self.seed, "stagger", block)) / _WHOLE
            self.sleep(share * self.stagger_seconds)
        return ""

    def before_trial(self, spec: TrialSpec) -> None:
        """Raise ``StartAnew`` where this host runs another kernel than the trial needs."""
        if spec.booted_kernel not in {"", self.kernel()}:
            raise StartAnew(spec.booted_kernel)

    def look(self, blocks: int) -> StopReason:
        """Hand over the last block that there can be."""
        self._hand_over(blocks)
        return "blocks"

    def _hand_over(self, block: int) -> None:
        packed = pack_block(self.run, block, self.folder)
        seconds = self.pace.lengths[-1] if self.pace.lengths else self.pace.first_here
        self.send({"block": block, "packed": asdict(packed), "seconds": seconds or 0.0})

    def _may_begin(self, block: int) -> bool:
        """Wait until the file, which is replaced whole, says something about this block."""
        while True:
            last = may_run_up_to(self.folder)
            if last == NO_MORE or last >= block:
                return last != NO_MORE
            time.sleep(_LOOK_AGAIN_SECONDS)


def may_run_up_to(folder: Path) -> int:
    """Up to which block may be run; 0 where nothing was said yet."""
    try:
        return int(json.loads((folder / GO).read_text(encoding="ascii")))
    except FileNotFoundError:
        return 0


# What the host is asked to do.


def main() -> None:
    """Do what standard input asks for."""
    content, send = request_and_send()
    take_part(Request.from_json(content), send)


@dataclass(frozen=True)
class ThisHost:
    """The host: given as an argument, so that a test can script it."""

    ports: Ports = HOST
    needs: Callable[[Plan, frozenset[str]], list[Capability]] = needs_of
    facts: Callable[[Plan], dict[str, Any]] = host_facts
    versions: Callable[[Plan], dict[str, str]] = versions


def take_part(request: Request, send: Send, this_host: ThisHost = ThisHost()) -> None:
    """Do what is asked for, and say how it ended."""
    try:
        if request.task == "facts":
            with TemporaryDirectory(dir=make_state_folder()) as folder:
                send({"facts": facts_of(request, Path(folder), this_host)})
        elif request.task in TASKS:
            send({"facts": {"images": [asdict(image) for image in images_of(request, send, this_host)]}})
        elif request.task == "forget":
            shutil.rmtree(folder_of(request), ignore_errors=True)
        else:
            try:
                how = run_part(request, send, this_host).how
            except StartAnew as restart:
                send({"kernel": restart.kernel})
                how = "interrupted"
            send({"ended": how})
    except (DbdynoError, OSError) as error:
        send({"error": str(error)})


def folder_of(request: Request) -> Path:
    """The folder of this host's part of the run, until the run is done."""
    make_state_folder()
    return parts_folder() / f"{request.identity}.{request.host}"


def facts_of(request: Request, folder: Path, this_host: ThisHost) -> dict[str, Any]:
    """What there is to know of this host before it is touched: what stands in the way; if nothing does, what it is."""
    plan = with_host_decided(request.plan(request.unpack(folder)))
    serials = _own_serials(plan)
    erase = frozenset(request.erase) & serials
    needs = this_host.needs(plan, erase)
    lacking = [as_of_host(need.said) for need in needs if not need.ok]
    if lacking:
        return {"lacking": lacking, "serials": sorted(serials)}
    return {
        "lacking": [],
        "serials": sorted(serials),
        "awake": plan.awake(),
        "versions": this_host.versions(plan),
        "host": this_host.facts(plan),
        "erases": _erases(plan, needs),
        "free_bytes": shutil.disk_usage(folder).free,
    }


@contextmanager
def _exclusive_host(request: Request, say: Callable[[str], None]) -> Iterator[None]:
    """Have this host for oneself, with a folder for its part."""
    with exclusive_host(f"blocks of a study on several hosts, as {request.host}", say):
        folder_of(request).mkdir(parents=True, exist_ok=True, mode=0o700)
        yield


def images_of(request: Request, send: Send, this_host: ThisHost) -> list[HostImage]:
    """Do one of the tasks with prepared data; which there are."""
    with _exclusive_host(request, LinesOfJson(send).say), heartbeat(send):
        plan = with_host_decided(request.plan(request.unpack(folder_of(request) / "study")))
        erase = frozenset(request.erase) & _own_serials(plan)
        return ImageTask(request, plan, erase, send, this_host.ports).do()


def run_part(request: Request, send: Send, this_host: ThisHost) -> RunOutcome:
    """Run blocks for as long as there are any."""
    progress, folder = LinesOfJson(send), folder_of(request)
    with _exclusive_host(request, progress.say), heartbeat(send):
        (folder / GO).unlink(missing_ok=True)
        plan = with_host_decided(request.plan(request.unpack(folder / "study")))
        erase = frozenset(request.erase) & _own_serials(plan)
        if lacking := [need.said for need in this_host.needs(plan, erase) if not need.ok]:
            raise HostError("\n".join(map(as_of_host, lacking)))
        run, facts = _open_own_run(plan, folder / "run", this_host)
        try:
            if not request.between_plots:
                void_open_block(run, plan)
            gate = Gate(
                folder, run, send, request.first, plan.design.seed, request.stagger_seconds,
                sleep=this_host.ports.sleep, kernel=this_host.ports.kernel,
            )  # fmt: skip
            send({**facts, "go": str(folder / GO)})
            return run_all(
                plan,
                run,
                progress,
                erase,
                fresh_images=request.fresh_images,
                ports=_ports(request, this_host.ports, send),
                stop=gate,
                first=request.first,
                between_plots=request.between_plots,
            )
        finally:
            run.close()


def _ports(request: Request, ports: Ports, send: Send) -> Ports:
    """Those of the blocks: where the load comes from client hosts, who asked has them offer it."""
    if request.address:
        return with_clients(ports, request.address, ClientsOffer(folder_of(request), send).offer)
    ahead = request.kinds_ahead
    return replace(ports, crashing=lambda about: ports.crashing(replace(about, block=about.block + ahead)))


def _open_own_run(plan: Plan, path: Path, this_host: ThisHost) -> tuple[RunFolder, dict[str, Any]]:
    """Return this host's own run folder, begun anew where it was damaged: what was delivered isn't needed again."""
    facts, known = this_host.facts(plan), this_host.versions(plan)
    if kernels := plan.kernels():  # it changes as planned, and each trial says its own
        known = {**known, "kernel": " or ".join(kernels)}
    try:
        run = open_run(plan, path, resume=True, versions=known, host=facts)
    except DamageError:
        shutil.rmtree(path)
        run = open_run(plan, path, resume=True, versions=known, host=facts)
    return run, {"joined": facts, "versions": known}


def void_open_block(run: RunFolder, plan: Plan) -> None:
    """Have what was open when an earlier process ended repeated whole: nobody knows how it left the host."""
    if not run.history.attempts:
        return
    place = max(run.history.attempts)
    is_open = {id_ for part in run.history.parts_to_run(*place, plan.design) for id_ in part}
    for event in [
        finished
        for finished in run.history.finished.values()
        if (finished.block, finished.attempt) == place and finished.treatment in is_open
    ]:
        run.append(Lost(event.trial, event.block, event.attempt, event.treatment, BLOCK_RESTARTED))


def _erases(plan: Plan, needs: Sequence[Capability]) -> dict[str, str]:
    """Each real device that the study erases here, and why it may: which disk it is, and what was found on it."""
    proofs = {need.name: need.detail for need in needs}
    return {device: proofs[device_need(device)] for device in erased_devices(plan) if device_need(device) in proofs}


def _own_serials(plan: Plan) -> frozenset[str]:
    """The serials of the disks that the study would erase here, as far as they can be read."""
    serials = set()
    for device in erased_devices(plan):
        with suppress(HostError):  # said as a need
            serials.add(identify(Path(device)).serial)
    return frozenset(serials)


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        sys.stderr.close()
