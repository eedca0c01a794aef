"""A study on several hosts, as it is run from here: blocks in parallel, each whole on one host, into one run folder."""

import json
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import Empty, Queue
from time import monotonic
from typing import Any, TypeVar

from dbdyno.crash.trial_cuts import RUN_BYTES_MAX
from dbdyno.errors import DbdynoError, HostError
from dbdyno.hosts.contract import LieError
from dbdyno.hosts.reboot import Reboots
from dbdyno.model.design import StopReason
from dbdyno.model.printable import short
from dbdyno.model.wording import listed
from dbdyno.plan.order import Slot
from dbdyno.plan.plan import Plan
from dbdyno.run.execute import RunOutcome, RunProgress, beginning
from dbdyno.run.fleet.asking import forget_all, messages
from dbdyno.run.fleet.fold import ATTEMPTS_MAX, accept_arrival, arrival_path, fold, fold_leftovers, host_blocks
from dbdyno.run.fleet.message import (
    OF_IMAGES,
    Asks,
    Beats,
    BlockOver,
    Failed,
    Gone,
    HostImage,
    ImagesAnswer,
    Into,
    JoinedIn,
    Message,
    NeedsKernel,
    Say,
    TrialBegins,
    TrialOver,
)
from dbdyno.run.fleet.part import STARTS, Booted, ClientsLost, HostAccess, Inbox, Lied, Part
from dbdyno.run.fleet.request import Request, Requests
from dbdyno.run.stop import Stop, pace_of
from dbdyno.store import run_folder
from dbdyno.store.block_trace import KEPT_BYTES_MAX
from dbdyno.store.events import Ended, Joined, Note
from dbdyno.store.parts import write_synced
from dbdyno.store.run_folder import RunFolder
from dbdyno.store.trials import lost_trials
from dbdyno.store.void_blocks import ATTEMPTS
from dbdyno.study.schema import TrialSpec
from dbdyno.study.units import format_bytes, format_roughly
from dbdyno.system.files import GO_ON, why_not_written
from dbdyno.system.interrupt import Interrupted, interruptible, shielded
from dbdyno.system.state import new_token
from dbdyno.workload.load import limit_seconds

# Before the blocks of a study on several hosts: all that can start from the same prepared data have the same bytes.
#
# An image is prepared on one host. It goes from host to host, each that has it sending it on to one other at a time,
# and is proved by its SHA-256 where it arrives: the one that its first host told, which no host may tell otherwise
# later. A host whose image depends on something else, or that could not take it in, prepares its own; each trial says
# with which bytes it began.


_AT_ONCE = 16  # hosts
_MAKERS = 2  # hosts that are asked for an image, one after the other
_TRIES = 2  # to send an image to a host
_PACKED_MAX = 4  # times the room that a disk has for data, at most, are in them where it packs what is written
_RECORD_BYTES = 16 * 1024**2  # that an image has beside its data, at most
_SAY_SECONDS = 10.0  # between two words on how far it is
# What an image depends on, in the words of its users.
_WORDS = {"data": "server", "dbdyno": "dbdyno", "kernel": "kernel", "programs": "dbdyno-load or mkfs",
          "server": "server", "user": "user that servers run as"}  # fmt: skip
T = TypeVar("T")
HostAnswers = Mapping[str, "Sequence[HostImage] | DbdynoError"]


