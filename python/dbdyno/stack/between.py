"""The contract of a layer between the disks and the filesystem, and the kernel modules that such a layer needs."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from dbdyno.model.design import BOOTED_KERNELS
from dbdyno.stack.capabilities import Capability
from dbdyno.stack.layer import Layer
from dbdyno.stack.tools import run_tool, tool_path
from dbdyno.study.schema import TrialSpec

NONE = "none"  # what the field of a layer says where there is none


class Between(ABC):
    """One such layer: whether a treatment has it, what it needs, and the layer itself."""

    FIELD: ClassVar[str]  # of [stack], which says whether there is one
    PROGRAMS: ClassVar[Mapping[str, str]]  # that make it, of whichever kind, and the package of each
    TOUCHES: ClassVar[str]  # what raising it changes on the host, for ``plan``

    def is_wanted(self, spec: TrialSpec) -> bool:
        """Whether a treatment has it."""
        return str(getattr(spec.stack, self.FIELD)) != NONE

    def programs(self, spec: TrialSpec) -> Mapping[str, str]:
        """The programs that make what a treatment has, and the package of each."""
        return self.PROGRAMS

    @abstractmethod
    def modules(self, spec: TrialSpec) -> list[str]:
        """The modules of the kernel without which it can't be raised."""

    @abstractmethod
    def on_disk(self, spec: TrialSpec) -> list[object]:
        """What of it is on the disks, by which prepared data differ; what each trial makes anew is not."""

    @abstractmethod
    def layer(self, spec: TrialSpec, *, fresh: bool, key: bytes) -> Layer:
        """The layer: made anew, or found on the disks; ``key`` is that of the prepared data."""

    def needs(self, spec: TrialSpec, modules: Path, kernel: str) -> Iterator[Capability]:
        """Its programs, and its modules in the kernel that the trial runs on.

        ``modules`` is that kernel's folder of them, ``kernel`` what it is called in [stack], empty for the host's own.
        """
        for name in self.modules(spec):
            if not has_module(modules, name) and not (not kernel and is_loaded(name)):
                yield _lacking_module(self.FIELD, name, kernel)
        for program, package in self.programs(spec).items():
            found = tool_path(program)
            detail, remedy = found or "is not installed", "" if found else f"apt-get install {package}"
            yield Capability(program, ok=bool(found), detail=detail, remedy=remedy, field=("stack", self.FIELD))


def _lacking_module(field: str, name: str, kernel: str) -> Capability:
    """One sentence of what the kernel lacks, and which one to boot instead."""
    known = BOOTED_KERNELS[-2]
    if kernel:
        detail, remedy = f"kernel {kernel} has no module {name}", "name another in stack.kernel"
    else:
        detail = f"this host's kernel {os.uname().release} has no module {name}"
        remedy = f'boot a kernel that has it, in a virtual machine: stack.kernel = "{known}"'
    return Capability(f"stack.{field}", ok=False, detail=detail, remedy=remedy, field=("stack", field))


def modules_here() -> Path:
    """The folder of the modules of the kernel that runs."""
    return Path("/lib/modules") / os.uname().release


def has_module(folder: Path, name: str) -> bool:
    """Whether a kernel has a module, as a file or built in, by the lists that depmod(8) keeps in its folder."""
    for listing in ("modules.dep", "modules.builtin"):
        try:
            lines = (folder / listing).read_text(encoding="utf-8").splitlines()
        except OSError:
            continue
        if any(_module_name(line.partition(":")[0]) == _module_name(name) for line in lines):
            return True
    return False


def _module_name(file: str) -> str:
    return Path(file).name.partition(".ko")[0].replace("-", "_")


def is_loaded(name: str) -> bool:
    """Whether the running kernel has a module by now."""
    return Path("/sys/module", _module_name(name)).is_dir()


def load_module(name: str) -> None:
    """Have the running kernel load a module, which stays, as after any mount. Raises ``TrialError``, ``HostError``."""
    if not is_loaded(name):
        run_tool(["modprobe", name])
