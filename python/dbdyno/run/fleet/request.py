"""What a host under test is asked to do with a study: the study, its own files, and which of its blocks."""

import base64
import json
import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol, Self

from dbdyno.errors import UserError
from dbdyno.model.fio import with_values
from dbdyno.plan.order import seed_of_host
from dbdyno.plan.plan import Plan, aa_plan, make_plan
from dbdyno.plan.stop_rule import StopRule
from dbdyno.run.preflight import keeping_traces
from dbdyno.study.load import load_study
from dbdyno.study.schema import MAX_BLOCKS

Task = Literal["facts", "images", "prepare", "take", "run", "forget"]


@dataclass(frozen=True)
class Request:
    """One task of one host. It goes there as JSON, on standard input."""

    task: Task
    host: str
    identity: str  # of the run; the host's own run folder is named by it
    study: str = ""  # where the study lies in the tree of ``files``
    files: dict[str, str] = field(default_factory=dict)  # path in that tree -> content, in base64
    scale: str = ""
    seed: int = 0  # of this host
    aa: str | None = None  # the treatment's label, of an A/A run
    first: int = 1  # of its blocks, by its own count, that is still to be delivered
    erase: list[str] = field(default_factory=list)
    fresh_images: bool = False
    keep_traces: bool = False
    address: str = ""  # of the host, as those reach it that its load comes from; empty where it is its own client
    stagger_seconds: float = 0.0  # how far the start of a block is put off at most
    between_plots: bool = False  # it goes on in the middle of a block, having been restarted for it
    kinds_ahead: int = 0  # blocks by which its kinds of cut are ahead of its own count, so that hosts share them out
    image: str = ""  # the key of the prepared data that are to be made, or taken in from another host
    image_sha256: str = ""  # what is to be taken in
    image_bytes: int = 0

    def to_json(self) -> bytes:
        """As it is sent."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, content: bytes) -> Self:
        """As it has come."""
        return cls(**json.loads(content))

    def unpack(self, folder: Path) -> Path:
        """Write the study and its files below a folder; where the study is."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(base64.b64decode(content))
        return folder / self.study

    def plan(self, study: Path) -> Plan:
        """The plan of this host, as of a study on one host: who asks decides how many blocks there are.

        Raises ``UserError`` where it can't be one here.
        """
        loaded = load_study(study, self.scale).on_host(self.host)
        if self.aa is not None:
            made = aa_plan(loaded, treatment=self.aa, blocks=MAX_BLOCKS, seed=self.seed)
        else:
            made = make_plan(loaded, seed=self.seed, stop_rule=StopRule("blocks", MAX_BLOCKS))
        alone = replace(made, design=replace(made.design, fleet=None))
        return keeping_traces(alone) if self.keep_traces else alone


class Requests(Protocol):
    """What makes the requests of a run."""

    def __call__(self, task: Task, host: str, *, prepared: bool = False, **more: Any) -> Request:  # noqa: ANN401  (fields of the request)
        """One task of one host. With ``prepared`` it has what it needs, made for this run, and makes nothing anew."""


def make_requests(plan: Plan, identity: str, erase: frozenset[str], *, fresh_images: bool) -> Requests:
    """Return what makes the requests of a run: called with task and host, and, to run, ``first`` and more.

    Raises ``UserError`` where the study names a file by a path that hosts don't have.
    """
    study, files = _tree_of(plan)
    design = plan.design
    fleet = design.fleet
    assert fleet is not None  # noqa: S101  (who calls this has one)

    def make_request(task: Task, host: str, *, prepared: bool = False, **more: Any) -> Request:  # noqa: ANN401  (fields of the request)
        return Request(
            task=task,
            host=host,
            identity=identity,
            study=study,
            files=files,
            scale=plan.study.scale,
            seed=seed_of_host(design.seed, host, fleet),
            aa=design.aa.treatment if design.aa else None,
            erase=sorted(erase),
            fresh_images=fresh_images and not prepared,
            keep_traces=plan.keep_traces,
            **more,
        )

    return make_request


def _tree_of(plan: Plan) -> tuple[str, dict[str, str]]:
    """The study and its own files as they lie to each other; where the study is in that tree."""
    study = plan.study.path.resolve()
    own = [Path(path) for files in plan.own_files.values() for path in files] + [
        Path(name) for name in plan.file_hashes
    ]
    for path in own:
        if str(path) in plan.study.text:
            raise UserError(
                f"{plan.study.path}: names {path}, which lies on this machine; give its path from the study's folder, "
                "so that it can be sent to the hosts under test"
            )
    root = Path(os.path.commonpath([study.parent, *(path.resolve().parent for path in own)]))
    files = {str(study.relative_to(root)): base64.b64encode(plan.study.text.encode()).decode()}
    for path in own:
        content = path.read_bytes()
        if plan.variables and str(path) in plan.own_files["scripts"]:  # hosts have other ones
            content = with_values(content.decode(), plan.variables).encode()
        files[str(path.resolve().relative_to(root))] = base64.b64encode(content).decode()
    return str(study.relative_to(root)), files