@dataclass
class Sharing:
    """The images of one run, and the hosts that need them."""

    access: HostAccess
    requests: Requests
    say: Callable[[str], None]
    used: frozenset[str]  # the SHA-256 of what trials of this run began with already
    images_max: int  # that a host can need
    data_bytes: int  # that one of them has, as far as the plan shows
    silent_seconds: float  # that a host may say nothing, while it prepares data as well
    idle_seconds: float  # that it may say nothing but that it goes on
    liars: dict[str, str] = field(default_factory=dict)  # host -> what it did
    images: dict[str, dict[str, HostImage]] = field(default_factory=dict)  # key -> host -> what it has of it
    _running: set[tuple[str, str]] = field(default_factory=set)  # host, and what its program is called
    _stopped: bool = False

    def share(self, hosts: Sequence[str]) -> frozenset[str]:
        """Have one image on all hosts that can start from it; the hosts that now have all that they need."""
        answers = self._at_once({name: partial(self._do, self.requests("images", name)) for name in hosts})
        for name, answer in answers.items():
            if isinstance(answer, DbdynoError):
                self.say(f"{answer}; {self._what_then(name)}")
                continue
            for image in answer:  # in the order of the study, not of the answers
                each = self.images[image.key]
                each[name] = each.pop(name)
        self._say_differences(answers)
        self._prepare()
        for key in self.images:
            self._spread(key)
        there = {name for name, answer in answers.items() if not isinstance(answer, DbdynoError)} - self.liars.keys()
        lacking = {name for each in self.images.values() for name, image in each.items() if not image.sha256}
        return frozenset(there - lacking)

    def _note(self, request: Request, images: Sequence[HostImage]) -> None:
        """Note what a host has after a task. Raises ``LieError`` where that is not what it had, made or took."""
        host, is_listing = request.host, request.task == "images"
        if len({image.key for image in images}) != len(images) or len(images) > self.images_max:
            raise LieError(f"{host}: named {len(images)} images of prepared data, and the study has fewer")
        for image in images:
            before = self.images.get(image.key, {}).get(host)
            if not is_listing and before is None:
                raise LieError(f"{host}: named prepared data that it did not need before: {short(image.about)}")
            expected = request.image_sha256 if image.key == request.image else before.sha256 if before else ""
            if expected and image.sha256 not in {"", expected}:
                why = f"reported {image.sha256[:12]} as the SHA-256 of its prepared data, and {expected[:12]} before"
                raise LieError(f"{host}: {why}: {short(image.about)}")
        for image in images:
            self.images.setdefault(image.key, {})[host] = image

    def _what_then(self, host: str) -> str:
        return "it no longer takes part" if host in self.liars else f"{host} prepares its own data"

    def _say_differences(self, answers: HostAnswers) -> None:
        """Say which hosts can't start from the bytes of the first, and what differs."""
        images_by_host = {name: images for name, images in answers.items() if not isinstance(images, DbdynoError)}
        first = next(iter(images_by_host), "")
        for name, images in images_by_host.items():
            pairs = zip(images_by_host[first], images, strict=False)  # the same study asks for them in the same order
            apart = {_WORDS.get(what, short(what, 40)) for own, other in pairs for what in _differences(own, other)}
            if apart:
                differences = listed(sorted(apart))
                self.say(f"{name}: can't use the prepared data of {first}: its {differences} differs")

    def _prepare(self) -> None:
        """Have each image that no host has made on one that needs it; several hosts are at it at once.

        Where that fails another host is asked; what fails there, too, is left to the trials, which say why.
        """
        failed: dict[str, list[str]] = {}

        def make(name: str, keys: Sequence[str]) -> None:
            for key in keys:
                try:
                    self._do(self.requests("prepare", name, image=key))
                except DbdynoError as error:
                    self.say(str(error))
                    failed.setdefault(key, []).append(name)

        for _ in range(_MAKERS):
            makes: dict[str, list[str]] = {}
            for key, each in self.images.items():
                hosts = [name for name in each if name not in failed.get(key, ()) and name not in self.liars]
                if hosts and not any(image.sha256 for image in each.values()):
                    maker = min(hosts, key=lambda name: len(makes.get(name, ())))
                    makes.setdefault(maker, []).append(key)
            self._at_once({name: partial(make, name, keys) for name, keys in makes.items()})

    def _spread(self, key: str) -> None:
        """Send an image from those that have it to those that don't, until all have it or can't."""
        each = self.images[key]
        having = {name: image for name, image in each.items() if image.sha256 and name not in self.liars}
        if not having:
            return
        sha256 = self._chosen([image.sha256 for image in having.values()])
        have = [name for name, image in having.items() if image.sha256 == sha256]
        for name in having.keys() - set(have):
            about = short(having[name].about)
            self.say(f"{name}: has a different copy of the prepared data than {have[0]}, and takes that one: {about}")
        want, tries = [name for name in each if name not in have and name not in self.liars], Counter[str]()
        while want and have:
            pairs = list(zip(have, want, strict=False))
            sent = self._at_once({to: partial(self._send, key, of, to) for of, to in pairs})
            for of, to in pairs:
                want.remove(to)
                if not isinstance(error := sent[to], DbdynoError):
                    have.append(to)
                    continue
                tries[to] += 1
                gone = self.access.lost().keys() | self.liars.keys()
                again = tries[to] < _TRIES and (to not in gone if of in self.liars else not {of, to} & gone)
                self.say(f"{error}; {'it is sent again' if again else self._what_then(to)}")
                want += [to] if again else []
            have = [name for name in (*have[1:], have[0]) if name not in self.access.lost() and name not in self.liars]

    def _chosen(self, there: Sequence[str]) -> str:
        """Which of several contents all are to have: what trials of this run began with, else what most have."""
        counted = Counter(there)
        return max(counted, key=lambda sha256: (sha256 in self.used, counted[sha256]))

    def _send(self, key: str, source: str, target: str) -> None:
        """Send an image from one host to another. Raises ``HostError``."""
        image, said_at = self.images[key][source], monotonic()
        size = format_bytes(image.bytes)
        self.say(f"{target}: copies prepared data from {source}: {short(image.about)} ({size})")

        def reached(done: int, total: int) -> None:
            nonlocal said_at
            if self._stopped:
                raise HostError(f"{target}: did not get its prepared data")
            if monotonic() - said_at > _SAY_SECONDS:
                said_at = monotonic()
                self.say(f"{target}: {100 * done // max(1, total)} % of {size} of prepared data has arrived")

        def copy(into: str) -> None:
            bytes_max = max(_PACKED_MAX * image.bytes, self.data_bytes) + _RECORD_BYTES
            try:
                self.access.hosts.copy(source, image.path, target, into, bytes_max, reached)
            except LieError as error:
                self._lied(source if str(error).startswith(f"{source}: ") else target, error)
                raise HostError(str(error)) from None

        take_request = self.requests("take", target, image=key, image_sha256=image.sha256, image_bytes=image.bytes)
        self._do(take_request, copy)
        if self.images[key][target].sha256 != image.sha256:
            raise HostError(f"{target}: does not have the prepared data that it was sent")

    def _lied(self, host: str, error: LieError) -> None:
        self.liars.setdefault(host, str(error).removeprefix(f"{host}: "))

    def _do(self, request: Request, copy: Callable[[str], None] = lambda _: None) -> list[HostImage]:
        """Have a host do a task; which images it has then, which is noted. Raises ``DbdynoError``."""
        try:
            images = self._answer(request, copy)
            self._note(request, images)
        except LieError as error:
            self._lied(request.host, error)
            raise
        return images

    def _answer(self, request: Request, copy: Callable[[str], None]) -> list[HostImage]:
        with self._started(request) as received:
            for message in received:
                match message:
                    case Say():
                        self.say(f"{request.host}: {message.say}")
                    case Beats():
                        pass
                    case Into():
                        copy(message.into)
                    case Failed():
                        raise HostError(f"{request.host}: {message.error}")
                    case ImagesAnswer():
                        return message.facts.images
                    case Gone():
                        raise HostError(f"{request.host}: {message.why}")
        raise HostError(f"{request.host}: it ended without an answer")

    @contextmanager
    def _started(self, request: Request) -> Iterator[Iterator[Message]]:
        """What a host's program says; it has ended when this is left, the host put back."""
        hosts, host, access = self.access.hosts, request.host, self.access
        process = hosts.start(host, access.argv, stdin=request.to_json(), environment=access.environment_of(host))
        self._running.add((host, process))
        silent, idle = self.silent_seconds, self.idle_seconds
        received = messages(hosts, host, process, OF_IMAGES, silent_seconds=silent, idle_seconds=idle)
        try:
            yield received
        except BaseException:
            with suppress(DbdynoError):
                hosts.signal(host, process, signal.SIGTERM)
            raise
        finally:
            with suppress(DbdynoError):
                for _ in received:
                    pass
            self._running.discard((host, process))

    def _at_once(self, calls: Mapping[str, Callable[[], T]]) -> dict[str, "T | DbdynoError"]:
        """Call all at once; what each returns, or why it doesn't. An interruption ends what runs on the hosts first."""

        def tried(call: Callable[[], T]) -> "T | DbdynoError":
            try:
                return call()
            except DbdynoError as error:
                return error

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            futures = {name: pool.submit(tried, call) for name, call in calls.items()}
            try:
                return {name: future.result() for name, future in futures.items()}
            except BaseException:
                self._stop()
                raise

    def _stop(self) -> None:
        self._stopped = True
        for host, process in list(self._running):
            with suppress(DbdynoError):
                self.access.hosts.signal(host, process, signal.SIGTERM)


