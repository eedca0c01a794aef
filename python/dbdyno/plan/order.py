"""The random order of a run's trials, and their seeds: the same on every machine."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dbdyno.errors import UserError
from dbdyno.model.design import Design, Fleet, Until
from dbdyno.study.document import Setting, WorkloadSection
from dbdyno.study.schema import MAX_BLOCKS, TrialSpec
from dbdyno.study.study import Study


@dataclass(frozen=True)
class Slot:
    """One trial to be run."""

    block: int  # from 1
    attempt: int  # from 1
    position: int  # from 1, in the run order of its block
    treatment: str

    @property
    def id(self) -> str:
        """Sorts in run order, as files do: ``b0003a1p002-t4``."""
        return f"b{self.block:04d}a{self.attempt}p{self.position:03d}-{self.treatment}"


def slots_of(design: Design, block: int, attempt: int) -> list[Slot]:
    """The trials of one attempt at a block, in the random order that the seed gives.

    Whole plots stand in random order, and the trials inside each; without them a block is a single one.
    """
    plots = whole_plots(design)

    def place(id_: str) -> tuple[bytes, bytes]:
        return drawn(design.seed, "plot", block, attempt, plots[id_]), drawn(design.seed, "order", block, attempt, id_)

    return [Slot(block, attempt, position, id_) for position, id_ in enumerate(sorted(plots, key=place), 1)]


def whole_plots(design: Design) -> dict[str, str]:
    """Treatment -> the first treatment with the same levels of all factors that are hard to change: its whole plot.

    A control that is no treatment of the study has no such level, and so is a whole plot of its own.
    """
    hard = [factor.name for factor in design.factors if factor.hard_to_change]
    first: dict[tuple[str, ...], str] = {}
    return {t.id: first.setdefault(tuple(t.levels.get(name, "") for name in hard), t.id) for t in design.tried}


def seed_of_host(seed: int, host: str, fleet: Fleet) -> int:
    """The seed of one host's blocks: its n-th has an order of its own, whichever hosts are faster.

    A study on one host has the order that it would have without the word.
    """
    return seed if len(fleet.hosts) == 1 else int.from_bytes(drawn(seed, "host", host)[:6])


def drawn(seed: int, *what: object) -> bytes:
    """A random number that the seed gives to this alone."""
    return hashlib.sha256("/".join(map(str, (seed, *what))).encode()).digest()


# What prepared data depends on: treatments of the same key start from the same bytes.


VERSION = 2  # of how data are prepared; what was kept under another one is not used


def image_key(spec: TrialSpec, server: str | None, settings: Mapping[str, Setting]) -> str:
    """Names the prepared data of a treatment; ``server`` identifies the build, if there is one.

    Of its ``settings`` those on which data may depend. The drive's model is not among it.
    """
    stack = spec.stack
    emulated = stack.model is not None
    what = {
        "version": VERSION,
        "place": [stack.size, stack.devices] if emulated else "tree",
        "filesystem": [stack.filesystem, spec.filesystem.mkfs, spec.filesystem.mount] if emulated else None,
        "server": server,
        "settings": dict(settings),
        "engine": stack.engine if server else None,
        "data": _data(spec.workload),
    }
    if beside := {name: _data(load) for name, load in spec.loads_beside.items() if load.has_data}:
        what["beside"] = beside
    if spec.by_disk:
        what["disks"] = {name: _on_disk(disk) if emulated else None for name, disk in spec.by_disk.items()}
        what["places"] = spec.places
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()


def _on_disk(disk: TrialSpec) -> list[object]:
    return [disk.stack.size, disk.stack.filesystem, disk.filesystem.mkfs, disk.filesystem.mount]


def _data(load: WorkloadSection) -> dict[str, Any]:
    """What the workload's data depends on; a file of the user's own goes by its content."""
    fields = load.data()
    files = load.own_files() | load.secret_files()
    return fields | {name: file_sha256(Path(path)) for name, path in files.items() if name in fields}


def file_sha256(path: Path) -> str:
    """Identity of a file's content, wherever it lies."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# When measuring stops: the rule of the study, of the command line, of a run that is resumed.


DEFAULT_MAX_BLOCKS = 40


@dataclass(frozen=True)
class StopRule:
    """The part of a design that says when measuring stops; see ``Design``."""

    until: Until
    blocks: int  # at most, where ``until`` is another than "blocks"
    half_width: float | None = None
    budget_seconds: float | None = None

    @classmethod
    def of_study(cls, study: Study) -> "StopRule":
        """What the study says; without a word of it, until all is decided. Cuts that are to be examined fix it."""
        section = study.design
        if study.crash is not None:
            return cls("blocks", study.crash.blocks, None, section.budget)
        if section.blocks is not None:
            return cls("blocks", section.blocks, None, section.budget)
        blocks = section.max_blocks or DEFAULT_MAX_BLOCKS
        return cls(section.until or "decided", blocks, section.half_width, section.budget)

    @classmethod
    def of_run(cls, design: Design) -> "StopRule":
        """What a run was begun with."""
        return cls(design.until, design.blocks, design.half_width, design.budget_seconds)


@dataclass(frozen=True)
class StopOptions:
    """What the command line gives about when to stop."""

    blocks: int | None = None
    max_blocks: int | None = None
    budget_seconds: float | None = None
    until_decided: bool = False

    def check(self) -> None:
        """Raise ``UserError`` where it contradicts itself."""
        if self.blocks is not None and (self.max_blocks is not None or self.until_decided):
            other = "--until-decided" if self.until_decided else "--max-blocks"
            raise UserError(f"--blocks fixes the number of blocks, {other} lets the data decide; give one")

    def override(self, study_rule: StopRule) -> StopRule:
        """What a new run is to do where the study says ``study_rule``."""
        self.check()
        if self.blocks is not None:
            study_rule = StopRule("blocks", self.blocks, None, study_rule.budget_seconds)
        elif self.until_decided:
            study_rule = StopRule("open", self.max_blocks or MAX_BLOCKS, None, study_rule.budget_seconds)
        elif self.max_blocks is not None:
            study_rule = replace(
                study_rule,
                until="decided" if study_rule.until == "blocks" else study_rule.until,
                blocks=self.max_blocks,
            )
        return study_rule if self.budget_seconds is None else replace(study_rule, budget_seconds=self.budget_seconds)

    def for_resume(self, earlier: StopRule, into: Path) -> StopRule:
        """What a run that was begun with ``earlier`` is to do. Raises ``UserError`` where that would change its plan.

        Only the always-valid sequence allows to go on for whatever the results look like; its time counts anew.
        """
        self.check()
        if self.until_decided:
            return StopRule("open", self.max_blocks or MAX_BLOCKS, None, self.budget_seconds)
        if self.override(earlier) != earlier:
            raise UserError(
                f"{into} was begun with another plan of when to stop, and a run keeps it: go on without --blocks, "
                "--max-blocks and --budget, or with --until-decided, which goes beyond any plan"
            )
        return earlier
