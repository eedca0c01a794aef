"""A run on a scripted host: stacks, loads, probes and clock are played; all of ``run/`` is the real one."""

import hashlib
import os
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

from dbdyno.crash.faults import NoCrash
from dbdyno.crash.trial_cuts import AboutTrial
from dbdyno.plan.order import Slot
from dbdyno.probe.block_trace import NoTrace
from dbdyno.probe.sampler import Series
from dbdyno.run.execute import open_run, run_all
from dbdyno.run.ports import Ports
from dbdyno.stack.kinds.kind import Stack, StackKind
from dbdyno.stack.layer import Image, KeptImage, StackContext
from dbdyno.stack.undo.actions import RemoveTree
from dbdyno.system.state import state_folder_is_given

DISTURBANCE = {"beyond": ["foreign_cpu"], "foreign_cpu": 0.5, "limits": {"foreign_cpu": 0.06}, "others": {"cc": 1.0}}
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


class Script:
    """What happens: each trial succeeds, but for those that ``fails`` names, and where ``faults`` names a step."""

    def __init__(self):
        self.plan = None
        self.fails, self.ran, self.seeds, self.said, self.left, self.at_exit = {}, [], {}, [], [], None
        self.faults = {}  # step -> what is raised or done there
        self.steps = []  # that were gone through, in order
        self.rests = []
        self.rate = lambda _block, _treatment: 100.0  # queries per second
        self.now_seconds, self.raise_seconds, self.load_seconds = 0.0, 0.0, 0.0
        self.date = lambda: BEGAN + timedelta(seconds=self.now_seconds)  # by the clock that people and NTP set
        self.series = {}  # of each trial
        self.disturbed = set()  # of (block, attempt, treatment)
        self.disks, self.smart = [], {"temperature_c": 30}
        self.host_speed = {}  # what fixed work takes, just before and just after each load
        self.erase = frozenset({"S1"})  # what the run may erase
        self.keeps_data = False  # data are prepared, other bytes each time, and kept
        self.image_key = lambda spec: spec.stack.device
        self.cuts = lambda _block, _treatment: []  # what was found after each cut of a trial
        self.keep = None  # writes the state of a cut whose state is kept into a folder

    def ports(self):
        return Ports(
            kinds={name: ScriptedStack(self) for name in ("emulated", "real", "here", "memory", "external")},
            workload_of=lambda spec: ScriptedWorkload(self, spec),
            monotonic=lambda: self.now_seconds,
            now=lambda: self.date(),  # noqa: PLW0108  (a test sets it later)
            sleep=self.sleep,
            scratch=self.scratch,
            disks_below=lambda _: self.disks,
            smart_of=lambda _: self.step("smart") or self.smart,
            tracing=lambda *_, wanted, disk, **__: nullcontext(NoTrace("scripted" if wanted or disk else "")),
            watching=self.watching,
            background=lambda *_: nullcontext(SimpleNamespace(known=dict, within=self.disturbance)),
            host_speed=lambda _: dict(self.host_speed),
            pinned=lambda cpus: nullcontext({"cpus": cpus} if cpus else {}),
            crashing=lambda about: nullcontext(ScriptedCrash(about.workload, self, about)),
        )

    def step(self, name):
        """Go through a step; what is to happen there happens."""
        self.steps.append(name)
        self.happen(self.faults.get(name))

    def happen(self, fault):
        if callable(fault):
            fault()
        elif fault:
            raise fault

    def sleep(self, seconds):
        self.rests.append(seconds)
        self.now_seconds += seconds

    @contextmanager
    def scratch(self, journal):
        """A folder of a stack's own, where the tests' user may not pass through those above."""
        assert state_folder_is_given()  # else this is the host's own, with the disks of other runs in it
        folder = journal.path.parents[1] / "scratch"
        with journal.undoing(RemoveTree(str(folder))):
            folder.mkdir()
            yield StackContext(journal, folder)

    def slot(self, spec, folder):
        """Which trial it is, by its folder, and by the treatment where that is the unmeasured one before it."""
        name = folder.parent.name if folder.name == "settle" else folder.name
        place, _, treatment = name.partition("-")
        if folder.name == "settle":
            treatment = next(name for name, one in self.plan.specs.items() if one is spec)
        return Slot(int(place[1:5]), int(place[6]), int(place[8:]), treatment)

    def disturbance(self, _window_ns):
        slot = self.ran[-1]
        return DISTURBANCE if (slot.block, slot.attempt, slot.treatment) in self.disturbed else {}

    @contextmanager
    def watching(self, _stand, _disks):
        self.step("probes start")
        start = round(self.now_seconds * 1e9)
        found = {}
        for name, columns in self.series.items():
            if name not in {"load", "latency"}:
                more = {column: list(values) for column, values in columns.items() if column != "t_s"}
                found[name] = Series([start + round(t * 1e9) for t in columns["t_s"]], more)
        yield found
        self.step("probes stop")

    # Progress, as far as the runner sees it.

    def say(self, text):
        self.said.append(text)

    def trial(self, slot, note, done, outlook):
        self.said.append((slot.id, note, done, outlook))

    def trial_done(self, seconds):
        pass