def _differences(image: HostImage, other: HostImage) -> list[str]:
    return [what for what, value in image.depends_on.items() if other.depends_on.get(what) != value]


FLEET = "fleet.json"
_LOOK_SECONDS = 0.25  # between two looks at which hosts are lost
_AWAY_SECONDS = 600.0  # that a client host is waited for
_LOWERING_SECONDS = 120.0  # that hosts are given to put themselves back
_STAGGER_SHARE = 0.5  # of a trial, by which the start of a block is put off at most: no two hosts keep step
_STAGGER_MAX_SECONDS = 30.0
_IDLE_TRIALS = 3  # that a host may bring nothing for beside what is waited for anyway
_IDLE_MEASURED = 20  # times as long as the longest trial so far: hosts differ, and so do the trials of one
SILENT_MAX_SECONDS = 1800.0  # to be put back and to start Python; from then on a host says each minute that it goes on
_SLOWEST_BYTES_PER_SECOND = 1_000_000  # at which data are prepared, copied for a trial, and read back
_PASSES = 4  # over the data of a trial: prepared, copied, read before and after the load
_ATTEMPTS = 8  # at a block, that it hands over at most, as a rule: three, and those that a kill broke off
_TRIAL_BYTES, _TRIAL_BYTES_PER_SECOND = 256 * 1024**2, 1024**2  # that a trial can leave: texts of programs, series


def identity_of(folder: Path) -> str:
    """By which the hosts know this run; kept with it from its beginning."""
    path = folder / FLEET
    with suppress(FileNotFoundError, ValueError, KeyError):
        return str(json.loads(path.read_text(encoding="utf-8"))["identity"])
    identity = new_token()
    write_synced(path, json.dumps({"identity": identity}).encode())
    return identity


def stagger_seconds(plan: Plan) -> float:
    """How far the start of a block is put off at most; where no other block runs, nothing keeps step with it."""
    return 0.0 if plan.blocks_at_once == 1 else min(_STAGGER_MAX_SECONDS, _STAGGER_SHARE * plan.seconds_per_trial())


def kinds_ahead(plan: Plan, host: str) -> int:
    """By how many blocks a host's kinds of cut are ahead of its own count of blocks.

    So the blocks of all hosts together have those that the same number of blocks has on one host, and each host goes
    through them in order: no kind is that of one host alone, where there are blocks enough.
    """
    hosts = plan.host_names()
    return hosts.index(host) * -(-plan.design.blocks // len(hosts))


def idle_seconds_max(plan: Plan, measured: Mapping[str, float]) -> float:
    """How long a host may say only that it goes on, by what the plan has it do meanwhile; then it counts as broken.

    ``measured`` has the longest trial so far of each treatment. Until all have one, a load that is bounded by an amount
    may take as long as a trial lets it.
    """
    loads = [
        limit_seconds(spec.workload) + (spec.crash.cuts_each * spec.crash.recovery_limit if spec.crash else 0.0)
        for spec in plan.specs.values()
    ]
    of_trial = max(loads) + _IDLE_TRIALS * plan.seconds_per_trial()
    if plan.specs.keys() <= measured.keys():
        of_trial = min(of_trial, _IDLE_MEASURED * max(measured.values()))
    of_data = _PASSES * max(map(_data_bytes_max, plan.specs.values())) / _SLOWEST_BYTES_PER_SECOND
    return SILENT_MAX_SECONDS + of_trial + of_data


def _data_bytes_max(spec: TrialSpec) -> int:
    """What the data of a treatment can take: all of what dbdyno makes for them, else what the study shows of them."""
    return (spec.stack.size or 0) * spec.stack.devices or 2 * spec.workload.data_bytes


def block_bytes_max(plan: Plan) -> int:
    """What a block can have, by the trials that the plan has for it; states of cuts left out."""
    trial = _TRIAL_BYTES + _TRIAL_BYTES_PER_SECOND * plan.seconds_per_trial()
    trial += KEPT_BYTES_MAX if plan.keep_traces else 0
    return round(_ATTEMPTS * len(plan.specs) * trial)


def states_bytes_max(plan: Plan) -> int:
    """What the states of its cuts can have: a host keeps no more in all of a run."""
    return RUN_BYTES_MAX if any(spec.crash and spec.crash.keep != "none" for spec in plan.specs.values()) else 0


def run_on_hosts(
    plan: Plan, folder: RunFolder, progress: RunProgress, requests: Requests, access: HostAccess
) -> RunOutcome:
    """Run what is missing. A host that is lost or fails no longer takes part; ``HostError`` where none is left."""
    try:
        return _run_on_hosts(plan, folder, progress, requests, access)
    except OSError as error:
        raise HostError(why_not_written(error, folder.path, GO_ON)) from None


def _run_on_hosts(
    plan: Plan, folder: RunFolder, progress: RunProgress, requests: Requests, access: HostAccess
) -> RunOutcome:
    run_folder.preload()
    for lost in lost_trials(folder.path):
        folder.append(lost)
        progress.say(lost.text)
    for note in fold_leftovers(folder):
        folder.append(note)
        progress.say(note.text)
    for event in beginning(plan, run_folder.read_run(folder.path), folder.history):
        folder.append(event)
    ended = Ended("failed")
    with suppress(Interrupted), interruptible(progress.say):
        try:
            prepared, liars = _share_images(plan, folder, progress, requests, access)
            with _Fleet(plan, folder, progress, requests, access, prepared, liars).taking_part() as fleet:
                why = fleet.run()
            ended = Ended("done", why)
        except Interrupted:
            ended = Ended("interrupted")
        except DbdynoError as error:
            ended = Ended("failed", cause=str(error))
            raise
        finally:
            with shielded():
                folder.append(ended)
    if ended.how == "done":
        forget_requests = [requests("forget", name) for name in fleet.present_hosts()]
        forget_all(access.hosts, forget_requests, access.argv, access.environment_of)
    return RunOutcome(ended.how, len(folder.history.failures))


def _share_images(
    plan: Plan, folder: RunFolder, progress: RunProgress, requests: Requests, access: HostAccess
) -> tuple[frozenset[str], Mapping[str, str]]:
    """Have all hosts start from the same bytes, as far as can be.

    Returns those that need to prepare nothing any more, and those that have lied, with what they did.
    """
    if len(plan.host_names()) == 1:
        return frozenset(), {}
    hosts = [name for name in plan.host_names() if name not in access.lost()]
    used = frozenset(trial.image_sha256 for trial in run_folder.read_run(folder.path).trials)
    data_bytes = max(map(_data_bytes_max, plan.specs.values()))
    idle = idle_seconds_max(plan, {})
    sharing = Sharing(access, requests, progress.say, used, len(plan.makers()), data_bytes, SILENT_MAX_SECONDS, idle)
    return sharing.share(hosts), sharing.liars


@dataclass
class _Fleet:
    """The hosts of one run, and what has come from them."""

    plan: Plan
    folder: RunFolder
    progress: RunProgress
    requests: Requests
    access: HostAccess
    prepared: frozenset[str] = frozenset()  # hosts that have the data that they need
    liars: Mapping[str, str] = field(default_factory=dict)  # hosts that have lied, and what they did
    inbox: Inbox = field(default_factory=Queue)
    parts: dict[str, Part] = field(init=False)
    stop: Stop = field(init=False)
    clients_away_at: float | None = None  # since when a host is lost that the load comes from
    measured: dict[str, float] = field(default_factory=dict)  # treatment -> seconds of its longest trial, since then
    closing: StopReason = ""  # why no further block is begun, while those that are open go on

    def __post_init__(self) -> None:
        hosts = self.plan.host_names()
        clients = frozenset(self.plan.client_hosts())
        self.parts = {
            name: Part(
                name,
                self.folder.path,
                self.access,
                self.inbox,
                block_bytes_max(self.plan),
                states_bytes_max(self.plan),
                clients_from=clients,
            )
            for name in hosts
        }
        pace = pace_of(self.folder.path, self.folder.history.timed, monotonic)
        at_once = self.plan.blocks_at_once
        pace.before_seconds /= at_once
        self.stop = Stop(self.folder.path, self.plan.design, pace, self.progress.say, at_once=at_once)

    def present_hosts(self) -> list[str]:
        """The hosts that are not lost, and have not lied: those may never answer."""
        return [name for name, part in self.parts.items() if not part.is_lost and name not in self.liars]

    @contextmanager
    def taking_part(self) -> Iterator["_Fleet"]:
        """All hosts started that are not lost; at the end each has put itself back, or is lost."""
        try:
            self._check_losses()
            for name, why in self.liars.items():
                self._exclude(self.parts[name], why)
            for part in self.parts.values():
                if not part.out:
                    self._start(part)
            yield self
        finally:
            self._end_all()

    def run(self) -> StopReason:
        """Block after block on each host; why there are no more."""
        why = self._why_no_more()
        while not why:
            self._let_begin()
            if self.closing and not any(part.is_in_block for part in self.parts.values()):
                return self.closing
            if all(part.out for part in self.parts.values()):
                reasons = "; ".join(f"{name}: {part.out}" for name, part in self.parts.items())
                raise HostError(f"no host is left ({reasons}); once one is back, go on with --resume")
            folded = self._take_message()
            self._check_losses()
            self._wait_for_clients()
            why = self._why_no_more() if folded else ""
        return why

    def _why_no_more(self) -> StopReason:
        over = self.folder.history.blocks_over()
        return self.stop.look(over) or ("blocks" if over >= self.plan.design.blocks else "")

    def _start(self, part: Part, *, between_plots: bool = False, prepared: bool = False) -> None:
        """Have a host take part; ``between_plots`` where it goes on in the block for which it was restarted.

        It is ``prepared`` where it has the data of this kernel.
        """
        done = len(host_blocks(self.folder).get(part.name, []))
        more: dict[str, Any] = {"stagger_seconds": stagger_seconds(self.plan), "address": ""}
        more["between_plots"] = between_plots
        more["kinds_ahead"] = kinds_ahead(self.plan, part.name)
        if self.access.clients and self.plan.client_hosts():
            more["address"] = self.access.clients.address(part.name)
        part.start(
            self.requests(
                "run",
                part.name,
                first=done + 1,
                prepared=prepared or (part.name in self.prepared and not between_plots),
                **more,
            )
        )

    def _let_begin(self) -> None:
        """Let hosts begin the blocks that they ask for: who has the fewest first, then in the order of the study."""
        blocks = {name: len(its) for name, its in host_blocks(self.folder).items()}
        asking = [part for part in self.parts.values() if part.asks]
        for part in sorted(asking, key=lambda part: blocks.get(part.name, 0)):
            if part.is_between_plots:
                part.is_between_plots = False
                self._do(part, part.go)
                continue
            self.closing = self.closing or self.stop.out_of_time()
            if not self.closing and self._may_begin(part):
                part.block_began = monotonic()
                self._do(part, part.go)

    def _may_begin(self, part: Part) -> bool:
        """Whether there is a block for a host now: each has as many, those of a lost one being the others'."""
        blocks = {name: len(its) for name, its in host_blocks(self.folder).items()}
        open_ = sum(other.is_in_block for other in self.parts.values())
        if self.folder.history.blocks_over() + open_ >= self.plan.design.blocks:
            return False
        if self.plan.client_hosts() and (open_ or self.clients_away_at is not None):
            return False  # who loads one host is at the limit sooner where it loads two
        there = [name for name, other in self.parts.items() if not other.out]
        gone = sum(count for name, count in blocks.items() if name not in there)
        share = -(-(self.plan.design.blocks - gone) // len(there))
        return blocks.get(part.name, 0) < share

    def _take_message(self) -> bool:
        """Take one message, if there is any; whether it was a block."""
        try:
            name, start, message = self.inbox.get(timeout=_LOOK_SECONDS)
        except Empty:
            return False
        part = self.parts[name]
        if start != part.starts:
            return False
        part.heard_at = monotonic()
        if not isinstance(message, Beats):
            part.moved_at = part.heard_at
        try:
            if isinstance(message, BlockOver):
                self._fold(part, message)
                return True
            self._handle(part, message)
        except LieError as error:
            self._exclude_liar(part, str(error).removeprefix(f"{name}: "))
        return False

    def _fold(self, part: Part, message: BlockOver) -> None:
        """Take in a block that has come. Raises ``LieError`` where it is none that this host can have."""
        if not part.has_open_block or message.block != self._next_block(part):
            raise LieError(f"it delivered block {message.block} twice")
        with shielded():
            fold(
                self.folder,
                accept_arrival(arrival_path(self.folder.path, part.name, part.starts), part.name, message.block),
            )
        part.fruitless, part.boots, part.has_open_block = 0, 0, False
        if self.plan.kernels():
            self.stop.pace.lengths.append(monotonic() - part.block_began)
        elif message.seconds:
            self.stop.pace.lengths.append(message.seconds)

    def _handle(self, part: Part, message: Message) -> None:  # noqa: C901  (a case for each message)
        """Take any other message. Raises ``LieError`` where it can't be, as things are."""
        match message:
            case Say():
                self.progress.say(f"{part.name}: {message.say}")
            case JoinedIn():
                self._join(part, message)
            case Asks():
                if part.has_open_block or not part.has_joined or message.asks != self._next_block(part):
                    raise LieError(f"it asked for block {message.asks}, which is not its next")
                part.asks = message.asks
            case TrialBegins():
                self._check_trial(part, message.trial)
                part.treatment = message.trial.treatment
                note = ", ".join(filter(None, [f"on {part.name}", message.note]))
                self.progress.trial(message.trial, note, self.folder.history.done(), self.stop.outlook)
            case TrialOver():
                self.measured[part.treatment] = max(message.trial_done, self.measured.get(part.treatment, 0.0))
                self.progress.trial_done(message.trial_done / self.plan.blocks_at_once)
            case ClientsLost():
                self._note(f"{message.why}; the block that {part.name} had open is void")
                part.has_open_block = False
                self._do(part, part.end)
            case NeedsKernel():
                self._check_restart(part, message.kernel)
                part.needs_kernel, part.boots = message.kernel, part.boots + 1
            case Booted():
                self._after_restart(part, message.why_not)
            case Failed():
                self._exclude(part, message.error)
            case Gone():
                self._program_ended(part, message.why)
            case Lied():
                self._exclude_liar(part, message.why)

    def _join(self, part: Part, message: JoinedIn) -> None:
        if part.has_joined:
            raise LieError("it joined twice")
        part.join(message.go)
        joined = Joined(part.name, message.joined, message.versions)
        if self.folder.history.hosts.get(part.name) != joined:
            self.folder.append(joined)

    def _check_restart(self, part: Part, kernel: str) -> None:
        """Raise ``LieError`` where a host asks to be restarted though nothing that it was let run needs it."""
        most = ATTEMPTS * len(self.plan.specs)
        if kernel not in self.plan.kernels() or not part.has_open_block or part.boots >= most:
            raise LieError("it asked for a restart that no trial of its block needs")

    def _after_restart(self, part: Part, why_not: str) -> None:
        """A host was restarted: it goes on with its block; or it no longer takes part."""
        part.booting = None
        if not why_not:
            has_its_data = part.needs_kernel in part.kernels
            part.kernels.add(part.needs_kernel)
            part.needs_kernel, part.is_between_plots, part.fruitless = "", True, 0
            self._start(part, between_plots=True, prepared=has_its_data)
            return
        part.is_lost = part.name in self.access.lost()
        tried = self.access.why_not_back().get(part.name, "")
        reason = f"{why_not} (tried again: {tried})" if tried and part.is_lost else why_not
        self._exclude(part, f"{reason}; the block in progress is void")

    def _next_block(self, part: Part) -> int:
        return len(host_blocks(self.folder).get(part.name, [])) + 1

    def _check_trial(self, part: Part, slot: Slot) -> None:
        if (
            not part.has_open_block
            or slot.block != part.open_block
            or not 1 <= slot.attempt <= ATTEMPTS_MAX
            or (slot not in self.plan.on_host(part.name).slots(slot.block, slot.attempt))
        ):
            raise LieError("it began a trial that is not planned")

    def _exclude_liar(self, part: Part, why: str) -> None:
        """A host lies, or is broken: what it had open is void, and it is asked for nothing any more in this run."""
        void = "; the block in progress is void" if part.has_open_block else ""
        part.disown()
        self.liars = {**self.liars, part.name: why}
        self._exclude(part, f"{why}{void}; check what runs on it, then run dbdyno restore --hosts")

    def _program_ended(self, part: Part, why: str) -> None:
        """A host's program has ended though nobody asked it to: what it had open is void, and it is started again."""
        was_open, part.is_between_plots = part.has_open_block or part.is_between_plots, False
        part.mark_ended()
        if part.out:
            return
        if part.needs_kernel:
            self.progress.say(f"{part.name}: restarts with kernel {part.needs_kernel}")
            part.boot()
            return
        if was_open:
            self._note(f"{part.name}: its dbdyno ended ({why}); the block in progress is void")
        if part.fruitless >= STARTS:
            self._exclude(part, f"its dbdyno ended {STARTS} times: {why}")
        else:
            part.again_at = monotonic() + self.access.pause_seconds

    def _exclude(self, part: Part, why: str) -> None:
        """A host no longer takes part; the others go on."""
        part.out, part.again_at, part.needs_kernel, part.is_between_plots = why, None, "", False
        part.mark_ended()
        self._note(f"{part.name} no longer takes part: {why}")

    def _note(self, text: str) -> None:
        """Say something, also to who reads the run later."""
        self.folder.append(Note(text))
        self.progress.say(text)

    def _check_losses(self) -> None:
        lost, tried = self.access.lost(), self.access.why_not_back()
        idle_max, now = idle_seconds_max(self.plan, self.measured), monotonic()
        for name, part in self.parts.items():
            is_awaited = part.is_running and not part.asks and not part.is_offering
            if is_awaited and now - part.heard_at > SILENT_MAX_SECONDS:
                self._exclude_liar(part, f"it has sent nothing for {format_roughly(SILENT_MAX_SECONDS)}")
            elif is_awaited and now - part.moved_at > idle_max:
                self._exclude_liar(part, f"it has made no progress for {format_roughly(idle_max)}")
            if part.booting is not None:
                continue  # it is lost for as long as it takes, and who restarts it looks after it
            if name in lost and not part.is_lost:
                void = "; the block in progress is void" if part.is_in_block else ""
                part.starts += 1  # what still comes from it is of nobody's
                part.is_lost = True
                self._exclude(part, f"it is lost ({lost[name]}){void}")
            elif part.again_at is not None and monotonic() >= part.again_at:
                self._start(part)
            elif name not in lost and part.is_lost:
                self._note(f"{name} is back, and takes whole blocks")
                self._start(part)
            elif part.is_lost and (why := tried.get(name, "")) != part.not_back:
                part.not_back = why
                self.progress.say(f"{name} is still away: {why}")

    def _wait_for_clients(self) -> None:
        """Have no block begun while a client host is lost. Raises ``HostError`` where it stays so."""
        lost = self.access.lost()
        why = "; ".join(
            f"client host {client} is lost: {lost[client]}" for client in self.plan.client_hosts() if client in lost
        )
        if why and self.clients_away_at is None:
            self.clients_away_at = monotonic()
            self.progress.say(f"{why}; no block begins until it is back ({_AWAY_SECONDS:g} s at most)")
        elif not why and self.clients_away_at is not None:
            self.clients_away_at = None
            self._note("all client hosts are back")
        if self.clients_away_at is not None and monotonic() - self.clients_away_at > _AWAY_SECONDS:
            raise HostError(f"{why}; once it is back, run dbdyno hosts up if needed, and go on with --resume")

    def _do(self, part: Part, what: Any) -> None:  # noqa: ANN401  (a method of the part)
        """Do something with a host; where that can't be, its program counts as gone."""
        try:
            what()
        except DbdynoError as error:
            self.inbox.put((part.name, part.starts, Gone(str(error))))

    def _end_all(self) -> None:
        """End every program that runs, and wait until the hosts are put back, but not for those that are lost."""
        for part in self.parts.values():
            if part.is_running:
                self._do(part, part.end)
        until = monotonic() + _LOWERING_SECONDS
        while any(part.is_running for part in self.parts.values()) and monotonic() < until:
            with suppress(Empty):
                name, start, message = self.inbox.get(timeout=_LOOK_SECONDS)
                if start == self.parts[name].starts:
                    self._handle_last(self.parts[name], message)
            for name in self.access.lost():
                if name in self.parts:
                    self.parts[name].mark_ended()
        for name in [part.name for part in self.parts.values() if part.is_running]:
            self.progress.say(f"{name}: did not confirm that its settings are restored; run dbdyno restore --hosts")
        if self.plan.kernels() and self.access.clients is not None:
            with shielded():
                self._return_kernels(self.access.clients.reboots)

    def _return_kernels(self, reboots: Reboots) -> None:
        """Return each host to the kernel that it had, all at once, and wait for them."""
        for part in self.parts.values():
            if part.booting is not None:
                if part.booting.is_alive():
                    self.progress.say(f"{part.name}: is restarting; dbdyno waits until it is back")
                part.booting.join()  # else it might restart once more when it is to have its own kernel

        def returned(name: str) -> str:
            try:
                kernel = reboots.return_own(name)
            except (DbdynoError, OSError, ValueError) as error:
                reason = f"{error}" if str(error).startswith(f"{name}: ") else f"{name}: {error}"
                return f"{reason}; dbdyno restore --hosts returns it to its own kernel"
            return f"{name}: runs its own kernel again: {kernel}" if kernel else ""

        with ThreadPoolExecutor(len(self.parts)) as pool:
            for report in pool.map(returned, self.parts):
                if report:
                    self.progress.say(report)

    def _handle_last(self, part: Part, message: Message) -> None:
        """Take what a program says that is to end; one that asks had just begun when it was to end."""
        match message:
            case Say():
                self.progress.say(f"{part.name}: {message.say}")
            case JoinedIn():
                part.join(message.go)
            case Asks():
                part.asks = message.asks
                self._do(part, part.end)
            case Lied():
                part.disown()
            case Gone():
                part.mark_ended()