@dataclass(frozen=True)
class ScriptedDevice:
    """A layer that touches nothing."""

    script: Script
    name: str = "device"
    disk: None = None
    data: str = ""  # the SHA-256 of what it holds

    @contextmanager
    def raised(self, below):
        self.script.step("raise")
        self.script.now_seconds += self.script.raise_seconds
        try:
            yield below.raised(self.name, {"kind": "scripted", **({"data": self.data} if self.data else {})})
        finally:
            self.script.step("lower")

    def measuring(self, journal):
        assert journal.path.exists()
        return nullcontext({})


@dataclass(frozen=True)
class ScriptedImage(Image):
    script: Script
    model: str

    def is_gone(self):
        return bool(self.script.faults.pop("image gone", None))


@dataclass(frozen=True)
class KeptData(ScriptedImage, KeptImage):
    """A hole of 20 MiB between two pieces of random bytes."""

    content: tuple[bytes, bytes] = ()

    def loaded(self, kept):
        with (kept / "content").open("rb") as file:
            first = file.read(PIECE)
            file.seek(HOLE, os.SEEK_CUR)
            return replace(self, content=(first, file.read()))

    def finish(self):
        pass

    def kept_bytes(self):
        return 2 * PIECE

    def save(self, kept):
        with (kept / "content").open("wb") as file:
            file.write(self.content[0])
            file.seek(HOLE, os.SEEK_CUR)
            file.write(self.content[1])

    def part_on_disk(self, name):
        return self

    def layers(self, *, install):
        return []


PIECE, HOLE = 100_000, 20 * 1024**2


@dataclass(frozen=True)
class ScriptedStack(StackKind):
    """A kind of stack without a host."""

    script: Script

    @property
    def IS_RAISED(self):  # noqa: N802  (the contract's)
        return self.script.keeps_data

    def needs_of_server(self, _spec):
        return iter(())

    def needs_of_ground(self, _spec, _erase):
        return iter(())

    def touches(self, _specs, _proofs):
        return iter(())

    def server_version(self, _spec):
        return "0"

    def image_key(self, spec):
        return self.script.image_key(spec)

    @contextmanager
    def new_image(self, spec, _journal):
        self.script.step("prepare")
        if self.script.keeps_data:
            yield KeptData(self.script, self.image_key(spec), (os.urandom(PIECE), os.urandom(PIECE)))
            return
        yield ScriptedImage(self.script, self.image_key(spec))
        if self.script.at_exit:
            self.script.at_exit()

    def stack(self, spec, image, raising):
        assert image.model == self.image_key(spec)
        assert raising.erase.allowed == self.script.erase
        data = hashlib.sha256(b"".join(image.content)).hexdigest() if self.script.keeps_data else ""
        return Stack(ScriptedDevice(self.script, data=data), ())


@dataclass(frozen=True)
class ScriptedWorkload:
    """A load of so many queries per second."""

    script: Script
    spec: object
    tool: None = None

    def program(self):
        return Path(__file__)

    def prepare(self, _stand):
        assert self.script.keeps_data
        self.script.step("prepare data")

    def check(self, _stand):
        self.script.step("check")
        return {}

    def run(self, _stand, seed, folder):
        script, slot = self.script, self.script.slot(self.spec, folder)
        script.left += list(folder.iterdir())
        (folder / "latency.hlog").write_text("raw")
        script.ran.append(slot)
        script.seeds[slot.block, slot.treatment] = seed
        start = script.now_seconds
        script.happen(
            script.fails.get((slot.block, slot.attempt, slot.treatment))
            or script.fails.get((slot.block, slot.treatment))
        )
        script.step("load")
        script.now_seconds += script.load_seconds
        return ScriptedLoad(script, slot, (round(start * 1e9), round(script.now_seconds * 1e9)))


@dataclass(frozen=True)
class ScriptedCrash(NoCrash):
    """Cuts that were found as the script has them."""

    script: Script
    about: AboutTrial

    def beside(self, _stand):
        self.script.step("cuts")
        return nullcontext()

    def examined(self, _window_ns):
        self.script.step("cut recovery")
        self.about.lap("cut recovery")
        found = self.script.cuts(self.about.block, self.about.treatment)
        for cut in found:
            if cut.kept:
                self.script.keep(self.about.folder / cut.kept, cut)
        return found


@dataclass(frozen=True)
class ScriptedLoad:
    script: Script
    slot: Slot
    window_ns: tuple[int, int]
    result: dict = None
    seconds_before: dict = None
    queries: None = None

    def __post_init__(self):
        object.__setattr__(self, "result", {})
        object.__setattr__(self, "seconds_before", {})

    def second_half_ratio(self):
        return None

    def metrics(self):
        rate = self.script.rate(self.slot.block, self.slot.treatment)
        return {"seconds_real": 1.0, "queries_per_second": rate}

    def columns(self):
        return self.script.series.get("load", {"t_s": []})

    def beside(self):
        return {}

    def latencies(self):
        return self.script.series.get("latency", {})


def perform(script, plan, into, *, resume=False):
    script.plan = plan
    folder = open_run(plan, into, resume=resume, versions={"dbdyno": "0"}, host={"cores": 2})
    try:
        return run_all(plan, folder, script, frozenset({"S1"}), ports=script.ports())
    finally:
        folder.close()
